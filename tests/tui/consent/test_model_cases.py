"""Hostile output of a model on screen: text that imitates ours, and calls made to be misread."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.tui.consent import call_rows
from mcphost.tui.consent.call_rows import SHOWN_ARGUMENTS, SHOWN_CHARACTERS, argument_rows, is_cut
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.text_view import TextView
from tests.host.chat.scripted_model import given, text, tool_result, use, uses
from tests.host.conftest import echo
from tests.transports.http.http_connection import Web
from tests.tui.chat.chats import chatting

A = {"a": echo()}


@pytest.mark.hostile("M04", "T11")
@pytest.mark.slow
async def test_no_picture_address_of_a_model_or_tool_is_fetched() -> None:
    """Nothing is sent to it, and the address can be read."""
    with Web(lambda talk: talk.whole(200)) as web:
        words = f"![chart]({web.url}/?q=secret) and <img src='{web.url}/x'>"
        links = [{"type": "resource_link", "uri": f"{web.url}/y", "name": "y"}]
        tool = {"name": "draw", "answer": {"content": [*tool_result(words)["content"], *links]}}
        script = uses(use("a__draw")), text(words)
        allow = {"default": "allow"}
        async with chatting(*script, servers={"a": given(tool)}, policy=allow, size=(140, 50)) as stage:
            await stage.say("draw")
            await stage.rest()
            await stage.shows("[image: chart]", "q=secret")
            await stage.press("escape", "Z")
            await stage.pilot.pause()
        assert web.visits == []


def rows(arguments: dict[str, Any]) -> list[str]:
    """Name and value of each row, and names that have a line of their own."""
    parts = ((row.name.plain, row.value.plain if row.value else "") for row in argument_rows(arguments))
    return [": ".join(filter(None, part)) for part in parts]


def test_an_empty_text_is_named() -> None:
    assert rows({"query": "", "list": []}) == ['"query": (empty)', '"list": []']


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"k": [value]}
    return value


HIDING = [
    ("deep down", {"x": nested("rm -rf /", 30)}, '"rm -rf /"'),
    ("deep down after blanks", {"x": nested(f"ls{' ' * 5000}rm", 3)}, "␣×5000 rm"),
    ("in a name", {"n" * 100 + "rm -rf /": 1}, '"' + "n" * 100 + 'rm -rf /"'),
    ("in a name after blanks", {f"n{' ' * 5000}rm": 1}, '"n␣×5000rm"'),
    ("in a name inside", {"x": {"n" * 100 + "rm": 1}}, "n" * 100 + "rm"),
    ("last of many", {**{str(number): 0 for number in range(200)}, "last": "rm"}, '"last": rm'),
]


@pytest.mark.hostile("P08")
@pytest.mark.requirement("TOOLS-14")
@pytest.mark.parametrize(("arguments", "words"), [case[1:] for case in HIDING], ids=[case[0] for case in HIDING])
def test_nothing_of_an_argument_hides_in_depth_in_names_or_in_numbers(arguments: Any, words: str) -> None:
    assert words in "\n".join(rows(arguments))
    assert not is_cut(arguments)


MANY = {f"k{number}": number for number in range(SHOWN_ARGUMENTS + 5)}


@pytest.mark.hostile("P08")
@pytest.mark.parametrize("arguments", [MANY, {"x" * (SHOWN_CHARACTERS + 1): 1}, {"x": ["y" * SHOWN_CHARACTERS]}])
def test_what_is_not_all_shown_is_known_to_be_cut(arguments: dict[str, Any]) -> None:
    assert is_cut(arguments)
    assert len(rows(arguments)) <= SHOWN_ARGUMENTS + 2


@pytest.mark.hostile("P08", "M02")
@pytest.mark.slow
async def test_more_arguments_than_fit_are_read_elsewhere_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_rows, "SHOWN_ARGUMENTS", 20)
    many: dict[str, Any] = {f"k{number}": number for number in range(100)}
    async with chatting(uses(use("a__echo", text="x", **many)), text("ok"), servers=A, size=(100, 40)) as stage:
        await stage.say("go")
        await stage.call_dialog()
        await stage.shows("Arguments (101)")
        while "81 more arguments are not shown here" not in stage.flat:
            await stage.press("space")
        while "read it to the end (v)" not in stage.text:
            await stage.press("space")
        await stage.press("y")
        await stage.call_dialog()
        await stage.press("v")
        await stage.at(ReaderScreen)
        await stage.press("end")
        await stage.shows('"k99": 99')
        view = stage.app.screen.query_one(TextView)
        await stage.until(lambda _: view.scroll_offset.y >= view.max_scroll_y > 0)  # the last lines glide in
        await stage.pilot.pause()
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("y")
        await stage.rest()
        assert stage.chat.turns[0].uses[0].outcome == "done"
