"""Decides how long to wait for an overloaded or silent model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from mcphost.lazy_dataclass import dataclass

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
"""Pairs of headers: the remaining budget, and when it resets."""


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Timeouts and retry limits. Times are in seconds."""

    connect: float = 10.0
    """For name lookup, connection and TLS."""
    first: float = 300.0
    """To the first byte of the answer: a local model may have to load, and to read a long prompt."""
    idle: float = 120.0
    """Between two chunks of the answer. Vendors send keepalives far more often."""
    retries: int = 3
    """The most retries of a request while the model is overloaded."""
    backoff: float = 1.0
    """Before the first retry, unless the model names a delay; doubled for each further one."""
    most_waiting: float = 60.0
    """For all delays of one request together; beyond it the request fails."""

    def wait(self, attempt: int, requested: float | None, waited: float, jitter: float) -> float | None:
        """Seconds before retry number ``attempt`` (from 1), or None to give up; ``jitter`` is 0 to 1."""
        if attempt > self.retries:
            return None
        seconds = self.backoff * 2 ** (attempt - 1) * (1 + jitter / 4) if requested is None else requested
        return seconds if waited + seconds <= self.most_waiting else None


def requested_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """The delay in seconds that response headers ask for; None if they name none. Names are in lower case."""
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
    """Seconds until each exhausted budget resets."""
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
