"""Approves tool calls without a screen: by a flag, by a person at the terminal, or not at all.

Only questions that policy leaves open arrive here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Final

from mcphost.cli.margin import framed, labelled
from mcphost.cli.output import StatusLine
from mcphost.cli.terminal import (
    Terminal,
    has_terminal,
    hidden_line,
    open_terminal,
    say,
    shown_line,
    terminal_size,
)
from mcphost.cli.terminal_modes import discard_input, without_echo
from mcphost.host.consent.questions import Answer, Approver, DeclineAll, Question, ToolCallQuestion
from mcphost.protocol.display import show_line, show_name, size_text

NO_CUT: Final = 1 << 30
"""Characters of an argument that are shown: all, since users can only allow what they see."""


class YesApprover:
    """Allows every call, for ``--yes``. What policy denies never arrives here."""

    async def ask(self, question: Question) -> Answer:
        return Answer(allow=True, by="--yes", reason="--yes")


class TerminalApprover:
    """Asks at the terminal for a whole line, so that a stray key does not answer.

    ``times`` is how often the run makes the same call, which needs one approval for each server.
    """

    def __init__(self, times: int = 1) -> None:
        self._times = times
        self._allowed: set[tuple[str, str, str]] = set()

    async def ask(self, question: Question) -> Answer:
        """Show everything that would be sent, and read y or N."""
        if not isinstance(question, ToolCallQuestion):
            return Answer(allow=False, reason="this cannot be asked on a terminal", by="policy")
        asked = question.server, question.tool.canonical, json.dumps(question.arguments, sort_keys=True)
        if self._times > 1 and asked in self._allowed:
            return Answer(allow=True)
        say(*question_lines(question))
        often = f" {self._times} times" if self._times > 1 else question.repeats and f" {question.repeats}"
        allowed = await confirmed(f"Run {show_name(question.tool.name)} on {question.server}{often}? [y/N] ")
        if allowed:
            self._allowed.add(asked)
        return Answer(allow=allowed)


def approver_for(server: str, tool: str, *, yes: bool, configured: bool, times: int = 1) -> Approver:
    """The approver of this run. ``configured``: the server has an entry in which a rule can be written."""
    if yes:
        return YesApprover()
    if has_terminal():
        return TerminalApprover(times)
    return DeclineAll(nobody_hint(server, tool, configured=configured))


def nobody_hint(server: str, tool: str, *, configured: bool) -> str:
    """The advice for a run without a terminal: how to allow the call."""
    # A rule for a server of the command line would hold for every program given in this way: they share one name.
    name, entry = (server, "set") if configured else ("NAME", "give the server an entry, [servers.NAME], and set")
    rule = f'[servers.{name}.tools.{json.dumps(tool)}] approval = "allow"'
    return f"there is no terminal to ask on; add --yes, or {entry} {rule} in your configuration"


def question_lines(question: ToolCallQuestion) -> Iterator[str]:
    """Everything a person needs to know to allow a call, safe for a terminal.

    The arguments stand in a frame below mcphost's facts, so that no argument's name looks like one of them. Where the
    frame scrolls the facts out of view, they are repeated below it.
    """
    width, rows = terminal_size()
    facts = list(_facts(question, width))
    text = json.dumps(question.arguments, indent=2, ensure_ascii=False)
    size = size_text(len(text.encode("utf-8", "replace")))
    frame = framed(f"Arguments ({len(question.arguments):,}) · {size}", readable_json(question.arguments), width)
    yield from facts
    yield from frame
    if len(facts) + len(frame) >= rows:
        yield from facts


def _facts(question: ToolCallQuestion, width: int) -> Iterator[str]:
    if question.origin != "you":
        yield from labelled("asked by", show_line(question.origin), width)
    if question.skill:
        yield from labelled("skill", f"it acts on {question.skill}", width)
    yield from labelled("server", question.server, width)
    yield from labelled("sent to", show_line(question.identity, NO_CUT), width)
    yield from labelled("tool", show_name(question.tool.name), width)
    yield from labelled("server says", ", ".join(question.tool.claims) or "nothing", width)
    yield from labelled("rule", question.rule, width)
    if question.repeats:
        yield from labelled("repeats", question.repeats, width)
    if question.note:
        yield from labelled("note", show_line(question.note), width)
    if question.approval.differences:
        yield from labelled("history", "CHANGED since you allowed it:", width)
    for change in question.approval.differences:
        words = f"{show_line(change.field)}: {shown_text(change.before)} -> {shown_text(change.after)}"
        yield from labelled("changed", words, width)
    for name in question.arguments:
        for words in question.provenance.words(name):
            yield from labelled("beware", f"the argument {show_name(name)} has words {words}", width)
    if question.provenance.note:
        yield from labelled("beware", show_line(question.provenance.note, NO_CUT), width)


def readable_json(value: object) -> str:
    """The whole value as indented JSON, safe to show; long runs of blanks are counted."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + _whole(line.lstrip(" ")) for line in lines)


def _whole(line: str, step: int = 50_000) -> str:
    """One line of any length with long runs of blanks counted, so that what follows them is seen as well."""
    return "".join(show_line(line[at : at + step], NO_CUT) for at in range(0, len(line), step))


def shown_text(text: str | None) -> str:
    return "nothing" if text is None else show_name(text)


async def confirmed(prompt: str) -> bool:
    """Ask for y or N at the terminal; keys typed ahead do not count."""
    return (await typed_line(prompt)).lower() in ("y", "yes")


async def typed_line(prompt: str, *, hidden: bool = False, fresh: bool = True) -> str:
    """A typed line; empty at end of file. ``hidden``: without echo; ``fresh``: ignore keys typed ahead."""
    with StatusLine.held(), open_terminal() as found:
        there = found or Terminal(sys.stdin.fileno(), sys.stderr)
        line = b""
        try:
            # Whoever sees the question may type at once, so the echo is off before.
            with without_echo(there.typed) if hidden else nullcontext():
                if fresh:
                    discard_input(there.typed)
                there.shown.write(prompt)
                there.shown.flush()
                line = await (hidden_line if hidden else shown_line)(there.typed)
        finally:
            if hidden or not line.endswith(b"\n"):  # the next output starts on a new line
                with suppress(OSError, ValueError):  # on a terminal that hung up
                    os.write(there.shown.fileno(), b"\n")
    return line.decode("utf-8", "replace").strip()
