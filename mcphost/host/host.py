"""The host: every server's connection, every call, and what they share, behind plain methods.

Knows how the parts are put to one another. Refuses to know how anything is shown, which transports there are, and how
a person is asked: those it is given. The app runs inside it (``async with Host(...)``), so that leaving the app, in
whatever way, stops every server.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from mcphost.client.client import Identity, Patience
from mcphost.config import Changes, Config, ServerConfig, compare
from mcphost.errors import ConfigError, Declined, InvalidArguments, McphostError, UnknownName
from mcphost.host.approvals import Approvals, Sighting, from_toml, to_toml
from mcphost.host.audit import AuditLog
from mcphost.host.calls import Call, CallRequest
from mcphost.host.catalog import Catalog
from mcphost.host.connection import Connection, ServerState, sent_to
from mcphost.host.consent import Approver, ConsentBroker
from mcphost.host.events import (
    Alarmed,
    CallChanged,
    CallFinished,
    CallStarted,
    EventBus,
    GrantsChanged,
    Logged,
    ServerChanged,
    ServersChanged,
    ToolsChanged,
)
from mcphost.host.logs import LogBook, LogBudget, Source
from mcphost.host.validation import Verdict, validate
from mcphost.protocol.types import CallToolResult, LogLevel, Progress, Tool
from mcphost.transports.base import Transport

KEPT_CALLS: Final = 200
"""Ended calls that are kept to look at again."""


class Store(Protocol):
    """Where the app keeps what it learned between runs. Every call may take as long as a disk does."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none."""

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Replace a state file. Raises ConfigError."""


@dataclass(frozen=True, slots=True)
class Fittings:
    """What a host is built with, besides its configuration."""

    open_transport: Callable[[Config, str], Awaitable[Transport]]
    """Makes the transport of a server, its references resolved. Raises ConfigError."""
    approver: Approver
    version: str
    store: Store | None = None
    """None: nothing is remembered between runs."""
    audit_path: Path | None = None
    mask: Callable[[str], str] = field(default=lambda text: text)
    """Takes secrets out of a text."""


class Host:
    """All configured servers and everything done with them. Use as ``async with``."""

    def __init__(self, config: Config, fittings: Fittings) -> None:
        self.config = config
        self._fittings = fittings
        self._identity = Identity(fittings.version)
        self.bus = EventBus()
        self.logs = LogBook(time.time, fittings.mask, lambda: self.bus.publish(Logged()))
        self.catalog = Catalog(config.servers)
        self.servers: dict[str, Connection] = {}
        self.calls: dict[int, Call] = {}
        self._running: dict[int, str] = {}
        self._numbers = count(1)
        self._audit = AuditLog(fittings.audit_path, fittings.mask)
        self.consent = ConsentBroker(
            lambda: self.config,
            Approvals(),
            fittings.approver,
            self._audit,
            lambda: datetime.now().astimezone(),
            self._grants_changed,
            lambda text: self.bus.publish(Alarmed(text)),
        )
        self._tasks: asyncio.TaskGroup | None = None
        self._supervisors: dict[str, asyncio.Task[None]] = {}
        self._saving = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._load_approvals()
        self._tasks = await asyncio.TaskGroup().__aenter__()
        for name in self.config.servers:
            self._add(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        running = [call for call in self.calls.values() if not call.state.ended]
        for call in running:
            call.cancel()
        for task in self._supervisors.values():
            task.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._save_approvals()
            await self._audit.aclose()

    # Servers.

    def server(self, name: str) -> Connection:
        """The connection of a configured server; raises UnknownName with the names there are."""
        if name not in self.servers:
            known = ", ".join(self.servers) or "none"
            raise UnknownName(f"no server is called {name!r}; configured: {known}")
        return self.servers[name]

    async def ready(self, names: list[str] | None = None) -> None:
        """Wait until these servers (all that start by themselves) are ready or have failed for the first time."""
        chosen = [self.server(name) for name in names] if names else list(self.servers.values())
        for connection in chosen if names else ():
            connection.start()
        await asyncio.gather(*(connection.settled() for connection in chosen))

    async def apply(self, config: Config) -> Changes:
        """Go over to another configuration: what did not change goes on undisturbed."""
        changes = compare(self.config, config)
        for name in changes.removed:
            await self._remove(name)
        self.config = config
        for name in changes.added:
            self._add(name)
        for name in changes.changed:
            self.servers[name].reconfigured()
        self.bus.publish(ServersChanged())
        return changes

    # Calls.

    def call_tool(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        origin: str = "you",
        timeout: float | None = None,
    ) -> Call:
        """Begin a tool call: checked, asked for, sent, and its result checked. Returns at once."""
        assert self._tasks is not None
        call = Call(next(self._numbers), CallRequest(server, tool, arguments, origin, timeout), time.monotonic)
        self.calls[call.number] = call
        self._forget_old_calls()
        call.attach(self._tasks.create_task(self._carry_out(call), name=f"call {server}:{tool}"))
        self.bus.publish(CallStarted(call.number))
        return call

    def running(self, server: str | None = None) -> list[Call]:
        """The calls that have not ended, oldest first."""
        return [c for c in self.calls.values() if not c.state.ended and server in (None, c.request.server)]

    # What a connection is given (`mcphost.host.connection.Surroundings`).

    async def open_transport(self, name: str) -> Transport:
        """The transport of a server. Raises ConfigError."""
        return await self._fittings.open_transport(self.config, name)

    def current_config(self) -> Config:
        """The configuration as it is now."""
        return self.config

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def random(self) -> float:
        """Between 0 and 1."""
        return random.random()

    def log(self, server: str, source: Source, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line, with the call that was running then."""
        running = self._running_on(server)
        self.logs.add(server, source, level, text, logger=logger, call=running)

    def state_changed(self, server: str) -> None:
        """Tell the fronts."""
        self.bus.publish(ServerChanged(server))

    def tools_listed(self, server: str, tools: list[Tool]) -> None:
        """Keep the tools and tell the fronts."""
        self.catalog.keep(server, tools)
        self.bus.publish(ToolsChanged(server))

    def _add(self, name: str) -> None:
        assert self._tasks is not None
        limits = self.config.limits_for(name)
        self.logs.set_budget(name, LogBudget(limits.log_lines, limits.log_bytes, limits.log_lines_per_second))
        self.servers[name] = connection = Connection(name, self, self._identity)
        self.catalog.keep(name, ())
        self._supervisors[name] = self._tasks.create_task(connection.supervise(), name=f"server {name}")

    async def _remove(self, name: str) -> None:
        task = self._supervisors.pop(name)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        del self.servers[name]
        self.catalog.forget(name)

    async def _carry_out(self, call: Call) -> None:
        try:
            await self._attempt(call)
        except asyncio.CancelledError:
            call.cancelled()
        except McphostError as error:
            call.failed(error)
        if call.sent_at is not None:
            request = call.request
            await self.consent.finished(call.number, request.server, request.tool, call.state.value, call.elapsed)
        self._running.pop(call.number, None)
        self.bus.publish(CallFinished(call.number))

    async def _attempt(self, call: Call) -> None:
        request = call.request
        connection = self.server(request.server)
        if connection.state in (ServerState.STOPPED,) and connection.config.start == "lazy":
            connection.start()
        await connection.settled()
        client = connection.client
        tool, arguments = await self._settle(call, connection.config)
        call.sent(arguments)
        self._running[call.number] = request.server
        self.bus.publish(CallChanged(call.number))
        result = await client.call_tool(
            tool.name,
            arguments,
            patience=self._patience(call, connection.config),
            on_progress=lambda progress: self._progressed(call, progress),
        )
        call.answered(result, await _validity(tool, result))

    async def _settle(self, call: Call, config: ServerConfig) -> tuple[Tool, Mapping[str, Any]]:
        """The tool and the arguments that were allowed. Raises InvalidArguments or Declined."""
        request = call.request
        tool = self.catalog.tool(request.server, request.tool)
        note = await _check_arguments(tool, request.arguments)
        answer = await self.consent.settle(
            call.number, request.server, tool, request.arguments, request.origin, sent_to(config), note
        )
        if answer.arguments is not None:
            await _check_arguments(tool, answer.arguments)
        if self.catalog.tool(request.server, request.tool).definition() != tool.definition():
            raise Declined(
                "the tool's definition changed while you were asked; look again", by="policy", rule="changed"
            )
        return tool, request.arguments if answer.arguments is None else answer.arguments

    def _patience(self, call: Call, config: ServerConfig) -> Patience:
        own = config.tools.get(call.request.tool)
        idle = call.request.timeout or (own and own.timeout_sec) or config.tool_timeout_sec
        return Patience(idle, max(idle, config.tool_timeout_max_sec))

    def _progressed(self, call: Call, progress: Progress) -> None:
        call.progress = progress
        self.bus.publish(CallChanged(call.number))

    def _running_on(self, server: str) -> int | None:
        return next((number for number, name in reversed(self._running.items()) if name == server), None)

    def _forget_old_calls(self) -> None:
        ended = [number for number, call in self.calls.items() if call.state.ended]
        for number in ended[: max(0, len(ended) - KEPT_CALLS)]:
            del self.calls[number]

    # What is remembered.

    def _grants_changed(self) -> None:
        self.bus.publish(GrantsChanged())
        if self._tasks is not None:
            self._tasks.create_task(self._save_approvals(), name="save approvals")

    async def _load_approvals(self) -> None:
        if self._fittings.store is not None:
            data = await asyncio.to_thread(self._fittings.store.read, "approvals")
            self.consent.approvals = Approvals(from_toml(data))

    async def _save_approvals(self) -> None:
        if self._fittings.store is None:
            return
        async with self._saving:
            lasting: list[Sighting] = list(self.consent.approvals.lasting())
            try:
                await asyncio.to_thread(self._fittings.store.write, "approvals", to_toml(iter(lasting)))
            except ConfigError as error:
                self.bus.publish(Alarmed(f"what you allowed could not be saved: {error}"))


async def _check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """What could not be checked; raises InvalidArguments for what is wrong."""
    verdict = await validate(tool.input_schema, arguments)
    if verdict.problems:
        raise InvalidArguments([(problem.path, problem.message) for problem in verdict.problems])
    return verdict.note


async def _validity(tool: Tool, result: CallToolResult) -> Verdict | None:
    if tool.output_schema is None or result.is_error:
        return None
    if not result.has_structured:
        return Verdict((), "the tool declares an output schema but answered without structured content")
    return await validate(tool.output_schema, result.structured)
