"""The tool calls of one agent: each is a tool call as all others, and this answers the agent.

A call that is not decided in the agent's time is answered so. Its question stays, and the agent's repeat joins it.

Specification: server/tools; 2025-11-25 basic/utilities/tasks; extensions/tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from math import inf
from typing import Any, Final

from mcphost.client.requests import BY_AGENT
from mcphost.errors import Declined, InputNotGiven, McphostError, ServerError, UnknownName
from mcphost.host.agents.connected import MOST_WAITING, TOO_MANY
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import refusal_words
from mcphost.host.agents.served import ServedAgent
from mcphost.host.endpoint.metadata import to_server
from mcphost.host.endpoint.questions import AgentQuestions
from mcphost.host.endpoint.requests import progress_report
from mcphost.host.endpoint.results import LargeResults
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.json_values import as_dict, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import TaskSupport, Tool
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.gate_answers import INPUT_REFUSED, OVERDUE, edit_note, noted
from mcphost.serving.heartbeat import Heartbeat
from mcphost.serving.negotiation import InvalidParamsError, RpcError
from mcphost.serving.served_request import Json, ServedRequest

GRANT_SECONDS: Final = 600.0
"""A late decision counts for the repeat of its call: an agent repeats at once, or the user no longer knows of it."""

LAPSED: Final = "the agent's time is over"
"""The rule by which a call does not run that was allowed too long ago."""

KEPT_CALLS: Final = 64
"""Calls that were answered before their decision; the oldest go first."""

NOT_SENT: Final = (
    "This call has not run yet: its server is starting, or waits for the user in mcphost. Call again with the same "
    "arguments."
)
CANCELLED: Final = "The user cancelled this call in mcphost. Do not repeat it unless the user asks for it."

_WAITING: Final = (CallState.ASKING, CallState.SIGNING_IN, CallState.VISITING)


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call as an agent asks for it."""

    entry: str
    server: str
    """The running server of that entry."""
    tool: Tool
    arguments: Mapping[str, Any]
    questions: AgentQuestions | None = None

    @property
    def key(self) -> object:
        """Equal for the repeat of a call."""
        return self.entry, self.tool.name, self.tool.canonical, canonical(self.arguments)


@dataclass(frozen=True, slots=True)
class CallContext:
    """The services that the calls of a session use."""

    begin: Callable[[CallRequest], ToolCall]
    asks: Callable[[int], bool]
    """True if the user is asked about the call of this number now."""
    agent: Callable[[], AgentFacts]
    shown: ServedAgent
    answer_within: Callable[[], float | None]
    """The configured seconds for an answer; None: by the agent."""
    result: Callable[[AskedCall, ServedRequest, Mapping[str, Any]], Mapping[str, Any]]
    """Returns a server's result as the agent gets it."""
    failure: Callable[[AskedCall, ServedRequest, ServerError], RpcError]
    """Returns a server's error as the agent gets it."""
    results: LargeResults
    warn: Callable[[str, str], None]
    """Logs a sentence about a server."""
    start: Callable[[Coroutine[Any, Any, None], str], object]
    """Runs work in the background."""


