"""Answers elicitation: has a form filled in or a URL visited, and sends only what fits the server's schema.

Specification: client/elicitation (2025-06-18 and later).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputRefused
from mcphost.config import Config, entry_of
from mcphost.errors import InvalidResult, RequestTimeout
from mcphost.host.consent.questions import Answer, FormQuestion, UrlQuestion
from mcphost.host.desktop import Open
from mcphost.host.events import CallChanged, ElicitationChanged, FormAnswered
from mcphost.host.reporting import Reporting
from mcphost.host.server_requests.pending import PendingRequests, ServerRequest
from mcphost.host.server_requests.request_kinds import URL
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:  # imported when something is asked: reading forms takes a good part of a call's start
    from mcphost.protocol.models.elicitation import FormElicitation, UrlElicitationRequest

TRIES: Final = 20
"""Times that the user is asked again about a form whose values do not fit."""

ACCEPT: Final[Mapping[str, Any]] = {"action": "accept"}
DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}

KEPT_PAGES: Final = 100
"""Pages that are kept to be looked at, or opened again."""


class ElicitationService:
    """The forms and pages of all servers. ``answers``: the modes that the front can show, ``form`` and ``url``."""

    def __init__(
        self,
        config: Callable[[], Config],
        pending: PendingRequests,
        reporting: Reporting,
        open_url: Open,
        answers: frozenset[str],
    ) -> None:
        self._config, self._pending = config, pending
        self._logs, self._bus = reporting.logs, reporting.bus
        self._open_url, self._answers = open_url, answers
        self.all: dict[int, UrlElicitation] = {}
        """The pages that were opened, by number, oldest first."""
        self._last = 0

    def modes(self, server: str) -> frozenset[str]:
        """The modes in which this server may ask."""
        settings = self._config().servers.get(entry_of(server))
        return frozenset() if settings is None else self._answers & frozenset(settings.capabilities.elicitation)

    def check_readable(self, request: ServerRequest) -> None:
        """Raise InputRefused if the request cannot be read."""
        self._read(request)

    def _read(self, request: ServerRequest) -> FormElicitation | UrlElicitationRequest:
        from mcphost.protocol.models.elicitation import read_elicitation

        try:
            return read_elicitation(request.params, has_id=request.purpose is None)
        except InvalidResult as error:
            self._logs.warn(request.server, f"refused what the server wants you to fill in or visit: {error}")
            raise InputRefused(ErrorCode.INVALID_PARAMS, str(error), quiet=True) from None

    async def answer(self, request: ServerRequest) -> Mapping[str, Any]:
        """Return the result to send. Raises InputRefused; cancelled when the server takes the request back."""
        from mcphost.protocol.models.elicitation import FormElicitation

        wanted = self._read(request)
        if isinstance(wanted, FormElicitation):
            return await self._form(request, wanted)
        if request.purpose is not None:
            try:
                return await self._visit_all(request, (wanted,))
            except TimeoutError:
                seconds = self._visit_seconds(request.server)
                raise RequestTimeout(request.purpose.method, seconds, hard=True) from None
        page = await self._visit(request, wanted)  # its server waits by itself until it is done with the page
        return ACCEPT if isinstance(page, UrlElicitation) else page

    async def _visit(
        self, request: ServerRequest, wanted: UrlElicitationRequest, until: float | None = None
    ) -> UrlElicitation | Mapping[str, Any]:
        """The page once it was opened; the result that says no otherwise. Raises InputRefused.

        ``until`` is when the caller gives up, by the loop's clock.
        """
        question = UrlQuestion(
            request.server,
            wanted.message,
            wanted.address.url,
            wanted.elicitation,
            call=request.number,
            tool=request.tool,
            address=wanted.address,
            until=until,
        )
        answer = await self._pending.ask("url", question, certain=request.certain, purpose=request.purpose)
        if not answer.allow:
            return _no(answer)
        return await self._open(request, wanted, until, attended=answer.by == "user")

    async def visit_required(self, call: ToolCall, data: object) -> bool:
        """Get the pages of error -32042 visited; return True if each is done with."""
        request = ServerRequest(call.request.server, {}, call, certain=True)
        if URL not in self.modes(request.server):
            return False
        from mcphost.protocol.models.elicitation import read_required

        try:
            return await self._visit_all(request, read_required(data)) is ACCEPT
        except (InvalidResult, InputRefused) as error:
            self._logs.warn(request.server, f"refused the pages it wants you to visit: {error}")
            return False
        except TimeoutError:
            return False

    async def _visit_all(self, request: ServerRequest, required: Sequence[UrlElicitationRequest]) -> Mapping[str, Any]:
        """Get pages visited, wait until the server or the user says that each is done with, and return the result.

        Raises InputRefused where the user gives one up, TimeoutError after the server's ``tool_timeout_max_sec``, and
        RequestTimeout if no user is there to visit a page and the request may take no longer.
        """
        pages: list[UrlElicitation] = []
        try:
            async with asyncio.timeout(self._visit_seconds(request.server)) as limit:
                with self._visiting(request.call):
                    for wanted in required:
                        page = await self._visit(request, wanted, limit.when())
                        if not isinstance(page, UrlElicitation):
                            return page
                        pages.append(page)
                    async with _counted(request, pages):
                        done = [await page.ended() for page in pages]
        finally:
            for page in pages:
                page.give_up()
        if not all(done):
            raise InputRefused(ErrorCode.INTERNAL_ERROR, "you gave up the page that it asked you to visit", quiet=True)
        return ACCEPT

    @contextmanager
    def _visiting(self, call: ToolCall | None) -> Iterator[None]:
        if call is None:
            yield
            return
        with call.visiting():
            self._bus.publish(CallChanged(call.number))
            yield
        self._bus.publish(CallChanged(call.number))

    def _visit_seconds(self, server: str) -> float:
        return self._config().servers[entry_of(server)].tool_timeout_max_sec

    def completed(self, server: str, elicitation: object) -> None:
        """Note that the server is done with a page; an unknown one is ignored."""
        for page in self.all.values():
            if (page.server, page.elicitation) == (server, elicitation):
                page.enter(UrlElicitationState.COMPLETED)

    def session_ended(self, server: str) -> None:
        """The session is over, and with it what the server had to say of its pages."""
        for page in self.all.values():
            if page.server == server:
                page.enter(UrlElicitationState.LEFT)

    async def _form(self, request: ServerRequest, wanted: FormElicitation) -> Mapping[str, Any]:
        problem = ""
        for _ in range(TRIES):
            question = FormQuestion(
                request.server, wanted.message, wanted.schema, request.number, request.tool, problem
            )
            answer = await self._pending.ask("form", question, certain=request.certain, purpose=request.purpose)
            if not answer.allow:
                return _no(answer)
            content = wanted.defaults() if answer.content is None else answer.content
            problem = await _problem(wanted.schema, content)
            if not problem:
                if answer.by != "user":
                    self._bus.publish(FormAnswered(request.server, answer.by, dict(content)))
                return {**ACCEPT, "content": dict(content)}
            self._logs.warn(request.server, f"the answer to its form was not sent because it is invalid: {problem}")
            if answer.by != "user":  # whoever answers by rule would answer the same again
                cancelled = f"the form of {request.server} was cancelled: what {answer.by} would send is invalid"
                values = "; --answers FILE gives values" if answer.content is None else ""
                self._bus.alarm(f"{cancelled} ({problem}){values}")
                return CANCEL
        return CANCEL

    async def _open(
        self, request: ServerRequest, wanted: UrlElicitationRequest, until: float | None, *, attended: bool
    ) -> UrlElicitation:
        self._last += 1
        page = UrlElicitation(
            self._last,
            request.server,
            wanted,
            request.number,
            self._open_url,
            self._changed,
            until,
            attended=attended,
        )
        self.all[page.number] = page
        for number in list(self.all)[: max(0, len(self.all) - KEPT_PAGES)]:
            del self.all[number]
        await page.begin()
        return page

    def _changed(self, page: UrlElicitation) -> None:
        self._bus.publish(ElicitationChanged(page.server, page.number))


@asynccontextmanager
async def _counted(request: ServerRequest, pages: Sequence[UrlElicitation]) -> AsyncIterator[None]:
    """Count the wait for pages against the request's time if no person was asked about them."""
    if request.purpose is None or all(page.attended for page in pages):
        yield
    else:
        async with request.purpose.budget.spend():
            yield


def _no(answer: Answer) -> Mapping[str, Any]:
    return CANCEL if answer.cancelled else DECLINE


async def _problem(schema: Mapping[str, Any], content: object) -> str:
    """Say what is wrong with the values of a form, quoting none of them; empty if they fit.

    Raises InputRefused where that cannot be found out.
    """
    if not isinstance(content, Mapping):
        return "it is not a set of values"
    result = await validate(schema, dict(content))
    if result.note is not None:
        raise InputRefused(ErrorCode.INVALID_PARAMS, f"requestedSchema cannot be checked: {result.note}")
    return _sentence([(problem.path, problem.message) for problem in result.problems])


def _sentence(problems: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{path}: {message}" if path else message for path, message in problems)
