"""Steps of a user of the whole program on a terminal: find a tool, allow its call, and look at the processes."""

from __future__ import annotations

from pathlib import Path

from mcphost.tui.app import GUARD as KEY_GUARD
from tests.terminal import Terminal

GUARD = KEY_GUARD + 0.15
"""Seconds after which a dialog listens that was painted; where it does not yet, its key comes again."""

QUESTION = "don't run"
MORE = "scroll to the end"


def find(terminal: Terminal, words: str) -> None:
    """Filter the tools down to one; the list may hear keys later than it is seen."""
    terminal.press_until(["t", "/", "ctrl+u", *words], "1 of ", words)


def open_tool(terminal: Terminal, words: str) -> None:
    find(terminal, words)
    terminal.press("enter")


def agree(terminal: Terminal, *words: str) -> None:
    """Read the question to its end and allow the call; the words come then. A dialog ignores keys at first."""
    terminal.wait_for(QUESTION)
    terminal.rest(GUARD)
    if MORE in terminal.text:  # y is heard once the end was on the screen
        terminal.press_until(["space", "space", "space"], but=MORE, again=[MORE])
    terminal.press_until(["space", "space", "space", "y"], *words, but=QUESTION, again=[QUESTION])


def children(parent: int) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    return found


def child_of(parent: int, words: str) -> int:
    return next(pid for pid, command in children(parent).items() if words in command)


def rest(terminal: Terminal, seconds: float = 0.15) -> str:
    """The screen after so long: what is looked at as it is, and the guard of a dialog, which is a time."""
    terminal.rest(seconds)
    return terminal.text
