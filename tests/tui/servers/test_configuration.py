"""A configuration that changes on the disk while the app runs: what is said of it, and how it is applied."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcphost.cli.settings import find, settings_for_screen
from mcphost.config import Changes, servers_path, users_path
from mcphost.config.servers_file import update_servers
from mcphost.tui.servers.configuration import in_words
from mcphost.tui.servers.reload import ReloadScreen, ServerChangedScreen
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from tests.conftest import SERVERS
from tests.terminal import Terminal
from tests.tui.stage import Stage, on_stage

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of changes")]


def echo(name: str, *args: str) -> str:
    words = ", ".join(f'"{word}"' for word in ("-S", "-E", str(SERVERS / "echo.py"), *args))
    return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = [{words}]\n'


@dataclass(frozen=True)
class Files:
    """The user's own configuration, and what mcphost writes beside it."""

    own: Path
    added: Path

    def read(self) -> ReloadedConfig:
        settings = settings_for_screen(find(None, os.environ), os.environ)
        return ReloadedConfig(settings.loaded.config, settings.problems)


@pytest.fixture
def files(isolated: Path) -> Files:
    made = Files(users_path(os.environ), servers_path(os.environ))
    made.own.parent.mkdir(parents=True)
    return made


@asynccontextmanager
async def running(files: Files, text: str) -> AsyncIterator[Stage]:
    """The app over this configuration, once its servers are ready and its files are watched."""
    files.own.write_text(text)
    watched = files.own, files.added
    start = StartInfo(files.own, False, (), files.own.parent / "state", "", watched=watched)
    config = files.read().config
    # So wide that the note beside the top line hides nothing of it.
    async with on_stage(config, start.state_folder, start=start, reread=files.read, size=(140, 30)) as stage:
        await stage.until(lambda app: all(server.ready for server in app.host.servers.values()))
        await stage.until(lambda app: app.configuration._watch._descriptor >= 0)
        yield stage


async def notes(stage: Stage, *words: str) -> None:
    """Wait until a note has all the words, wherever its lines break."""
    await stage.until(
        lambda app: any(all(word in note.message for word in words) for note in app._notifications),
    )


def titles(stage: Stage) -> list[str]:
    return [note.title for note in stage.app._notifications]


async def test_a_change_on_the_disk_says_what_differs_and_ctrl_l_applies_it(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        process = stage.host.servers["a"].process.pid
        files.own.write_text(echo("a") + echo("b") + '[policy]\ndefault = "deny"\n')
        await notes(stage, "+ b · [policy]", "ctrl+l shows all of it")
        await stage.shows("▲ configuration changed · ctrl+l")
        assert list(stage.host.servers) == ["a"]
        await stage.press("ctrl+l")
        await stage.at(ReloadScreen)
        await stage.press("y")
        await stage.until(lambda app: "b" in app.host.servers and app.host.servers["b"].ready)
        await stage.until(lambda app: "▲ configuration changed" not in stage.text)
        assert "The configuration changed" not in titles(stage), "what was applied is no news"
        assert stage.host.servers["a"].process.pid == process
        assert stage.host.config.policy.default == "deny"


async def test_a_change_while_the_app_starts_is_told(files: Files) -> None:
    files.own.write_text(echo("a"))
    config, read_at = files.read().config, files.own.stat().st_ctime_ns
    start = StartInfo(files.own, False, (), files.own.parent / "state", "", watched=(files.own,), read_at=read_at)
    files.own.write_text(echo("a") + echo("b"))
    async with on_stage(config, start.state_folder, start=start, reread=files.read, size=(140, 30)) as stage:
        await notes(stage, "+ b")


async def test_what_mcphost_added_in_another_terminal_is_noticed(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        entry = {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / "echo.py")]}
        update_servers(files.added, lambda servers: {**servers, "github": entry})
        await notes(stage, "+ github")
        await stage.press("ctrl+l")
        await stage.at(ReloadScreen)
        await stage.press("y")
        await stage.until(lambda app: "github" in app.host.servers and app.host.servers["github"].ready)


