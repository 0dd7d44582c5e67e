"""Measures servers: starts them again and again, and sends each the same requests in turn.

The requests are the client's: they pass neither the screen nor the checks of a tool call. Only the first call of a tool
after each start is made as any other, with the consent that holds for the whole series.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final, NamedTuple

from mcphost.client.client import Client, RequestTimeouts
from mcphost.errors import (
    ConnectionLost,
    Declined,
    McphostError,
    RequestTimeout,
    ServerNotReady,
    SessionExpired,
    UnknownName,
    UsageError,
)
from mcphost.host.comparison.sides import Side
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.process_usage import ProcessUsage
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.repetition import Repetition
from mcphost.host.tool_calls.call import CallRequest
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.tools import Tool

STARTS: Final = 5
"""Starts of each side; the fewest whose times can be compared."""

ROUNDS: Final = 50
"""Rounds in which the requests are sent, the sides in turn."""

WARM_UP: Final = 3
"""Requests after each start that do not count."""

MOST_TIMEOUTS: Final = 3
"""Requests in a row without an answer, after which no more are sent."""

PING: Final = "ping"
LIST: Final = "tools/list"

Progress = Callable[[str], None]
"""Takes the work of the moment, as a short sentence."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """The requests to measure: ``tool`` with what ``arguments`` makes of its definition, or cheap ones without it."""

    calls: int
    """Requests of each kind to each side, without those that warm up."""
    concurrency: int = 1
    tool: str = ""
    arguments: Callable[[Tool], Mapping[str, Any]] = lambda tool: {}
    timeout: float | None = None
    """Seconds without an answer or progress; None: as configured."""

    @property
    def _rounds(self) -> int:
        return max(1, min(ROUNDS, self.calls // self.concurrency))

    @property
    def starts(self) -> int:
        """Starts of each side that count."""
        return min(STARTS, self._rounds)

    def rounds_after(self, start: int) -> list[int]:
        """The requests of a kind in each round that follows this start."""
        each, more = divmod(self.calls, self._rounds)
        rounds = range(self._rounds)
        return [each + (number < more) for number in rounds if number * self.starts // self._rounds == start]

    @property
    def times(self) -> int:
        """Calls of the tool on each side, with those that warm up."""
        return self.calls + WARM_UP * self.starts


class MeasuredRound(NamedTuple):
    """``latencies`` are the seconds of each request that was answered well; ``seconds`` are those of the round."""

    start: int
    latencies: tuple[float, ...]
    seconds: float


@dataclass(slots=True)
class MeasuredRequest:
    """The requests of one kind to one side, round by round."""

    name: str
    rounds: list[MeasuredRound] = field(default_factory=list)
    errors: int = 0
    first_error: str = ""

    @property
    def unanswered(self) -> bool:
        """True if all of them failed."""
        return self.errors > 0 and not any(each.latencies for each in self.rounds)


@dataclass(slots=True)
class MeasuredSide:
    """The measurements of one side so far; ``failure`` says why there are no more."""

    side: Side
    identity: str = ""
    server_info: Mapping[str, Any] = field(default_factory=dict)
    revision: str = ""
    startups: list[float] = field(default_factory=list)
    """Seconds from the start of the program until its tools were listed."""
    memories: list[int] = field(default_factory=list)
    """Bytes of the program and all that it started, after the requests of each start."""
    requests: dict[str, MeasuredRequest] = field(default_factory=dict)
    failure: str = ""
    timeouts: int = 0
    """Requests in a row without an answer."""


class BenchService:
    def __init__(
        self, servers: Servers, tool_calls: ToolCallService, usage: ProcessUsage, mask: Callable[[str], str]
    ) -> None:
        self._servers, self._tool_calls, self._usage, self._mask = servers, tool_calls, usage, mask

    async def measure(
        self, measured: Sequence[MeasuredSide], plan: BenchPlan, progress: Progress = lambda text: None
    ) -> None:
        """Fill in ``measured``, which holds what there is so far wherever this ends.

        A side that cannot be opened, or is lost, ends it. Raises Declined, UnknownName, InvalidArguments, UsageError.
        """
        sides = [_SideBench(each, self._servers[each.side.server], plan, self._mask) for each in measured]
        if plan.tool:
            await self._tool_calls.prepare()
        for side in sides:
            progress(f"starting {side.label}")
            await self._servers.ready([side.measured.side.server])  # warms up the disk: this start does not count
            if not side.opened():
                return
        for number in range(plan.starts):
            # Each side is first in every other round.
            in_turn = sides if number % 2 == 0 else sides[::-1]
            for side in in_turn:
                progress(f"starting {side.label}, {number + 1} of {plan.starts}")
                if not await side.start() or not await self._warmed_up(side):
                    return
            if not await _measured(in_turn, number, progress):
                return
            for side in sides:
                await self._read_memory(side)

    async def _warmed_up(self, side: _SideBench) -> bool:
        """Send the requests that do not count; the first call of a tool asks for consent."""
        plan = side.plan
        if not plan.tool:
            return await side.warm_up(WARM_UP)
        connection = side.connection
        tool = next((each for each in connection.tools if each.name == plan.tool), None)
        if tool is None:
            raise UnknownName(f"{side.label} has no tool {plan.tool!r}")
        if connection.client.tasks.applies_to(tool, preferred=False):
            raise UsageError(f"{plan.tool} runs as a task, and bench measures direct answers")
        server, arguments = side.measured.side.server, plan.arguments(tool)
        request = CallRequest(server, tool.name, arguments, timeout=plan.timeout, repetition=side.repetition)
        call = self._tool_calls.begin(request)
        try:
            await call.ended()
        except asyncio.CancelledError:
            call.cancel()
            raise
        if call.sent_at is None:
            await call.result()  # raises why it was not sent
        side.allowed(tool, call.arguments)
        return await side.warm_up(WARM_UP - 1)

    async def _read_memory(self, side: _SideBench) -> None:
        memory = await self._usage.memory(side.connection)
        if memory is not None:
            side.measured.memories.append(memory)


class _SideBench:
    """Starts one side and sends its requests."""

    def __init__(
        self, measured: MeasuredSide, connection: Connection, plan: BenchPlan, mask: Callable[[str], str]
    ) -> None:
        self.measured, self.connection, self.plan, self._mask = measured, connection, plan, mask
        self.label = measured.side.name
        self.repetition = Repetition(0, plan.times)
        self.sent = 0
        """Requests of each kind that count, so far."""
        self._tool: Tool | None = None
        self._arguments: Mapping[str, Any] = {}

    def opened(self) -> bool:
        """Note what the server says of itself, or why it is not open."""
        measured, connection, session = self.measured, self.connection, self.connection.session
        measured.identity = self._mask(connection.config.identity)
        if session is None or not connection.ready:
            measured.failure = connection.reason or f"is {connection.state.value}"
            return False
        measured.server_info = session.server.server_info.model_dump(by_alias=True, exclude_unset=True)
        measured.revision = session.revision.version
        return True

    async def start(self) -> bool:
        """Start the server again, and note the time that it takes."""
        self.connection.restart()
        await self.connection.settled()
        if not self.opened():
            return False
        connection = self.connection
        if connection.ready_at is not None and connection.started_at is not None:
            self.measured.startups.append(connection.ready_at - connection.started_at)
        return True

    def allowed(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Note the call that consent was given to."""
        self._tool, self._arguments = tool, arguments

    async def warm_up(self, count: int) -> bool:
        """Send requests that do not count; False if the server is lost."""
        for _, send in self._requests():
            for _ in range(count):
                await self._outcome(send)
        return not self.measured.failure

    async def round(self, start: int, count: int) -> bool:
        """Send the requests of a round of each kind; False if the server is lost."""
        for name, send in self._requests():
            measured = self.measured.requests.setdefault(name, MeasuredRequest(name))
            began = time.perf_counter()
            latencies = await self._send(send, measured, count)
            seconds = time.perf_counter() - began
            if self.measured.failure:
                return False
            measured.rounds.append(MeasuredRound(start, tuple(latencies), seconds))
        self.sent += count
        return True

    def _requests(self) -> Sequence[tuple[str, Callable[[Client], Awaitable[str]]]]:
        """The kinds of requests; each sends one and returns the failure that its answer reports, or ""."""
        if self._tool is not None:
            changed = self.repetition.change(self.connection.config.identity, self._now(self._tool), self._arguments)
            if changed:
                raise Declined(f"{changed} changed since the calls began", by="policy", rule=changed, reason=changed)
            return ((self._tool.name, partial(_call, self._tool.name, self._arguments, self.plan.timeout)),)
        session = self.connection.session
        modern, lists = session is not None and session.revision.modern, bool(self.connection.tools)
        asked = [(PING, "server/discover" if modern else "ping"), *([(LIST, LIST)] if lists else [])]
        return [(name, partial(_request, method, self.plan.timeout)) for name, method in asked]

    def _now(self, tool: Tool) -> Tool:
        return next((each for each in self.connection.tools if each.name == tool.name), tool)

    async def _send(
        self, send: Callable[[Client], Awaitable[str]], measured: MeasuredRequest, count: int
    ) -> list[float]:
        """Send requests of a kind; the seconds of each that was answered well."""
        left, latencies = count, list[float]()

        async def worker() -> None:
            nonlocal left
            while left > 0 and not self.measured.failure:
                left -= 1
                began = time.perf_counter()
                error = await self._outcome(send)
                seconds = time.perf_counter() - began
                if error:
                    measured.errors += 1
                    measured.first_error = measured.first_error or self._mask(error)
                else:
                    latencies.append(seconds)

        await asyncio.gather(*(worker() for _ in range(min(self.plan.concurrency, count))))
        return latencies

    async def _outcome(self, send: Callable[[Client], Awaitable[str]]) -> str:
        """Send one request, and return why it failed; empty if it did not."""
        try:
            error = await send(self.connection.client)
        except RequestTimeout as timeout:
            self.measured.timeouts += 1
            if self.measured.timeouts >= MOST_TIMEOUTS:
                self.measured.failure = f"{MOST_TIMEOUTS} requests in a row had no answer: {timeout}"
            return str(timeout)
        except (ConnectionLost, SessionExpired, ServerNotReady) as lost:
            self.measured.failure = self.measured.failure or self._mask(str(lost))
            return str(lost)
        except McphostError as refused:
            error = str(refused)
        self.measured.timeouts = 0
        return error


async def _measured(sides: Sequence[_SideBench], start: int, progress: Progress) -> bool:
    """Send the requests that follow this start; False if a server is lost."""
    plan = sides[0].plan
    for count in plan.rounds_after(start):
        sides = sides[::-1]
        for side in sides:
            progress(f"measuring {side.label}, {side.sent:,} of {plan.calls:,}")
            if not await side.round(start, count):
                return False
    return True


async def _request(method: str, timeout: float | None, client: Client) -> str:
    await client.request(method, timeouts=_timeouts(timeout, client))
    return ""


async def _call(tool: str, arguments: Mapping[str, Any], timeout: float | None, client: Client) -> str:
    result = await client.call_tool(tool, arguments, timeouts=_timeouts(timeout, client))
    if not result.is_error:
        return ""
    return next((each.text for each in result.content if isinstance(each, TextContent)), "") or "the tool failed"


def _timeouts(timeout: float | None, client: Client) -> RequestTimeouts | None:
    return None if timeout is None else RequestTimeouts(timeout, max(timeout, client.timeouts.hard))
