"""Masks what a user wants to have in no file of traffic: places in messages, and patterns in texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcphost.errors import UsageError
from mcphost.json_values import KeyPath, is_number
from mcphost.protocol.json_paths import JsonPath
from mcphost.redaction import MASK

_TOKEN: Final = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+][?+]?|\{\d*,\d*\}[?+]?|[()]|[^\\\[*+()]"
"""The parts of a regular expression, of which only groups and repetitions of any number matter."""


class Redactions:
    """JSON paths into messages, which begin with ``$``, and regular expressions."""

    def __init__(self, given: Sequence[str] = ()) -> None:
        """Raise UsageError for any that is wrong."""
        self._paths = [_path(each) for each in given if each.startswith("$")]
        patterns = [_pattern(each) for each in given if not each.startswith("$")]
        self._pattern = re.compile("|".join(f"(?:{each})" for each in patterns)) if patterns else None

    def applied(self, text: str, *, cut: bool = False) -> str:
        """``text`` with the values masked. JSON stays JSON; the start of a message that was cut cannot be read."""
        if not self._paths and self._pattern is None:
            return text
        if not cut:
            try:
                hidden = self._in_value(json.loads(text))
            except (ValueError, RecursionError):
                pass
            else:
                # Even if nothing was found: the text may hold a member twice, of which the value has one.
                return json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))
        if cut and self._paths:
            return ""
        return self._in_text(text)

    def _in_value(self, value: Any) -> Any:
        """Mask in a message or a batch, which is changed."""
        messages = value if isinstance(value, list) else [value]
        for message in messages:
            for path in self._paths:
                for place in [*path.places(message)]:
                    _mask(message, place)
        return self._in_strings(value)

    def _in_strings(self, value: Any) -> Any:
        match value:
            case str():
                return self._in_text(value)
            case list():
                return [self._in_strings(each) for each in value]
            case dict():
                return {self._in_text(name): self._in_strings(each) for name, each in value.items()}
        if is_number(value) and self._pattern is not None and self._pattern.search(json.dumps(value)):
            return MASK
        return value

    def _in_text(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)


class TrafficTarget(NamedTuple):
    """The file for all messages of a run, and the command that writes it; see `RecordingFacts` for ``seen``."""

    path: Path
    recorded_by: str = ""
    redactions: Redactions = Redactions()
    seen: str = ""


def _mask(message: Any, place: KeyPath) -> None:
    """Replace a value; one below another that was replaced is gone already."""
    for key in place[:-1]:
        if not isinstance(message, dict | list):
            return
        message = message[key]  # type: ignore[index]
    if place and isinstance(message, dict | list):
        message[place[-1]] = MASK  # type: ignore[index]


def _path(text: str) -> JsonPath:
    try:
        path = JsonPath.parse(text)
    except ValueError as error:
        raise UsageError(f"--redact: {error}") from None
    if not path.segments:
        raise UsageError(f"--redact: {text} is the whole message; name a place in it, as in $.params.arguments.email")
    return path


def _pattern(text: str) -> str:
    try:
        found = re.compile(text).search("")
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--redact: {text!r} is not a regular expression: {error}") from None
    if found:
        raise UsageError(f"--redact: {text!r} matches everywhere; write a pattern that matches at least one character")
    if _repeats_a_repetition(text):
        words = "repeats a repetition, which can take for ever; make the inner one possessive, as in (a++)+"
        raise UsageError(f"--redact: {text!r} {words}")
    return text


def _repeats_a_repetition(pattern: str) -> bool:
    """True if a group that holds a repetition of any number is itself repeated so."""
    groups = [False]
    closed = False  # the group that was closed last holds a repetition
    for token in re.findall(_TOKEN, pattern):
        repeats = token[0] in "*+" or (token[0] == "{" and len(token) > 1)
        possessive = len(token) > 1 and token[-1] == "+" and token[0] in "*+{"
        if repeats and closed:
            return True
        groups[-1] = groups[-1] or (repeats and not possessive)
        closed = False
        if token == "(":
            groups.append(False)
        elif token == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] = groups[-1] or closed
    return False