async def test_each_server_with_another_command_is_asked_about(files: Files) -> None:
    async with running(files, echo("a") + echo("b")) as stage:
        files.own.write_text(echo("a", "--page", "2") + echo("b", "--page", "3") + '[ui]\nlog_panel = "open"\n')
        await notes(stage, "~ a (args)", "~ b (args)")
        await stage.press("ctrl+l")
        await stage.at(ReloadScreen)
        await stage.shows("2 more servers that changed are asked about next")
        await stage.press("y")
        await stage.at(ServerChangedScreen)
        await stage.shows("a changed in the configuration", "would run", "--page 2", "is asked about again")
        await stage.press("n")
        await stage.until(lambda app: "b changed in the configuration" in stage.text)
        await stage.press("y")
        await stage.until(lambda app: app.host.config.servers["b"].args[-1] == "3")
        assert stage.host.config.servers["a"].args[-1] == str(SERVERS / "echo.py")
        await stage.shows("▲ configuration changed · ctrl+l")  # of a, it still is


async def test_one_changed_server_is_asked_about_at_once(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        files.own.write_text(echo("a", "--page", "2"))
        await notes(stage, "~ a (args)")
        await stage.press("ctrl+l")
        await stage.at(ServerChangedScreen)
        await stage.press("y")
        await stage.until(lambda app: app.host.config.servers["a"].args[-1] == "2" and app.host.servers["a"].ready)


async def test_a_mistake_is_said_and_everything_goes_on(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        files.own.write_text("[servers\n")
        await notes(stage, f"{files.own}:1: this is not valid TOML", "mcphost goes on with what it read before")
        files.own.write_text(echo("a") + "[servers.b]\ncommand = 1\n")
        await notes(stage, "servers.b.command: must be a string")
        assert stage.host.servers["a"].ready


async def test_while_a_dialog_is_open_the_note_waits(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        await stage.press("question_mark")
        await stage.until(lambda app: len(app.screen_stack) == 2)
        files.own.write_text(echo("a") + echo("b"))
        await stage.until(lambda app: app.configuration._due)
        assert "configuration changed" not in stage.text
        await stage.press("escape")
        await notes(stage, "+ b")


async def test_the_note_goes_when_the_change_is_dismissed_or_taken_back(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        files.own.write_text(echo("a") + echo("b"))
        await notes(stage, "+ b")
        await stage.press("ctrl+l")
        await stage.at(ReloadScreen)
        await stage.press("n")
        await stage.gone()
        assert "The configuration changed" not in titles(stage)
        files.own.write_text(echo("a") + echo("b") + echo("c"))
        await notes(stage, "+ b · + c")
        files.own.write_text(echo("a"))
        await stage.until(lambda _: "The configuration changed" not in titles(stage))
        await stage.until(lambda _: "▲ configuration changed" not in stage.text)


async def test_a_file_that_is_saved_again_as_it_was_says_nothing(files: Files) -> None:
    async with running(files, echo("a")) as stage:
        files.own.write_text(echo("a") + "# a comment\n")
        await stage.until(lambda app: app.configuration._reported is not None)
        assert "configuration changed" not in stage.text.lower()


def test_many_changes_are_counted() -> None:
    changes = Changes(added=tuple("abcde"), removed=("x",), changed={"y": ("url",), "z": ("start", "env")})
    assert in_words(changes) == "+ a · + b · + c · + d · + e · - x · and 2 more"
    assert in_words(Changes(changed={"y": ("url",), "z\x1b": ("start",)})) == "~ y (runs something else) · ~ z␛ (start)"


def test_a_change_by_another_process_is_seen_and_applied(files: Files, tmp_path: Path) -> None:
    files.own.write_text(echo("first"))
    with Terminal([sys.executable, "-m", "mcphost"], cwd=tmp_path, columns=120, rows=36) as terminal:
        terminal.wait_for("first", "1 ready")
        terminal.press_until(
            ["?"], "Tool list"
        )  # what a key does comes after the first frame, and so after the watch began
        terminal.press_until(["escape"], "enter opens the form")
        files.own.write_text(echo("first") + echo("second"))
        terminal.wait_for("+ second", "configuration changed")
        terminal.press_until(["\x0c"], "would run")
        terminal.press_until(["y"], "2 ready")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
