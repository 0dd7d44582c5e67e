"""Answers elicitation: has a form filled in or a URL visited, and sends only what fits the server's schema.

Specification: client/elicitation (2025-06-18 and later).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputRefused
from mcphost.config import Config
from mcphost.errors import InvalidResult
from mcphost.host.consent.questions import Answer, FormQuestion, UrlQuestion
from mcphost.host.desktop import Open
from mcphost.host.events import ElicitationChanged, EventBus
from mcphost.host.logs import LogBook
from mcphost.host.server_requests.kinds import URL
from mcphost.host.server_requests.pending import PendingRequests, ServerRequest
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:  # imported when something is asked: reading forms takes a good part of a call's start
    from mcphost.protocol.models.elicitation import FormElicitation, UrlElicitationRequest

TRIES: Final = 20
"""How often a person is asked again about a form whose values do not fit."""

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
        logs: LogBook,
        bus: EventBus,
        open_url: Open,
        answers: frozenset[str],
    ) -> None:
        self._config, self._pending, self._logs, self._bus = config, pending, logs, bus
        self._open_url, self._answers = open_url, answers
        self.all: dict[int, UrlElicitation] = {}
        """The pages that were opened, by number, oldest first."""
        self._last = 0

    def modes(self, server: str) -> frozenset[str]:
        """The modes in which this server may ask."""
        settings = self._config().servers.get(server)
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
        page = await self.visit(request, wanted)
        if not isinstance(page, UrlElicitation):
            return page
        if request.purpose is not None and not await self._visited(page):
            raise InputRefused(ErrorCode.INTERNAL_ERROR, "you gave up the page that it asked you to visit", quiet=True)
        return {"action": "accept"}

    async def _visited(self, page: UrlElicitation) -> bool:
        """Wait until the user goes on or gives up: a modern server does not say when it is done with a page."""
        try:
            return await page.ended()
        finally:
            page.give_up()

    async def visit(
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
        answer = await self._pending.ask("url", question, certain=request.certain)
        if not answer.allow:
            return _no(answer)
        return await self._open(request, wanted, until)

    async def visit_required(self, call: ToolCall, data: object, seconds: float) -> bool:
        """Have the pages of error -32042 visited, one after the other, and wait ``seconds`` for their ends.

        True where each is done with, by the word of the server or of the user.
        """
        request = ServerRequest(call.request.server, {}, call, certain=True)
        if URL not in self.modes(request.server):
            return False
        pages: list[UrlElicitation] = []
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._all_visited(request, data, pages, limit.when())
        except (InvalidResult, InputRefused) as error:
            self._logs.warn(request.server, f"refused the pages it wants you to visit: {error}")
            return False
        except TimeoutError:
            return False
        finally:
            for page in pages:
                page.give_up()

    async def _all_visited(
        self, request: ServerRequest, data: object, pages: list[UrlElicitation], until: float | None
    ) -> bool:
        from mcphost.protocol.models.elicitation import read_required

        for wanted in read_required(data):
            page = await self.visit(request, wanted, until)
            if not isinstance(page, UrlElicitation):
                return False
            pages.append(page)
        return all([await page.ended() for page in pages])

    def completed(self, server: str, elicitation: object) -> None:
        """The server says that a page is done with; one that nobody knows is nobody's."""
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
            answer = await self._pending.ask("form", question, certain=request.certain)
            if not answer.allow:
                return _no(answer)
            content = wanted.defaults() if answer.content is None else answer.content
            problem = await _problem(wanted.schema, content)
            if not problem:
                return {"action": "accept", "content": dict(content)}
            self._logs.warn(request.server, f"the answer to its form was not sent because it is invalid: {problem}")
            if answer.by != "user":  # whoever answers by rule would answer the same again
                cancelled = f"the form of {request.server} was cancelled: what {answer.by} would send is invalid"
                self._bus.alarm(f"{cancelled} ({problem})")
                return CANCEL
        return CANCEL

    async def _open(self, request: ServerRequest, wanted: UrlElicitationRequest, until: float | None) -> UrlElicitation:
        self._last += 1
        page = UrlElicitation(self._last, request.server, wanted, request.number, self._open_url, self._changed, until)
        self.all[page.number] = page
        for number in list(self.all)[: max(0, len(self.all) - KEPT_PAGES)]:
            del self.all[number]
        await page.open()
        return page

    def _changed(self, page: UrlElicitation) -> None:
        self._bus.publish(ElicitationChanged(page.server, page.number))


def _no(answer: Answer) -> Mapping[str, Any]:
    return CANCEL if answer.cancelled else DECLINE


async def _problem(schema: Mapping[str, Any], content: object) -> str:
    """What is wrong with the values of a form, in a sentence that quotes none of them; empty where they fit.

    Raises InputRefused where that cannot be found out.
    """
    if not isinstance(content, Mapping):
        return "it is no set of values"
    result = await validate(schema, dict(content))
    if result.note is not None:
        raise InputRefused(ErrorCode.INVALID_PARAMS, f"requestedSchema cannot be checked: {result.note}")
    return _sentence([(problem.path, problem.message) for problem in result.problems])


def _sentence(problems: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{path}: {message}" if path else message for path, message in problems)
