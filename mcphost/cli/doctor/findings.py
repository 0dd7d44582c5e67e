"""A line of the diagnosis: the topic, its state, and the command that fixes it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from mcphost.cli.margin import behind_margin
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

TEXT_CHARACTERS: Final = 600
"""Characters of a finding, which may quote a server."""

TOPIC_COLUMNS: Final = 24
"""Columns of the first column; a server's name may be longer."""


class Severity(Enum):
    """The value is the word on screen."""

    OK = "ok"
    WARNING = "warning"
    """Something will not work as well as it could."""
    PROBLEM = "problem"
    """Something does not work."""


_MARKS: Final = {Severity.OK: "✓", Severity.WARNING: "▲", Severity.PROBLEM: "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """``fix`` is a command, or a short instruction where no command helps; empty if nothing is known to help."""

    topic: str
    severity: Severity
    text: str
    fix: str = ""

    def as_object(self) -> dict[str, Any]:
        return {"topic": self.topic, "status": self.severity.value, "text": self.text, "fix": self.fix or None}

    def lines(self, width: int, columns: int) -> Iterator[str]:
        """For people; ``width`` is that of the longest topic, ``columns`` where lines wrap."""
        head = f"{_MARKS[self.severity]} {self.severity.value:<7}  {show_line(self.topic, width):<{width}}  "
        indent = " " * len(head)
        first, *others = _wrapped(show_line(self.text, TEXT_CHARACTERS), columns, indent)
        yield head + first.removeprefix(indent)
        yield from others
        if self.fix:  # never wrapped: it is to be copied
            yield f"{indent}fix it: {show_line(self.fix, TEXT_CHARACTERS)}"


def ok(topic: str, text: str) -> Finding:
    return Finding(topic, Severity.OK, text)


def warning(topic: str, text: str, fix: str = "") -> Finding:
    return Finding(topic, Severity.WARNING, text, fix)


def problem(topic: str, text: str, fix: str = "") -> Finding:
    return Finding(topic, Severity.PROBLEM, text, fix)


def as_text(findings: Sequence[Finding], columns: int = TEXT_CHARACTERS) -> str:
    """Return all findings as lines; ``columns`` is the width of the terminal."""
    width = min(max((len(each.topic) for each in findings), default=0), TOPIC_COLUMNS)
    return "".join(f"{line}\n" for each in findings for line in each.lines(width, columns))


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    # What a server says must not begin at the first column, where mcphost's own words are.
    if text.isascii():
        room = max(columns, 2 * len(indent)) - len(indent)
        return [indent + line for line in textwrap.wrap(text, room, break_on_hyphens=False)] or [indent]
    return behind_margin(text, max(columns, 2 * len(indent)), indent).splitlines() or [indent]
