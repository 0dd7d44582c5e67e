"""The host: every server's connection, every call, and what they share, behind plain methods.

Knows how the parts are put to one another. Refuses to know how anything is shown, which transports there are, and how
a person is asked: those it is given. The app runs inside it (``async with Host(...)``), so that leaving the app, in
whatever way, stops every server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from mcphost.client.client import Identity
from mcphost.config import Changes, Config, compare
from mcphost.errors import UnknownName
from mcphost.host.audit import AuditLog
from mcphost.host.catalog import Catalog
from mcphost.host.chat.host_methods import Chatting
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.host_methods import Hearing
from mcphost.host.connections.process_usage import ProcessUsage
from mcphost.host.consent.approvals import Approvals, ApprovalStore
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import Alarmed, EventBus, GrantsChanged, Logged, ServersChanged, TrafficAdded
from mcphost.host.logs import LogBook, LogBudget
from mcphost.host.resources.completion import CompletionService
from mcphost.host.resources.host_methods import Asking
from mcphost.host.resources.reading import ReadingService
from mcphost.host.server_requests.host_methods import Answering
from mcphost.host.sign_in.host_methods import Accounts
from mcphost.host.sign_in.service import SignInService
from mcphost.host.tool_calls.authorization_retry import AuthorizationRetry
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.traffic.book import TrafficBook, TrafficBudget
from mcphost.host.traffic.frames import Frame

if TYPE_CHECKING:  # what is imported where it is needed
    from mcphost.auth.ports import SignInPort
    from mcphost.host.traffic.file import TrafficFile
    from mcphost.host.traffic.resending import ResentRequest

_SIGN_IN_FIELDS: Final = frozenset(
    {"url", "oauth", "http_headers", "env_http_headers", "bearer_token_env_var", "enabled"}
)
"""Settings in which a sign-in that runs must not change under a person's eyes."""


