"""The usage of programs is read on demand, and warned of once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from mcphost.config import Config, parse
from mcphost.host.connections import process_usage
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.process_usage import ProcessUsage
from mcphost.transports.base import ProcessReport, ProcessUsageReport

CONFIG = parse('[servers.a]\ncommand = "x"\nlimits = { process_bytes = 50_000_000 }').config


@dataclass
class Server:
    """As much of a connection as is looked at."""

    name: str = "a"
    ready: bool = True
    process: ProcessReport = field(default_factory=lambda: ProcessReport(pid=7))


@dataclass
class Machine:
    """A clock, and the readings: memory in bytes, seconds of a processor since the last reading."""

    looks: Sequence[tuple[int, float] | None]
    time: float = 100.0
    cpu: float = 5.0
    pids: list[int] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def measure(self, pid: int) -> ProcessUsageReport | None:
        self.pids.append(pid)
        look = self.looks[len(self.pids) - 1]
        self.time += 1.0
        if look is None:
            return None
        self.cpu += look[1]
        return ProcessUsageReport(2, look[0], self.cpu)

    def process_usage(self, config: Config = CONFIG) -> ProcessUsage:
        return ProcessUsage(self.measure, lambda: config, self.warn, lambda: self.time)

    def warn(self, server: str, text: str) -> None:
        self.warned.append(f"{server}: {text}")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_usage, "APART", 0.0)


def connection(**more: Any) -> Connection:
    return cast(Connection, Server(**more))


@pytest.mark.hostile("S10")
async def test_the_share_of_a_processor_is_that_since_the_look_before() -> None:
    """The first share takes two readings; the time of a child that ended is lost, which is not a negative share."""
    machine = Machine([(1, 0.0), (1, 0.5), (1, 2.0), (1, -3.0)])
    usage, server = machine.process_usage(), connection()
    assert usage.reading_of(server) is None
    readings = [await usage.read(server) for _ in range(3)]
    assert [reading and (reading.share, reading.busy) for reading in readings] == [
        (0.5, False),
        (2.0, True),
        (0.0, False),
    ]
    assert usage.reading_of(server) == readings[-1]
    assert usage.reading_of(connection(process=ProcessReport(pid=8))) is None  # it was started again


@pytest.mark.hostile("S10")
async def test_a_program_over_its_limit_is_warned_of_once_per_start() -> None:
    machine = Machine([(49_000_000, 0.0)] * 2 + [(51_000_000, 0.0)] * 4)
    usage, server = machine.process_usage(), connection()
    found = [await usage.read(server) for _ in range(3)]
    assert [bool(reading and reading.too_large) for reading in found] == [False, True, True]
    assert machine.warned == ["a: its program takes 51 MB of memory, more than 50 MB ([limits] process_bytes)"]
    await usage.read(connection(process=ProcessReport(pid=8)))
    assert len(machine.warned) == 2
    assert machine.pids == [7, 7, 7, 7, 8, 8]


@pytest.mark.parametrize("more", [{"ready": False}, {"process": ProcessReport()}, {}])
async def test_where_there_is_no_program_there_is_nothing_to_see(more: dict[str, Any]) -> None:
    machine = Machine([(1, 0.0), None])
    assert await machine.process_usage().read(connection(**more)) is None
    assert len(machine.pids) == (0 if more else 2)
    assert await ProcessUsage(None, lambda: CONFIG, lambda *_: None).read(connection()) is None
