"""A recording that becomes a server of the run, on screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcphost.config import Config, RecordedServer, ServerConfig
from mcphost.errors import NotDone
from mcphost.host.recordings.mounting import mounted_server
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession
from mcphost.imports.server_line import ServerLineReader
from mcphost.tui.imports.line_screen import ServerLineScreen
from mcphost.tui.recordings.controller import RecordingsController
from mcphost.tui.recordings.screen import RecordingScreen
from mcphost.tui.start_info import ReloadedConfig
from tests.host.recordings.recorded_lines import written
from tests.tui.stage import echo, on_stage


def recording(folder: Path, server: str = "git") -> Path:
    introduction = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "git"}}
    opening = RecordedExchange("initialize", {"capabilities": {}}, 0.0, 0.1, result=introduction)
    tools = [{"name": "git_log", "inputSchema": {"type": "object"}}]
    listing = RecordedExchange("tools/list", {}, 1.0, 0.1, result={"tools": tools})
    path = folder / "git.mcp.jsonl"
    path.write_bytes(written(RecordedSession(server, exchanges=(opening, listing))))
    return path


async def test_a_recording_becomes_a_server_whose_card_says_so(tmp_path: Path) -> None:
    path = recording(tmp_path)
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        stage.app.recordings.open()
        await stage.at(RecordingScreen)
        await stage.write(str(tmp_path / "nothing"))
        await stage.press("enter")
        await stage.shows("✖")  # the sentence begins with a path, and wraps anywhere
        await stage.press("ctrl+a", "delete", "ctrl+k")
        await stage.write(str(path))
        await stage.press("enter")
        await stage.gone()
        await stage.ready()
        assert [tool.name for tool in stage.host.servers["git-recorded"].tools] == ["git_log"]
        stage.app.main.servers.choose("git-recorded")
        await stage.press("c")
        await stage.shows("recording", "of git, on", "2 requests of 2025-11-25")
        reader = ServerLineReader(tmp_path, ())
        stage.app.push_screen(ServerLineScreen(reader, stage.app.recordings.mount))
        await stage.at(ServerLineScreen)
        await stage.write(str(path))
        await stage.press("enter")
        await stage.gone()
        assert "git-recorded-2" in stage.host.servers


def test_the_name_and_the_program_come_from_the_recording(tmp_path: Path) -> None:
    path = recording(tmp_path, "a b/\x1b[2Jc")
    name, entry = mounted_server(str(path), {"a-b-2Jc-recorded"})
    assert name == "a-b-2Jc-recorded-2"
    assert entry.args == ("-P", "-m", "mcphost", "replay", str(path), "--server", "a b/\x1b[2Jc")
    assert entry.recording.isprintable()
    with pytest.raises(NotDone, match="no such file"):
        mounted_server(str(tmp_path / "other"), ())


def test_a_recording_of_a_time_beyond_the_calendar_is_replayed(tmp_path: Path) -> None:
    path = recording(tmp_path)
    lines = [{**json.loads(line), "time": "9999-12-31T23:59:59-14:00"} for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    _, entry = mounted_server(str(path), ())
    assert entry.recording == "git: 2 requests of 2025-11-25"


def test_a_configuration_that_is_read_again_keeps_recordings() -> None:
    class Run:
        config = Config(servers={"gone": ServerConfig(command="x"), "r": RecordedServer(command="y", recording="z")})

    controller = RecordingsController(None, Run())  # type: ignore[arg-type]
    kept = controller.kept_in(ReloadedConfig(Config(servers={"new": ServerConfig(command="n")}), ("p",)))
    assert ({*kept.config.servers}, kept.problems) == ({"r", "new"}, ("p",))