class Host(Hearing, Asking, Answering, Chatting, Accounts):
    """All configured servers and everything done with them. Use as ``async with``; entering may raise ConfigError."""

    def __init__(self, config: Config, fittings: Dependencies) -> None:
        self.config = config
        self._fittings = fittings
        self._identity = Identity(fittings.version)
        self.bus = EventBus()
        self.logs = LogBook(time.time, fittings.mask, lambda: self.bus.publish(Logged()))
        self.traffic = fittings.traffic or TrafficBook(fittings.mask)
        self.traffic.nudge = lambda: self.bus.publish(TrafficAdded())
        self._traffic_file: TrafficFile | None = None
        self.catalog = Catalog(config.servers)
        self.gauges = ProcessUsage(fittings.measure, lambda: self.config, self._warn)
        self.servers: dict[str, Connection] = {}
        self._audit = AuditLog(fittings.audit_path, fittings.mask)
        self._memory = ApprovalStore(fittings.store, self._alarm)
        self.consent = ConsentBroker(
            lambda: self.config, Approvals(), fittings.approver, self._audit, self._grants_changed, self._alarm
        )
        witness = self.consent.witness
        self._sign_ins = self._sign_in_desk()
        begins = fittings.sign_in is not None and fittings.begin_sign_ins
        self._admission = AuthorizationRetry(self._sign_ins, self._begin_sign_in if begins else None)
        self._desk = ToolCallService(
            self.server, self.catalog, self.consent, witness, self._admission, self.bus.publish, fittings.mask
        )
        self._reading = ReadingService(self.server, self.catalog, witness, self._admission, fittings.mask)
        self._completing = CompletionService(self.server, time.monotonic)
        self._begin_answering(
            fittings.answers,
            fittings.approver,
            fittings.store,
            fittings.resolve_roots,
            fittings.open_url,
            fittings.models,
        )
        self._begin_chatting(fittings.approver, fittings.chats_path, fittings.store)
        self._tasks: asyncio.TaskGroup | None = None
        self._supervisors: dict[str, asyncio.Task[None]] = {}
        self._applying = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self.consent.approvals = await self._memory.approvals()
        await self._desks.roots.load(self._fittings.roots)
        await self._habits.load()
        self._record_traffic()
        self._tasks = await asyncio.TaskGroup().__aenter__()
        for name in self.config.servers:
            self._add(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        self._stop_chats()
        for call in self.running():
            call.cancel()
        self._sign_ins.cancel()
        for task in self._supervisors.values():
            task.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._tasks = None
            if self._fittings.close is not None:
                await self._fittings.close()
            await self._memory.save(self.consent.approvals)
            await self._audit.aclose()
            await self._close_transcripts()
            if self._traffic_file is not None:
                await self._traffic_file.aclose()

    # Servers.

    def server(self, name: str) -> Connection:
        """The connection of a configured server; raises UnknownName with the names there are."""
        if name not in self.servers:
            known = ", ".join(self.servers) or "none"
            raise UnknownName(f"no server is called {name!r}; configured: {known}")
        return self.servers[name]

    async def ready(self, names: Sequence[str] | None = None) -> None:
        """Wait until these servers (all that start by themselves) are ready or have failed for the first time."""
        chosen = [self.server(name) for name in names] if names else list(self.servers.values())
        for connection in chosen if names else ():
            connection.start()
        await asyncio.gather(*(connection.settled() for connection in chosen))

    async def apply(self, config: Config) -> Changes:
        """Go over to another configuration: what did not change goes on undisturbed.

        Returns once the servers that are no longer configured have ended.
        """
        async with self._applying:
            changes = compare(self.config, config)
            self.config = config
            gone = [self._supervisors.pop(name) for name in changes.removed]
            for name in changes.removed:
                del self.servers[name]
                self.catalog.forget(name)
                self._sign_ins.cancel(name)
            for name, fields in changes.changed.items():
                self._set_budgets(name)
                if not _SIGN_IN_FIELDS.isdisjoint(fields):
                    self._sign_ins.cancel(name)
                self.servers[name].reconfigured(fields)
            for name in changes.added:
                self._add(name)
            self._put_in_order()
            self._reconfigured([*changes.removed, *changes.changed, *changes.added])
            for task in gone:
                task.cancel()
            if gone:
                await asyncio.wait(gone)
            self.bus.publish(ServersChanged())
            return changes

    # Calls.

    @property
    def calls(self) -> Mapping[int, ToolCall]:
        """The calls by number, oldest first: all that run, and the last of those that ended."""
        return self._desk.calls

    def call_tool(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        origin: str = "you",
        timeout: float | None = None,
        as_task: bool = False,
    ) -> ToolCall:
        """Begin a tool call: checked, asked for, sent, and its result checked. Returns at once.

        ``as_task``: as a task where the tool leaves the choice.
        """
        assert self._tasks is not None
        return self._desk.begin(CallRequest(server, tool, arguments, origin, timeout, as_task), self._tasks)

    def collect_task(self, server: str, task: str, *, origin: str = "you") -> ToolCall:
        """Begin to wait for what a task brings, begun by whomever; it goes on where nobody waits. Returns at once."""
        assert self._tasks is not None
        begun = next((each.call for each in self.known_tasks(server) if each.task.task_id == task and each.call), None)
        tool, arguments = (begun.request.tool, begun.arguments) if begun else (f"task {task}", {})
        return self._desk.begin(CallRequest(server, tool, arguments, origin, task=task), self._tasks)

    def running(self, server: str | None = None) -> list[ToolCall]:
        """The calls that have not ended, oldest first."""
        return self._desk.running(server)

    def resend(self, frame: Frame, *, origin: str = "you") -> ToolCall | ResentRequest:
        """Send a request of the traffic again, to the server it went to; a tool call is asked for as any other.

        Returns at once; await ``result()``. Raises NotDone where it cannot be sent again, or UnknownName.
        """
        from mcphost.host.traffic.resending import ResentRequest, request_in, tool_call_in

        assert self._tasks is not None
        request, server = request_in(frame), self.server(frame.server).name
        if request.method == "tools/call":
            again = tool_call_in(request)
            return self.call_tool(server, again.tool, again.arguments, origin=origin, as_task=again.as_task)
        resending = ResentRequest(server, request)
        resending.begin(self._tasks, self._reading.request(server, request.method, request.params, origin))
        return resending

    # How it is done.

    def _add(self, name: str) -> None:
        assert self._tasks is not None
        self._set_budgets(name)
        self.servers[name] = connection = Connection(name, self, self._identity)
        self.catalog.keep(name, ())
        task = self._supervisors[name] = self._tasks.create_task(connection.supervise(), name=f"server {name}")
        task.add_done_callback(lambda _: connection.over())

    def _sign_in_desk(self) -> SignInService:
        parts = self._fittings
        port = None if parts.sign_in is None else self._sign_in_port
        known = self.consent.witness, self.bus.publish, parts.open_url, parts.mask
        return SignInService(port, parts.approver, *known, self._signed_in)

    async def _sign_in_port(self, server: str) -> SignInPort:
        assert self._fittings.sign_in is not None
        return await self._fittings.sign_in(self.config, server)

    async def _forget_more(self, server: str) -> Sequence[str]:
        return () if self._fittings.forget is None else await self._fittings.forget(self.config, server)

    def _set_budgets(self, name: str) -> None:
        limits = self.config.limits_for(name)
        self.logs.set_budget(name, LogBudget(limits.log_lines, limits.log_bytes, limits.log_lines_per_second))
        self.traffic.set_budget(name, TrafficBudget(limits.traffic_frames, limits.traffic_bytes))

    def _put_in_order(self) -> None:
        for name in self.config.servers:
            self.servers[name] = self.servers.pop(name)
        self.catalog.put_in_order(self.config.servers)

    def _record_traffic(self) -> None:
        if self._fittings.traffic_path is None:
            return
        from mcphost.host.traffic.file import TrafficFile

        self._traffic_file = TrafficFile(self._fittings.traffic_path, self._fittings.mask, self._alarm)
        self._traffic_file.open(self.traffic)

    # What is remembered.

    def _grants_changed(self) -> None:
        self._memory.mark_stale()
        self.bus.publish(GrantsChanged())
        if self._tasks is not None:
            self._tasks.create_task(self._memory.save(self.consent.approvals), name="save approvals")

    def _alarm(self, text: str) -> None:
        self.bus.publish(Alarmed(text))
