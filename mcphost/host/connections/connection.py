"""Keeps one configured server connected: starts it, watches it, and restarts it when it fails.

A failure of the server, or in here, becomes a state with a reason; it never reaches the other servers.

Specification: basic/lifecycle; server/utilities/logging (levels).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mcphost.cancellation import first_of, to_the_end
from mcphost.client.client import Client, Identity, RequestTimeouts, Session
from mcphost.client.observer import NotificationObserver
from mcphost.client.paging import ListLimits, Rejected
from mcphost.client.requester import ClientLimits
from mcphost.client.server_requests import InputHandler
from mcphost.config import GivenServer, Limits, ServerConfig, entry_of
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityMissing,
    ConfigError,
    EraUnclear,
    McphostError,
    PeerError,
    ProbeFailed,
    ServerError,
    ServerNotReady,
)
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.context import ConnectionContext
from mcphost.host.connections.eras import RememberedEra, era_to_open
from mcphost.host.connections.keepalive import Keepalive, RoundTrip
from mcphost.host.connections.listings import Listings
from mcphost.host.connections.observer import ConnectionObserver, ProtocolViolations
from mcphost.host.connections.reconnection import Backoff, Disconnect, LastFailure, after_failure
from mcphost.host.connections.state import LISTING_FIELDS, LIVE_FIELDS, LOG_LEVELS, ServerState
from mcphost.host.connections.subscriptions import ListeningReport, Subscriptions, listening_report
from mcphost.host.events import (
    Event,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerChanged,
    SkillsChanged,
    ToolsChanged,
)
from mcphost.host.failure_advice import next_step
from mcphost.host.internal_error import internal_error
from mcphost.host.logs import LogSource
from mcphost.host.loop_guard import OWN_MARK, may_be_mcphost
from mcphost.protocol.display import duration_text, show_line
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.protocol.lifecycle.revisions import REVISIONS, Revision, has_extension
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.headers import InvalidAnnotation, read_annotations
from mcphost.redaction import looks_secret
from mcphost.transports.base import ProcessReport, Transport

__all__ = ["Connection", "ServerState"]

_LISTED: Final[Mapping[CatalogKind, Callable[[str], Event]]] = {
    CatalogKind.TOOLS: ToolsChanged,
    CatalogKind.RESOURCES: ResourcesChanged,
    CatalogKind.TEMPLATES: ResourcesChanged,
    CatalogKind.PROMPTS: PromptsChanged,
    CatalogKind.SKILLS: SkillsChanged,
}


PROBE_FAILED: Final = "did not bear to be asked for its protocol versions"
"""The evidence for a server whose program exited at ``server/discover``, or refused all that came after it."""

SLOW_PROBE: Final = 2.0
"""Seconds that a probe without an answer may cost at each start, unsaid."""


class Connection:
    """One configured server and its connection. The host runs `supervise`; call anything else at any time."""

    def __init__(self, name: str, context: ConnectionContext) -> None:
        self.name, self.entry = name, entry_of(name)
        self.config = context.config().servers[name]
        """The server's current entry in the configuration."""
        self._context = context
        self._logs, self._bus, self._mask = context.reporting.logs, context.reporting.bus, context.reporting.mask
        self._backoff = Backoff(random.random)
        self._should_run = self.config.enabled and self.config.start == "eager"
        self._wake = asyncio.Event()
        self._change = asyncio.Event()
        self._disconnect = Disconnect()
        self._last_note = ""
        self._client: Client | None = None
        self.listings = Listings(self._note, self._listed, self.publish_change, self._refused)
        self.subscriptions = Subscriptions(
            self._note, self._resource_updated, context.reporting.mask, lambda uri: context.resource_updated(name, uri)
        )
        self.refusal: AuthorizationRequired | None = None
        """The last refusal that a sign-in would lift; None after one. A ready server may still refuse a list."""
        self._observer = ConnectionObserver(
            name, context, self.listings, self.subscriptions, self.publish_change, self.disconnected
        )
        self.keepalive = Keepalive(time.monotonic, self._busy, self._note, self.publish_change)
        self.state = ServerState.STARTING if self._should_run else self._idle_state
        self.reason = ""
        """Why it is in this state; may be empty."""
        self.advice = ""
        """The user's next step; may be empty."""
        self.retry_at: float | None = None
        self.ready_at: float | None = None
        self.started_at: float | None = None
        self.session: Session | None = None
        self.remembered_era: RememberedEra | None = None
        """Why the session was opened with ``initialize``, where that was not tried out this time."""
        self.failure: McphostError | None = None
        """Why the last connection failed or could not be opened; None once it is ready."""
        self._probe_failed: ProbeFailed | None = None
        """The probe that ended the last connection; the next one is opened without a probe."""
        self._next_era: Era | None = None
        """The era in which the next connection is opened, where the last one showed that; None: as configured."""
        self._probed_at = 0.0
        """When that connection was begun."""
        self.process = ProcessReport()
        self.last_failure: LastFailure | None = None
        """The last failure; kept after a successful reconnect."""
        self.restarts = 0
        """Number of failures in this run."""
        self.level: LogLevel | None = LogLevel.read(self.config.log_level)
        self._capabilities: ClientCapabilities | None = None
        """The capabilities that this or the last connection declares."""

    @property
    def instance(self) -> str:
        """Its name, if it is an instance of an entry; empty for the entry's own connection."""
        return "" if self.name == self.entry else self.name

    @property
    def ready(self) -> bool:
        """True if requests may be sent."""
        return self.state is ServerState.READY

    @property
    def tools(self) -> list[Tool]:
        """The usable tools; none unless the server is ready."""
        return self.listings.tools.items

    @property
    def rejected(self) -> list[Rejected]:
        """The tools of the last listing that cannot be used, with reasons."""
        return self.listings.tools.rejected

    @property
    def notice(self) -> str | None:
        """The problem of the last listing of the tools."""
        return self.notice_of(CatalogKind.TOOLS)

    def notice_of(self, kind: CatalogKind) -> str | None:
        """The problem of the last listing of this kind."""
        notice = self.listings.of_kind(kind).notice
        return None if notice is None else self._mask(notice)

    @property
    def violations(self) -> ProtocolViolations:
        """The server's violations of the protocol."""
        return self._observer.violations

    @property
    def client(self) -> Client:
        """The client while the server is ready.

        Raises AuthorizationRequired where the server waits for a sign-in, otherwise ServerNotReady with the state.
        """
        if self.state is ServerState.NEEDS_SIGN_IN and (refusal := self.refusal) is not None:
            raise refusal.again()
        if self._client is None or not self.ready:
            why = f": {self.reason}" if self.reason else ""
            raise ServerNotReady(f"{self.name} is {self.state.value}{why}")
        return self._client

    @property
    def listening(self) -> ListeningReport | None:
        """The way a modern server announces changes; None for others, and without a connection."""
        listener = None if self._client is None else self._client.listener
        return None if listener is None else listening_report(listener)

    @property
    def declared(self) -> Mapping[str, Any]:
        """The client capabilities that this session declares; empty before it is open."""
        if self.session is None:
            return {}
        return self._context.server_requests.capabilities(self.name).under(self.session.revision)

    def redeclare(self) -> None:
        """Reconnect if the connection declares other client capabilities than it would now."""
        running = self.state in (ServerState.STARTING, ServerState.READY)
        if running and self._capabilities not in (None, self._context.server_requests.capabilities(self.name)):
            self.restart()

    def start(self) -> None:
        """Connect now, even if a retry is pending. Does nothing if the server is ready or starting."""
        if not self._should_run or self.state not in (ServerState.STARTING, ServerState.READY):
            self.restart()

    def restart(self) -> None:
        """Disconnect if connected, then connect."""
        self._should_run = True
        self._backoff.reset()
        self._wake.set()

    def stop(self) -> None:
        """Disconnect and stay disconnected."""
        self._should_run = False
        self._wake.set()

    def reconfigured(self, fields: Collection[str]) -> None:
        """Adopt the server's new entry, in which ``fields`` differ. Reconnects unless all are in `LIVE_FIELDS`."""
        self.config = self._context.config().servers[self.name]
        if "log_level" in fields:
            self.level = LogLevel.read(self.config.log_level)
        if self.ready and LIVE_FIELDS.issuperset(fields):
            self.client.timeouts = default_timeouts(self.config)
            if not LISTING_FIELDS.isdisjoint(fields):
                self.listings.tools.mark_stale()
            return
        begins = self.state is ServerState.DISABLED and self.config.start == "eager"
        self._should_run = self.config.enabled and (self._should_run or begins)
        self._backoff.reset()
        self._wake.set()

    async def settled(self, *, retries: bool = False) -> None:
        """Wait while the server is starting or about to start; with ``retries`` also while a retry is pending."""
        moving = (ServerState.STARTING, ServerState.RECONNECTING) if retries else (ServerState.STARTING,)
        while self._wake.is_set() or self.state in moving:
            await self._change.wait()

    async def supervise(self) -> None:
        """Keep the server connected while it should be, until cancelled. Never raises anything else."""
        while True:
            self._wake.clear()
            if self._should_run:
                await self._connect_once()
                await self._pause()
            else:
                self._enter(self._idle_state)
                await self._wake.wait()

    def supervision_ended(self) -> None:
        """Release waiters after the supervisor has ended."""
        self._should_run = False
        self._wake.clear()
        self._enter(self._idle_state)

    def signed_in(self) -> None:
        """A sign-in succeeded: connect if that was missing, else list again what was refused.

        A modern server's lists may differ by who is signed in: all that is kept of them is of no use now.
        """
        if self.state is ServerState.NEEDS_SIGN_IN:
            self.restart()
        elif self.ready and self.session is not None and (self.refusal is not None or self.session.revision.modern):
            self.refusal = None
            self.client.forget_fetched()

    async def set_level(self, level: LogLevel) -> None:
        """Request log messages of ``level`` and above, also in later connections. Raises as a request does."""
        await self.client.set_log_level(level)
        self.level = level
        self.publish_change()

    async def ping(self) -> RoundTrip:
        """Ping now. Raises as a request does."""
        return await self.keepalive.ping(self.client)

    async def reach(self) -> Client:
        """Wait for the server, starting a lazy one, and return its client. Raises as `client` does."""
        if self.state is ServerState.STOPPED and self.config.start == "lazy":
            self.start()
        await self.settled()
        return self.client

    async def current(self, kind: CatalogKind) -> None:
        """Wait until the items of this kind are up to date: changes are listed, and what is past its ``ttlMs``.

        Raises ServerNotReady.
        """
        await self.listings.of_kind(kind).current(self.client, self.config)

    async def settled_list(self, kind: CatalogKind) -> None:
        """As `current`, for a list that is about to be printed: what is announced right after it is listed, too."""
        client = self.client
        feature = client.open_session.server.capabilities.get(kind.capability)
        announces = isinstance(feature, dict) and feature.get("listChanged") is True
        await self.listings.of_kind(kind).settled(client, self.config, announces=announces)

    async def recent(self, kind: CatalogKind, seconds: float) -> str:
        """List the items of this kind unless that was done in the last ``seconds``; return why it failed, else "".

        Raises ServerNotReady.
        """
        listing = self.listings.of_kind(kind)
        await listing.recent(self.client, self.config, seconds)
        return "" if listing.failure is None else str(listing.failure)

    async def relist(self, kind: CatalogKind = CatalogKind.TOOLS) -> None:
        """List again now. A failure is noted, and the old items stay. Raises ServerNotReady."""
        await self.listings.of_kind(kind).read(self.client, self.config)

    async def relist_all(self) -> None:
        """List again now all that the server offers, nothing from the cache. As `relist`."""
        await self.listings.read(self.client, self.config)

    @property
    def has_skills(self) -> bool:
        """True if the server declares skills, and the configuration lets it use them."""
        capabilities = {} if self.session is None else self.session.server.capabilities
        allowed = SKILLS_EXTENSION in self.config.capabilities.extensions
        return allowed and has_extension(SKILLS_EXTENSION, capabilities)

    @property
    def _idle_state(self) -> ServerState:
        return ServerState.STOPPED if self.config.enabled else ServerState.DISABLED

    async def _connect_once(self) -> None:
        """Connect and serve until a request to stop or a failure; leaves the next state."""
        self.started_at, self.ready_at = time.monotonic(), None
        self._disconnect = Disconnect()
        self._enter(ServerState.STARTING)
        transport: Transport | None = None
        failure: McphostError | None = None
        try:
            transport = await self._context.open_transport(self._context.config(), self.name)
            self._client = self._new_client(transport)
            await self._serve(self._client, transport)
        except McphostError as error:
            failure = error
        except asyncio.CancelledError:
            self._should_run = False
            raise
        except Exception as error:  # a bug in here must not end the other servers
            failure = internal_error(error)
        finally:
            await self._disconnect_after(transport, failure)

    def _new_client(self, transport: Transport) -> Client:
        limits, requests = self._context.config().limits_for(self.name), self._context.server_requests
        self._capabilities = requests.capabilities(self.name)
        answers = requests.handler(self.name), partial(self._declare, self._capabilities)
        self.remembered_era = self._context.eras.get(self.config)
        era = self._next_era or era_to_open(self.config, self.remembered_era)
        identity = self._context.identity
        if may_be_mcphost(self.config):
            identity = replace(identity, mark=OWN_MARK)
        return _new_client(transport, self._observer, identity, self.config, limits, answers, era)

    def _declare(self, own: ClientCapabilities, revision: Revision) -> Mapping[str, Any]:
        """The capabilities for a handshake or a modern request, to which agents that share the server may add."""
        declared = self._context.server_requests.with_agents(self.name, own) if revision.modern else own
        return declared.under(revision)

    async def _serve(self, client: Client, transport: Transport) -> None:
        await first_of(self._wake.wait(), self._get_ready(client), self._disconnect.wait())
        if self._wake.is_set():
            return
        self.ready_at = time.monotonic()
        self._update_process(transport)
        self._enter(ServerState.READY)
        await first_of(self._wake.wait(), self._disconnect.wait(), *self._background_work(client))

    def _background_work(self, client: Client) -> list[Coroutine[Any, Any, None]]:
        lists = self.listings.background_work(client, lambda: self.config, prefetch=self._context.prefetch)
        work = [*lists, self.subscriptions.keep_current(client)]
        if self.config.ping_interval_sec > 0:
            work.append(self.keepalive.watch(client, self.config.ping_interval_sec))
        return work

    async def _get_ready(self, client: Client) -> None:
        """Initialize, set the log level and list the tools. Only the handshake must succeed."""
        seconds = self.config.startup_timeout_sec
        self.session = await self._open_session(client, seconds)
        self.refusal = self.failure = None
        self.keepalive.begin(self.session.seconds)
        _check_required(self.session, self.config)
        self.listings.begin(self.session.server.capabilities, skills=self.has_skills)
        try:
            async with asyncio.timeout(seconds):
                self.level = await _ask_for_level(client, self.session, self.level, self._note)
                if self.listings.declared(CatalogKind.TOOLS):  # the others are listed as soon as it is ready
                    await self.listings.tools.read(client, self.config)
        except TimeoutError:
            reason = f"the server took longer than startup_timeout_sec = {seconds:g}"
            self.listings.tools.failed(reason, timed_out=True)

    async def _open_session(self, client: Client, seconds: float) -> Session:
        eras, began, failed = self._context.eras, time.monotonic(), self._probe_failed
        self._probe_failed = self._next_era = None
        try:
            session = await client.connect(seconds)
        except (PeerError, ServerError):
            await eras.forget(self.config)  # what was remembered may be wrong by now
            raise
        if session.revision.modern:
            await eras.forget(self.config)
        elif failed is not None and not failed.silent:
            await eras.learn(self.config, PROBE_FAILED)
            self.remembered_era = eras.get(self.config)
        elif session.evidence and session.proven:
            await eras.learn(self.config, session.evidence)
        elif failed is not None:
            self._name_slow_probe(f"{failed}", began - self._probed_at)
        elif session.evidence:
            self._name_slow_probe(f"{session.evidence}, and was opened with initialize", session.probe_seconds)
        return session

    def _name_slow_probe(self, what: str, seconds: float) -> None:
        """Name the setting that saves the time which an unanswered probe takes at every start."""
        if seconds > SLOW_PROBE:
            entry = "an entry for it" if isinstance(self.config, GivenServer) else f"[servers.{self.entry}]"
            saves = f'protocol = "legacy" in {entry} saves it'
            self._bus.alarm(f"{self.name}: {what}; this took {duration_text(seconds)}; if that is always so, {saves}")

    async def _disconnect_after(self, transport: Transport | None, failure: McphostError | None) -> None:
        """Enter the next state, then close the connection: a program that does not exit takes seconds."""
        self._update_process(transport)
        self._context.disconnected(self.name)
        failed_at: float | None = None
        try:
            self.failure = failure
            if isinstance(failure, ProbeFailed) and self._should_run and self.config.protocol == "auto":
                self._probe_failed, self._next_era = failure, "legacy"
                self._probed_at = self.started_at or time.monotonic()
                self._observer.forget_violations()
                self._enter(ServerState.STARTING, f"{failure}; starting it again without")
            elif isinstance(failure, EraUnclear) and self._should_run and self.config.protocol == "auto":
                self._next_era = "modern"
                self._enter(ServerState.STARTING, f"{failure}; starting it again in the version that it named")
            elif failure is not None and self._should_run:
                failed_at = time.monotonic()
                self._plan_retry(failure)
            elif self._should_run:
                self._enter(ServerState.STARTING, "closing the connection before")
            else:
                self._enter(self._idle_state, "closing the connection")
        finally:
            reason = self.reason
            self.ready_at = None
            client, self._client = self._client, None
            if client is not None:
                await to_the_end(client.aclose())
            self._update_process(transport)
        if failed_at is not None:
            self.last_failure = LastFailure(failed_at, reason, self.process)

    def _update_process(self, transport: Transport | None) -> None:
        """Record the process's latest report."""
        if transport is not None:
            self.process = _masked(transport.report(), self._mask)

    def _plan_retry(self, failure: McphostError) -> None:
        now = time.monotonic()
        self.restarts += 1
        plan = after_failure(failure, self.entry, self.config, self._backoff, now, self.ready_at)
        if plan.state is ServerState.NEEDS_SIGN_IN and isinstance(failure, AuthorizationRequired):
            self.refusal = failure
        self.retry_at = None if plan.wait is None else now + plan.wait
        self._enter(plan.state, plan.reason, plan.advice)

    async def _pause(self) -> None:
        """After a failure, wait for the retry time or for a command."""
        if self.state in (ServerState.FAILED, ServerState.NEEDS_SIGN_IN):
            await self._wake.wait()
        elif self.state is ServerState.RECONNECTING and self.retry_at is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.retry_at - time.monotonic()):
                    await self._wake.wait()

    def _refused(self, refusal: AuthorizationRequired) -> None:
        """A list needs a sign-in. A starting server waits for it; a ready one continues without the list."""
        if self.config.signs_in:
            self.refusal = refusal
            if refusal.status == 401 and not self.ready:
                self.disconnected(refusal)

    def disconnected(self, reason: Exception) -> None:
        """The connection was lost."""
        self._disconnect.occurred(reason)
        if not self.ready:  # callers whose requests just failed must not see it ready
            return
        if isinstance(reason, AuthorizationRequired) and self.config.signs_in:
            self.refusal = reason
            self._enter(ServerState.NEEDS_SIGN_IN, str(reason), next_step(reason, self.entry, self.config))
        else:
            self._enter(ServerState.RECONNECTING, str(reason))

    def _enter(self, state: ServerState, reason: str = "", advice: str = "") -> None:
        self.state, self.reason, self.advice = state, self._mask(reason), advice
        if state is not ServerState.RECONNECTING:
            self.retry_at = None
        if state is not ServerState.READY:
            self.listings.clear()
            self.subscriptions.lost()
        self._note_once(f"{state.value}{f': {self.reason}' if reason else ''}", LOG_LEVELS.get(state, LogLevel.INFO))
        self.publish_change()

    def _note_once(self, text: str, level: LogLevel) -> None:
        if text != self._last_note:
            self._note(level, text)
        self._last_note = text

    def _note(self, level: LogLevel, text: str) -> None:
        self._logs.add(self.name, LogSource.MCPHOST, level, text)

    def _busy(self) -> bool:
        """True while a tool call runs on this server."""
        return self._context.calls.newest_sent(self.name) is not None

    def _listed(self, kind: CatalogKind, items: Sequence[Any]) -> None:
        """Put the listed items into the catalog."""
        if kind is CatalogKind.TOOLS and self.session is not None and self.session.revision.modern:
            for text in _secrets_in_headers(items):
                self._note(LogLevel.WARNING, text)
        if self.name in self._context.config().servers:
            self._context.catalog.keep_kind(self.name, kind, items)
        else:
            self._context.catalog.forget(self.name)
        self._bus.publish(_LISTED[kind](self.name))

    def _resource_updated(self, uri: str) -> None:
        self._bus.publish(ResourceUpdated(self.name, uri))

    def publish_change(self) -> None:
        """Publish a change of state. If the server is not ready, withdraw the questions about it."""
        self._change.set()
        self._change = asyncio.Event()
        if not self.ready:
            self._context.consent.withdraw(self.name)
            self._context.server_requests.session_ended(self.name)
        self._bus.publish(ServerChanged(self.name))


