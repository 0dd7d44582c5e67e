"""Log lines of servers and of mcphost, as bounded memory: one order over all servers, a budget for each.

Specification: server/utilities/logging; basic/transports, stderr.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import count, takewhile
from operator import attrgetter
from typing import Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.logging import LogLevel

LINE_CHARACTERS: Final = 8 << 10
"""Characters kept of one log line; the rest is counted. A line is for reading."""


LOGGER_CHARACTERS: Final = 200
"""Characters kept of the name a server gives its logger."""


class LogSource(Enum):
    """Where a line came from."""

    SERVER = "server"
    """``notifications/message``."""
    STDERR = "stderr"
    STDOUT = "stdout"
    """Text on stdout that is not a message."""
    MCPHOST = "mcphost"
    """Decisions and observations of mcphost."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    number: int
    """Counts up over all servers, without gaps as far as lines were kept."""
    time: float
    """Seconds since the epoch."""
    server: str
    """Empty for mcphost itself."""
    source: LogSource
    level: LogLevel
    text: str
    logger: str = ""
    call: int | None = None
    """The call that was running on this server."""


@dataclass(frozen=True, slots=True)
class LogBudget:
    """The lines and bytes of one server that are kept, and its rate."""

    # As `mcphost.config.limits.Limits` has them, with the reasons.
    lines: int = 5000
    bytes: int = 5_000_000
    per_second: int = 2000


class _ServerLog:
    """One server's share: how much of it is kept, and how fast it may come."""

    def __init__(self, budget: LogBudget) -> None:
        self.budget = budget
        self.records: deque[LogRecord] = deque()
        self.size = 0
        self.dropped = 0
        self._second = 0
        self._in_second = 0
        self._dropped_in_second = 0

    def admit(self, now: float) -> tuple[bool, int]:
        """Return whether a line may come in, and how many were dropped in the second that just ended."""
        dropped_before = 0
        if int(now) != self._second:
            dropped_before, self._dropped_in_second = self._dropped_in_second, 0
            self._second, self._in_second = int(now), 0
        self._in_second += 1
        if self._in_second <= self.budget.per_second:
            return True, dropped_before
        self.dropped += 1
        self._dropped_in_second += 1
        return False, dropped_before

    def keep(self, record: LogRecord) -> None:
        self.records.append(record)
        self.size += _weight(record)
        while len(self.records) > self.budget.lines or self.size > self.budget.bytes:
            self.size -= _weight(self.records.popleft())

    def since(self, number: int) -> Iterator[LogRecord]:
        return takewhile(lambda record: record.number > number, reversed(self.records))


class LogBook:
    """The log of every server, in one order.

    ``mask`` takes secrets out of a text; ``clock`` is seconds since the epoch; ``on_added`` is called when lines came;
    ``call_on`` finds the number of the call that runs on a server.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        mask: Callable[[str], str],
        on_added: Callable[[], None],
        call_on: Callable[[str], int | None] = lambda server: None,
    ) -> None:
        self._clock, self._mask, self._on_added, self._call_on = clock, mask, on_added, call_on
        self._numbers = count(1)
        self._servers: dict[str, _ServerLog] = {}
        self._budget = LogBudget()

    def set_budget(self, server: str, budget: LogBudget) -> None:
        """Bound what is kept of this server from now on."""
        self._log(server).budget = budget

    def add(
        self,
        server: str,
        source: LogSource,
        level: LogLevel,
        text: str,
        *,
        logger: str = "",
        call: int | None = None,
    ) -> None:
        """Keep one line, unless the server is over its rate; then it is counted.

        ``call`` None: the call that runs on the server now.
        """
        now = self._clock()
        log = self._log(server)
        admitted, dropped = log.admit(now)
        if dropped:
            words = f"{dropped} log lines dropped: over {log.budget.per_second} a second"
            self._keep(log, LogRecord(next(self._numbers), now, server, LogSource.MCPHOST, LogLevel.WARNING, words))
        if admitted:
            shown, name = self._shown(text, LINE_CHARACTERS), self._shown(logger, LOGGER_CHARACTERS)
            number = self._call_on(server) if call is None else call
            self._keep(log, LogRecord(next(self._numbers), now, server, source, level, shown, name, number))

    def warn(self, server: str, text: str) -> None:
        """Keep a warning of mcphost about a server."""
        self.add(server, LogSource.MCPHOST, LogLevel.WARNING, text)

    def since(self, number: int) -> list[LogRecord]:
        """The lines after this number, oldest first, as far as they are still kept."""
        fresh = (record for log in self._servers.values() for record in log.since(number))
        return sorted(fresh, key=attrgetter("number"))

    def of_server(self, server: str) -> Iterator[LogRecord]:
        """The lines kept of one server, oldest first."""
        return iter(tuple(self._log(server).records))

    def dropped(self, server: str) -> int:
        """The number of lines of this server above its rate."""
        return self._log(server).dropped

    def forget(self, server: str) -> None:
        """Drop the lines of a server that does not come back."""
        self._servers.pop(server, None)

    def clear(self) -> None:
        for log in self._servers.values():
            log.records.clear()
            log.size = 0

    def _log(self, server: str) -> _ServerLog:
        return self._servers.setdefault(server, _ServerLog(self._budget))

    def _keep(self, log: _ServerLog, record: LogRecord) -> None:
        log.keep(record)
        self._on_added()

    def _shown(self, text: str, most: int) -> str:
        # Masked before it is cut: a cut could leave the first half of a secret, which no mask would know.
        start = self._mask(text[: 2 * most])
        more = max(len(text) - 2 * most, 0) + max(len(start) - most, 0)
        return f"{start[:most]}… {more} more" if more else start


def _weight(record: LogRecord) -> int:
    return len(record.text.encode("utf-8", "replace")) + len(record.logger)
