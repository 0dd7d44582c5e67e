"""The difference of two definitions: its words are marked, and in view however long the text is."""

from __future__ import annotations

import time

import pytest
from textual.content import Content

from mcphost.host.consent.definition_diff import Difference
from mcphost.tui.consent.difference import CHANGED_STYLE, LEAD, SHOWN_CHARACTERS, common_ends, difference_facts

FILLER = "It reads files. " * 1_000


def shown(before: str | None, after: str | None) -> list[Content]:
    """The values of the row below the field's name."""
    _, row = difference_facts(Difference("description", before, after))
    return [row.value] if row.other is None else [row.value, row.other]


def marked(content: Content) -> list[str]:
    return [
        content.plain[span.start : span.end]
        for span in content.spans
        if span.style == CHANGED_STYLE and span.end > span.start
    ]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("reads a file", "writes a file", ["reads"], ["writes"]),
        ("the sixth-order lens", "the fourth-order lens", ["sixth"], ["fourth"]),
        ("one", "one two", [], [" two"]),
        ("undo it", "do it", ["undo"], ["do"]),
        ("first\nsecond", "first\nthird", ["second"], ["third"]),
        ("3", "6", [], []),
        ("aaaa", "aaa", [], []),
    ],
)
def test_the_words_that_differ_are_marked(before: str, after: str, old: list[str], new: list[str]) -> None:
    was, now = shown(before, after)
    assert (marked(was), marked(now)) == (old, new)
    assert was.plain == "\n".join(f"- {line}" for line in before.split("\n"))
    assert now.plain == "\n".join(f"+ {line}" for line in after.split("\n"))


def test_a_field_that_came_or_went_is_not_marked() -> None:
    (came,), (gone,) = shown(None, "new"), shown("old", None)
    assert (came.plain, gone.plain) == ("+ new", "- old")
    assert marked(came) == marked(gone) == []


@pytest.mark.hostile("P03")
def test_a_change_is_shown_wherever_in_a_long_text_it_is() -> None:
    was, now = shown(f"{FILLER}Then it stops. {FILLER}", f"{FILLER}Then it sends them away. {FILLER}")
    assert marked(was) == ["stops"]
    assert marked(now) == ["sends them away"]
    assert "… " in now.plain
    assert len(now.plain) < 2 * SHOWN_CHARACTERS + LEAD


@pytest.mark.hostile("P03")
def test_invisible_characters_are_visible_beside_and_within_a_change() -> None:
    was, now = shown("a\u202eb one c", "a\u202eb t\u200bwo c")
    assert was.plain == "- a⟨U+202E⟩b one c"
    assert now.plain == "+ a⟨U+202E⟩b t⟨U+200B⟩wo c"
    assert marked(now) == ["t⟨U+200B⟩wo"]


@pytest.mark.hostile("P03")
@pytest.mark.parametrize(
    ("before", "after"),
    [("a" * 3_000_000, "a" * 2_999_999 + "b"), ("a " * 1_000_000, "a b " * 500_000)],
    ids=["a long word", "many alike"],
)
def test_a_change_in_a_text_of_megabytes_is_found_at_once(before: str, after: str) -> None:
    began = time.process_time()
    common_ends(before, after)
    assert time.process_time() - began < 0.5