def _new_client(
    transport: Transport,
    listener: NotificationObserver,
    identity: Identity,
    config: ServerConfig,
    limits: Limits,
    answers: tuple[InputHandler, Callable[[Revision], Mapping[str, Any]]],
    era: Era,
) -> Client:
    """A client for one connection, not yet open; ``answers`` is who answers what the server asks, and what it may.

    Raises ConfigError where only revisions are wanted that are not spoken.
    """
    handler, declare = answers
    return Client(
        transport,
        listener,
        identity,
        capabilities=declare,
        handler=handler,
        era=era,
        minimum=_oldest_accepted(config.minimum_version or ""),
        timeouts=default_timeouts(config),
        limits=ClientLimits(
            ListLimits(limits.list_pages, limits.list_items, limits.list_seconds),
            pending_requests=limits.pending_server_requests,
        ),
    )


def default_timeouts(config: ServerConfig) -> RequestTimeouts:
    """For every request to a server but its tool calls, which may have their own."""
    return RequestTimeouts(config.tool_timeout_sec, config.tool_timeout_max_sec)


def _oldest_accepted(minimum_version: str) -> Revision:
    """The oldest revision that is not older than this; versions are dates."""
    for revision in REVISIONS:
        if revision.version >= minimum_version:
            return revision
    newest = REVISIONS[-1].version
    raise ConfigError(f'minimum_version = "{minimum_version}" is newer than all that is spoken here, up to {newest}')


