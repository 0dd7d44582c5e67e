"""The list of servers, and its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.connections.connection import ServerState
from mcphost.host.traffic.message import MessageKind
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.logs.dialogs import LevelScreen
from tests.tui.stage import NARROW, WIDE, Stage, demo, echo, on_stage, server, servers

pytestmark = pytest.mark.slow


def state(stage: Stage, name: str = "echo") -> ServerState:
    return stage.host.servers[name].state


@pytest.mark.requirement("HOST-03")
async def test_space_switches_a_server_off_and_on_and_its_tools_go_and_come() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("s", "down", "space")
        await stage.until(lambda _: state(stage) is ServerState.STOPPED)
        await stage.shows("◌ echo", "stopped", "“echo” has no tools: it is stopped.")
        await stage.press("space")
        await stage.until(lambda _: state(stage) is ServerState.READY)
        await stage.shows("● echo", "environment")


@pytest.mark.requirement("HOST-03")
async def test_r_restarts_a_server_and_retries_a_failed_one_at_once(tmp_path: Path) -> None:
    starts = tmp_path / "record"
    config = servers(echo=server("echo.py", "--record", starts), bad=server("hostile.py", "crash-at-start"))
    async with on_stage(config) as stage:
        await stage.until(lambda _: state(stage) is ServerState.READY)
        await stage.until(lambda _: state(stage, "bad") is ServerState.RECONNECTING)
        await stage.press("s", "down", "r")
        await stage.until(lambda _: starts.read_text().count('"initialize"') == 2)
        await stage.until(lambda _: state(stage) is ServerState.READY)
        await stage.shows("↻ bad", "in ")
        failures = stage.host.servers["bad"].restarts
        await stage.press("down", "r")
        await stage.until(lambda app: app.host.servers["bad"].restarts > failures)


@pytest.mark.requirement("LOG-01")
async def test_v_sets_the_level_a_server_sends_and_says_where_it_cannot(tmp_path: Path) -> None:
    record = tmp_path / "record"
    config = servers(echo=server("echo.py", "--record", record), mute=server("echo.py", "--no-logging"))
    async with on_stage(config) as stage:
        await stage.ready()
        await stage.press("s", "down", "v")
        await stage.at(LevelScreen)
        await stage.press("home", "down", "down", "down", "enter")
        await stage.until(lambda app: app.host.servers["echo"].level is LogLevel.WARNING)
        assert record.read_text().count('"level":"warning"') + record.read_text().count('"level": "warning"') == 1
        await stage.shows("“echo” now sends warning and above")
        await stage.press("down", "v")
        await stage.at(LevelScreen)
        await stage.press("enter")
        await stage.shows("The log level was not changed")


@pytest.mark.parametrize("opened", [False, True], ids=["in the list", "on the card"])
async def test_shift_l_lists_again_what_a_server_offers_though_it_is_fresh(opened: bool) -> None:
    config = demo()
    modern = config.servers["demo"].model_copy(update={"protocol": "modern"})
    async with on_stage(config.model_copy(update={"servers": {"demo": modern}}), size=WIDE) as stage:
        await stage.ready()
        await stage.press("s", "down", *["enter"] * opened)
        await stage.shows("L list again")
        before = pages_listed(stage)
        await stage.press("L")
        await stage.shows("Listed “demo” again:", "tools,")
        assert pages_listed(stage) == 2 * before > 0
        stage.host.servers["demo"].stop()
        await stage.until(lambda _: "list again" not in stage.text)


def pages_listed(stage: Stage) -> int:
    """Count the requests for pages of tools."""
    messages = stage.host.traffic.since(0)
    return sum((each.sent, each.kind, each.method) == (True, MessageKind.REQUEST, "tools/list") for each in messages)


async def test_twenty_servers_are_walked_through_on_a_small_screen() -> None:
    names = [f"server-{number:02}" for number in range(20)]
    config = servers(**{name: server("echo.py", start="manual") for name in names})
    async with on_stage(config, size=NARROW) as stage:
        await stage.shows("∑", "◌", "20 stopped")
        assert "server-00" not in stage.text
        await stage.press("s", "end")
        await stage.shows("server-19")
        assert stage.app.main.servers.chosen == "server-19"
        await stage.press("enter")
        await stage.shows("Server · server-19", "r connects")
        await stage.press("s", "home")
        await stage.shows("all servers")


async def test_states_are_told_by_words_and_shapes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    config = servers(
        good=server("echo.py"),
        off=server("echo.py", start="manual"),
        never=server("echo.py", enabled=False),
        bad=server("hostile.py", "version-unknown"),
        trying=server("hostile.py", "crash-at-start"),
    )
    async with on_stage(config) as stage:
        await stage.until(lambda _: state(stage, "trying") is ServerState.RECONNECTING)
        await stage.until(lambda _: state(stage, "bad") is ServerState.FAILED)
        await stage.shows("● good", "◌ off", "stopped", "◌ never", "disabled", "✖ bad", "failed", "↻ trying", "in ")
        await stage.shows("● 1 ready", "↻ 1 reconnecting", "✖ 1 failed")
        colours = {s.style.color for line in stage.app.screen._compositor.render_strips() for s in line if s.style}
        assert all(colour is None or colour.triplet is None or len({*colour.triplet}) == 1 for colour in colours)


async def test_with_all_servers_chosen_the_card_is_of_the_failed_one() -> None:
    config = servers(echo=server("echo.py"), bad=server("hostile.py", "version-unknown"))
    async with on_stage(config, size=(120, 36)) as stage:
        await stage.until(lambda _: state(stage) is ServerState.READY)
        await stage.until(lambda _: state(stage, "bad") is ServerState.FAILED)
        await stage.press("c")
        await stage.shows("Server · bad")
        assert stage.app.main.servers.chosen is None
        await stage.press("t")
        await stage.shows("Tools · all servers · 11", "environment")
        await stage.press("s", "down", "c")
        await stage.shows("Server · echo")


async def test_an_empty_list_says_why_there_is_nothing_of_the_chosen_server() -> None:
    config = servers(echo=server("echo.py"), bad=server("hostile.py", "version-unknown"))
    async with on_stage(config, size=(120, 36)) as stage:
        await stage.until(lambda _: state(stage) is ServerState.READY)
        await stage.until(lambda _: state(stage, "bad") is ServerState.FAILED)
        await stage.press("s", "end")
        await stage.shows("“bad” has no tools: it failed.", "c shows why. s and home: all servers.")
        await stage.press("p")
        await stage.shows("“bad” has no prompts: it failed.")
        await stage.press("s", "home", "e")
        await stage.shows("No resources: no ready server offers any.")
