"""Runs a server several times, where what it did for one agent must not show to another.

An instance is a connection of its own to the server of an entry. Its configuration is a copy of the entry's; consent,
limits, sign-in and audit go by the entry (`mcphost.config.entry_of`).
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcphost.config import Config, ServerConfig, Sharing, entry_of
from mcphost.errors import McphostError, NotDone
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.connections.eras import EraMemory
from mcphost.host.connections.process_usage import ProcessUsage
from mcphost.host.connections.servers import Servers
from mcphost.host.events import CallFinished, CallStarted, EventBus, ServerChanged, ServersChanged
from mcphost.host.logs import LogBook
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.protocol.display import size_text

MOST: Final = 256
"""Instances at a time, each of which may be a process: more are a loop of agents that start agents."""

LABELS: Final = 200
"""Agents that instances are named after: what agents call themselves is foreign."""

LABEL: Final = 32
"""Characters of an agent's name in that of an instance."""

KEPT_LOGS: Final = 20
"""Ended instances whose log lines are kept: long enough to see why the last ones ended."""

AskRoots = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
"""Returns the folders of an agent, as ``roots/list`` has them. Raises McphostError."""


class Holder(NamedTuple):
    """One agent's session, which uses servers."""

    session: int
    """Unique among the sessions of this run."""
    agent: str
    """The name to show, which may be a claim."""
    alone: bool = False
    """True if the host serves this session only."""
    capabilities: Mapping[str, Any] = MappingProxyType({})
    """For ``elicitation`` and ``sampling``, the capability that the agent declared, None for none.

    One that is left out is mcphost's to answer.
    """
    given: str = ""
    """The name of ``--as``, by which sessions belong together; a session without one shares with no other."""
    roots: AskRoots | None = None
    """Asks the agent for its folders; None: its servers get those of mcphost."""
    adds_roots: bool = False
    """True if its servers get the folders of mcphost as well."""

    @property
    def answered(self) -> frozenset[str]:
        """The kinds of requests that the agent answers."""
        kinds = {kind for kind, declared in self.capabilities.items() if declared is not None}
        return frozenset(kinds | ({"roots"} if self.roots is not None else set()))


class SharingReport(NamedTuple):
    """The use of one server by agents, and its cost."""

    share: Sharing | None
    """None: the server has not shown yet which revisions it speaks."""
    by_user: bool
    """True if the user chose it in this run."""
    agents: int
    """The sessions that use it."""
    processes: int
    memory: int | None
    """Bytes of all of them; None: not all have been measured."""

    @property
    def words(self) -> str:
        """Such as ``3 agents, 4 processes, 310 MB``."""
        counted = [f"{self.agents} agent{'' if self.agents == 1 else 's'}"]
        if self.processes:
            counted.append(f"{self.processes} process{'' if self.processes == 1 else 'es'}")
        if self.memory is not None:
            counted.append(size_text(self.memory))
        return ", ".join(counted)


class _Instance(NamedTuple):
    entry: str
    key: tuple[str, str | int]
    """The entry, with the agent or the session that it runs for."""


