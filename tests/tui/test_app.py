"""The app when a part of it fails, and when it exits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.content import Content
from textual.css.query import NoMatches
from textual.events import Key
from textual.widget import MountError, Widget
from textual.widgets._toast import Toast

from mcphost.config.loading import parse
from mcphost.errors import ConfigError, NotDone
from mcphost.host.crash_files import CrashFiles
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.app import COPY, TWICE_SECONDS, described
from mcphost.tui.bridge import HostChanged
from mcphost.tui.main.help import HelpScreen
from mcphost.tui.textual_private import corrections
from mcphost.tui.tools.pane import ToolList
from tests.tui.stage import NARROW, Stage, echo, on_stage, server, servers

pytestmark = pytest.mark.slow
TOKEN = "sk-planted-secret"


def broken(*_: object) -> Content:
    token = TOKEN
    raise ValueError(f"cannot show {token}")


def test_a_failure_is_described_by_type_and_place_without_any_value() -> None:
    with pytest.raises(ValueError, match="cannot show") as raised:
        broken()
    assert described(raised.value) == "ValueError at an unknown place"
    with pytest.raises(ConfigError) as invalid:
        parse("?", Path("mcphost.toml"))
    assert re.fullmatch(r"ConfigError at mcphost/config/\w+\.py:\d+", described(invalid.value))


def _content(crashes: CrashFiles) -> str:
    newest = crashes.newest()
    return "" if newest is None else newest.read_text()


async def test_a_failing_part_leaves_the_rest_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(servers(one=server("echo.py"), two=server("echo.py")), size=NARROW) as stage:
        await stage.ready()
        stage.app.survives_failures = True
        monkeypatch.setattr(ToolList, "show_entries", broken)
        await stage.press("s", "down")
        await stage.shows("mcphost could not show something", "ValueError")
        assert TOKEN not in stage.text
        crashes = CrashFiles(stage.app.start.state_folder)
        await stage.until(lambda app: crashes.newest() and "in broken" in _content(crashes))
        assert TOKEN not in _content(crashes)
        monkeypatch.undo()
        stage.app.clear_notifications()  # they hide what comes next
        await stage.press("down")
        await stage.shows("Tools · two")
        await stage.press("h")
        await stage.shows("No calls to “two” yet")
        assert stage.app.failure_count


@pytest.mark.parametrize("key", ["h", "ctrl+q"])
async def test_keys_work_after_the_widget_that_had_the_focus_failed(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    async def fail(widget: Widget, event: Key) -> None:
        raise ValueError(TOKEN)

    monkeypatch.setattr(corrections, "KEY_SECONDS", 3600.0)
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("t")
        stage.app.survives_failures = True
        monkeypatch.setattr(type(stage.app.focused), "on_key", fail, raising=False)
        await stage.press("down")
        await stage.shows("mcphost could not show something", "ValueError")
        monkeypatch.undo()
        await stage.press(key)
        await stage.until(lambda app: "No calls yet" in stage.text if key == "h" else not app.is_running)


async def test_failed_workers_are_reported() -> None:
    async def fails(error: Exception) -> None:
        raise error

    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.survives_failures = True
        stage.app.run_worker(fails(ValueError(TOKEN)))
        await stage.shows("mcphost could not show something", "ValueError")
        assert (TOKEN in stage.text, stage.app.failure_count) == (False, 1)
        stage.app.run_worker(fails(NotDone("it is \x1b[2J too late")))
        await stage.shows("it is ␛[2J too late")
        assert stage.app.failure_count == 1
        assert stage.app.is_running


async def test_what_an_exiting_app_no_longer_finds_is_not_a_failure() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.survives_failures = True
        stage.app.exit()
        for error, count in ((NoMatches("a part"), 0), (MountError("a pane"), 0), (ValueError(TOKEN), 1)):
            stage.app._handle_exception(error)
            assert stage.app.failure_count == count


async def fail_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.survives_failures, stage.app.failure_limit = True, 1
        monkeypatch.setattr(ToolList, "show_entries", broken)
        await stage.press("s", "down", "up", "down")
        await stage.until(lambda app: not app.is_running)


async def test_the_last_words_after_many_failures_hold_no_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="cannot show"):
        await fail_too_often(monkeypatch)
    said = capsys.readouterr().err
    assert "mcphost gives up: ValueError at mcphost/tui/" in said
    assert "The traceback, without values, is in " in said
    assert TOKEN not in said


async def test_ctrl_q_leaves_from_wherever_one_is() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("t", "slash", "x", "ctrl+q")
        await stage.pilot.pause()
        assert not stage.app.is_running


def press_copy(stage: Stage, seconds: float) -> None:
    """Press ctrl+c at this time, however long the test takes."""
    key = Key(COPY, None)
    key.time = seconds
    stage.app.post_message(key)


async def asks_again(stage: Stage) -> None:
    """Wait until the app says how to quit; on a busy machine the words may be gone when the screen is read."""
    await stage.until(lambda _: "Press ctrl+c again to quit." in stage.notified)


@pytest.mark.parametrize("keys", [[], ["slash", "x"], ["f5"], ["f1"], ["ctrl+p"], ["g"], ["f2"], ["s", "a"], ["enter"]])
async def test_ctrl_c_twice_quits_from_everywhere(keys: list[str]) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press(*keys)
        press_copy(stage, 1000.0)
        await asks_again(stage)
        assert stage.app.is_running
        press_copy(stage, 1000.0 + TWICE_SECONDS)
        await stage.until(lambda app: not app.is_running)


async def test_ctrl_c_twice_leaves_a_dialog_without_an_answer() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.guard_seconds = 60.0
        call = stage.call("echo", {"text": "x"})
        await stage.call_dialog()
        press_copy(stage, 1000.0)
        await asks_again(stage)
        await stage.shows("asked by you")
        assert call.state is CallState.ASKING
        press_copy(stage, 1000.0 + TWICE_SECONDS)
        await stage.until(lambda app: not app.is_running)


async def test_ctrl_c_that_copies_leaves_nothing() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("slash", "x", "y", "ctrl+c", "shift+home", "ctrl+c", "ctrl+c", "ctrl+c")
        assert stage.app.clipboard == "xy"
        await stage.press("end", "ctrl+c")
        assert stage.app.is_running


async def test_ctrl_c_after_a_while_is_a_first_one() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        press_copy(stage, 1000.0)
        press_copy(stage, 1000.1 + TWICE_SECONDS)
        await stage.until(lambda _: stage.notified.count("Press ctrl+c again to quit.") == 2)
        await stage.press("down")
        assert stage.app.is_running


async def test_quitting_and_help_work_at_once_in_a_new_dialog() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.guard_seconds = 60.0
        stage.call("echo", {"text": "x"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.shows("that key came too early: press it again")
        await stage.shows("asked by you")
        await stage.press("f1")
        await stage.at(HelpScreen)
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("ctrl+q")
        await stage.pilot.pause()
        assert not stage.app.is_running


@pytest.mark.parametrize("keys", [["ctrl+q"], ["ctrl+c", "ctrl+c"]])
async def test_leaving_does_not_wait_for_a_key_that_is_not_done(keys: list[str]) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.keys._current = 1  # a key whose target is busy with a flood
        for key in keys:
            stage.app.post_message(Key(key, None))
        await stage.until(lambda app: not app.is_running)


async def test_every_tab_has_a_whole_word_on_sixty_columns() -> None:
    async with on_stage(echo(), size=(60, 18)) as stage:
        await stage.ready()
        await stage.shows("Tools Res. Pro. Chat Calls Srv. Traf.")
        await stage.pilot.resize_terminal(100, 30)
        await stage.shows("Resources", "Server  Traffic")


async def test_a_short_notification_covers_only_a_frame() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.notify("Copied 106 characters.")
        await stage.until(lambda app: app.screen.query(Toast) and app.screen.query_one(Toast).size.height)
        assert "Copied 106 characters." in stage.text.splitlines()[-2]
        await stage.press("f5")  # where a message is written at the bottom
        await stage.until(lambda app: app.screen.query_one(Toast).region.y == app.main.rows_to_tabs)


async def test_a_notification_is_shown_whole_below_one_that_just_wraps() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        for columns in range(52, 60):
            stage.app.notify("x" * (4 * columns), markup=False)
            stage.app.notify("the end", markup=False)
            await stage.shows("the end", seconds=5)
            stage.app.clear_notifications()
            await stage.until(lambda _: "the end" not in stage.text)


async def test_what_the_host_tells_while_the_app_exits_changes_no_screen() -> None:
    async with on_stage(echo("alpha")) as stage:
        app = stage.app
    app.on_host_changed(HostChanged(lambda: pytest.fail("the events were taken")))


SENT = "\x1b]52;"
"""The start of the sequence that copies a text to the clipboard."""


Written = Callable[[Stage], list[str]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """The texts that the app writes to its terminal from now on."""

    def follow(stage: Stage) -> list[str]:
        driver, sent = stage.app._driver, list[str]()
        assert driver is not None
        monkeypatch.setattr(driver, "write", sent.append)
        return sent

    return follow


async def test_an_empty_text_is_not_copied(written: Written) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        stage.app.copy_to_clipboard("kept")
        sent = written(stage)
        await stage.press("slash", "ctrl+x", "ctrl+c")
        stage.app.copy_to_clipboard("")
        assert (stage.app.clipboard, sent) == ("kept", [])


async def test_a_copy_says_what_to_do_if_nothing_arrives(written: Written) -> None:
    async with on_stage(echo(), size=(140, 40)) as stage:
        await stage.ready()
        sent = written(stage)
        stage.app.copy_to_clipboard("a\ud800b")
        await stage.shows("Sent 3 characters to the terminal's clipboard.")
        assert [each for each in sent if each.startswith(SENT)] == ["\x1b]52;c;YT9i\a"]
        await stage.open_tool("environment")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.press("y")
        await stage.shows("; if nothing arrives, w saves it.")


async def test_a_copy_that_terminals_do_not_take_is_not_called_one(written: Written) -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        sent = written(stage)
        stage.app.copy_to_clipboard("x" * 3_000_000)
        await stage.shows("Not copied: 3,000,000 characters are more than many terminals take.")
        assert (stage.app.clipboard, [each for each in sent if SENT in each]) == ("", [])


@pytest.mark.parametrize(
    ("ends", "says"),
    [(0, "Copied 5 characters to tmux's buffer"), (1, "tmux set -s set-clipboard on")],
)
async def test_in_tmux_a_copy_goes_through_tmux_or_says_what_is_missing(
    ends: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux, taken = tmp_path / "bin" / "tmux", tmp_path / "taken"
    tmux.parent.mkdir()
    tmux.write_text(f'#!/bin/sh\necho "$*" > "{taken}"\ncat >> "{taken}"\nexit {ends}\n')
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmux.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    async with on_stage(echo()) as stage:
        await stage.ready()
        stage.app.copy_to_clipboard("words")
        await stage.shows(says)
        assert taken.read_text() == "load-buffer -w -\nwords"
        assert stage.app.clipboard == "words"
