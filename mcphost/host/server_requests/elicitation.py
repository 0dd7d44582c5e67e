"""Answers what servers ask the user for: a form to fill in, a page to visit; and keeps the pages that were opened.

Knows what may be sent: what fits the server's schema, after a yes. Refuses to know dialogs and browsers, and never
fetches anything.

Specification: client/elicitation (2025-06-18, 2025-11-25).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputRefused
from mcphost.errors import InvalidResult
from mcphost.host.consent.questions import Answer, FormQuestion, UrlQuestion
from mcphost.host.desktop import Open
from mcphost.host.events import Alarmed, ElicitationChanged, Event
from mcphost.host.server_requests.pending import PendingRequests, Warn
from mcphost.host.server_requests.service import ServerRequest
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:  # imported when something is asked: reading forms takes a good part of a call's start
    from mcphost.protocol.models.elicitation import FormElicitation, UrlElicitationRequest

TRIES: Final = 20
"""How often a person is asked again about a form whose values do not fit."""

KEPT_PAGES: Final = 100
"""Pages that are kept to be looked at, or opened again."""


class ElicitationService:
    """The forms and pages of all servers."""

    def __init__(
        self, inquiries: PendingRequests, publish: Callable[[Event], None], open_url: Open, warn: Warn
    ) -> None:
        self._inquiries, self._publish, self._open_url, self._warn = inquiries, publish, open_url, warn
        self.pages: dict[int, UrlElicitation] = {}
        """The pages that were opened, by number, oldest first."""
        self._last = 0

    async def answer(self, asked: ServerRequest) -> Mapping[str, Any]:
        """See `mcphost.host.server_requests.service.RequestService.answer`."""
        from mcphost.protocol.models.elicitation import FormElicitation, accepted, read_elicitation

        try:
            wanted = read_elicitation(asked.params)
        except InvalidResult as error:
            self._warn(asked.server, f"refused what the server wants you to fill in or visit: {error}")
            raise InputRefused(ErrorCode.INVALID_PARAMS, str(error), quiet=True) from None
        if isinstance(wanted, FormElicitation):
            return await self._form(asked, wanted)
        page = await self.visit(asked, wanted)
        return page if isinstance(page, dict) else accepted()

    async def visit(
        self, asked: ServerRequest, wanted: UrlElicitationRequest, until: float | None = None
    ) -> UrlElicitation | Mapping[str, Any]:
        """The page once it was opened; the result that says no otherwise. Raises InputRefused.

        ``until`` is when the caller gives up, by the loop's clock.
        """
        question = UrlQuestion(
            asked.server,
            wanted.message,
            wanted.address.url,
            wanted.elicitation,
            call=asked.number,
            tool=asked.tool,
            address=wanted.address,
            until=until,
        )
        answer = await self._inquiries.ask("url", question, sure=asked.sure)
        if not answer.allow:
            return _no(answer)
        return await self._open(asked, wanted, until)

    async def required(self, asked: ServerRequest, data: object, seconds: float) -> bool:
        """Have the pages of error -32042 visited, one after the other, and wait ``seconds`` for their ends.

        True where each is done with, by the word of the server or of the user.
        """
        pages: list[UrlElicitation] = []
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._all_visited(asked, data, pages, limit.when())
        except (InvalidResult, InputRefused) as error:
            self._warn(asked.server, f"refused the pages it wants you to visit: {error}")
            return False
        except TimeoutError:
            return False
        finally:
            for page in pages:
                page.give_up()

    async def _all_visited(
        self, asked: ServerRequest, data: object, pages: list[UrlElicitation], until: float | None
    ) -> bool:
        from mcphost.protocol.models.elicitation import read_required

        for wanted in read_required(data):
            page = await self.visit(asked, wanted, until)
            if not isinstance(page, UrlElicitation):
                return False
            pages.append(page)
        return all([await page.ended() for page in pages])

    def completed(self, server: str, elicitation: object) -> None:
        """The server says that a page is done with; one that nobody knows is nobody's."""
        for page in self.pages.values():
            if (page.server, page.elicitation) == (server, elicitation):
                page.enter(UrlElicitationState.COMPLETED)

    def gone(self, server: str) -> None:
        """The session is over, and with it what the server had to say of its pages."""
        for page in self.pages.values():
            if page.server == server:
                page.enter(UrlElicitationState.LEFT)

    async def _form(self, asked: ServerRequest, wanted: FormElicitation) -> Mapping[str, Any]:
        from mcphost.protocol.models.elicitation import CANCEL, accepted, defaults_of

        problem = ""
        for _ in range(TRIES):
            question = FormQuestion(asked.server, wanted.message, wanted.schema, asked.number, asked.tool, problem)
            answer = await self._inquiries.ask("form", question, sure=asked.sure)
            if not answer.allow:
                return _no(answer)
            content = defaults_of(wanted.schema) if answer.content is None else answer.content
            problem = await _problem(wanted.schema, content)
            if not problem:
                return accepted(content)
            self._warn(asked.server, f"the answer to its form was not sent, since it does not fit: {problem}")
            if answer.by != "user":  # whoever answers by rule would answer the same again
                told = f"the form of {asked.server} was left unanswered: what {answer.by} says does not fit"
                self._publish(Alarmed(f"{told} ({problem})"))
                return CANCEL
        return CANCEL

    async def _open(self, asked: ServerRequest, wanted: UrlElicitationRequest, until: float | None) -> UrlElicitation:
        self._last += 1
        page = UrlElicitation(self._last, asked.server, wanted, asked.number, self._open_url, self._changed, until)
        self.pages[page.number] = page
        for number in list(self.pages)[: max(0, len(self.pages) - KEPT_PAGES)]:
            del self.pages[number]
        await page.open()
        return page

    def _changed(self, page: UrlElicitation) -> None:
        self._publish(ElicitationChanged(page.server, page.number))


def _no(answer: Answer) -> Mapping[str, Any]:
    from mcphost.protocol.models.elicitation import CANCEL, DECLINE

    return CANCEL if answer.cancelled else DECLINE


async def _problem(schema: Mapping[str, Any], content: object) -> str:
    """What is wrong with the values of a form, in a sentence that quotes none of them; empty where they fit.

    Raises InputRefused where that cannot be found out.
    """
    if not isinstance(content, Mapping):
        return "it is no set of values"
    verdict = await validate(schema, dict(content))
    if verdict.note is not None:
        raise InputRefused(ErrorCode.INVALID_PARAMS, f"requestedSchema cannot be checked: {verdict.note}")
    return _sentence([(problem.path, problem.message) for problem in verdict.problems])


def _sentence(problems: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{path}: {message}" if path else message for path, message in problems)