class Instances:
    """The instances of all servers, and the sessions that hold them.

    ``configured`` is the configuration without them. ``requested`` is true while a server has a request of
    `mcphost.host.audited_requests.AuditedRequests`. ``open_server`` connects a name of `config`, and ``close_server``
    forgets one, and returns its supervisor, which is still to be cancelled.
    """

    def __init__(
        self,
        configured: Callable[[], Config],
        servers: Servers,
        eras: EraMemory,
        calls: CallRegistry,
        usage: ProcessUsage,
        logs: LogBook,
        bus: EventBus,
        requested: Callable[[str], bool],
        open_server: Callable[[str], None],
        close_server: Callable[[str], asyncio.Task[None]],
    ) -> None:
        self._configured, self._servers, self._eras, self._calls = configured, servers, eras, calls
        self._usage, self._logs, self._bus, self._requested = usage, logs, bus, requested
        self._open, self._close = open_server, close_server
        self._instances: dict[str, _Instance] = {}
        """By name, oldest first."""
        self._holders: dict[str, dict[int, Holder]] = {}
        """By the server that they use, and by session."""
        self._shares: dict[str, Sharing] = {}
        """By entry, as the user chose in this run."""
        self._config: tuple[Config, Config] | None = None
        """The configuration without and with the instances."""
        self._labels: set[str] = set()
        self._named: Counter[str] = Counter()
        self._ended: deque[str] = deque()
        self._used: dict[str, float] = {}
        """When each that runs was used last, by the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None
        bus.observe(lambda event: self._call_changed(event.call), CallStarted)
        bus.observe(lambda event: self._call_changed(event.call), CallFinished)
        bus.observe(self._server_changed, ServerChanged)

    @property
    def config(self) -> Config:
        """The configuration with the instances behind its own servers."""
        configured = self._configured()
        if self._config is None or self._config[0] is not configured:
            self._config = configured, self._extended(configured)
        return self._config[1]

    def of(self, entry: str) -> Sequence[str]:
        """The instances of an entry, oldest first."""
        return [name for name, instance in self._instances.items() if instance.entry == entry]

    def share_of(self, entry: str) -> Sharing | None:
        """Return who shares the server; None while the revisions that it speaks are unknown. Raises UnknownName.

        By default all share a server of a revision without handshake: it keeps nothing of a conversation.
        """
        connection = self._servers[entry]
        if (chosen := self._shares.get(entry) or connection.config.share) is not None:
            return chosen
        modern = self._is_modern(connection)
        return None if modern is None else "all" if modern else "session"

    def set_share(self, entry: str, share: Sharing | None) -> None:
        """Choose who shares it until mcphost exits (None: as configured). Raises UnknownName.

        What runs for a session goes on until it was idle for so long that it ends.
        """
        _ = self._servers[entry]
        self._shares.pop(entry, None)
        if share is not None:
            self._shares[entry] = share
        self._bus.publish(ServerChanged(entry))

    def report(self, entry: str) -> SharingReport:
        """Report the use of the entry's server now. Raises UnknownName."""
        connections = self._connections(entry)
        running = [each for each in connections if each.ready and each.process.pid is not None]
        readings = [self._usage.reading_of(each) for each in running]
        measured = [each.usage.memory for each in readings if each is not None]
        return SharingReport(
            share=self.share_of(entry),
            by_user=entry in self._shares,
            agents=len({session for each in connections for session in self._holders.get(each.name, ())}),
            processes=len(running),
            memory=sum(measured) if running and len(measured) == len(running) else None,
        )

    async def measure(self, entry: str) -> SharingReport:
        """As `report`, after reading the memory of all processes. Raises UnknownName."""
        await asyncio.gather(*(self._usage.read(each) for each in self._connections(entry)))
        return self.report(entry)

    def holder_of(self, server: str) -> Holder | None:
        """The session that this server runs for, the oldest of several; None if it runs for all."""
        held = self._holders.get(server, {}).values()
        return next((each for each in held if each.alone or server in self._instances), None)

    def sharers(self, server: str) -> Sequence[Holder]:
        """The sessions that share this server, none of which it runs for alone."""
        held = {} if server in self._instances else self._holders.get(server, {})
        return [each for each in held.values() if not each.alone]

    async def lease(self, entry: str, holder: Holder) -> str:
        """Return the server that this session uses, its own or the entry's: call it before each use.

        Starts nothing, except that a server which was never reached shows its revisions. Raises UnknownName, NotDone
        where too many run, and ServerNotReady for a server that only the user starts, and has not started.
        """
        server = self._running_for(entry, holder)
        if server is None:
            share = "all" if holder.alone else self.share_of(entry) or await self._learned(entry)
            server = entry if share == "all" else self._private(entry, share, holder)
        self._hold(server, holder)
        return server

    def touch(self, server: str) -> None:
        """Note a use of the server, from which ``idle_stop`` counts."""
        if server in self._instances:
            self._used[server] = asyncio.get_running_loop().time()
            self._set_timer()

    def release(self, holder: Holder) -> None:
        """The session has ended: end what runs for it alone."""
        for server in [name for name, held in self._holders.items() if holder.session in held]:
            self._let_go(server, holder.session)

    def reconfigured(self, entry: str, fields: Sequence[str]) -> None:
        """The entry changed in these fields, and with it the instances."""
        for name in self.of(entry):
            self._servers[name].reconfigured([field for field in fields if field != "start"])
        if "idle_stop" in fields:
            self._set_timer()

    def removed(self, entry: str) -> Sequence[asyncio.Task[None]]:
        """The entry is gone: forget its instances; return their supervisors, which are still to be cancelled."""
        self._shares.pop(entry, None)
        self._holders.pop(entry, None)
        return [self._forget(name) for name in self.of(entry)]

    def close(self) -> None:
        """The host ends, and with it all servers."""
        if self._timer is not None:
            self._timer.cancel()

    # Choosing.

    def _is_modern(self, connection: Connection) -> bool | None:
        """True for a server without handshake, as far as is known."""
        config = connection.config
        if connection.ready and connection.session is not None:
            return connection.session.revision.modern
        if config.protocol != "auto" or config.transport == "sse":
            return config.protocol == "modern"
        return None if self._eras.get(config) is None else False

    async def _learned(self, entry: str) -> Sharing:
        """Reach the entry's own server to see its revisions; one that cannot be reached is not shared."""
        connection = self._servers[entry]
        try:
            await connection.reach()
        except McphostError:
            self._started_by_user(entry)
        return self.share_of(entry) or "session"

    def _started_by_user(self, entry: str) -> None:
        """Raise ServerNotReady for a server that only the user starts, and has not started."""
        if self._servers[entry].config.start == "manual":
            _ = self._servers[entry].client

    def _running_for(self, entry: str, holder: Holder) -> str | None:
        """The instance that runs for this session: it stays with it, whatever is shared from now on."""
        idle = ServerState.STOPPED, ServerState.DISABLED
        for name in self.of(entry):
            if holder.session in self._holders[name] and self._servers[name].state not in idle:
                return name
        return None

    def _private(self, entry: str, share: Sharing, holder: Holder) -> str:
        """The instance for this session, or for all of its agent."""
        self._started_by_user(entry)
        who = holder.given if share == "agent" and holder.given else holder.session
        key = entry, who
        found = next((name for name, each in self._instances.items() if each.key == key), None)
        if found is not None:
            return found
        if len(self._instances) >= MOST:
            raise NotDone(f"{MOST} servers run for single agents already; end sessions of agents, or share a server")
        name = self._free_name(entry, holder.given or holder.agent)
        self._instances[name] = _Instance(entry, key)
        self._config = None
        self._open(name)
        self._bus.publish(ServersChanged())
        return name

    def _free_name(self, entry: str, agent: str) -> str:
        """A name that no other instance had in this run: what is kept of that one is not taken for this one's."""
        label = re.sub(r"[^A-Za-z0-9_.-]+", "-", agent)[:LABEL].strip("-") or "agent"
        if label not in self._labels and len(self._labels) >= LABELS:
            label = "agent"
        self._labels.add(label)
        while True:
            name = f"{entry}@{label}"
            self._named[name] += 1
            if (number := self._named[name]) == 1:
                return name
            label = f"{label}-{number}"

    # Holding.

    def _hold(self, server: str, holder: Holder) -> None:
        """Note that the session uses this server, and of this entry no other."""
        entry = entry_of(server)
        for name in [name for name in (entry, *self.of(entry)) if name != server]:
            if holder.session in self._holders.get(name, ()):
                self._let_go(name, holder.session)
        held = self._holders.setdefault(server, {})
        known = held.get(holder.session)
        adds = known is None or not holder.answered <= known.answered
        if known is not None and holder.alone and not adds:
            # Many agents ask for the revisions with less than what they declare then: that ends no server.
            holder = holder._replace(capabilities=known.capabilities, roots=holder.roots or known.roots)
        held[holder.session] = holder
        if adds and holder.alone:
            self._servers[server].redeclare()
        if known is not None:
            return
        self._bus.publish(ServerChanged(entry))

    def _let_go(self, server: str, session: int) -> None:
        held = self._holders[server]
        del held[session]
        if not held:
            del self._holders[server]
            if server in self._instances:
                self._forget(server).cancel()
                self._bus.publish(ServersChanged())
        self._bus.publish(ServerChanged(entry_of(server)))

    def _forget(self, name: str) -> asyncio.Task[None]:
        supervisor = self._close(name)
        del self._instances[name]
        self._holders.pop(name, None)
        self._used.pop(name, None)
        self._config = None
        self._ended.append(name)
        if len(self._ended) > KEPT_LOGS:
            self._logs.forget(self._ended.popleft())
        return supervisor

    def _extended(self, configured: Config) -> Config:
        copies: dict[str, ServerConfig] = {
            name: configured.servers[each.entry].model_copy(update={"start": "lazy"})
            for name, each in self._instances.items()
            if each.entry in configured.servers
        }
        return configured.model_copy(update={"servers": {**configured.servers, **copies}}) if copies else configured

    def _connections(self, entry: str) -> list[Connection]:
        return [self._servers[name] for name in (entry, *self.of(entry))]

    # Idling.

    def _call_changed(self, number: int) -> None:
        if (call := self._calls.get(number)) is not None:
            self.touch(call.request.server)

    def _server_changed(self, event: ServerChanged) -> None:
        if event.server in self._instances and event.server not in self._used and self._servers[event.server].ready:
            self.touch(event.server)

    def _idle_at(self, server: str) -> float:
        return self._used[server] + self._servers[server].config.idle_stop

    def _set_timer(self) -> None:
        due = min(map(self._idle_at, self._used), default=None)
        if self._timer is not None:
            if due is not None and self._timer.when() <= due:
                return  # it finds out then
            self._timer.cancel()
        self._timer = None if due is None else asyncio.get_running_loop().call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.stop_idle(asyncio.get_running_loop().time())
        self._set_timer()

    def stop_idle(self, now: float) -> None:
        """Stop the instances that were not used for so long at ``now``, a time of the loop's clock."""
        for server in [name for name in self._used if self._idle_at(name) <= now]:
            if self._busy(server):
                self._used[server] = now
            else:
                del self._used[server]
                self._servers[server].stop()

    def _busy(self, server: str) -> bool:
        subscribed = bool(self._servers[server].subscriptions.all)
        return subscribed or self._requested(server) or bool(self._calls.running(server))
