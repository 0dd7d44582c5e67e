"""The command line's part in the screen that it opens."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import get_args

import pytest
from textual.theme import BUILTIN_THEMES

from mcphost.cli.commands.screen import _starting_point
from mcphost.config.models import Theme
from mcphost.tui.theme import THEMES
from tests.cli.conftest import entry
from tests.terminal import Terminal, mcphost

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mouse", [True, False])
def test_the_mouse_is_left_to_the_terminal_where_the_user_says_so(tmp_path: Path, mouse: bool) -> None:
    config = tmp_path / "own.toml"
    config.write_text(f"{entry('echo')}[ui]\nmouse = {str(mouse).lower()}\n")
    with mcphost("--config", str(config)) as terminal:
        terminal.wait_for("▸ echo", "environment")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert (b"\x1b[?1000h" in terminal.raw) is mouse


def test_the_demo_takes_its_look_from_the_named_file(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(f"{entry('echo')}[ui]\nmouse = false\n")
    with mcphost("--config", str(config), "demo") as terminal:
        terminal.wait_for("Ships in sight")
        assert "no configuration found" not in terminal.text
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert b"\x1b[?1000h" not in terminal.raw


@pytest.mark.parametrize(("text", "theme"), [('[ui]\ntheme = "nord"\n', "nord"), ("nonsense", "auto")])
def test_the_demo_has_the_users_theme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, theme: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    monkeypatch.setenv("MCPHOST_CONFIG", str(tmp_path / "own.toml"))
    config, start = _starting_point(Namespace(demo=True, config=None, profile=None, era="legacy"))
    assert (config.ui.theme, list(config.servers), start.problems) == (theme, ["demo"], ())


def test_without_a_configuration_the_screen_says_so() -> None:
    with mcphost() as terminal:
        terminal.wait_for("Demo: no configuration found at", "config.toml", "a adds a server", "i looks for those of")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


def test_a_configuration_without_servers_says_how_to_add_one() -> None:
    config = Path.home() / "own.toml"
    config.write_text("[ui]\nmouse = false\n")
    with mcphost("--config", str(config)) as terminal:
        terminal.wait_for(
            "No servers are configured.", "~/own.toml", "[servers.git]", "y copies these lines", "y copy example"
        )
        assert "list on the left" not in terminal.text
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


def test_the_screen_has_every_configurable_theme() -> None:
    assert set(get_args(Theme)) == {"auto", *BUILTIN_THEMES, *(theme.name for theme in THEMES)}


def test_a_dumb_terminal_is_answered_with_what_works_there() -> None:
    with mcphost("demo", env={"TERM": "dumb"}) as terminal:
        assert terminal.wait_exit() == 2
        assert "TERM=dumb cannot show the screen" in terminal.text
        assert "\x1b" not in terminal.raw.decode()


@pytest.mark.parametrize(
    ("redirection", "said"), [(">out", "and stdout is not one"), ("</dev/null", "and stdin is not one")]
)
def test_a_stream_that_is_not_a_terminal_is_named(redirection: str, said: str) -> None:
    with Terminal(["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-m", "mcphost", "demo"]) as terminal:
        assert terminal.wait_exit() == 2
        assert f"the screen needs a terminal, {said}" in terminal.text
        assert terminal.is_cooked


def test_a_light_terminal_gets_the_light_theme() -> None:
    with mcphost("demo", env={"COLORFGBG": "0;15"}) as terminal:
        terminal.wait_for("Ships in sight")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert b"48;2;251;250;247" in terminal.raw
