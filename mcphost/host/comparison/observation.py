"""Opens the two sides of a comparison, reads what they offer, and makes the same calls to both."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from mcphost.errors import Declined, InvalidResult, McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.sides import Side, Sides
from mcphost.host.comparison.surface import Surface, surface_of
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import MessageKind, TrafficMessage
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import ASKS_FOR
from mcphost.protocol.models.tools import Tool

Definitions = Mapping[str, Mapping[str, Any]]
"""Definitions as received, by name; of resources by URI, of templates by template."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The traffic between mcphost and a server: JSON-RPC messages, and bytes with HTTP heads."""

    messages: int = 0
    sent: int = 0
    """Bytes."""
    received: int = 0
    """Bytes."""
    questions: Mapping[str, int] = field(default_factory=dict)
    """The number of the server's requests to the client, by method."""


@dataclass(frozen=True, slots=True)
class CallObservation:
    """One call: ``result`` is the result object as it came, or None."""

    tool: str
    result: Mapping[str, Any] | None
    error: McphostError | None
    seconds: float
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class SideObservation:
    """The observation of one side. ``failure`` says why it is not open; everything else is then empty."""

    side: Side
    identity: str = ""
    """The command line or URL that runs it."""
    failure: str = ""
    revision: str = ""
    evidence: str = ""
    """The server's answer to ``server/discover``; empty if it was not asked."""
    server_info: Mapping[str, Any] | None = None
    instructions: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    offered: Mapping[CatalogKind, Definitions] = field(default_factory=dict)
    seconds: float = 0.0
    """Seconds that opening the session took."""
    opening: Exchange = Exchange()
    """From the start of the connection until everything was listed."""
    calls: tuple[CallObservation, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """The calls to make to each side. ``arguments`` makes them, by the tool of the first side that has it."""

    tool: str
    arguments: Callable[[Tool | None], Mapping[str, Any]]
    times: int = 1
    timeout: float | None = None


Progress = Callable[[str], None]
"""Takes what is done at the moment, as a short sentence."""


class ComparisonService:
    """Observes two of the host's servers; what is compared and how is in `mcphost.host.comparison.report`."""

    def __init__(
        self, servers: Servers, tool_calls: ToolCallService, traffic: TrafficBook, mask: Callable[[str], str]
    ) -> None:
        self._servers, self._tool_calls, self._traffic = servers, tool_calls, traffic
        self.mask = mask
        """Takes secrets out of what a server repeats."""

    async def surfaces(self, servers: Sequence[str], entries: Mapping[str, str] = {}) -> dict[str, Surface | None]:
        """The surfaces of these servers, opened and listed for it; None for one that could not be opened.

        ``entries`` are the configured servers that some of them are.
        """
        await self._servers.ready(list(servers))
        connections = {name: self._servers[name] for name in servers}
        await asyncio.gather(*(_list_all(each) for each in connections.values() if each.ready))
        return {
            name: await asyncio.to_thread(surface_of, each, entry=entries.get(name, ""))
            for name, each in connections.items()
        }

    async def observe(
        self, sides: Sides, planned: PlannedCalls | None = None, progress: Progress = lambda text: None
    ) -> tuple[SideObservation, SideObservation]:
        """Open both sides, list what they offer, and make the planned calls, each with consent as any other.

        A side that cannot be opened is part of what is observed. Raises Declined and what ``planned.arguments`` raises.
        """
        began = self._traffic.newest
        progress("opening both sides")
        await self._servers.ready([side.server for side in sides])
        progress("listing what they offer")
        first, second = await asyncio.gather(*(self._opened(side, began) for side in sides))
        if planned is None or first.failure or second.failure:
            return first, second
        calls = await self._calls(sides, planned, progress)
        return replace(first, calls=calls[0]), replace(second, calls=calls[1])

    async def _opened(self, side: Side, began: int) -> SideObservation:
        connection = self._servers[side.server]
        if connection.ready:
            await _list_all(connection)
        session = connection.session
        if session is None or not connection.ready:
            reason = connection.reason or f"is {connection.state.value}"
            return SideObservation(side, connection.config.identity, failure=reason)
        server = session.server
        return SideObservation(
            side,
            connection.config.identity,
            revision=session.revision.version,
            evidence=session.evidence,
            server_info=server.server_info.model_dump(by_alias=True, exclude_unset=True),
            instructions=server.instructions or "",
            capabilities=server.capabilities,
            offered={kind: _definitions(listing.items) for kind, listing in connection.listings},
            seconds=session.seconds,
            opening=exchange_of(self._passed(side.server, began)),
        )

    async def _calls(
        self, sides: Sides, planned: PlannedCalls, progress: Progress
    ) -> tuple[tuple[CallObservation, ...], ...]:
        """Call both sides in turn, so that a machine that gets slower is slower for both."""
        tools = [tool for side in sides for tool in self._servers[side.server].tools if tool.name == planned.tool]
        arguments = planned.arguments(tools[0] if tools else None)
        made: tuple[list[CallObservation], ...] = ([], [])
        for number in range(planned.times):
            for side, calls in zip(sides, made, strict=True):
                progress(f"calling {planned.tool} on {side.label}, {number + 1} of {planned.times}")
                calls.append(await self._call(side, planned, arguments))
        return tuple(map(tuple, made))

    async def _call(self, side: Side, planned: PlannedCalls, arguments: Mapping[str, Any]) -> CallObservation:
        began, error, result = self._traffic.newest, None, None
        call = self._tool_calls.call(side.server, planned.tool, arguments, timeout=planned.timeout)
        try:
            found = await call.result()
            result = found.raw
            if found.unread:
                raise InvalidResult(found.unread)
        except Declined:
            raise
        except McphostError as raised:
            error = raised
        except asyncio.CancelledError:
            call.cancel()
            raise
        passed = (message for message in self._passed(side.server, began) if message.call == call.number)
        return CallObservation(planned.tool, result, error, call.elapsed, _with_rounds(exchange_of(passed), call))

    def _passed(self, server: str, after: int) -> list[TrafficMessage]:
        return [message for message in self._traffic.since(after) if message.server == server]


async def _list_all(connection: Connection) -> None:
    for kind, _ in connection.listings:
        if connection.ready and connection.listings.declared(kind):
            try:
                await connection.settled_list(kind)
            except McphostError:  # the connection says why it ended
                return


def _definitions(items: Sequence[Any]) -> Definitions:
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        definition = item.definition()
        name = definition.get("uri") or definition.get("uriTemplate") or definition.get("name")
        found[str(name)] = definition
    return found


def _with_rounds(exchange: Exchange, call: ToolCall) -> Exchange:
    """The exchange with what the server asked by ``input_required``."""
    asked = Counter(exchange.questions)
    asked.update(each.method for current in call.rounds for each in current.needed.inputs.values())
    return Exchange(exchange.messages, exchange.sent, exchange.received, dict(asked))


def exchange_of(messages: Iterable[TrafficMessage]) -> Exchange:
    """The sum of these messages; lines of stderr do not count, HTTP heads only as bytes."""
    count, sizes, asked = 0, {True: 0, False: 0}, Counter[str]()
    for message in messages:
        if message.kind is MessageKind.STDERR:
            continue
        count += message.kind is not MessageKind.HTTP
        sizes[message.sent] += message.size
        parts = message.facts.parts or (message.facts,)
        asked.update(each.method for each in parts if not message.sent and each.method in ASKS_FOR)
    return Exchange(count, sizes[True], sizes[False], dict(asked))
