"""Asks the user about server requests: a bounded number, withdrawn with their cause, and recorded in the audit log.

Specification: client/elicitation and client/sampling (rate limits, human in the loop).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from mcphost.client.deadlines import TimeBudget
from mcphost.client.server_requests import InputPurpose, InputRefused
from mcphost.config import entry_of
from mcphost.errors import Declined
from mcphost.host.consent.questions import Answer, Approver, FormQuestion, RootsQuestion, SamplingQuestion, UrlQuestion
from mcphost.host.events import CallChanged, CallFinished, ServerChanged
from mcphost.host.reporting import Reporting
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:  # most runs know no agents
    from mcphost.host.agents.session import AgentCall

PER_MINUTE: Final = 10
"""Questions per server and minute, without sampling: no user reads more with care."""

MOST_PENDING: Final = 6
"""Pending questions per server: one on screen and five behind it."""

MOST_WITHDRAWN: Final = 20
"""Questions that were withdrawn before the user answered, and are kept to be seen."""

MUTED: Final = "you declined everything from this server until mcphost exits"

PendingQuestion = FormQuestion | UrlQuestion | RootsQuestion | SamplingQuestion

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request of a server, and the tool call that it belongs to, if that is known."""

    server: str
    """Its name; words for it, and the agent that runs it, if it is not a configured one."""
    params: Mapping[str, Any]
    call: ToolCall | None = None
    certain: bool = False
    """True if the call is certain: the request came on its response stream, or no other call runs on that server."""
    purpose: InputPurpose | None = None
    """Why a modern server asks; None for a request of an older one."""
    agent_call: AgentCall | None = None
    """The call of the agent that runs the server, if that is known."""

    @property
    def number(self) -> int | None:
        call = self.call or self.agent_call
        return None if call is None else call.number

    @property
    def tool(self) -> str:
        """The name of the called tool; empty if the call is unknown."""
        if self.agent_call is not None:
            return self.agent_call.tool
        return "" if self.call is None else self.call.request.tool


@dataclass(frozen=True, slots=True)
class Resolution:
    """Why a question needs no answer of a person any more, and the one it gets instead."""

    answer: Answer
    outcome: str = ""
    """The end of the question, for the user; empty if the user ended it."""


LEAVING: Final = Resolution(
    Answer(False, reason="the connection is being closed", by="mcphost", cancelled=True), "the connection was closed"
)
CALL_ENDED: Final = Resolution(
    Answer(False, reason="the call it was asked for has ended", by="mcphost", cancelled=True), "its call ended"
)
SHARED: Final = Resolution(Answer(True, content=(), reason="folders were shared with it meanwhile"))
NOW_MUTED: Final = Resolution(Answer(False, reason=MUTED, by="policy"))


@dataclass(eq=False, slots=True)
class _Open:
    """A question that waits; ``call`` is set where it is sure that it is asked for that call."""

    server: str
    call: int | None
    resolution: asyncio.Future[Resolution]
    kind: str = ""
    """The kind of the question to the user; empty while mcphost works on it."""


@dataclass(frozen=True, slots=True)
class WithdrawnQuestion:
    """A question that ended before the user answered it. ``ended_at`` is a monotonic time in seconds."""

    number: int
    question: PendingQuestion
    outcome: str
    """The end of the question; may hold the server's words."""
    ended_at: float

    @property
    def age(self) -> float:
        """Seconds since it ended."""
        return time.monotonic() - self.ended_at


