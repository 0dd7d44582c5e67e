"""The state of one tool call: progress, outcome and error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from mcphost.client.requests import BY_USER
from mcphost.client.tasks import GivenInputs
from mcphost.errors import Declined, InputNotGiven, McphostError, RequestTimeout
from mcphost.host.consent.provenance import NOTHING, Provenance
from mcphost.host.tool_calls.validation import ValidationResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, size_text

if TYPE_CHECKING:
    from mcphost.client.rounds import InputRound
    from mcphost.client.server_requests import InputRequest
    from mcphost.host.agents.facts import AgentFacts
    from mcphost.host.consent.repetition import Repetition
    from mcphost.protocol.models.progress import Progress
    from mcphost.protocol.models.tasks import Task
    from mcphost.protocol.models.tools import CallToolResult


NOTHING_SENT: Final = "nothing was sent"
"""The phrase by which an error says that the server did not get the call."""


class CallState(Enum):
    ASKING = "waiting for your answer"
    SIGNING_IN = "waiting for a sign-in"
    VISITING = "waiting for you to visit a page"
    RUNNING = "running"
    CANCELLING = "cancelling"
    DONE = "done"
    FAILED = "failed"
    """The tool ran and says that it failed."""
    ERROR = "error"
    """The protocol, the wire or the arguments failed: there is no result."""
    DECLINED = "declined"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"

    @property
    def ended(self) -> bool:
        return self not in _UNDER_WAY


_UNDER_WAY = (
    CallState.ASKING, CallState.SIGNING_IN, CallState.VISITING, CallState.RUNNING, CallState.CANCELLING,
)  # fmt: skip


class ArgumentReferences(NamedTuple):
    """The ``${…}`` references in the arguments of a call. Only the server gets their values: all else shows them."""

    texts: tuple[str, ...]
    """Each reference as it is written."""
    places: frozenset[tuple[str, str]]
    """The whole texts that hold them, each with the name of its argument."""
    resolve: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    """Returns the arguments, perhaps edited since, with their values. Raises ConfigError."""


class CallQuestions(Protocol):
    """Answers what a server asks in one call, in place of mcphost's own services."""

    def takes(self, request: InputRequest) -> bool:
        """True if the answer to this request comes from here."""

    def adds_own(self, request: InputRequest) -> bool:
        """True if mcphost's own answer is added to it."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the result. Raises InputRefused; cancelled when the server withdraws the request."""

    def completed(self, elicitation: str) -> None:
        """The server says that this page is done with; perhaps none of the call's."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    server: str
    tool: str
    arguments: Mapping[str, Any]
    origin: str = "you"
    """The asking party."""
    timeout: float | None = None
    """Seconds without progress; None: as configured."""
    as_task: bool = False
    """Run it as a task where the tool allows both ways? One that must run as a task does in any case."""
    task: str | None = None
    """The id of a task that was begun before: nothing is run, its result is collected, and it outlives the call."""
    outside: str = ""
    """The outside source that the asking model has read; a remembered approval is then asked about again."""
    skill: str = ""
    """The skills that the asking model acts on, in words; remembered approvals and rules are then asked about again."""
    provenance: Provenance = NOTHING
    """Parts of the arguments copied from text that the receiving server never saw."""
    composed: bool = False
    """True if the user has just written the arguments."""
    references: ArgumentReferences | None = None
    """The references in the arguments; None: a ``${`` in them is plain text."""
    recalled: bool = False
    """True if the arguments are those of an earlier run, whose secrets are masked."""
    repetition: Repetition | None = None
    """The consent to further runs of the call; None: it runs once."""
    answer_before: Mapping[str, Any] | None = None
    """The answer of the run before, if the call is repeated."""
    agent: AgentFacts | None = None
    """The agent that calls; None: mcphost itself."""
    meta: Mapping[str, Any] | None = None
    """Members of ``_meta`` that the server gets."""
    on_progress: Callable[[Progress], None] | None = None
    """Takes each report of progress."""
    questions: CallQuestions | None = None
    """Answers what the server asks in this call, as far as it takes that."""
    unchecked: bool = False
    """True if arguments that do not fit the tool's schema are sent, too: the server judges them."""
    hold: Callable[[], Awaitable[None]] | None = None
    """Awaited once the call is allowed; it is sent when that returns."""


class ToolCall:
    """A call under way or ended. Times are seconds of the host's monotonic clock."""

    def __init__(self, number: int, request: CallRequest, clock: Callable[[], float]) -> None:
        self.number = number
        self.request = request
        self.arguments = request.arguments
        """The arguments that are sent, but for the values of references: the user may have changed them."""
        self.identity = ""
        """The program or address of its server; empty until it is known."""
        self.state = CallState.ASKING
        self.allowed = False
        """True if policy or the user allowed it."""
        self.decided_by = ""
        """``user`` or ``policy``, once it is decided."""
        self.decided_at: float | None = None
        self.progress: Progress | None = None
        self.task: Task | None = None
        """The task as last reported; None if the call is answered directly."""
        self.interrupted = False
        """True if the session ended while its task goes on, which the next session then resumes."""
        self.rounds: list[InputRound] = []
        """The rounds of input that a modern server needed, oldest first."""
        self.questions = 0
        """Questions that its server asks for it and that wait for an answer."""
        self.stopping = False
        """True if the server was asked to stop its task."""
        self.leaving = False
        """True if its task goes on when the wait for it ends."""
        self.given = GivenInputs()
        """The inputs given to its task, in whichever session."""
        self.sign_in: int | None = None
        """The number of the sign-in that it waits for, or waited for last."""
        self.outcome: CallToolResult | None = None
        self.error: McphostError | None = None
        self.same_as_before = False
        """True if the call is repeated and its answer is that of the run before, apart from ``_meta``."""
        self.validity: ValidationResult | None = None
        """The validation of the structured content against the tool's output schema; None without one."""
        self.time = time.time()
        """When it was asked for, in seconds since 1970."""
        self.asked_at = clock()
        self.sent_at: float | None = None
        self.ended_at: float | None = None
        self.finished = asyncio.Event()
        """Set once it ended and that is written down."""
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def needs(self) -> Iterator[str]:
        """The methods that a modern server needed in each round, and the size of the state that it sent along."""
        for each in self.rounds:
            methods = [show_line(needed.method, 60) for needed in each.needed.inputs.values()]
            state = each.needed.state
            size = "" if state is None else f" · state of {size_text(len(state.encode('utf-8', 'replace')))}"
            yield f"{', '.join(methods) or 'nothing but another attempt'}{size}"

    @property
    def edited(self) -> bool:
        """True if the user changed the arguments before they were sent."""
        return self.arguments != self.request.arguments

    @property
    def asks(self) -> bool:
        """True if its server waits for an answer before it goes on."""
        return self.state is CallState.RUNNING and self.questions > 0

    @property
    def shown_state(self) -> CallState:
        """Where it stands for a person: a call whose server waits for an answer does not run."""
        return CallState.ASKING if self.asks else self.state

    @property
    def doing(self) -> str:
        """The state in words; while a task runs, in those of its server."""
        if self.state is CallState.RUNNING and not self.asks and self.task is not None:
            words = "taken up again in the next session" if self.interrupted else self.task.words
            return f"{self.state.value} as a task, {words}"
        return self.shown_state.value

    @property
    def elapsed(self) -> float:
        """Seconds since it was sent, or since it was asked for."""
        began = self.asked_at if self.sent_at is None else self.sent_at
        return (self._clock() if self.ended_at is None else self.ended_at) - began

    def waits_for(self, server: str, task: str) -> bool:
        here = self.task is not None and (self.request.server, self.task.task_id) == (server, task)
        return here and not self.state.ended

    def attach(self, task: asyncio.Task[None]) -> None:
        """The task that carries the call out."""
        self._task = task

    def cancel(self, reason: str = BY_USER) -> None:
        """Stop it: the question is withdrawn, or the server is asked to stop. An ended call stays as it is.

        ``reason`` is one of `mcphost.client.requests`.
        """
        if self._task is None or self.state.ended or self.state is CallState.CANCELLING:
            return
        self.state = CallState.CANCELLING
        self._task.cancel(reason)

    def leave(self) -> None:
        """Stop waiting for it, unless it is being cancelled. Its task goes on and can be collected in another run."""
        self.leaving = self.task is not None and self.state is not CallState.CANCELLING
        self.cancel()

    def waits_for_sign_in(self, number: int) -> None:
        """The server refused it before doing anything; it waits for a sign-in."""
        self.sign_in, self.state = number, CallState.SIGNING_IN

    @contextmanager
    def visiting(self) -> Iterator[None]:
        """Show the call as visiting while its server waits for the user to complete a page."""
        before = self.state
        if before is not CallState.CANCELLING:
            self.state = CallState.VISITING
        try:
            yield
        finally:
            if self.state is CallState.VISITING:
                self.state = before

    def decided(self, by: str) -> None:
        """Note that it was allowed."""
        self.allowed, self.decided_by, self.decided_at = True, by, self._clock()

    def begins_anew(self) -> None:
        """Another attempt begins, with consent asked for again."""
        self.sent_at, self.progress = None, None
        self.decided_by, self.decided_at = "", None
        if self.state is not CallState.CANCELLING:
            self.state = CallState.ASKING

    def sent(self, arguments: Mapping[str, Any]) -> None:
        """Note that it was allowed and is sent now."""
        self.arguments, self.sent_at, self.state = arguments, self._clock(), CallState.RUNNING

    def answered(self, result: CallToolResult, validity: ValidationResult | None) -> None:
        self.outcome, self.validity = result, validity
        before = self.request.answer_before
        self.same_as_before = before is not None and _without_meta(before) == _without_meta(result.raw)
        self._end(CallState.FAILED if result.is_error else CallState.DONE)

    def failed(self, error: McphostError) -> None:
        """There will be no answer."""
        self.error = error
        if isinstance(error, Declined):
            self.decided_by, self.decided_at = error.by, self._clock()
        self._end(_state_of(error))

    def cancelled(self) -> None:
        """Note that it was stopped on request."""
        self._end(CallState.CANCELLED)

    async def result(self) -> CallToolResult:
        """Wait for the answer. Raises what stopped it, or CancelledError when it was cancelled."""
        if self._task is not None:
            await self.finished.wait()
        if self.error is not None:
            raise self.error
        if self.outcome is None:
            raise asyncio.CancelledError
        return self.outcome

    async def ended(self) -> None:
        """Wait for the end; never raises its error."""
        if self._task is not None:
            await self.finished.wait()

    def _end(self, state: CallState) -> None:
        self.state, self.ended_at = state, self._clock()


def _without_meta(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "_meta"}


def _state_of(error: McphostError) -> CallState:
    if isinstance(error, Declined | InputNotGiven):
        return CallState.DECLINED
    if isinstance(error, RequestTimeout):
        return CallState.TIMED_OUT
    return CallState.ERROR
