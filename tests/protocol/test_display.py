from __future__ import annotations

import re
import sys
import time
import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol import display
from mcphost.protocol.display import (
    age_text,
    duration_text,
    hidden_count,
    hidden_in,
    show,
    show_line,
    size_text,
    unindented,
)

VISIBLE_FORMAT_CONTROLS = {0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x600, 0x606)}
LETTERLIKE_BLANKS = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0}
SELECTORS = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
UNSEEN = LETTERLIKE_BLANKS | SELECTORS


def must_not_come_out(character: str) -> bool:
    """Say it from Unicode's own tables, so that a hole in the module's ranges shows."""
    code = ord(character)
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character not in "\n\t" and code not in VISIBLE_FORMAT_CONTROLS
    return code in UNSEEN


@cache
def nasty() -> list[str]:
    return [chr(code) for code in range(sys.maxunicode + 1) if must_not_come_out(chr(code))]


NASTY = st.deferred(lambda: st.sampled_from(nasty()))
HOSTILE = st.text(st.one_of(st.characters(), NASTY, st.sampled_from("a\u0301\u20dd\u200d\ufe0f⟨\r\n")))


@pytest.mark.hostile("T01", "T07", "T08", "T09")
def test_every_hidden_character_of_unicode_becomes_visible() -> None:
    """C0, DEL, C1, bidi controls, tags and fillers, each alone."""
    shown = [show(character) for character in nasty()]
    assert not [hex(ord(c)) for c, text in zip(nasty(), shown, strict=True) if not text or must_not_come_out(text[0])]
    assert not [c for text in shown for c in text if must_not_come_out(c)]


@given(HOSTILE)
def test_nothing_hidden_survives_and_showing_twice_changes_nothing(text: str) -> None:
    shown = show(text)
    assert not [character for character in shown if must_not_come_out(character)]
    assert show(shown) == shown
    assert hidden_count(shown) == 0


@given(HOSTILE)
def test_joiners_kept_for_emoji_are_the_only_exception(text: str) -> None:
    shown = show(text, joiners=True)
    assert {character for character in shown if must_not_come_out(character)} <= set("\u200d\ufe0e\ufe0f")
    assert show(shown, joiners=True) == shown


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Mn", "Me", "Zl", "Zp"])))
def test_plain_text_is_unchanged(text: str) -> None:
    if not any(must_not_come_out(character) for character in text):
        assert show(text) == text


@given(HOSTILE, st.integers(0, 40))
def test_a_limit_holds_and_never_cuts_a_mark_in_two(text: str, limit: int) -> None:
    cut = show(text, limit=limit)
    if cut == show(text):
        assert len(cut) <= limit + len(" … 999 B more")
        return
    head = cut.rpartition(" … ")[0]
    assert len(head) <= limit
    assert "⟨U+" not in head[-10:].rpartition("⟩")[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),  # T01
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),  # T02, T04
        ("\x1b]8;;file:///etc/passwd\x1b\\x", "␛]8;;file:///etc/passwd␛\\x"),  # T03
        ("\x1b[6n\x1bc\x1b[?2004l", "␛[6n␛c␛[?2004l"),  # T05, T06
        ("\x9b2J\x9d0;x\x90", "⟨U+009B⟩2J⟨U+009D⟩0;x⟨U+0090⟩"),  # T07
        ("safe\u202etxt.exe", "safe⟨U+202E⟩txt.exe"),  # T08
        ("hi\U000e0041\u200b", "hi⟨U+E0041⟩⟨U+200B⟩"),  # T09
        ("[@click=app.quit][/b] [DELETES ALL]", "[@click=app.quit][/b] [DELETES ALL]"),  # T10: plain text, complete
        ("a\r\nb\rc\td\x7f\x00", "a\nb␍c\td␡␀"),
        ("\ud800x", "\ufffdx"),  # J07
        ("e" + "\u0301" * 200, "e" + "\u0301" * 4 + "⟨196 more marks⟩"),  # T12
        ("नमस्ते größer 日本 é", "नमस्ते größer 日本 é"),
    ],
)
def test_hostile_text_is_shown_as_marks(text: str, shown: str) -> None:
    assert show(text) == shown