class PendingRequests:
    """All questions that servers ask."""

    def __init__(
        self,
        approver: Approver,
        calls: CallRegistry,
        reporting: Reporting,
    ) -> None:
        self._approver, self._calls = approver, calls
        self._audit, self._logs, self._bus = reporting.audit, reporting.logs, reporting.bus
        self._open: set[_Open] = set()
        self._times: dict[str, deque[float]] = defaultdict(deque)
        self._refused: dict[str, int] = {}
        self._muted: set[str] = set()
        self._withdrawn: deque[WithdrawnQuestion] = deque(maxlen=MOST_WITHDRAWN)
        self._numbers = count(1)
        self._bus.observe(lambda event: self.call_ended(event.call), CallFinished)

    async def ask(
        self,
        kind: str,
        question: PendingQuestion,
        *,
        certain: bool = False,
        admitted: bool = False,
        purpose: InputPurpose | None = None,
    ) -> Answer:
        """One answer. ``kind`` is form, url, roots or sampling; ``certain``: its call is known for sure, and ends it.

        ``admitted``: `admit` let it through, or it follows one that was. Raises InputRefused where the server asks too
        much, or asks again for the same ``purpose`` what was declined without asking a person. What could not be
        recorded although it must be, and what a muted server asks, is declined.
        """
        if purpose is not None and question in purpose.declined:  # without a user, however often it asks
            raise InputRefused(ErrorCode.INTERNAL_ERROR, "it asks again what was declined before", quiet=True)
        answer = await self._asked(kind, question, certain, admitted)
        if purpose is not None and not answer.allow and answer.by != "user":
            purpose.declined.append(question)
        return answer

    async def _asked(self, kind: str, question: PendingQuestion, certain: bool, admitted: bool) -> Answer:
        server = question.server
        if self.muted(server):
            return await self._settled(kind, question, NOW_MUTED.answer)
        if not admitted:
            self.admit(server)
        try:
            with self._opened(server, question.call if certain else None, kind) as waiting, self.waits(question.call):
                answer = await self._put(question, waiting.resolution)
        except asyncio.CancelledError as cancelled:
            self._note(kind, question, {"verdict": "withdrawn", "by": "server"})
            self._keep_withdrawn(question, str(cancelled) or "withdrawn")
            raise
        except Exception:
            self._note(kind, question, {"verdict": "failed", "by": "mcphost"})
            raise
        return await self._settled(kind, question, answer)

    async def meanwhile(self, server: str, call: int | None, work: Coroutine[Any, Any, _T]) -> _T | Resolution:
        """Run ``work``, and return its result, or why it was ended: by what would end an open question."""
        with self._opened(server, call) as waiting:
            return await _first(asyncio.ensure_future(work), waiting.resolution)

    def admit(self, server: str, *, paced: bool = False) -> None:
        """Let a question be put. Raises InputRefused where there are too many: the log says so once.

        ``paced``: the caller applied a rate limit of its own.
        """
        server = entry_of(server)
        if sum(entry_of(each.server) == server for each in self._open) >= MOST_PENDING:
            self._refuse(server, f"{MOST_PENDING} questions are waiting for the user already")
        if not paced:
            self._count(server)
        if more := self._refused.pop(server, 0):
            self._logs.warn(server, f"{more} of its questions were refused; it is listened to again")

    async def pace(self, server: str, budget: TimeBudget) -> None:
        """Wait until the server may ask, and say so: a modern server's question, part of a request, is not refused.

        The wait counts against ``budget``. Raises RequestTimeout.
        """
        server = entry_of(server)
        wait = self._wait(server)
        if wait <= 0:
            return
        self._bus.alarm(f"{server} asked {PER_MINUTE} questions in a minute; the next one waits {wait:.0f} s")
        async with budget.spend():
            while (wait := self._wait(server)) > 0:  # noqa: ASYNC110 - the time is what it waits for
                await asyncio.sleep(wait)

    def mute(self, server: str) -> None:
        """Decline everything this server asks until mcphost exits, what is open too."""
        server = entry_of(server)
        self._muted.add(server)
        self.end(NOW_MUTED, lambda each: entry_of(each.server) == server)
        self._bus.publish(ServerChanged(server))

    def unmute(self, server: str) -> None:
        """Take the server's questions again."""
        self._muted.discard(entry_of(server))
        self._bus.publish(ServerChanged(server))

    @property
    def muted_servers(self) -> Sequence[str]:
        """The servers of which everything is declined."""
        return sorted(self._muted)

    def muted(self, server: str) -> bool:
        """True if everything that the server asks is declined."""
        return entry_of(server) in self._muted

    def leave(self, server: str) -> None:
        """Its connection is about to be closed."""
        self.end(LEAVING, lambda each: each.server == server)

    def call_ended(self, call: int) -> None:
        """The call has ended: withdraw its questions."""
        self.end(CALL_ENDED, lambda each: each.call == call)

    def shared(self, server: str) -> None:
        """Withdraw the open roots question of a server once a folder is shared with it."""
        self.end(SHARED, lambda each: (each.server, each.kind) == (server, "roots"))

    def end(self, resolution: Resolution, fits: Callable[[_Open], bool]) -> None:
        """Give the open questions that fit their answer now."""
        for each in self._open:
            if fits(each) and not each.resolution.done():
                each.resolution.set_result(resolution)

    @property
    def withdrawn(self) -> Sequence[WithdrawnQuestion]:
        """The questions that ended before the user answered, the last first."""
        return tuple(reversed(self._withdrawn))

    def forget_withdrawn(self, number: int) -> None:
        for each in [each for each in self._withdrawn if each.number == number]:
            self._withdrawn.remove(each)

    def waiting(self, server: str) -> int:
        """The number of open questions of this server."""
        return sum(each.server == server and bool(each.kind) for each in self._open)

    @contextmanager
    def _opened(self, server: str, call: int | None, kind: str = "") -> Iterator[_Open]:
        opened = _Open(server, call, asyncio.get_running_loop().create_future(), kind)
        self._open.add(opened)
        try:
            yield opened
        finally:
            self._open.discard(opened)

    @contextmanager
    def waits(self, call: int | None) -> Iterator[None]:
        """Count a question for a call while it waits for an answer."""
        if call is None:
            yield
            return
        self._count_for(call, 1)
        try:
            yield
        finally:
            self._count_for(call, -1)

    def _count_for(self, number: int, more: int) -> None:
        call = self._calls.calls.get(number)
        if call is not None:  # else it ended, and is forgotten by now
            call.questions += more
            self._bus.publish(CallChanged(number))

    async def _put(self, question: PendingQuestion, resolution: asyncio.Future[Resolution]) -> Answer:
        answer = await _first(asyncio.ensure_future(self._approver.ask(question)), resolution)
        if not isinstance(answer, Resolution):
            return answer
        if answer.outcome:
            self._keep_withdrawn(question, answer.outcome)
        return answer.answer

    def _keep_withdrawn(self, question: PendingQuestion, outcome: str) -> None:
        """Keep it for the user; of equal ones, only the last: a server may ask at every start."""
        fresh = WithdrawnQuestion(next(self._numbers), question, outcome, time.monotonic())
        equal = [each for each in self._withdrawn if _line(each) == _line(fresh)]
        for each in equal:
            self._withdrawn.remove(each)
        self._withdrawn.append(fresh)

    async def _settled(self, kind: str, question: PendingQuestion, answer: Answer) -> Answer:
        """The answer once it is written down: before anything of it is sent."""
        try:
            await self._audit.before(self._record(kind, question, _decision(answer)))
        except Declined as declined:
            return Answer(False, reason=str(declined), by="policy")
        return answer

    async def written(self, record: Mapping[str, Any]) -> None:
        """Write down an answer that was given elsewhere, before it is sent. Raises InputRefused if that must be."""
        try:
            await self._audit.before(record)
        except Declined as declined:
            raise InputRefused(ErrorCode.INTERNAL_ERROR, str(declined)) from None

    def note(self, record: Mapping[str, Any]) -> None:
        """Write down how a question ended elsewhere."""
        self._audit.note(record)

    def _note(self, kind: str, question: PendingQuestion, decision: dict[str, Any]) -> None:
        self._audit.note(self._record(kind, question, decision))

    @staticmethod
    def _record(kind: str, question: PendingQuestion, decision: dict[str, Any]) -> dict[str, Any]:
        return {"event": "question", "kind": kind, "server": question.server, "call": question.call, **decision}

    def _count(self, server: str) -> None:
        if self._wait(server) > 0:
            self._refuse(server, f"that is more than {PER_MINUTE} questions in a minute")
        now = time.monotonic()
        for idle in [each for each, times in self._times.items() if not times or now - times[-1] >= 60]:
            del self._times[idle]  # agents bring servers of any number of names
        self._times[server].append(now)

    def _wait(self, server: str) -> float:
        """The seconds until the server may ask again."""
        now, times = time.monotonic(), self._times[server]
        while times and now - times[0] >= 60:
            times.popleft()
        return 60 - (now - times[0]) if len(times) >= PER_MINUTE else 0.0

    def _refuse(self, server: str, why: str) -> NoReturn:
        if not self._refused.get(server):
            self._logs.warn(
                server, f"a question of the server was refused: {why}; further refusals are counted, not logged"
            )
        self._refused[server] = self._refused.get(server, 0) + 1
        raise InputRefused(ErrorCode.INTERNAL_ERROR, f"{why}; ask again later", quiet=True)


async def _first(task: asyncio.Future[_T], resolution: asyncio.Future[Resolution]) -> _T | Resolution:
    """The result of the task, or its resolution; the task has ended when this returns."""
    try:
        await asyncio.wait((task, resolution), return_when=asyncio.FIRST_COMPLETED)
        return resolution.result() if resolution.done() else task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _line(withdrawn: WithdrawnQuestion) -> tuple[object, ...]:
    """The parts that make up its line in a list."""
    question = withdrawn.question
    return question.server, question.about, question.call, withdrawn.outcome


def _decision(answer: Answer) -> dict[str, Any]:
    word = "accept" if answer.allow else "cancel" if answer.cancelled else "decline"
    return {"verdict": word, "by": answer.by, "lifetime": answer.lifetime.value, "reason": answer.reason}
