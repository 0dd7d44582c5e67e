"""Prompts on screen: chosen, filled in, and the messages they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ServerError
from mcphost.protocol.models.prompts import GetPromptResult
from mcphost.tui.results.reading_pane import PaneReading, ReadingView
from tests.tui.resources.resources import PNG, SIZES, Alone, offers, seen, shows
from tests.tui.stage import NARROW, WIDE, Stage, on_stage

pytestmark = pytest.mark.slow


async def go(stage: Stage) -> None:
    await stage.ready()
    await stage.press("p")
    await stage.until(lambda app: app.main.prompts and app.main.prompts.list.rows.has_focus)
    await stage.shows("Review code")


@SIZES
@pytest.mark.requirement("PROMPT-02", "PROMPT-05", "PROMPT-09", "COMP-01", "COMP-03")
async def test_a_prompt_is_filled_in_and_its_messages_come_in_order(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"

    def completions() -> list[Any]:
        return seen(record, "completion/complete")

    async with on_stage(offers("--record", record), size=size) as stage:
        await go(stage)
        await stage.press("enter")
        await stage.shows("offers › review", "language *")
        await stage.write("ru")
        await stage.until(lambda _: [each["argument"]["value"] for each in completions()][-1:] == ["ru"])
        await stage.until(lambda _: "rust" in stage.text and "python" not in stage.text)
        await stage.press("down", "enter", "enter")
        await stage.shows("axum", "actix")
        await stage.press("down", "enter", "enter")
        await stage.shows("Messages · offers › review", "▸ user · text", "'framework', 'axum'", "assistant · link")
        assert seen(record, "prompts/get") == [
            {"name": "review", "arguments": {"language": "rust", "framework": "axum"}}
        ]
        question_stage = seen(record, "completion/complete")[-1]
        assert question_stage["ref"] == {"type": "ref/prompt", "name": "review"}
        assert question_stage["context"] == {"arguments": {"language": "rust"}}


@pytest.mark.requirement("PROMPT-03")
async def test_required_arguments_are_asked_for_and_optional_left_out(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await go(stage)
        await stage.press("enter")
        await stage.shows("language *")
        await stage.press("ctrl+r")
        await stage.shows("▲ is required")
        await stage.write("c")
        await stage.press("ctrl+r")
        await stage.shows("Messages · offers › review", "[('language', 'c')]")
        assert seen(record, "prompts/get") == [{"name": "review", "arguments": {"language": "c"}}]
        await stage.press("escape")
        await stage.shows("framework")
        await stage.press("escape")
        await stage.shows("Prompts · all servers · 2")


@SIZES
@pytest.mark.requirement("PROMPT-07", "ERR-06")
async def test_a_refused_argument_is_reported_and_corrected_in_the_form(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        await stage.press("p")
        await stage.shows("Hail a ship")
        await stage.press("down", "enter")
        await stage.shows("demo › hail_ship", "Ship *")
        await stage.write("Limp")
        await stage.press("ctrl+r")
        refused = "demo refused: No ship called Limp is in sight. (-32602 · invalid params)"
        await stage.until(lambda _: refused in stage.flat)
        assert stage.app.main.prompts is not None
        assert stage.app.main.prompts.step == "form"
        await stage.write("et")
        await stage.until(lambda _: "refused: No ship" not in stage.text)
        await stage.press("ctrl+r")
        await stage.shows("Messages · demo › hail_ship", "Hail the tug Limpet")


@pytest.mark.requirement("TOOLS-20")
async def test_titles_are_on_screen_and_names_on_the_wire() -> None:
    """For prompts, their arguments, resources, templates and tools; the demo gives each a title."""
    async with on_stage(size=WIDE) as stage:
        await stage.ready()
        await stage.shows("Flash the lamp")
        await stage.press("e")
        await stage.shows("Logbook", "A ship in sight")
        await stage.press("p")
        await stage.shows("▸ Report of a watch")
        await stage.press("enter")
        await stage.shows("Watch *", "Tone")
        await stage.write("first")
        await stage.press("ctrl+r")
        await stage.shows("Puffin Stack, first watch.")
        call = stage.call("flash_lamp", {"message": "x", "times": 1})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        sent = [json.loads(frame.data) for frame in stage.host.traffic.since(0) if frame.sent and not frame.note]
    params = {frame["method"]: frame.get("params") for frame in sent}
    assert (params["prompts/get"]["name"], params["prompts/get"]["arguments"]) == ("watch_report", {"watch": "first"})
    assert params["completion/complete"]["ref"] == {"type": "ref/prompt", "name": "watch_report"}
    assert params["completion/complete"]["argument"]["name"] == "watch"
    assert params["tools/call"]["name"] == "flash_lamp"


@pytest.mark.requirement("PROMPT-04")
async def test_no_prompt_is_got_until_somebody_chooses_it(tmp_path: Path) -> None:
    """Not by listing or filtering, by suggestions for its form, by a tool that names a prompt, or by a list change."""
    record = tmp_path / "record"
    async with on_stage(offers("--record", record)) as stage:
        await go(stage)
        await stage.press("down", "up", "enter")
        await stage.shows("language *")
        await stage.write("ru")
        await stage.shows("rust")
        await stage.press("down", "enter", "escape", "escape")
        for tool, arguments in (("echo", {"text": "Now use the prompt hello. /hello"}), ("announce", {})):
            call = stage.call(tool, arguments)
            await stage.call_dialog()
            await stage.press("y")
            await stage.ended(call)
        await stage.shows("Prompts 3")
        assert seen(record, "prompts/get") == []
        await stage.press("down", "enter")
        await stage.until(lambda _: seen(record, "prompts/get") == [{"name": "hello"}])


@pytest.mark.requirement("PROMPT-06")
async def test_a_prompt_without_arguments_is_read_at_once() -> None:
    async with on_stage(offers(), size=NARROW) as stage:
        await go(stage)
        await stage.press("down", "enter")
        await stage.shows("Messages · offers › hello")
        await stage.press("down", "enter")
        await stage.shows("Contents · offers › memo:///readme.md", "Read me")
        assert stage.app.main.resources is not None
        assert stage.app.main.resources.step == "reading"


@pytest.mark.requirement("TOOLS-06")
async def test_a_link_to_an_unlisted_resource_is_read_from_its_server(tmp_path: Path) -> None:
    record, uri = tmp_path / "record", "Memo+x:%2fQ"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("answers with a link")
        await stage.call_dialog()
        await stage.press("y")
        await stage.shows("link · l", uri)
        await stage.press("enter")
        await stage.shows(f"Contents · offers › {uri}", "never listed")
        assert stage.host.catalog.resource("offers", uri) is None
        assert seen(record, "resources/read") == [{"uri": uri}]


@pytest.mark.requirement("PROMPT-05", "PROMPT-06", "PROMPT-08")
@pytest.mark.hostile("T01")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"type": "text", "text": "[bold]hi[/bold] \x1b[2J"}, ["user · text", "[bold]hi[/bold] ␛[2J"]),
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, ["user · image image/png", "3×2"]),
        ({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}, ["user · audio audio/wav", "4 B"]),
        ({"type": "resource", "resource": {"uri": "f:///x.py", "text": "x = 1"}}, ["user · resource", "x = 1"]),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], ["user · text", "one", "two"]),
        ({"type": "novel"}, ["user · ✖ unreadable"]),
        ("a string", ["user · text", "a string"]),
        (5, ["user · ✖ unreadable", "not a content block: 5"]),
    ],
)
async def test_messages_hold_any_content(content: Any, words: list[str]) -> None:
    """Injected markup and sequences are visible before anything uses them."""
    view = ReadingView("Messages", "hint")
    result = GetPromptResult.read({"description": "about", "messages": [{"role": "user", "content": content}]})
    async with Alone(lambda: view).run_test(size=(90, 24)) as pilot:
        view.show_reading(PaneReading("s", "p").with_prompt(result, 0.1))
        await shows(pilot, "s says", "about", *words)


@pytest.mark.requirement("ERR-01", "ERR-02", "ERR-06", "PROMPT-07")
@pytest.mark.parametrize(
    ("code", "label"),
    [
        (-32601, "method not found"),
        (-32602, "invalid params"),
        (-32603, "internal error"),
        (-32001, "server-defined error"),
        (-32005, "server-defined error"),
    ],
)
async def test_a_refusal_is_called_what_the_protocol_calls_it(code: int, label: str) -> None:
    view = ReadingView("Messages", "hint")
    async with Alone(lambda: view).run_test(size=(90, 24)) as pilot:
        view.show_reading(PaneReading("s", "p").with_error(ServerError(code, "prompt not found"), 0.1))
        await shows(pilot, "✖ The server refuses: prompt not found", f"Error {code} · {label}", "s says")


@SIZES
async def test_ctrl_r_in_the_messages_gets_the_prompt_again(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=size) as stage:
        await go(stage)
        await stage.press("down", "enter")
        await stage.shows("Messages · offers › hello", "user · text")
        await stage.press("ctrl+r")
        await stage.until(lambda _: seen(record, "prompts/get") == [{"name": "hello"}] * 2)
        await stage.press("escape", "up", "enter")
        await stage.shows("offers › review", "language *")
        await stage.write("go")
        await stage.press("ctrl+r")
        await stage.shows("Messages · offers › review", "user · text")
        await stage.press("ctrl+r")
        await stage.until(lambda _: [each["name"] for each in seen(record, "prompts/get")][2:] == ["review"] * 2)
