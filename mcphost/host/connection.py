"""One configured server, kept connected: started, watched, listed, and started again when it dies.

Knows states, backoff and when a list is stale. Refuses to know other servers, consent and screens. Its failures are
its own: whatever a server does ends in a state with words.

Specification: basic/lifecycle; server/tools and utilities/logging (list changes, levels).
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from mcphost.client.client import Client, Identity, Patience, Session
from mcphost.client.listing import ListLimits, Rejected
from mcphost.config import Config, ServerConfig
from mcphost.errors import (
    CapabilityMissing,
    ConfigError,
    ConnectionLost,
    McphostError,
    ServerNotReady,
    SpawnFailed,
    VersionRefused,
)
from mcphost.host.backoff import Backoff
from mcphost.host.catalog import usable
from mcphost.host.logs import Source
from mcphost.protocol.jsonrpc import Malformed
from mcphost.protocol.revisions import LEGACY, find_revision
from mcphost.protocol.types import LogLevel, Tool
from mcphost.transports.base import ProcessReport, Transport

RELIST_DELAY: Final = 0.1
"""Seconds in which more changes may come: servers announce several at once."""

RELIST_PAUSE: Final = 2.0
"""Seconds between two listings, however often a server announces changes."""

PING_MISSES: Final = 2
"""Pings in a row without a sign of life after which a connection counts as dead."""

PERMANENT: Final = (ConfigError, SpawnFailed, VersionRefused, CapabilityMissing)
"""Failures that trying again cannot mend."""


class ServerState(Enum):
    """Where a server stands."""

    DISABLED = "disabled"
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RECONNECTING = "reconnecting"
    FAILED = "failed"


class Surroundings(Protocol):
    """What a connection is given by its host."""

    async def open_transport(self, name: str) -> Transport:
        """The transport for a server, its references resolved. Raises ConfigError."""

    def current_config(self) -> Config:
        """The configuration as it is now."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""

    def random(self) -> float:
        """Between 0 and 1."""

    def log(self, server: str, source: Source, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line."""

    def state_changed(self, server: str) -> None:
        """The connection's state changed."""

    def tools_listed(self, server: str, tools: list[Tool]) -> None:
        """These are the server's tools now."""


@dataclass(slots=True)
class Irregularities:
    """What a server sent that it must not send."""

    malformed: int = 0
    last_malformed: str = ""
    stray: int = 0
    first_stray: str = ""


def sent_to(config: ServerConfig) -> str:
    """The command line or URL as configured: references stay references."""
    return config.url or shlex.join([config.command or "", *config.args])


class Connection:
    """The life of one server. Its host runs `supervise`; everything else may be called at any time."""

    def __init__(self, name: str, around: Surroundings, identity: Identity) -> None:
        self.name = name
        self._around = around
        self._identity = identity
        self._backoff = Backoff(around.random)
        self._wanted = self.config.enabled and self.config.start == "eager"
        self._poke = asyncio.Event()
        self._change = asyncio.Event()
        self._stale = asyncio.Event()
        self._lost: asyncio.Future[Exception] | None = None
        self._client: Client | None = None
        self.state = ServerState.STOPPED if self.config.enabled else ServerState.DISABLED
        self.reason = ""
        """Why it is in this state; empty where the state says it all."""
        self.retry_at: float | None = None
        self.ready_at: float | None = None
        self.started_at: float | None = None
        self.session: Session | None = None
        self.tools: list[Tool] = []
        self.rejected: list[Rejected] = []
        self.notice: str | None = None
        """What was odd about the last listing."""
        self.process = ProcessReport()
        self.irregularities = Irregularities()
        self.restarts = 0
        self.level: LogLevel | None = LogLevel.read(self.config.log_level) if self.config.log_level else None

    @property
    def config(self) -> ServerConfig:
        """The server's entry as it is now."""
        return self._around.current_config().servers[self.name]

    @property
    def ready(self) -> bool:
        """May requests be sent?"""
        return self.state is ServerState.READY

    @property
    def client(self) -> Client:
        """The client while the server is ready; raises ServerNotReady with the state otherwise."""
        if self._client is None or not self.ready:
            why = f": {self.reason}" if self.reason else ""
            raise ServerNotReady(f"{self.name} is {self.state.value}{why}")
        return self._client

    def start(self) -> None:
        """Connect, at once if a retry was pending; nothing changes for a server that is up or on its way."""
        if not self._wanted or self.state not in (ServerState.STARTING, ServerState.READY):
            self.restart()

    def restart(self) -> None:
        """Disconnect if need be, and connect anew."""
        self._wanted = True
        self._backoff.reset()
        self._poke.set()

    def stop(self) -> None:
        """Disconnect and stay so."""
        self._wanted = False
        self._poke.set()

    def reconfigured(self) -> None:
        """The server's entry changed: go over to it."""
        begins = self.state in (ServerState.DISABLED, ServerState.FAILED) and self.config.start == "eager"
        self._wanted = self.config.enabled and (self._wanted or begins)
        self._backoff.reset()
        self._poke.set()

    async def settled(self) -> None:
        """Wait until the server is neither starting nor about to be."""
        while self._poke.is_set() or self.state is ServerState.STARTING:
            await self._change.wait()

    async def supervise(self) -> None:
        """Keep the server in the state that is wanted, until cancelled. Never raises anything else."""
        while True:
            self._poke.clear()
            if not self._wanted:
                self._enter(ServerState.STOPPED if self.config.enabled else ServerState.DISABLED)
                await self._poke.wait()
            elif (failure := await self._one_life()) is not None:
                await self._after(failure)

    async def set_level(self, level: LogLevel) -> None:
        """Ask for log messages of ``level`` and above; remembered for the next connection. Raises as a request does."""
        await self.client.set_log_level(level)
        self.level = level
        self._changed()

    async def relist(self) -> None:
        """List the tools again now. Raises ServerNotReady; a listing that fails is noted and the last one stays."""
        await self._list_or_note(self.client)

    # What the client hands on (`mcphost.client.client.Listener`).

    def logged(self, params: Mapping[str, Any]) -> None:
        """Keep a log message, whatever its level and data are."""
        data, logger = params.get("data"), params.get("logger")
        level = LogLevel.read(params.get("level"))
        text = data if isinstance(data, str) else _compact(data)
        if level is None:
            text = f"[{_compact(params.get('level'))}] {text}"
        name = logger if isinstance(logger, str) else ""
        self._around.log(self.name, Source.SERVER, LogLevel.INFO if level is None else level, text, name)

    def list_changed(self, kind: str) -> None:
        """Mark what was listed as stale."""
        if kind == "tools":
            self._stale.set()

    def malformed(self, problem: Malformed) -> None:
        """Count what was no message, and quote the first of each kind."""
        odd = self.irregularities
        quoted = problem.data[:120].decode("utf-8", "replace")
        if problem.is_json:
            odd.malformed += 1
            odd.last_malformed = problem.reason
            self._note(LogLevel.WARNING, f"dropped a message ({problem.reason}): {quoted}")
        else:
            odd.stray += 1
            odd.first_stray = odd.first_stray or quoted
            self._around.log(self.name, Source.STDOUT, LogLevel.WARNING, problem.data.decode("utf-8", "replace"))
        self._changed()

    def stderr(self, line: str) -> None:
        """Keep a line; programs use stderr for everything, so it says nothing about failure."""
        self._around.log(self.name, Source.STDERR, LogLevel.INFO, line)

    def noted(self, text: str) -> None:
        """Keep what the client decided."""
        self._note(LogLevel.DEBUG, text)

    def lost(self, reason: Exception) -> None:
        """End this life of the server."""
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(reason)

    async def _one_life(self) -> McphostError | None:
        """Connect and stay connected until told otherwise (None) or until it fails."""
        began = self._around.now()
        self._enter(ServerState.STARTING)
        self.started_at, self._lost = began, asyncio.get_running_loop().create_future()
        transport: Transport | None = None
        try:
            transport = await self._around.open_transport(self.name)
            self._client = client = self._new_client(transport)
            await self._get_ready(client)
            return await self._stay(client, self._lost)
        except McphostError as error:
            return error
        finally:
            await self._end_life(transport)

    async def _get_ready(self, client: Client) -> None:
        connecting = asyncio.ensure_future(self._connect(client))
        stopping = asyncio.ensure_future(self._poke.wait())
        try:
            await asyncio.wait((connecting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                return
            await connecting
        finally:
            for task in (connecting, stopping):
                task.cancel()
            await asyncio.gather(connecting, stopping, return_exceptions=True)
        self.ready_at = self._around.now()
        self._enter(ServerState.READY)

    async def _connect(self, client: Client) -> None:
        config = self.config
        self.session = await client.connect(config.startup_timeout_sec)
        offered = self.session.server.capabilities
        for needed in config.required_capabilities:
            if not isinstance(offered.get(needed), dict):
                raise CapabilityMissing("required_capabilities", needed)
        if self.level is not None and "logging" in offered:
            await client.set_log_level(self.level)
        if "tools" in offered:
            await self._list_or_note(client)

    async def _stay(self, client: Client, lost: asyncio.Future[Exception]) -> McphostError | None:
        if not self.ready:
            return None
        chores = [asyncio.ensure_future(self._keep_listed(client)), asyncio.ensure_future(self._keep_pinging(client))]
        stopping = asyncio.ensure_future(self._poke.wait())
        try:
            await asyncio.wait((lost, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*chores, stopping):
                task.cancel()
            await asyncio.gather(*chores, stopping, return_exceptions=True)
        if not lost.done():
            return None
        reason = lost.result()
        return reason if isinstance(reason, McphostError) else ConnectionLost(str(reason))

    async def _end_life(self, transport: Transport | None) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        if transport is not None:
            self.process = transport.report()

    async def _after(self, failure: McphostError) -> None:
        now = self._around.now()
        lived = now - self.ready_at if self.ready_at is not None else 0.0
        self.ready_at = None
        wait = None if isinstance(failure, PERMANENT) else self._backoff.after_failure(now, lived)
        if not self._wanted:
            return
        self.restarts += 1
        if wait is None:
            tired = "" if isinstance(failure, PERMANENT) else " (tried several times; not trying again by itself)"
            self._enter(ServerState.FAILED, f"{failure}{tired}")
            await self._poke.wait()
            return
        self.retry_at = now + wait
        self._enter(ServerState.RECONNECTING, str(failure))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._poke.wait()

    def _new_client(self, transport: Transport) -> Client:
        config, limits = self.config, self._around.current_config().limits_for(self.name)
        return Client(
            transport,
            self,
            self._identity,
            minimum=find_revision(config.minimum_version) or LEGACY[0],
            patience=Patience(config.tool_timeout_sec, config.tool_timeout_max_sec),
            list_limits=ListLimits(limits.list_pages, limits.list_items, limits.list_seconds),
            pending_inputs=limits.pending_server_requests,
        )

    async def _list_or_note(self, client: Client) -> None:
        try:
            await self._list_tools(client)
        except McphostError as error:
            self.notice = f"listing the tools failed: {error}"
            self._note(LogLevel.WARNING, self.notice)
        self._changed()

    async def _list_tools(self, client: Client) -> None:
        self._stale.clear()
        listing = await client.list_tools()
        self.tools, self.rejected = usable(listing, self.config)
        self.notice = listing.notice
        for refused in listing.rejected:
            self._note(LogLevel.WARNING, f"left out the tool {refused.name}: {refused.reason}")
        if listing.notice:
            self._note(LogLevel.WARNING, listing.notice)
        self._around.tools_listed(self.name, self.tools)

    async def _keep_listed(self, client: Client) -> None:
        while True:
            await self._stale.wait()
            await asyncio.sleep(RELIST_DELAY)
            self._note(LogLevel.DEBUG, "the server's tools changed; listing them again")
            await self._list_or_note(client)
            await asyncio.sleep(RELIST_PAUSE)

    async def _keep_pinging(self, client: Client) -> None:
        interval, misses = self.config.ping_interval_sec, 0
        while interval > 0:
            await asyncio.sleep(interval)
            try:
                await client.ping(min(interval, 10.0))
                misses = 0
            except McphostError as error:
                misses += 1
                self._note(LogLevel.WARNING, f"no answer to a ping: {error}")
            if misses >= PING_MISSES:
                self.lost(ConnectionLost(f"the server answered none of {misses} pings"))

    def _enter(self, state: ServerState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        if state is not ServerState.RECONNECTING:
            self.retry_at = None
        if state is not ServerState.READY and self.tools:
            self.tools = []
            self._around.tools_listed(self.name, self.tools)
        level = LogLevel.ERROR if state is ServerState.FAILED else LogLevel.WARNING if reason else LogLevel.INFO
        self._note(level, f"{state.value}{f': {reason}' if reason else ''}")
        self._changed()

    def _note(self, level: LogLevel, text: str) -> None:
        self._around.log(self.name, Source.MCPHOST, level, text)

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
        self._around.state_changed(self.name)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
