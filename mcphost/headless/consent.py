"""Who answers a question where there is no screen: a flag, a person at the terminal, or nobody.

Knows how a question looks on a terminal. Refuses to know policy: what comes here was not settled by it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from mcphost.headless.keyboard import forget_typed_ahead, hidden_line, shown_line
from mcphost.headless.output import StatusLine
from mcphost.headless.terminal import Seat, say, seat, somebody_there
from mcphost.host.questions import Answer, Approver, DeclineAll, Question, ToolCallQuestion
from mcphost.protocol.display import show_line, size_text

NO_CUT: Final = 1 << 30
"""Characters of an argument that are shown: all of them. What is not seen cannot be allowed."""


class AllowAll:
    """``--yes``: the person said so when typing the command. What policy denies never gets here."""

    async def ask(self, question: Question) -> Answer:
        """Yes, this once."""
        return Answer(allow=True, by="--yes", reason="--yes")


class TerminalApprover:
    """Asks on the terminal, and waits for a whole line so that a key typed ahead is no answer."""

    async def ask(self, question: Question) -> Answer:
        """Show everything that would be sent and take y or N."""
        if not isinstance(question, ToolCallQuestion):
            return Answer(allow=False, reason="this cannot be asked on a terminal", by="policy")
        say(*question_lines(question))
        prompt = f"Run {show_line(question.tool.name)} on {question.server}? [y/N] "
        return Answer(allow=await confirmed(prompt))


def approver_for(server: str, tool: str, *, yes: bool, configured: bool) -> Approver:
    """Who answers in this run. ``configured``: has the server an entry where the rule could be written?"""
    if yes:
        return AllowAll()
    if somebody_there():
        return TerminalApprover()
    key = json.dumps(tool)
    rule = f'[servers.{server}.tools.{key}] approval = "allow"' if configured else f'policy.allow = ["{server}:{tool}"]'
    return DeclineAll(f"there is no terminal to ask on; add --yes, or set {rule} in your configuration")


def question_lines(question: ToolCallQuestion) -> Iterator[str]:
    """Everything there is to know of a call before it is allowed, safe for a terminal."""
    if question.origin != "you":
        yield f"  wanted by  {show_line(question.origin)}"
    yield f"  server     {question.server}"
    yield f"  runs       {show_line(question.sent_to, NO_CUT)}"
    yield f"  tool       {show_line(question.tool.name)}"
    yield f"  claims     {', '.join(question.tool.claims) or 'nothing'}"
    yield f"  asked as   {question.rule}"
    if question.note:
        yield f"  note       {show_line(question.note)}"
    if question.standing.differences:
        yield "  CHANGED since you allowed it:"
    for change in question.standing.differences:
        yield f"    {show_line(change.field)}: {_shown(change.before)} -> {_shown(change.after)}"
    text = json.dumps(question.arguments, indent=2, ensure_ascii=False)
    yield f"  arguments  {size_text(len(text.encode('utf-8', 'replace')))}"
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        yield f"    {' ' * (len(line) - len(inner))}{_whole(inner)}"
    for name in question.arguments:
        for words in question.borrowed.words(name):
            yield f"  {show_line(name)} has words {words}"
    if question.borrowed.note:
        yield f"  beware     {show_line(question.borrowed.note, NO_CUT)}"


def _whole(line: str, step: int = 50_000) -> str:
    """One line of any length, with runs of blanks counted: what follows 5000 of them is seen as well."""
    return "".join(show_line(line[at : at + step], NO_CUT) for at in range(0, len(line), step))


def _shown(text: str | None) -> str:
    return "nothing" if text is None else show_line(text)


async def confirmed(prompt: str) -> bool:
    """Ask on the terminal; a key typed ahead is no answer."""
    return (await typed_line(prompt)).lower() in ("y", "yes")


async def typed_line(prompt: str, *, hidden: bool = False, fresh: bool = True) -> str:
    """A line from the terminal, empty at its end. ``hidden``: not shown; ``fresh``: nothing typed ahead counts."""
    with StatusLine.held(), seat() as found:
        there = found or Seat(sys.stdin.fileno(), sys.stderr)
        if fresh:
            forget_typed_ahead(there.typed)
        there.shown.write(prompt)
        there.shown.flush()
        line = b""
        try:
            line = await (hidden_line if hidden else shown_line)(there.typed)
        finally:
            if hidden or not line.endswith(b"\n"):  # what is written next begins a line of its own
                with suppress(OSError, ValueError):  # on a terminal that hung up
                    os.write(there.shown.fileno(), b"\n")
    return line.decode("utf-8", "replace").strip()
