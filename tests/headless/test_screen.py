"""What the command line does to the screen it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.headless.conftest import entry
from tests.terminal import mcphost

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mouse", [True, False])
def test_the_mouse_is_left_to_the_terminal_where_the_user_says_so(tmp_path: Path, mouse: bool) -> None:
    config = tmp_path / "own.toml"
    config.write_text(f"{entry('echo')}[ui]\nmouse = {str(mouse).lower()}\n")
    with mcphost("--config", str(config)) as terminal:
        terminal.wait_for("Says back")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert (b"\x1b[?1000h" in terminal.raw) is mouse