class EndpointCalls:
    """The calls of one session."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._running: dict[int, _EndpointCall] = {}
        self._asked: set[int] = set()
        """The numbers of those about which the user is asked."""
        self._late: dict[object, _EndpointCall] = {}
        """Calls whose agent was answered before the decision."""

    def begin(self, request: ServedRequest, asked: AskedCall) -> None:
        """Carry a call out. Raises RpcError."""
        _check_task(request, asked.tool)
        late = self._late.pop(asked.key, None) if self._late else None
        if late is not None and not late.lapsed:
            late.wait_for(request)
            return
        if refusal := self._context.shown.refusal:
            request.finish(_words(refusal))
            return
        call = _EndpointCall(self._context, asked, self._keep_late)
        self._running[call.begin(request)] = call

    def call_changed(self, number: int) -> None:
        """A tool call has another state, be it one of this session or not."""
        call = self._running.get(number)
        if call is None:
            return
        if not self._context.asks(number):
            self._asked.discard(number)
        elif number not in self._asked:
            self._asked.add(number)
            if len(self._asked) > MOST_WAITING:  # calls may come all at once
                call.decline(TOO_MANY)
        call.changed()
        if call.ended:
            del self._running[number]
            self._asked.discard(number)

    def decline(self, number: int, words: str) -> None:
        """See `mcphost.host.agents.served.ServedPort`."""
        if (call := self._running.get(number)) is not None:
            call.decline(words)

    def runs_at(self, server: str) -> list[ServedRequest]:
        """The requests whose calls this server has."""
        found = (call for call in self._running.values() if call.asked.server == server and call.sent)
        return [call.request for call in found if call.request is not None]

    def close(self) -> None:
        """Cancel all calls, since the agent is gone."""
        for call in (*self._running.values(), *self._late.values()):
            call.close()
        self._running.clear()
        self._late.clear()

    def _keep_late(self, call: _EndpointCall) -> None:
        self._late[call.asked.key] = call
        if len(self._late) > KEPT_CALLS:
            self._late.pop(next(iter(self._late))).close()


class _EndpointCall:
    """One call, with the agent's request that waits for it."""

    def __init__(self, context: CallContext, asked: AskedCall, late: Callable[[_EndpointCall], None]) -> None:
        self.asked = asked
        self.request: ServedRequest | None = None
        """None while the agent does not wait."""
        self._context, self._became_late = context, late
        self._call: ToolCall
        self._heartbeat: Heartbeat
        self._beats = False
        """True if the agent gave a token for progress."""
        self._answer_at = self._doubt_at = inf
        self._timer: asyncio.TimerHandle | None = None
        self._wanted = asyncio.Event()
        """Set while the agent waits."""
        self._declined = ""
        self._closed = False
        self._loop = asyncio.get_running_loop()

    @property
    def ended(self) -> bool:
        return self._closed or self._call.finished.is_set()

    @property
    def lapsed(self) -> bool:
        """True if its end is too long ago to answer a repeat."""
        error, ended_at = self._call.error, self._call.ended_at
        unclaimed = isinstance(error, Declined) and error.rule == LAPSED
        return unclaimed or (ended_at is not None and time.monotonic() > ended_at + GRANT_SECONDS)

    @property
    def sent(self) -> bool:
        return self._call.sent_at is not None

    def begin(self, request: ServedRequest) -> int:
        """Begin the call for this request; its number."""
        asked, agent = self.asked, self._context.agent()
        meta = as_dict(request.params.get("_meta"))
        within, key = self._attend(request), request.key
        self._call = self._context.begin(
            CallRequest(
                asked.server,
                asked.tool.name,
                asked.arguments,
                agent.origin,
                as_task="task" in request.params,
                agent=agent,
                meta=to_server(meta, asked.tool.received),
                on_progress=self._progressed,
                questions=asked.questions,
                hold=self._hold,
            )
        )
        self._context.shown.began(self._call, "" if key is None else key, within)
        self._start_task(request)
        self.changed()
        return self._call.number

    def wait_for(self, request: ServedRequest) -> None:
        """The agent has repeated the call, and waits for it again."""
        within, key = self._attend(request), request.key
        if not self.ended:
            self._context.shown.repeated(self._call.number, "" if key is None else key, within)
        self._start_task(request)
        self.changed()

    def changed(self) -> None:
        """The call has another state: answer the agent if it has ended, else wait with it."""
        request, call = self.request, self._call
        if call.finished.is_set():
            self._rest()
            if request is not None:
                self.request = None
                self._answer(request)
            return
        if request is None:
            return
        if call.task is not None and request.revision.modern:
            self._start_task(request, wanted=True)
        waits = call.shown_state in _WAITING
        if not waits:
            self._rest()
        elif self._timer is None:
            self._wake_later()

    def decline(self, words: str) -> None:
        """End the call, and tell the agent in these words."""
        self._declined = words
        self._call.cancel()

    def close(self) -> None:
        """Cancel the call, since no answer is awaited."""
        self._closed = True
        self.request = None
        self._rest()
        self._call.cancel(BY_AGENT)

    # The agent's wait.

    def _attend(self, request: ServedRequest) -> float | None:
        """Let this request wait for the call; in how many seconds it is answered, decided or not."""
        self.request = request
        if self.asked.questions is not None:
            self.asked.questions.request = request
        request.on_cancel = self.close
        now, limits = self._loop.time(), self._context.shown.limits
        self._heartbeat, self._beats = Heartbeat(None, now), request.has_token
        within = limits.seconds(self._context.answer_within(), progress=self._beats)
        self._answer_at = now + within
        self._doubt_at = inf if self._beats else now + limits.silence
        self._wanted.set()
        return within if within < inf else None

    def _wake_later(self) -> None:
        """Wake when the next sign of life or the answer is due."""
        awaited = self.request is not None and self.request.task_id is None
        due = min(self._answer_at, self._doubt_at) if awaited else inf
        if self._beats:
            due = min(due, self._heartbeat.next_at)
        if due < inf:
            self._timer = self._loop.call_at(due, self._wake)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        request, now = self.request, self._loop.time()
        if request is None or self._call.shown_state not in _WAITING:
            return
        if now >= self._answer_at and request.task_id is None and not self.sent:
            self._start_task(request, wanted=True)
            if request.task_id is None:
                self._answer_late(request)
                return
        if now >= self._doubt_at:
            self._doubt_at = inf
            self._context.shown.doubted(self._call.number)
        if self._beats and now >= self._heartbeat.next_at:
            report = self._heartbeat.report(now)
            if report is not None and not request.asks:  # else it is the agent that is waited for
                request.progress(report)
        if self.sent:
            self._answer_at = inf
        self._wake_later()

    def _answer_late(self, request: ServedRequest) -> None:
        asks, self.request = self._context.asks(self._call.number), None
        self._wanted.clear()
        request.on_cancel = _nothing
        self._context.shown.overdue(self._call.number)
        request.finish(_words(OVERDUE if asks else NOT_SENT))
        self._became_late(self)

    async def _hold(self) -> None:
        """Wait until the agent repeats an overdue call: it knows that nothing has run."""
        if self._wanted.is_set():
            return
        try:
            async with asyncio.timeout(GRANT_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            words = "the agent did not repeat the call in the time for which the decision holds"
            raise Declined(words, by="mcphost", rule=LAPSED, reason=words) from None

    def _start_task(self, request: ServedRequest, *, wanted: bool = False) -> None:
        """Answer with a task if the client asked for one, or if it is ``wanted`` and the client takes it."""
        asked_for = not request.revision.modern and "task" in request.params
        if request.task_id is None and request.may_start_task and (wanted or asked_for):
            with suppress(RpcError):  # it has too many: it waits for the end
                request.start_task()

    def _progressed(self, progress: Progress) -> None:
        request = self.request
        if request is not None and self._heartbeat.passes(progress.progress):
            request.progress(progress_report(progress))

    # The end.

    def _answer(self, request: ServedRequest) -> None:
        call, error = self._call, self._call.error
        if self._declined:
            request.finish(_words(self._declined))
        elif call.outcome is not None:
            result = self._context.result(self.asked, request, call.outcome.raw)
            if call.validity is not None and call.validity.problems:
                problem = call.validity.problems[0]
                what = f"{problem.path or 'the result'}: {problem.message}"
                words = f"an agent got a result of {self.asked.tool.name} that does not fit its output schema: {what}"
                self._context.warn(self.asked.server, words)
            if call.edited:
                result = noted(result, edit_note(call.arguments))
            if self._context.results.shortens:
                self._context.start(self._finish_short(request, result), "shorten a result")
            else:
                request.finish(result)
        elif error is None:
            request.finish(_words(CANCELLED))
        elif isinstance(error, ServerError):
            request.fail(self._context.failure(self.asked, request, error))
        elif isinstance(error, UnknownName):
            request.fail(unknown_tool(str(request.params.get("name"))))
        else:
            request.finish(_words(_words_of(error, self.asked.tool)))

    async def _finish_short(self, request: ServedRequest, result: Mapping[str, Any]) -> None:
        request.finish(await self._context.results.shortened(self.asked.tool.name, result, request.revision))


def unknown_tool(name: str) -> RpcError:
    return InvalidParamsError(f"Unknown tool: {name[:200]}")


def _check_task(request: ServedRequest, tool: Tool) -> None:
    """Raises RpcError if the tool cannot be called in the way that the client asks for."""
    if not request.revision.tasks:
        return
    as_task, support = "task" in request.params, tool.task_support
    if as_task and support is TaskSupport.FORBIDDEN:
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, f"{tool.name} does not run as a task.")
    if not as_task and support is TaskSupport.REQUIRED:
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, f"{tool.name} only runs as a task.")


def _words(text: str) -> Json:
    """A result of a call that has not run: an error would be shown to the model as a failure of the program."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _words_of(error: McphostError, tool: Tool) -> str:
    if isinstance(error, Declined):
        return refusal_words(tool.name, error)
    return INPUT_REFUSED if isinstance(error, InputNotGiven) else f"mcphost: {error}"


def _nothing() -> None:
    pass
