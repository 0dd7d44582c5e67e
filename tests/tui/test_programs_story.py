"""A real program takes the terminal as an editor and as a pager, and gives it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import mcphost

pytestmark = pytest.mark.slow

EDITOR = """\
#!/bin/sh
echo "EDITOR of ${1##*.}"
read answer
echo "{\\"note\\": \\"$answer\\"}" > "$1"
"""

PAGER = """\
#!/bin/sh
head -n 1
echo "PAGER reads"
read answer < /dev/tty
"""


def program(path: Path, script: str) -> str:
    path.write_text(script)
    path.chmod(0o700)
    return str(path)


def test_editor_and_pager_have_the_terminal_and_give_it_back(tmp_path: Path) -> None:
    programs = {"EDITOR": program(tmp_path / "edit", EDITOR), "PAGER": program(tmp_path / "page", PAGER), "VISUAL": ""}
    with mcphost("demo", env=programs) as terminal:
        terminal.wait_for("Ships in sight")
        terminal.press("/", "storm", "enter")
        terminal.press_until(["\x1bj"], "All arguments as JSON")
        terminal.press("\x1be")
        terminal.wait_for("EDITOR of json")
        assert terminal.is_cooked
        terminal.press("\x03")  # for the editor alone
        terminal.wait_for("ended with signal 2", "All arguments as JSON")
        terminal.press_until(["\x1be"], "EDITOR of json", again=["All arguments as JSON"])
        terminal.press("half a gale\r")
        terminal.wait_for('"half a gale"', "All arguments as JSON")
        terminal.press_until(["\x1b[17~"], "y copy · esc back")  # f6: the schema
        terminal.press("P")
        terminal.wait_for("PAGER reads")
        terminal.blank()
        terminal.press("\r")
        terminal.wait_for("y copy · esc back")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
        assert terminal.is_cooked
