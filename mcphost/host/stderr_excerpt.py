"""Finds the line of a server's stderr that says why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

LINES: Final = 50
"""Last lines of stderr that are searched."""

_TREE: Final = " \t|+-│╰─▶"
"""The characters before the message of an exception in a group, and of a cause."""

_FRAME: Final = r"(at |File |\^|~)"
_VALIDATION: Final = r"\bvalidation errors? for\b"
_CAUSE: Final = r"(?i)cause(d by)?\b"

_MESSAGES: Final = (
    # Most programs and languages: "git: fatal: …", "cli.py: error: …", "ValueError: …", "TypeError [ERR_X]: …".
    (r"(?i)(?:[^\s:]+: )*(?:[\w.$]*(?:error|exception)|fatal|panic)(?: \[\w+\])?: ", -1),
    (r"[\w.$]+(?:Error|Exception)$|thread '.*' panicked at ", -1),
    # npm tells the reason first, and where its log is last.
    (r"npm (?:error|ERR!) (?!code )\S+ +\S", 0),
    (r".*(?:\b(?:ERROR|FATAL|CRITICAL)\b|\blevel=error\b)", -1),
)
"""The start of a line that holds the message, best first; and which of several is meant."""


def most_telling(lines: Sequence[str]) -> str:
    """Return the message of an exception or an error, with its cause; the last line if none is recognized."""
    cleaned = [text for line in lines[-LINES:] if (text := line.strip(_TREE).strip())]
    for pattern, which in _MESSAGES:
        if places := [place for place, text in enumerate(cleaned) if re.match(pattern, text)]:
            return _with_continuation(cleaned[places[which] :])
    return cleaned[-1] if cleaned else ""


def _with_continuation(lines: Sequence[str]) -> str:
    """The first line with what belongs to it: what its colon announces, the fields of a validation error, a cause."""
    text = lines[0]
    for line in lines[1:3]:
        announced = text.endswith(":")
        if re.match(_FRAME, line) or not (announced or re.search(_VALIDATION, lines[0]) or re.match(_CAUSE, line)):
            break
        text += f" {line}" if announced else f" · {line}"
    return text
