"""Resources, prompts and traffic as a new user meets them: keys alone, a small terminal, the demo server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcphost.config import Config, Policy
from tests.tui.stage import NARROW, Stage, on_stage, server

pytestmark = pytest.mark.slow


async def in_resources(stage: Stage, words: str) -> None:
    """Go to the resources, and to the first that these words find."""
    await stage.ready()
    await stage.press("e")
    await stage.shows("Resources · ", "{} A ship")
    await stage.press("slash")
    await stage.write(words)
    await stage.press("down")
    await stage.shows(f"│/ {words}", " of 8")


async def test_esc_returns_from_a_followed_link_to_the_result() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("chart")
        await stage.shows("demo › fetch_chart")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        await stage.shows("done", "link · Chart")
        await stage.press("down")
        await stage.shows("▸ link · Chart", "enter opens it", "⏎ open link")
        await stage.press("enter")
        await stage.shows("Contents · demo › lighthouse://ch", "Gannet Bank")
        await stage.press("escape")
        await stage.shows("▸ link · Chart", "⏎ open link")
        await stage.press("escape")
        await stage.shows("demo › fetch_chart", "ctrl+r run")


async def test_esc_returns_over_each_followed_link() -> None:
    async with on_stage(size=NARROW) as stage:
        await in_resources(stage, "handbook")
        await stage.press("enter")
        await stage.shows("Rules for every watch", "l links")
        await stage.press("pagedown", "l")
        await stage.shows("Read which resource?", "lighthouse://charts/puffin-stack", "enter read")
        assert "▊" not in stage.text  # one frame is enough
        await stage.press("enter")
        await stage.shows("Contents · demo › lighthouse://ch", "Gannet Bank")
        await stage.press("escape")
        await stage.shows("Contents · demo › lighthouse://hand", "More under")  # where it was scrolled to
        await stage.press("escape")
        await stage.shows("Resources · ", "1 of 8")


@pytest.mark.requirement("RES-09", "RES-14")
async def test_a_resource_is_read_and_its_text_seen_as_it_was_sent() -> None:
    async with on_stage(size=NARROW) as stage:
        await in_resources(stage, "handbook")
        await stage.shows("The keeper's handbook", "lighthouse://handbook")
        await stage.press("enter")
        await stage.shows("Contents · demo", "The keeper's handbook", "m source", "l links", "esc back")
        await stage.press("m")
        await stage.shows("# The keeper's handbook")
        await stage.press("slash")
        await stage.write("gulls")
        await stage.press("enter")
        await stage.shows("1 of 1", "n next")


@pytest.mark.requirement("RES-07", "COMP-01", "COMP-03")
async def test_a_template_is_filled_in_from_suggestions_and_read() -> None:
    async with on_stage(size=NARROW) as stage:
        await in_resources(stage, "ship")
        await stage.press("enter")
        await stage.shows("▸ kind *", "freighter", "↓ chooses")
        await stage.write("xx")
        await stage.shows("nothing is suggested that fits")
        await stage.press("backspace", "backspace")
        await stage.shows("freighter")
        await stage.press("down", "down")
        await stage.shows("▸ freighter", "enter takes it")
        await stage.press("enter", "enter")
        await stage.shows("▸ name *", "Northern Patience")
        await stage.press("down", "enter")
        await stage.shows("reads  lighthouse://ships/freighter/Northern%20Patience")
        await stage.press("enter")
        await stage.shows("Contents · demo › lighthouse://sh", '"kind": "freighter"')
        await stage.press("escape")
        await stage.shows("kind *", "freighter", "▸ name *", "Northern Patience")
        await stage.press("escape")
        await stage.shows("Resources · ")


@pytest.mark.requirement("PROMPT-04", "PROMPT-05")
async def test_a_prompt_is_filled_in_and_its_messages_read() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await stage.press("p")
        await stage.shows("Prompts · ", "Report of a watch", "⏎ open")
        await stage.press("enter")
        await stage.shows("▸ Watch *", "middle")
        await stage.press("ctrl+r")
        await stage.shows("▲ is required", "▲ 1 invalid field")
        await stage.press("down", "down", "enter", "enter")
        await stage.shows("▸ Tone", "sleepless")
        await stage.press("ctrl+r")
        await stage.shows("Messages · demo › watch_report", "user · text", "**middle watch**")
        await stage.press("escape", "escape")
        await stage.shows("Prompts · ")


@pytest.mark.requirement("RES-05", "RES-06")
async def test_a_changed_watched_resource_is_marked_or_read_again() -> None:
    async with on_stage(size=NARROW) as stage:
        await in_resources(stage, "logbook")
        await stage.shows("space watch")
        await stage.press("space")
        await stage.shows("◉  Logbook", "space unwatch")
        entry = {"keeper": "Ada", "entry": "Fog"}
        await written(stage, entry)
        await stage.shows("✱  Logbook", "changed")
        await stage.press("enter")
        await stage.shows("1. Ada", "◉ watching", "space unwatch")
        await written(stage, entry | {"keeper": "Bo"})
        await stage.shows("2. Bo", "◉ watching · updated ")
        await stage.press("escape")
        await stage.shows("◉  Logbook")
        await stage.press("space")
        await stage.until(lambda _: "◉" not in stage.text)
        await stage.shows("space watch")


async def written(stage: Stage, entry: dict[str, str]) -> None:
    """Write to the demo's logbook, as another client."""
    call = stage.call("keep_logbook", entry)
    await stage.call_dialog()
    await stage.press("space", "space", "space", "y")
    await stage.ended(call)


