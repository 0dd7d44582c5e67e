"""Reloading a changed configuration while the app runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcphost.config import Config, compare, parse
from mcphost.errors import ConfigError
from mcphost.tui.app import McphostApp
from mcphost.tui.results.pictures import NO_PICTURES
from mcphost.tui.servers.reload import ReloadScreen, _change_facts, _facts
from mcphost.tui.start_info import ReloadedConfig
from tests.conftest import SERVERS
from tests.tui.stage import Stage, on_stage

pytestmark = pytest.mark.slow
ECHO = f'command = "{sys.executable}"\nargs = ["{SERVERS / "echo.py"}"]\n'


def config(text: str, path: Path) -> Config:
    return parse(text, path).config


async def reload_to(stage: Stage, read: Callable[[], ReloadedConfig]) -> None:
    stage.app._reread = read
    await stage.press("ctrl+l")


def nothing_open(app: McphostApp) -> bool:
    return len(app.screen_stack) == 1 and not app.workers


async def test_what_changed_is_shown_and_applied_to_what_it_concerns_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    before = config(f"[servers.old]\n{ECHO}[servers.same]\n{ECHO}", path)
    after = config(f"[servers.same]\n{ECHO}[servers.fresh]\n{ECHO}", path)
    async with on_stage(before, tmp_path) as stage:
        await stage.until(lambda app: all(server.ready for server in app.host.servers.values()))
        same = stage.host.servers["same"].process.pid, stage.host.servers["same"].started_at
        await reload_to(stage, lambda: ReloadedConfig(after))
        await stage.until(lambda app: isinstance(app.screen, ReloadScreen))
        assert "+ fresh" in stage.text
        await stage.shows(f"would run: {shlex.join([sys.executable, str(SERVERS / 'echo.py')])}")
        assert "- old" in stage.text
        await stage.press("y")
        await stage.until(lambda app: set(app.host.servers) == {"same", "fresh"} and app.host.servers["fresh"].ready)
        assert (stage.host.servers["same"].process.pid, stage.host.servers["same"].started_at) == same


async def test_a_changed_screen_is_shown_at_once_but_for_the_mouse(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    before = config('[ui]\nlog_panel = "closed"\ntheme = "nord"', path)
    after = config('[ui]\nlog_panel = "open"\ntheme = "gruvbox"\nimages = "off"\nlogs = "error"\nmouse = false', path)
    async with on_stage(before, tmp_path) as stage:
        assert not stage.app.main.logs_open
        await reload_to(stage, lambda: ReloadedConfig(after))
        await stage.until(lambda app: isinstance(app.screen, ReloadScreen))
        await stage.shows("theme, log_panel, logs, images, mouse (from the next start)")
        await stage.press("y")
        await stage.until(lambda app: app.main.logs_open and app.theme == "gruvbox" and app.has_class(NO_PICTURES))
        await stage.shows("error and up")


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_a_difference_that_is_left_changes_nothing(tmp_path: Path, key: str) -> None:
    path = tmp_path / "config.toml"
    before = config(f"[servers.old]\n{ECHO}", path)
    async with on_stage(before, tmp_path) as stage:
        await reload_to(stage, lambda: ReloadedConfig(config("", path)))
        await stage.until(lambda app: isinstance(app.screen, ReloadScreen))
        await stage.press(key)
        await stage.until(nothing_open)
        assert list(stage.host.servers) == ["old"]


async def test_an_unreadable_file_is_reported_and_nothing_stops(tmp_path: Path) -> None:
    def broken() -> ReloadedConfig:
        raise ConfigError("an unclosed string", path=Path("config.toml"), line=3)

    async with on_stage(Config(), tmp_path) as stage:
        await reload_to(stage, broken)
        await stage.until(lambda app: "config.toml:3: an unclosed string" in stage.text)


async def test_a_profile_is_chosen_with_one_question_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    text = (
        f'[servers.same]\n{ECHO}[servers.other]\n{ECHO}env = {{ STAGE = "${{STAGE:-prod}}" }}\n[servers.left]\n{ECHO}'
    )
    whole = config(f'{text}[profiles.dev]\nservers = ["same", "other"]\nvariables = {{ STAGE = "dev" }}', path)
    async with on_stage(whole, tmp_path, reread=lambda: ReloadedConfig(whole)) as stage:
        await stage.until(lambda app: all(server.ready for server in app.host.servers.values()))
        same = stage.host.servers["same"].started_at
        stage.app.choose_profile("dev")
        await stage.until(lambda app: isinstance(app.screen, ReloadScreen))
        await stage.shows("Change to the profile dev?", "- left", "~ other")
        await stage.press("y")
        await stage.until(lambda app: set(app.host.servers) == {"same", "other"} and nothing_open(app))
        assert stage.host.config.servers["other"].env == {"STAGE": "dev"}
        assert stage.host.servers["same"].started_at == same
        await stage.until(lambda _: "profile dev" in stage.top)
        await stage.press("ctrl+l")
        await stage.until(lambda _: "The configuration has not changed." in stage.notified)


def test_another_command_for_a_jwt_is_asked_about_in_full(tmp_path: Path) -> None:
    entry = '[servers.ci]\nurl = "https://h"\n[servers.ci.oauth]\ngrant = "workload"\nissuer = "https://i"\n'
    commands = ('["mint"]', '["mint", "--for", "{audience}"]')
    before, after = (config(f"{entry}assertion.command = {command}", tmp_path) for command in commands)
    changes = compare(before, after)
    assert changes.needs_consent == {"ci"}
    words = "the JWT of mint --for '{audience}'"
    assert ("signed in by", words) in [(each.label, str(each.value)) for each in _change_facts("ci", before, after)]
    assert f"signed in by {words}" in str(next(_facts(changes, before, after)).value)
