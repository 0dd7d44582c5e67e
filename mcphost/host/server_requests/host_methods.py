"""What a front may do about what servers ask, as plain methods of the host; and what the host's answers are made of.

Knows which desk answers which method. Refuses to know how: these are names for what the desks do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputHandler
from mcphost.config import Config, ResolvedRoot
from mcphost.errors import McphostError
from mcphost.host.consent.approvals import StateStore
from mcphost.host.consent.questions import Approver
from mcphost.host.desktop import Open
from mcphost.host.events import CallChanged, CallFinished, CallStarted, Event, ServerChanged
from mcphost.host.logs import LogSource
from mcphost.host.sampling.host_methods import Lending
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.server_requests.pending import PendingRequests
from mcphost.host.server_requests.roots import Around, OfferedRoot, Resolve, RootsService, SentRoots
from mcphost.host.server_requests.service import RequestService, ServerRequest, ServerRequestService
from mcphost.host.server_requests.url_elicitation import UrlElicitation
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.eras.capabilities import ClientCapabilities
from mcphost.protocol.models.tools import LogLevel

if TYPE_CHECKING:
    from mcphost.host.models import ModelPort

FORM, URL, ROOTS, SAMPLING, WRITING = "form", "url", "roots", "sampling", "writing"

ALL: Final = frozenset({FORM, URL, ROOTS})
"""What a front can answer that shows every kind of question, but those about language models."""

SCREEN: Final = ALL | {SAMPLING, WRITING}
"""The same, and whether a model may be asked; and there is a person who can write what a model would have."""


@dataclass(frozen=True, slots=True)
class ServerRequestServices:
    """Who answers what servers ask; but of language models, see `Lending`."""

    inquiries: PendingRequests
    elicitation: ElicitationService
    roots: RootsService


def plain_roots(config: Config, server: str) -> Sequence[ResolvedRoot]:
    """The ``roots`` of an entry where nothing in them is a reference."""
    return [ResolvedRoot(Path(root.path).expanduser(), root.name) for root in config.servers[server].roots]


class Answering(Lending):
    """The host's methods about questions of servers, folders and pages."""

    _tasks: asyncio.TaskGroup | None
    _desks: ServerRequestServices
    _answers: frozenset[str]

    def _begin_answering(
        self,
        answers: frozenset[str],
        approver: Approver,
        store: StateStore | None,
        resolve: Resolve,
        open_url: Open,
        models: ModelPort | None,
    ) -> None:
        """Set up the desks, once consent and calls are."""
        told = self._tell_roots_changed, self.bus.publish, self._warn
        around = Around(lambda: self.config, resolve, store, time.monotonic, *told)
        witness = self.consent.witness
        inquiries = PendingRequests(approver, witness, self._warn, time.monotonic, self._asked_for)
        elicitation = ElicitationService(inquiries, self.bus.publish, open_url, self._warn)
        self._desk.visit = self._visit
        self._begin_lending(models, inquiries, front=SAMPLING in answers, hand=WRITING in answers)
        self._desks = ServerRequestServices(inquiries, elicitation, RootsService(inquiries, witness, around))
        self._answers = answers
        self.bus.observe(self._heed)

    # Questions.

    def mute(self, server: str) -> None:
        """Decline everything this server asks until mcphost exits, what is open too. Raises UnknownName."""
        self._desks.inquiries.mute(self.server(server).name)
        self.bus.publish(ServerChanged(server))

    def unmute(self, server: str) -> None:
        """Listen to it again."""
        self._desks.inquiries.muted.discard(server)
        self.bus.publish(ServerChanged(server))

    def muted(self, server: str) -> bool:
        """Is everything it asks declined?"""
        return server in self._desks.inquiries.muted

    def waiting_questions(self, server: str) -> int:
        """How many questions of this server wait for an answer."""
        return self._desks.inquiries.waiting(server)

    # Pages.

    @property
    def elicitations(self) -> Mapping[int, UrlElicitation]:
        """The pages that servers asked for and that were opened, by number, oldest first.

        Each can be opened again, gone on with and given up; see `UrlElicitation`.
        """
        return self._desks.elicitation.pages

    # Folders.

    def roots(self, server: str | None) -> tuple[OfferedRoot, ...]:
        """What this server may know of, as it was looked at last; None: what is shared with all of them."""
        return self._desks.roots.folders(server)

    def told_roots(self, server: str) -> SentRoots | None:
        """What this server was told when it asked last, and when; None where it never asked in this run."""
        return self._desks.roots.told.get(server)

    async def share(
        self, server: str | None, path: Path, *, remember: bool = False, name: str | None = None
    ) -> OfferedRoot:
        """Let a server (None: all) know of a folder, and tell it that its list changed.

        Raises UnknownName, or NotDone where the folder cannot be shared.
        """
        if server is not None:
            self.server(server)
        return await self._desks.roots.share(server, path, remember=remember, name=name)

    async def unshare(self, server: str | None, path: Path) -> None:
        """Take back a folder; one that the configuration grants until mcphost exits. Raises UnknownName, NotDone."""
        if server is not None:
            self.server(server)
        await self._desks.roots.unshare(server, path)

    async def check_roots(self) -> None:
        """Look at all folders again: whose list is another now is told. For when the user comes back to the screen."""
        await self._desks.roots.check()

    # What a connection is given (`mcphost.host.connections.observer.Surroundings`).

    def answers_for(self, server: str) -> tuple[InputHandler, ClientCapabilities]:
        """Who answers what this server asks, and what it is told that it may ask."""
        leave = self._desks.inquiries.leave
        return ServerRequestService(server, self._desk_of, self._desk.sent_on, leave), self._declared(server)

    def elicitation_completed(self, server: str, elicitation: object) -> None:
        """The server says that a page is done with."""
        self._desks.elicitation.completed(server, elicitation)

    def _desk_of(self, method: str) -> RequestService | None:
        """Who answers this method."""
        match method:
            case "roots/list":
                return self._desks.roots
            case "elicitation/create":
                return self._desks.elicitation
            case "sampling/createMessage":
                return self._sampling
        return None

    def _declared(self, server: str) -> ClientCapabilities:
        """Only what somebody here can answer, and the configuration lets this server ask."""
        wanted = self.config.servers[server].capabilities
        roots = wanted.roots and (ROOTS in self._answers or self._desks.roots.grants(server))
        modes = frozenset(wanted.elicitation) & self._answers
        return ClientCapabilities(roots=roots, elicitation=modes, sampling=self._lends(server))

    async def _visit(self, call: ToolCall, data: object, seconds: float) -> bool:
        """See `mcphost.host.tool_calls.service.UrlVisit`."""
        server = call.request.server
        if URL not in self._declared(server).elicitation:
            return False
        return await self._desks.elicitation.required(ServerRequest(server, {}, call, sure=True), data, seconds)

    def _reconfigured(self, servers: Iterable[str]) -> None:
        """These are configured otherwise, or no longer: whose folders changed with it is told."""
        for server in servers:
            self._desks.roots.forget(server)
        self._in_background(self._desks.roots.check())

    def _heed(self, event: Event) -> None:
        """What was asked for a call that has ended is moot; a call begins with folders that are there."""
        if isinstance(event, CallFinished):
            self._desks.inquiries.call_ended(event.call)
        elif isinstance(event, CallStarted):
            server = self._desk.calls[event.call].request.server
            if server in self._desks.roots.told:
                self._in_background(self._desks.roots.check_one(server))

    def _tell_roots_changed(self, server: str) -> None:
        connection = self.servers.get(server)
        if connection is not None and connection.ready:
            self._in_background(_quietly(connection.client.tell_roots_changed))

    def _asked_for(self, number: int, more: int) -> None:
        """See `PendingRequests`; the call may be forgotten by now."""
        call = self._desk.calls.get(number)
        if call is not None:
            call.questions += more
            self.bus.publish(CallChanged(number))

    def _warn(self, server: str, text: str) -> None:
        self.log(server, LogSource.MCPHOST, LogLevel.WARNING, text)

    # What the host has.

    def log(self, server: str, source: LogSource, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line."""
        raise NotImplementedError

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        if self._tasks is None:
            work.close()
        else:
            self._tasks.create_task(work)


async def _quietly(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await work()
    except McphostError:
        return  # nobody is left to be told