async def test_a_slow_call_is_found_paired_pinned_copied_and_resent() -> None:
    flood, echo = server("hostile.py", "notification-flood"), server("echo.py")
    config = Config(servers={"flood": flood, "echo": echo}, policy=Policy(default="allow"))
    async with on_stage(config, size=NARROW) as stage:
        await stage.ready()
        calls = [stage.call("echo", {"text": str(number)}, "echo") for number in range(20)]
        slow = stage.call("sleep", {"seconds": 0.4}, "echo")
        for call in (stage.call("act", {}, "flood"), *calls, slow):
            await stage.ended(call)
        await stage.press("f4")
        await stage.shows("Traffic · ", "/ filter", "S sort", "? keys")
        await stage.press("slash")
        await stage.write("tools/call server")
        await stage.press("colon")
        await stage.write("echo")
        await stage.press("enter")
        await stage.shows("/ tools/call server:echo", "42 of 10,")
        await stage.press("S")
        await stage.shows("slowest first")
        first = next(line for line in stage.text.splitlines() if "▸" in line)
        assert "→" in first
        assert f"↗{slow.number}" in first
        await stage.press("P", "enter")
        await stage.shows("→ out · request · tools/call", '"seconds": 0.4', "◆ pinned", "r opens its response")
        await stage.press("r")
        await stage.shows("← in · response", "r opens its request")
        await stage.press("R")
        await stage.shows("Only requests that mcphost sent")
        await stage.press("r", "y")
        await stage.shows("→ out · request", "Sent")
        assert '"seconds": 0.4' in stage.app.clipboard
        await stage.press("R")
        again = await stage.ended()
        assert again.number > slow.number
        assert again.arguments == {"seconds": 0.4}
        await stage.press("escape", "f", "end")
        await stage.shows("/ tools/call server:echo", "44 of 10,", f"↗{again.number}")


async def test_traffic_is_exported_and_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await stage.press("f4")
        await stage.shows("Traffic · following", "tools/list")
        await stage.press("question_mark")
        await stage.shows("Export the messages shown as a recording")
        await stage.press("pagedown")
        await stage.shows("Open a file of exported traffic")
        await stage.press("escape", "C")
        await stage.shows("This message is not part of a call.")
        await stage.press("w")
        await stage.shows("in which folder?", str(tmp_path)[-40:])
        await stage.press("enter")
        await stage.shows("Saved")
        (saved,) = [name for name in os.listdir(tmp_path) if name.endswith(".jsonl")]
        await stage.press("o")
        await stage.shows("Open exported traffic", f"{tmp_path}/"[-40:])
        await stage.write(saved)
        await stage.press("enter")
        await stage.shows(f"file {saved}"[:40], "read only", "esc back")
        await stage.press("R")
        await stage.shows("A file's messages cannot be resent.")
        await stage.press("escape")
        await stage.shows("Traffic · following")
