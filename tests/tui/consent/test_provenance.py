"""The dialog for a model's call shows which text the model copied from elsewhere."""

from __future__ import annotations

import pytest
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.provenance import Provenance, UntrustedSpan
from mcphost.tui.consent.call_rows import SHOWN_CHARACTERS, argument_rows
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.kit.reader import ReaderScreen
from tests.host.chat.scripted_model import given, text, tool_result, use, uses
from tests.host.conftest import echo
from tests.tui.chat.chats import chatting

TREE = "the treasure under the old oak tree"
NOTES = given({"name": "read", "answer": tool_result(f"Today I hid {TREE} behind the mill.")})
SERVERS = {"notes": NOTES, "mail": echo()}


def shown(value: object, *marks: UntrustedSpan, note: str = "") -> list[Content]:
    """The values of the rows of one argument, `x`."""
    rows = argument_rows({"x": value}, Provenance(marks, note))
    return [row.value for row in rows if row.value is not None]


def underlined(content: Content) -> list[str]:
    return [content.plain[span.start : span.end] for span in content.spans if span.style == "underline"]


def at(value: str, words: str, source: str = "notes", *path: str | int) -> UntrustedSpan:
    start = value.index(words)
    return UntrustedSpan(("x", *path), start, start + len(words), words, source)


ESCAPES = f"\x1b[2J\u202e\r\nls{' ' * 5000}\n{TREE} [/b]"
ODD = "the\u200b treasure\x1b[8m under the [b]old oak[/b] tree"
PLACES = [
    ("plain", f"so: {TREE}!", TREE, [TREE]),
    ("after what grows and what is counted", ESCAPES, TREE, [TREE]),
    ("what grows itself", f"a {ODD} b", ODD, ["the⟨U+200B⟩ treasure␛[8m under the [b]old oak[/b] tree"]),
    ("the first and the last", ODD, ODD, ["the⟨U+200B⟩ treasure␛[8m under the [b]old oak[/b] tree"]),
]


@pytest.mark.hostile("M04", "T01", "T09", "T10")
@pytest.mark.parametrize(("value", "words", "expected"), [case[1:] for case in PLACES], ids=[c[0] for c in PLACES])
def test_marks_follow_the_text_that_other_marks_move(value: str, words: str, expected: list[str]) -> None:
    (content,) = shown(value, at(value, words))
    (bare,) = shown(value)
    assert underlined(content) == expected
    assert f"▲ from notes: {len(words)} characters" in content.plain
    assert content.plain.replace(f"▲ from notes: {len(words)} characters\n", "").replace(
        f"\n▲ from notes: {len(words)} characters", ""
    ) == bare.plain  # fmt: skip


@pytest.mark.hostile("M04")
def test_overlapping_and_nested_marks_are_shown_once() -> None:
    text = f"{TREE} behind the mill and more"
    (content,) = shown(text, at(text, TREE), at(text, "old oak tree behind the mill", "mail"))
    assert "".join(underlined(content)) == f"{TREE} behind the mill"
    assert "▲ from notes: 35 characters\n▲ from mail: 28 characters" in content.plain
    deep = f'say "{TREE}"\n'
    (content,) = shown({"a": [deep, 1]}, at(deep, f'"{TREE}"', "notes", "a", 0))
    assert underlined(content) == [f'\\"{TREE}\\"']
    (content,) = shown("value", UntrustedSpan(("x",), 0, 1, "x", "notes", is_name=True))
    assert (underlined(content), "▲ from notes: 1 characters, in its name" in content.plain) == ([], True)


@pytest.mark.hostile("M04", "P08")
def test_what_is_too_long_to_show_is_cut_as_before_and_still_said() -> None:
    value = "la " * SHOWN_CHARACTERS + TREE
    (content,) = shown(value, at(value, TREE))
    (bare,) = shown(value)
    assert content.plain.split("\n")[0] == bare.plain.split("\n")[0]
    assert (underlined(content), "▲ from notes: 35 characters" in content.plain) == ([], True)
    early = TREE + "la " * SHOWN_CHARACTERS
    (content,) = shown(early, at(early, TREE))
    (bare,) = shown(early)
    assert (underlined(content), content.plain.split("\n")[0]) == ([TREE], bare.plain.split("\n")[0])


@pytest.mark.hostile("M04")
@pytest.mark.slow
@pytest.mark.requirement("TOOLS-14")
async def test_the_dialog_names_the_source_server_and_an_edit() -> None:
    script = uses(use("notes__read")), uses(use("mail__echo", text=f"Psst: {TREE}")), text("done")
    async with chatting(*script, servers=SERVERS, size=(100, 40)) as stage:
        await stage.say("do it")
        await stage.call_dialog()
        assert "▲ from" not in stage.text
        await stage.press("y")
        await stage.shows("▲ from notes: 35 characters")
        dialog = await stage.call_dialog()
        values = [each.content for each in dialog.query(".value").results(Static)]
        assert [TREE] in [underlined(each) for each in values if isinstance(each, Content)]
        await stage.press("v")
        await stage.at(ReaderScreen)
        assert "▲ from" not in stage.text
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        await stage.press("end", "s", "ctrl+r")
        await stage.shows("edited by you", "▲ from notes: 35 characters", "they were not compared again")
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        await stage.press("end", *["backspace"] * 9, "ctrl+r")
        await stage.until(lambda _: "▲ from" not in stage.text and "not compared again" in stage.flat)
        await stage.press("n")
        await stage.rest()
