"""Finds the line of a server's stderr that says why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

LINES: Final = 50
"""Last lines of stderr that are searched."""

_TREE: Final = " \t|+-│╰─▶"
"""What stands before the message of an exception in a group, and of a cause."""

_FRAME: Final = re.compile(r"(at |File |\^|~)")
_VALIDATION: Final = re.compile(r"\bvalidation errors? for\b")
_CAUSE: Final = re.compile(r"cause(d by)?\b", re.IGNORECASE)

_MESSAGES: Final = (
    # Most programs and languages: "git: fatal: …", "cli.py: error: …", "ValueError: …", "TypeError [ERR_X]: …".
    (re.compile(r"(?:[^\s:]+: )*(?:[\w.$]*(?:error|exception)|fatal|panic)(?: \[\w+\])?: ", re.IGNORECASE), -1),
    (re.compile(r"[\w.$]+(?:Error|Exception)$|thread '.*' panicked at "), -1),
    # npm tells the reason first, and where its log is last.
    (re.compile(r"npm (?:error|ERR!) (?!code )\S+ +\S"), 0),
    (re.compile(r".*(?:\b(?:ERROR|FATAL|CRITICAL)\b|\blevel=error\b)"), -1),
)
"""How a line begins that holds the message, best first; and which of several is meant."""


def most_telling(lines: Sequence[str]) -> str:
    """Return the message of an exception or an error, with its cause; the last line if none is recognized."""
    cleaned = [text for line in lines[-LINES:] if (text := line.strip(_TREE).strip())]
    for pattern, which in _MESSAGES:
        if places := [place for place, text in enumerate(cleaned) if pattern.match(text)]:
            return _with_continuation(cleaned[places[which] :])
    return cleaned[-1] if cleaned else ""


def _with_continuation(lines: Sequence[str]) -> str:
    """The first line with what belongs to it: what its colon announces, the fields of a validation error, a cause."""
    text = lines[0]
    for line in lines[1:3]:
        announced = text.endswith(":")
        if _FRAME.match(line) or not (announced or _VALIDATION.search(lines[0]) or _CAUSE.match(line)):
            break
        text += f" {line}" if announced else f" · {line}"
    return text
