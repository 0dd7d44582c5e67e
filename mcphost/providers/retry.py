"""How long to wait for a model that has no room, and for one that says nothing.

Knows what vendors write about waiting, and the bounds. Refuses to wait: it has no clock but the one it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from mcphost.providers.base import TokenUsage

_DURATION: Final = re.compile(
    r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,7}(?:\.\d{1,6})?)s)?(?:(\d{1,9}(?:\.\d{1,6})?)ms)?"
)
_NUMBER: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)

_BUDGETS: Final = tuple(
    (template.format(what, "remaining"), template.format(what, "reset"))
    for template, kinds in (
        ("anthropic-ratelimit-{}-{}", ("requests", "tokens", "input-tokens", "output-tokens")),
        ("x-ratelimit-{1}-{0}", ("requests", "tokens")),
    )
    for what in kinds
)
"""Pairs of headers: what is left of a budget, and when it is full again."""

MOST_TOKENS: Final = 10**9
"""In one exchange; a larger count is nonsense."""


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The bounds of waiting, in seconds."""

    connect: float = 10.0
    """Address, connection and TLS."""
    first: float = 300.0
    """To the first byte of an answer: a local model may have to be loaded, and to read a long prompt."""
    idle: float = 120.0
    """Between two pieces of an answer. Vendors send a sign of life far more often."""
    retries: int = 3
    """How often a request is sent again to a model that has no room."""
    backoff: float = 1.0
    """Before the first retry, where the model does not say; each further wait is twice as long."""
    most_waiting: float = 60.0
    """All waits of one request together; a model that wants more is given up, and says so."""

    def wait(self, attempt: int, told: float | None, waited: float, jitter: float) -> float | None:
        """Seconds before retry number ``attempt`` (from 1), or None to give up; ``jitter`` is 0 to 1."""
        if attempt > self.retries:
            return None
        seconds = self.backoff * 2 ** (attempt - 1) * (1 + jitter / 4) if told is None else told
        return seconds if waited + seconds <= self.most_waiting else None


def told_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """How many seconds the headers of an answer say to wait; None where they do not. Names are in lower case."""
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    if (after := headers.get("retry-after", "").strip()) and (seconds := _after(after, now)) is not None:
        return seconds
    return max(_resets(headers, now), default=None)


def _after(text: str, now: datetime) -> float | None:
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return _until(moment, now)


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """When each budget that is used up is full again."""
    for remaining, reset in _BUDGETS:
        if headers.get(remaining, "").strip() == "0" and (seconds := _reset(headers.get(reset, ""), now)) is not None:
            yield seconds


def _reset(text: str, now: datetime) -> float | None:
    if (found := _DURATION.fullmatch(text)) and any(found.groups()):
        hours, minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    try:
        return _until(datetime.fromisoformat(text), now)
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime, now: datetime) -> float:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def read_usage(input_tokens: object, output_tokens: object, *more_input: object) -> TokenUsage:
    """Counts as a model tells them; nonsense is unknown, never a wrong number. ``more_input`` may be None: nothing."""
    parts = [_count(each) for each in (input_tokens, *(each for each in more_input if each is not None))]
    counts = [each for each in parts if each is not None]
    return TokenUsage(sum(counts) if len(counts) == len(parts) else None, _count(output_tokens))


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
