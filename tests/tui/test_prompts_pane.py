"""Prompts on screen: chosen, filled in, and what they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcphost.protocol.types import GetPromptResult
from mcphost.tui.widgets.reading import Reading, ReadingView
from tests.tui.story import NARROW, WIDE, Stage, on_stage
from tests.tui.test_resources_pane import PNG, SIZES, Alone, offers, seen, shows


async def go(stage: Stage) -> None:
    await stage.ready()
    await stage.press("p")
    await stage.until(lambda app: app.main.prompts and app.main.prompts.list.rows.has_focus)
    await stage.shows("Review code")


@SIZES
@pytest.mark.requirement("PROMPT-02", "PROMPT-05", "PROMPT-09", "COMP-01", "COMP-03")
async def test_a_prompt_is_filled_in_and_its_messages_come_in_order(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=size) as stage:
        await go(stage)
        await stage.press("enter")
        await stage.shows("offers › review", "language *")
        await stage.write("ru")
        await stage.until(lambda _: "rust" in stage.text and "python" not in stage.text)
        await stage.press("down", "enter", "enter")
        await stage.shows("axum", "actix")
        await stage.press("down", "enter", "enter")
        await stage.shows("Messages · offers › review", "▸ user · text", "'framework', 'axum'", "assistant · link")
        assert seen(record, "prompts/get") == [
            {"name": "review", "arguments": {"language": "rust", "framework": "axum"}}
        ]
        asked = seen(record, "completion/complete")[-1]
        assert asked["ref"] == {"type": "ref/prompt", "name": "review"}
        assert asked["context"] == {"arguments": {"language": "rust"}}


@pytest.mark.requirement("PROMPT-03")
async def test_a_required_argument_is_asked_for_and_an_optional_one_left_out(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await go(stage)
        await stage.press("enter")
        await stage.shows("language *")
        await stage.press("ctrl+r")
        await stage.shows("▲ needed: language")
        await stage.write("c")
        await stage.press("ctrl+r")
        await stage.shows("Messages · offers › review", "[('language', 'c')]")
        assert seen(record, "prompts/get") == [{"name": "review", "arguments": {"language": "c"}}]
        await stage.press("escape")
        await stage.shows("framework")
        await stage.press("escape")
        await stage.shows("Prompts · all servers · 2")


@pytest.mark.requirement("PROMPT-04", "PROMPT-06")
async def test_a_prompt_without_arguments_is_got_at_once_and_its_link_followed() -> None:
    async with on_stage(offers(), size=NARROW) as stage:
        await go(stage)
        await stage.press("down", "enter")
        await stage.shows("Messages · offers › hello")
        await stage.press("down", "enter")
        await stage.shows("Contents · offers › memo:///readme.md", "Read me")
        assert stage.app.main.resources is not None
        assert stage.app.main.resources.step == "reading"


@pytest.mark.requirement("RES-15")
async def test_a_link_in_a_result_is_read_from_the_server_that_named_it_though_it_is_not_listed() -> None:
    async with on_stage(size=WIDE) as stage:
        await stage.ready()
        await stage.open_tool("fetch_chart")
        await stage.press("ctrl+r")
        await stage.asked()
        await stage.press("y")
        await stage.ended()
        await stage.shows("Chart of Puffin Stack")
        await stage.press("down", "down", "down", "down", "down", "down", "down", "down", "down", "down", "enter")
        await stage.shows("Contents · demo › lighthouse://charts/puffin-stack")


@pytest.mark.requirement("PROMPT-05", "PROMPT-06", "PROMPT-08")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"type": "text", "text": "[bold]hi[/bold] \x1b[2J"}, ["user · text", "[bold]hi[/bold] ␛[2J"]),
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, ["user · image image/png", "3×2"]),
        ({"type": "resource", "resource": {"uri": "f:///x.py", "text": "x = 1"}}, ["user · resource", "x = 1"]),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], ["user · text", "one", "two"]),
        ({"type": "novel"}, ["user · ✖ cannot be shown"]),
        ("a string", ["user · ✖ cannot be shown"]),
    ],
)
async def test_messages_hold_any_content(content: Any, words: list[str]) -> None:
    """Also T01: injected markup and sequences are seen before anything uses them."""
    view = ReadingView("Messages", "hint")
    result = GetPromptResult.read({"description": "about", "messages": [{"role": "user", "content": content}]})
    async with Alone(lambda: view).run_test(size=(90, 24)) as pilot:
        view.show_reading(Reading("s", "p").with_prompt(result, 0.1))
        await shows(pilot, "s says", "about", *words)