def test_the_quick_check_passes_over_no_combining_mark() -> None:
    marks = (chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Mn", "Me"))
    assert re.findall(f"[{display._NEVER_COMBINING}]", "".join(marks)) == []


def test_joiners_do_not_begin_the_count_of_combining_marks_again() -> None:
    shown = show("a" + ("\u0300" * 4 + "\u200d") * 10, joiners=True)
    assert shown == "a" + "\u0300" * 4 + "\u200d⟨36 more marks⟩"


@pytest.mark.parametrize(
    ("description", "plain"),
    [
        ("one line", "one line"),
        ("", ""),
        ("\n    Reads.\n\n      - deep\n    ", "\nReads.\n\n  - deep\n"),
        ("  Reads.\n\t\tMore.\n\t\tAnd.", "Reads.\nMore.\nAnd."),
        ("Reads.\nNot indented.\n    code", "Reads.\nNot indented.\n    code"),
    ],
)
def test_a_description_loses_the_indentation_that_all_its_lines_have(description: str, plain: str) -> None:
    assert unindented(description) == plain


@pytest.mark.parametrize("emoji", ["👨‍👩‍👧", "❤️‍🔥", "1️⃣", "🏳️‍🌈"])
def test_emoji_stay_whole_in_results_and_are_marked_elsewhere(emoji: str) -> None:
    assert show(emoji, joiners=True) == emoji
    assert "⟨U+" in show(emoji)


def test_data_hidden_in_rows_of_joiners_is_marked_even_in_results() -> None:
    assert show("☀\ufe0f\ufe0e\u200d\u200d", joiners=True) == "☀\ufe0f⟨U+FE0E⟩\u200d⟨U+200D⟩"


@pytest.mark.parametrize("base", ["a", "7", "#", "é", "日", "_", "─", "⟩"])
def test_a_selector_stays_after_an_emoji_and_in_a_keycap_only(base: str) -> None:
    # A selector after every other letter is a bit a letter that the model reads and the person does not see.
    assert show(f"{base}\ufe0f{base}\ufe0e", joiners=True) == f"{base}⟨U+FE0F⟩{base}⟨U+FE0E⟩"
    assert hidden_in(f"{base}\ufe0f") == 1


def test_empty_braille_is_marked_outside_pictures_of_dots() -> None:
    assert show("a\u2800b") == "a⟨U+2800⟩b"
    assert show("a" + "\u2800" * 500) == "a⟨U+2800×500⟩"
    assert show("a" + "\u2800" * 500, joiners=True) == "a⟨U+2800×500⟩"
    assert show("\u2800\u2800⣀⣤\u2800", joiners=True) == "\u2800\u2800⣀⣤\u2800"
    assert hidden_count("⣀\u2800\u2800") == 2
    assert (hidden_in("⣀\u2800\u2800"), hidden_in("x\u2800\u2800")) == (0, 2)


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("x" * 10, 10, "x" * 10),
        ("x" * 193_010, 10, "x" * 10 + " … 193 kB more"),
        ("x" * 22, 10, "x" * 22),
        ("x" * 23, 10, "x" * 10 + " … 13 B more"),
        ("\x1b" * 22, 10, "␛" * 22),
        ("\u202e" * 50, 20, "⟨U+202E⟩⟨U+202E⟩ … 144 B more"),
        ("é" * 50, 0, " … 100 B more"),
    ],
)
def test_the_size_of_cut_text_is_in_bytes(text: str, limit: int, shown: str) -> None:
    assert show(text, limit=limit) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls" + " " * 5000 + "; rm -rf ~", "ls␣×5000; rm -rf ~"),  # P08
        ("a\nb\tc  d\r\ne", "a⏎b→c  d⏎e"),
        ("\n" * 60 + "[y/N]" + "\t" * 4, "⏎×60[y/N]→×4"),  # T12
        ("a" + "\u00a0\u2003" * 9 + "b", "a␣×18b"),
        ("475712" + " " * 4 + "7164 memcache.go", "475712␣×4 7164 memcache.go"),
        ("1\n\n\n\n2\t\t\t\t3" + " " * 5 + "٣", "1⏎×4 2→×4 3␣×5 ٣"),
        ("x" * 201, "x" * 201),
        ("x" * 240, "x" * 200 + " … 40 B more"),
        ("x" * 500_000, "x" * 200 + " … 500 kB more"),
    ],
)
def test_a_line_stays_one_line_and_long_blanks_are_counted(text: str, shown: str) -> None:
    assert show_line(text) == shown


@pytest.mark.hostile("T09")
def test_hidden_characters_are_counted_for_review_screens() -> None:
    """The number the review screen gives."""
    assert hidden_count("a\U000e0041\U000e0042\u200b\u202e\x1b\n") == 4
    assert hidden_count("plain\x1b") == 0
    assert hidden_in({"a\U000e0041": ["\u200b", "plain", 7]}) == 2
    assert hidden_in(["\u2600\ufe0f sun", "\U0001f469\u200d\U0001f52c", "a\ufe0f\ufe0f", None]) == 2


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 B"), (999, "999 B"), (1400, "1.4 kB"), (14_000, "14 kB"), (999_600, "1.0 MB"), (10**15, "1000000 GB")],
)
def test_sizes_read_well(bytes_: int, text: str) -> None:
    assert size_text(bytes_) == text


def test_impossible_sizes_can_be_shown() -> None:
    assert (size_text(10**400), size_text(-1)) == ("1000000000 GB", "0 B")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((-1, "0 ms"), (float("nan"), "0 ms"), (0.031, "31 ms"), (0.9996, "1.0 s"), (1.2, "1.2 s"), (42, "42 s")),
        *((59.6, "1 min"), (185, "3 min 5 s"), (3599.9, "1 h"), (7800, "2 h 10 min"), (90_000, "1 d 1 h")),
    ],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "just now"), (59, "just now"), (185, "3 min ago"), (7300, "2 h ago"), (180_000, "2 d ago")],
)
def test_ages_read_well(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def test_a_megabyte_of_plain_text_costs_a_few_milliseconds() -> None:
    text = "a plain line of a log\n" * 45_000
    started = time.thread_time()
    assert show(text) is text
    assert time.thread_time() - started < 1
