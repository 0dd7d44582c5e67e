"""``mcphost help``: shows a page of the manual, or lists its topics."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from io import StringIO
from typing import Final

from rich.console import Console
from rich.markdown import Markdown

from mcphost.cli.margin import size
from mcphost.cli.output import Outcome, answer, is_terminal
from mcphost.cli.parser import COMMANDS, command_parser, did_you_mean
from mcphost.cli.run import finish
from mcphost.errors import NotDone, UsageError
from mcphost.host.terminal_programs import interrupts_ignored, pager_command
from mcphost.manual import page, topics

MOST_COLUMNS: Final = 100
"""Longer lines are tiring to read."""

PIPE_COLUMNS: Final = 80


def run_help(options: Namespace) -> int:
    """Show a topic's page, the help of a command, or the list of topics. Raises UsageError."""
    topic: str | None = options.topic
    known = topics()
    if topic is None:
        return finish(Outcome(_index(known)))
    if topic in known:
        _show(_rendered(page(topic)))
        return finish(Outcome())
    if topic in COMMANDS:
        return finish(Outcome(command_parser().commands[topic].format_help()))
    raise UsageError(f"'{topic}' is not a topic{did_you_mean(topic, [*known, *COMMANDS])}; see mcphost help")


def _index(known: dict[str, str]) -> str:
    width = max(map(len, known), default=0)
    lines = [f"  {name:<{width}}  {about}" for name, about in known.items()]
    return "\n".join(
        [
            "The manual, by topic (mcphost help TOPIC):",
            "",
            *lines,
            "",
            "The options of a command: mcphost COMMAND --help",
            "",
        ]
    )


def _rendered(markdown: str) -> str:
    """Render Markdown for stdout: with styles on a terminal, else as plain text."""
    on_terminal = is_terminal(sys.stdout)
    columns = min(size(sys.stdout)[0], MOST_COLUMNS) if on_terminal else PIPE_COLUMNS
    text = StringIO()
    console = Console(file=text, force_terminal=on_terminal, width=columns, legacy_windows=False)
    console.print(Markdown(markdown, code_theme="ansi_dark", hyperlinks=False))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _show(text: str) -> None:
    """Show a text in the user's pager if it is longer than the terminal."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)) or text.count("\n") < size(sys.stdout)[1]:
        answer(text)
        return
    try:
        with subprocess.Popen(pager_command(), stdin=subprocess.PIPE) as pager, interrupts_ignored():
            pager.communicate(text.encode())
    except (NotDone, OSError):
        answer(text)
