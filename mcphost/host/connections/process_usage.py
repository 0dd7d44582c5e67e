"""Reads the CPU and memory usage of a server program while it is on screen, and warns once of a large one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from mcphost.config import Config
from mcphost.host.connections.connection import Connection
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text
from mcphost.transports.base import ProcessUsageReport

Measure = Callable[[int], ProcessUsageReport | None]
"""Reads the usage of a process group by the number of its leader; None if the group has ended. Waits for the disk."""

APART: Final = 0.25
"""Seconds between the two first readings; the system counts in hundredths of a second."""

BUSY: Final = 0.9
"""The share of a processor that deserves attention."""


@dataclass(frozen=True, slots=True)
class UsageReading:
    """The usage by process ``pid`` at ``at`` (seconds of a monotonic clock)."""

    pid: int
    at: float
    usage: ProcessUsageReport
    share: float = 0.0
    """Of one processor, since the reading before; of several it may be more than 1."""
    too_large: str = ""
    """Why its memory deserves a warning, in words; empty where it does not."""

    @property
    def busy(self) -> bool:
        """True if it keeps a processor busy."""
        return self.share >= BUSY


class ProcessUsage:
    """The latest reading of each server. ``warn`` is called once for each program that grew over its limit."""

    def __init__(
        self,
        measure: Measure | None,
        config: Callable[[], Config],
        warn: Callable[[str, str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._measure, self._config, self._warn, self._now = measure, config, warn, now
        self._read: dict[str, UsageReading] = {}
        self._warned: set[tuple[str, int]] = set()

    def reading_of(self, connection: Connection) -> UsageReading | None:
        """The latest reading of the program that runs now; None before the first."""
        reading = self._read.get(connection.name)
        return reading if reading is not None and reading.pid == self.program(connection) else None

    def program(self, connection: Connection) -> int | None:
        """The process to measure; None if mcphost started none, or cannot measure it."""
        return connection.process.pid if self._measure is not None and connection.ready else None

    async def read(self, connection: Connection) -> UsageReading | None:
        """Look now; None where there is nothing to see."""
        pid = self.program(connection)
        before = self.reading_of(connection)
        if pid is not None and (before is None or self._now() - before.at < APART):
            before = await self._look(pid, None)
            await asyncio.sleep(APART)
        reading = None if pid is None else await self._look(pid, before)
        if reading is None:
            self._read.pop(connection.name, None)
            return None
        return self._keep(connection.name, reading)

    async def memory(self, connection: Connection) -> int | None:
        """The bytes that the program takes now; None where there is nothing to see."""
        pid = self.program(connection)
        seen = None if pid is None else await self._look(pid, None)
        return None if seen is None else seen.usage.memory

    async def _look(self, pid: int, before: UsageReading | None) -> UsageReading | None:
        usage = None if self._measure is None else await asyncio.to_thread(self._measure, pid)
        if usage is None:
            return None
        at = self._now()
        if before is None:
            return UsageReading(pid, at, usage)
        return UsageReading(pid, at, usage, max(0.0, usage.cpu - before.usage.cpu) / max(at - before.at, 0.01))

    def _keep(self, server: str, reading: UsageReading) -> UsageReading:
        limit = self._config().limits_for(server).process_bytes
        if reading.usage.memory > limit:
            why = f"more than {size_text(limit)} ([limits] process_bytes)"
            reading = UsageReading(reading.pid, reading.at, reading.usage, reading.share, why)
            if (server, reading.pid) not in self._warned:
                self._warned.add((server, reading.pid))
                self._warn(server, f"its program takes {size_text(reading.usage.memory)} of memory, {why}")
        self._read[server] = reading
        return reading
