"""``mcphost help``: shows a page of the manual, or lists its topics."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from typing import Final

from rich.console import Console
from rich.markdown import Markdown

from mcphost.cli.margin import size
from mcphost.cli.output import Outcome, answer, is_terminal, table
from mcphost.cli.parser import COMMANDS, command_parser, did_you_mean
from mcphost.cli.run import finish
from mcphost.cli.settings import find, users_settings
from mcphost.errors import ConfigError, NotDone, UsageError
from mcphost.host.terminal_programs import interrupts_ignored, pager_command
from mcphost.manual import page, topics

KEYS: Final = "keys"
"""A topic that is made from the screen's own bindings."""

KEYS_ABOUT: Final = """\
*: yours. To give one other keys, name its id in your configuration:

    [ui.keys]
    form.submit = "ctrl+r,f12"

The keys of dialogs stay as they are. On the screen, ? shows the keys that work there.
"""

MOST_COLUMNS: Final = 100
"""Longer lines are tiring to read."""

PIPE_COLUMNS: Final = 80


def run_help(options: Namespace) -> int:
    """Show a topic's page, the help of a command, or the list of topics. Raises UsageError."""
    topic: str | None = options.topic
    known = topics()
    if topic is None:
        return finish(Outcome(_index(known)))
    if topic == KEYS:
        _show(_keys(options.config))
        return finish(Outcome())
    if topic in known:
        _show(_rendered(page(topic)))
        return finish(Outcome())
    if topic in COMMANDS:
        return finish(Outcome(command_parser().commands[topic].format_help()))
    raise UsageError(f"'{topic}' is not a topic{did_you_mean(topic, [*known, KEYS, *COMMANDS])}; see mcphost help")


def _index(known: dict[str, str]) -> str:
    width = max(map(len, known), default=0)
    lines = [f"  {name:<{width}}  {about}" for name, about in known.items()]
    return "\n".join(
        [
            "The manual, by topic (mcphost help TOPIC):",
            "",
            *lines,
            f"  {KEYS:<{width}}  The keys of the screen, and the ids to give them others by",
            "",
            "The options of a command: mcphost COMMAND --help",
            "",
        ]
    )


def _keys(explicit: str | None) -> str:
    """The bindings that can have other keys, with those of the user."""
    from mcphost.tui.own_keys import bound_keys, checked, rows  # late: imports every screen

    own: Mapping[str, str] = {}
    with suppress(ConfigError):  # mistakes elsewhere do not concern the keys
        own = users_settings(find(explicit, os.environ)).loaded.config.ui.keys
    known = bound_keys()
    lines = table([("ID", "KEYS", "MEANING"), *rows(known, checked(own, known)[0])])
    return f"{lines}\n{KEYS_ABOUT}"


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
