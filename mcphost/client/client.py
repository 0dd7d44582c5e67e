"""One server, spoken to: the handshake, requests, what it says unasked, and the typed verbs.

Knows the era's rules by asking it. Refuses to know how bytes travel, when to reconnect, who consents, and what a
person is shown.

Specification: basic/lifecycle, basic/utilities, server/tools, server/utilities/logging.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any, Final

from mcphost.client.completion import Completions
from mcphost.client.deadlines import Deadline, Deadlines
from mcphost.client.handshake import Declare, Identity, shake_hands
from mcphost.client.notifications import NotificationObserver, Notifications
from mcphost.client.paging import ListedItems, ListLimits, read_list
from mcphost.client.prompts import Prompts
from mcphost.client.requests import Item, ProgressCallback, Requests, RequestTimeouts, Session
from mcphost.client.resources import Resources
from mcphost.client.server_requests import InputHandler, InputQueue, NothingOffered, OnlyDeclared
from mcphost.client.tasks import Tasks
from mcphost.errors import (
    ConnectionLost,
    McphostError,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    SessionExpired,
)
from mcphost.protocol.eras.era import LegacyEra
from mcphost.protocol.eras.revisions import LEGACY, Revision
from mcphost.protocol.limits import PENDING_SERVER_REQUESTS
from mcphost.protocol.models.tools import CallToolResult, InitializeResult, LogLevel, Progress, Tool, build_readers
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, RequestId, Response
from mcphost.transports.base import Transport

__all__ = ["Client", "Identity", "ProgressCallback", "RequestTimeouts", "Session"]

LISTENINGS: Final = 3
"""How often the stream for what a server says unasked is asked for in one session, where the server is there."""

NOTE_LENGTH: Final = 300
"""Characters of a note: it may quote what a server sent, and that may be as long as a message."""


class Client:
    """A connection to one server over ``transport``.

    ``connect`` first, ``aclose`` last; in between the verbs, any number at once: those for tools here, the others
    under ``resources``, ``prompts``, ``completions`` and ``tasks``.
    """

    def __init__(
        self,
        transport: Transport,
        listener: NotificationObserver,
        identity: Identity,
        *,
        capabilities: Mapping[str, Any] | Declare | None = None,
        handler: InputHandler | None = None,
        minimum: Revision = LEGACY[0],
        patience: RequestTimeouts | None = None,
        list_limits: ListLimits | None = None,
        pending_inputs: int = PENDING_SERVER_REQUESTS,
    ) -> None:
        self._transport = transport
        self._listener = listener
        self._identity = identity
        self._capabilities = capabilities or {}
        self._minimum = minimum
        self._patience = patience or RequestTimeouts()
        self._list_limits = list_limits or ListLimits()
        self._answering = OnlyDeclared(handler or NothingOffered())
        self._inputs = InputQueue(self._answering, transport.send, self._note, pending_inputs, self._held_up)
        # Ids nobody can guess: an answer sent before its question must not find one.
        self._ids = count(secrets.randbelow(1 << 20) * 1000 + 1)
        self._deadlines = Deadlines()
        self._listening: asyncio.Task[None] | None = None
        self._era: LegacyEra | None = None
        self.session: Session | None = None
        self.resources = Resources(self)
        self.prompts = Prompts(self)
        self.completions = Completions(self)
        self.tasks = Tasks(self)
        self._notices = Notifications(listener, self._inputs, self.tasks, self._note)
        self._exchange = Requests(transport, self._deadlines, self._notices.waiting, self.closed, self._note)

    @property
    def opened(self) -> Session:
        """The session; raises ServerNotReady where it is not open."""
        if self._era is None or self.session is None:
            raise ServerNotReady("the session is not open")
        return self.session

    async def connect(self, seconds: float) -> Session:
        """Open the transport and shake hands within ``seconds``.

        Raises SpawnFailed, ConnectionLost, RequestTimeout, VersionRefused, InvalidResult or ServerError; the
        transport is then still to be closed by ``aclose``.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._transport.open(self)
                build_readers()  # meanwhile a program comes up, which takes it longer
                session = await self._open_session()
        except TimeoutError:
            raise RequestTimeout("initialize", seconds) from None
        self._era = LegacyEra(session.revision, session.server.capabilities)
        self.session = session
        self._notices.offered = session.server.capabilities
        self._listening = asyncio.create_task(self._listen(), name="listen to the server")
        return session

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Mapping[str, Any]:
        """Any request of the era's; its result object.

        Raises ServerError, RequestTimeout, CapabilityMissing, InvalidResult or ConnectionLost. Cancelling the await
        tells the server that the answer is no longer wanted.
        """
        if self._era is None:
            raise ServerNotReady("the session is not open")
        request = self._era.stamp(next(self._ids), method, params, progress=on_progress is not None)
        return await self._exchange.send(request, self._era, patience or self._patience, on_progress)

    async def ping(self, seconds: float = 10.0) -> None:
        """Ask for a sign of life; an error is one too. Raises RequestTimeout or ConnectionLost."""
        try:
            await self.request("ping", patience=RequestTimeouts(seconds, seconds))
        except ServerError:
            return

    async def list_tools(self) -> ListedItems[Tool]:
        """Every tool, page by page. Raises as `request` does where not even the first page came."""
        return await self.read_list("tools/list", "tools", Tool.read)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> CallToolResult:
        """Run a tool once. Raises as `request` does; a failure the tool itself reports is a result."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        report = on_progress or _ignore
        result = await self.request("tools/call", params, patience=patience, on_progress=report)
        return CallToolResult.read(result)

    async def set_log_level(self, level: LogLevel) -> None:
        """Ask the server for messages of ``level`` and above. Raises as `request` does."""
        await self.request("logging/setLevel", {"level": level.wire})

    async def tell_roots_changed(self) -> None:
        """Say that ``roots/list`` has another answer now, where it was said that we would. Raises ConnectionLost."""
        roots = self._answering.capabilities.get("roots")
        if self._era is not None and isinstance(roots, dict) and roots.get("listChanged"):
            await self._transport.send(Notification("notifications/roots/list_changed"))

    async def aclose(self) -> None:
        """Stop asking and answering, let cancel notices out, and close the transport. Never raises."""
        self._era = None
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
        await self._inputs.aclose()
        await self._exchange.drain()
        await self._transport.aclose()
        self._deadlines.close()

    # What `resources`, `prompts`, `completions` and `tasks` need.

    async def read_list(self, method: str, key: str, read: Callable[[object], Item]) -> ListedItems[Item]:
        """Every page of a list. Raises as `request` does where not even the first page came."""

        async def fetch(cursor: str | None) -> Mapping[str, Any]:
            return await self.request(method, None if cursor is None else {"cursor": cursor})

        return await read_list(fetch, key, read, self._list_limits, asyncio.get_running_loop().time)

    @contextmanager
    def hearing(self, token: RequestId, report: ProgressCallback) -> Iterator[None]:
        """Hand progress under ``token`` to ``report``, also when no request with it is under way."""
        self._notices.hearing[token] = report
        try:
            yield
        finally:
            del self._notices.hearing[token]

    def within(self, seconds: float) -> Deadline:
        """Raise TimeoutError inside the block when they are over, what time we take for the server not counted."""
        return Deadline(self._deadlines, seconds, seconds, holds=True)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let ``work``, which may not raise, go on by itself; closing waits for it a moment."""
        self._exchange.in_background(work)

    # What the transport hands on (`mcphost.transports.base.Inbound`).

    def message(self, message: Request | Notification) -> None:
        """Take a request or notification of the server's."""
        if isinstance(message, Request):
            self._inputs.take(message)
        else:
            self._notices.take(message.method, message.params or {})

    def malformed(self, problem: Malformed) -> None:
        """Pass on what was no message, and refuse it where it would have been a request."""
        if problem.asks is not None:
            self._inputs.refuse(problem.asks, problem.code, problem.reason)
        self._listener.malformed(problem)

    def unmatched(self, response: Response) -> None:
        """Drop an answer nobody waits for."""
        if response.id is None and response.error is not None:
            self._note(f"the server reported an error to no request: {response.error.message}")
        else:
            self._note(f"dropped an answer nobody waits for (id {response.id!r})")

    def stderr(self, text: str) -> None:
        """Pass on a line of stderr."""
        self._listener.stderr(text)

    def closed(self, reason: Exception) -> None:
        """Pass on that the connection ended by itself; whatever was being answered is stopped."""
        self._inputs.stop()
        self._listener.lost(reason)

    async def _open_session(self) -> Session:
        clock = asyncio.get_running_loop().time
        began = clock()
        agreed = await shake_hands(self._ask, self._identity, self._declare, self._minimum)
        session = Session(agreed.revision, InitializeResult.read(agreed.result), clock() - began)
        self._transport.agreed(agreed.revision)
        self._inputs.open_for_all = True  # the server may ask as soon as it hears the next message
        await self._transport.send(Notification("notifications/initialized"))
        return session

    def _declare(self, offer: Revision) -> Mapping[str, Any]:
        """What this server may ask of us: what it was told last holds, whatever revision comes of it."""
        given = self._capabilities
        self._answering.capabilities = given(offer) if callable(given) else given
        return self._answering.capabilities

    def _held_up(self) -> AbstractContextManager[None]:
        """Meanwhile a person, or a model, is at work for the server: requests that may wait for it are not timed."""
        return self._deadlines.held()

    async def _listen(self) -> None:
        for _ in range(LISTENINGS):
            try:
                await self._transport.listen()
                return
            except SessionExpired as gone:
                self.closed(gone)
                return
            except McphostError as error:
                self._note(f"the stream for what the server says unasked has ended: {error}")
                if not isinstance(error, ConnectionLost) or not await self._is_there():
                    return

    async def _is_there(self) -> bool:
        """Is only that stream away, or the server? Then the request that finds nobody has said so."""
        try:
            await self.ping()
        except RequestTimeout:
            return True
        except McphostError:
            return False
        return True

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Response:
        return await self._transport.request(Request(next(self._ids), method, params), {})

    def _note(self, text: str) -> None:
        self._listener.noted(text if len(text) <= NOTE_LENGTH else f"{text[:NOTE_LENGTH]} ...")


def _ignore(_: Progress) -> None:
    return