def _check_required(session: Session, config: ServerConfig) -> None:
    """Raise CapabilityMissing where the server does not offer what the user said it must."""
    for needed in config.required_capabilities:
        if not isinstance(session.server.capabilities.get(needed), dict):
            raise CapabilityMissing("required_capabilities", needed)


async def _ask_for_level(
    client: Client, session: Session, level: LogLevel | None, note: Callable[[LogLevel, str], None]
) -> LogLevel | None:
    """Ask for log messages of ``level`` and above; the level that holds from now on, None where none was asked for."""
    if level is None or "logging" not in session.server.capabilities:
        return level
    try:
        await client.set_log_level(level)
    except McphostError as error:
        note(LogLevel.WARNING, f"the log level {level.wire} was not taken: {error}")
        return None
    return level


def _masked(report: ProcessReport, mask: Callable[[str], str]) -> ProcessReport:
    """A process report with the secrets in its command line and stderr masked."""
    return replace(report, stderr_tail=tuple(map(mask, report.stderr_tail)), command=tuple(map(mask, report.command)))


def _secrets_in_headers(tools: Iterable[Tool]) -> Iterator[str]:
    """A sentence for each argument that looks secret and that its tool wants in an HTTP header, too."""
    for tool in tools:
        with suppress(InvalidAnnotation):
            for header in read_annotations(tool.input_schema):
                if looks_secret(header.path[-1]) or looks_secret(header.name):
                    argument = show_line(".".join(header.path), 80)
                    name = show_line(tool.name, 80)
                    yield f"{name}: its argument {argument} looks secret, and is repeated in an HTTP header"
