"""The rules of a gate: what passes between an agent and its server, what waits, and what mcphost says itself.

An `AgentGate` is fed with lines, decisions and the time, and returns what to do. Everything passes as it came, in its
order, except for ``tools/call``, which waits for a decision.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from itertools import count
from math import inf
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from mcphost.errors import InvalidResult
from mcphost.json_values import as_dict, as_text, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.results import ServerInput, read_inputs
from mcphost.protocol.lifecycle.revisions import (
    ASKS_FOR,
    MAY_NEED_INPUT,
    META_PREFIX,
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    Revision,
    find_revision,
)
from mcphost.protocol.limits import (
    INPUT_ROUNDS,
    INPUTS_IN_A_ROUND,
    LIST_SECONDS,
    PENDING_SERVER_REQUESTS,
    REQUEST_STATE_BYTES,
)
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.agents import limits_of
from mcphost.serving.gate_answers import (
    DECLINED,
    INPUT_REFUSED,
    NOT_LISTED,
    OVERDUE,
    TOO_MANY,
    TOO_MUCH_INPUT,
    UNSTEADY,
    edit_note,
    failure,
    refusal,
    task_of,
    unanswered,
    with_note,
)
from mcphost.serving.gate_lines import (
    GateLine,
    LineRefused,
    Message,
    MessageId,
    answered_in,
    encode,
    id_of,
    is_disguised,
    is_read_otherwise,
    read_agent_line,
    read_server_line,
)
from mcphost.serving.heartbeat import Heartbeat
from mcphost.serving.ports import GatedCall, GateDecision
from mcphost.serving.tool_listing import KnownTool, ListPage, ToolListing

CallEnd = Literal["done", "failed", "cancelled", "lost"]


class ToServer(NamedTuple):
    """Write these bytes to the server."""

    data: bytes
    ours: bool = False
    """True if they are not what the agent wrote."""


class ToAgent(NamedTuple):
    """Write these bytes to the agent."""

    data: bytes
    ours: bool = False
    """True if they are not what the server wrote."""


class Ask(NamedTuple):
    """Get a decision for this call; `AgentGate.decide` takes it, now or later.

    The same number again: the agent has repeated an overdue call, and waits for the open question.
    """

    call: GatedCall


class Withdraw(NamedTuple):
    """The call needs no decision any more."""

    call: int
    reason: str


class Overdue(NamedTuple):
    """The agent was answered that the call is not decided; the question stays, and an approval counts once."""

    call: int


class Doubt(NamedTuple):
    """The agent may have given up without a word."""

    call: int


class Sent(NamedTuple):
    """The call goes to the server: also a later round of it, and the repeat of an overdue one."""

    call: int


class Finished(NamedTuple):
    """A call that was asked about has its end; ``seconds`` are those of the server."""

    call: int
    state: CallEnd
    seconds: float


class AskInbox(NamedTuple):
    """Get an answer to a question of the server; `AgentGate.reply` takes it."""

    number: int
    method: str
    params: Mapping[str, Any]
    call: int | None
    """The call that it belongs to, if that is certain."""


class DropInbox(NamedTuple):
    """The server's question needs no answer any more."""

    number: int


class AgentIntroduced(NamedTuple):
    """The agent has said who it is; it may do so again."""

    name: str
    version: str
    era: Literal["legacy", "modern"]
    revision: str


class Note(NamedTuple):
    """Write this sentence to stderr."""

    text: str


GateAction = (
    ToServer | ToAgent | Ask | Withdraw | Overdue | Doubt | Sent | Finished | AskInbox | DropInbox | AgentIntroduced
    | Note
)  # fmt: skip
Questions = Literal["agent", "here", "both"]


HELD_CALLS: Final = 100
"""Calls that wait, and questions whose call was answered: more than an agent makes at once, or a person decides."""

HELD_BYTES: Final = 64_000_000
"""Bytes of the calls that wait: four of the longest."""

OPEN_REQUESTS: Final = 10_000
"""Requests of one side without an answer: whoever has more has stopped reading."""

KEPT_ANSWERS: Final = 64
"""Decisions for a repeat, and rounds that the agent may continue: the oldest go first."""

GRANT_SECONDS: Final = 600.0
"""A late decision counts for the repeat of its call: an agent repeats at once, or the user no longer knows of it."""

REPEATED_QUESTIONS: Final = 3
"""Questions for one call whose definition changes while it waits."""

NAME_LENGTH: Final = 200
"""Characters of what an agent says of itself."""

_CALL_MEMBERS: Final = ("name", "arguments", "_meta", "inputResponses", "requestState", "task")
_VERSION: Final = f"{META_PREFIX}protocolVersion"
_CLIENT_INFO: Final = f"{META_PREFIX}clientInfo"
_CAPABILITIES: Final = f"{META_PREFIX}clientCapabilities"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class GateOptions:
    agent: str = ""
    """The agent's name by ``--as``; its own claim counts where this is empty."""
    answer_within: float | None = None
    """Seconds after which a call is answered that is not decided; None: by the agent's name; infinite: never."""
    questions: Questions = "agent"
    answers: ClientCapabilities = ClientCapabilities()
    """The features that mcphost answers in the agent's place, unless ``questions`` is ``agent``."""


class _Memory(Generic[Value]):
    """Values that are taken once; the oldest go first."""

    def __init__(self, most: int, forgotten: Callable[[Value], None] = lambda value: None) -> None:
        self._most, self._forgotten = most, forgotten
        self._values: OrderedDict[object, Value] = OrderedDict()

    def put(self, key: object, value: Value) -> None:
        self.drop(key)
        self._values[key] = value
        if len(self._values) > self._most:
            self._forgotten(self._values.popitem(last=False)[1])

    def get(self, key: object) -> Value | None:
        return self._values.get(key)

    def take(self, key: object) -> Value | None:
        return self._values.pop(key, None)

    def drop(self, key: object) -> None:
        if (value := self.take(key)) is not None:
            self._forgotten(value)

    def clear(self) -> None:
        for key in list(self._values):
            self.drop(key)

    def items(self) -> list[tuple[object, Value]]:
        return list(self._values.items())


@dataclass(slots=True)
class _InputRound:
    """Inputs that mcphost gets for a modern server."""

    state: str | None
    keys: dict[int, str]
    """Of the inputs that are open, by the numbers of their questions."""
    answers: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Request:
    """A request of the agent that has no answer."""

    id: MessageId
    method: str
    modern: bool = False
    revision: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    """The capabilities that mcphost declared in the agent's place."""
    page: ListPage | None = None
    task: str = ""
    """The id of the task whose result it asks for."""
    call: _Call | None = None
    held: bool = False
    heartbeat: Heartbeat | None = None
    message: Message | None = None
    """As it went to the server, where a round of input may follow."""
    own_id: str | None = None
    """The id of the round that is at the server."""
    round: _InputRound | None = None
    rounds: int = 0


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits, or that was sent."""

    number: int
    request: _Request | None
    """None once the agent was answered that the call is not decided."""
    message: Message
    line: bytes
    as_written: bool
    """True if the line is the agent's own."""
    tool: str
    arguments: dict[str, Any]
    arguments_digest: bytes
    list_until: float
    answer_at: float
    doubt_at: float
    state: Literal["listing", "asked", "decided", "sent"] = "listing"
    definition: str = ""
    """The definition that the question shows, as text; empty: none."""
    epoch: int = -1
    """That of the listing from which the definition is."""
    question: GatedCall | None = None
    questions: int = 0
    decision: GateDecision = GateDecision(False)
    before: _Call | None = None
    """The call that this one continues with an answer to the server's need for input."""
    sent_at: float = 0.0
    note: str = ""

    @property
    def grant_key(self) -> object:
        return (self.tool, self.definition, self.arguments_digest)

    def release(self) -> None:
        """Keep less of a call that no longer waits: its end, or its repeat, may be hours away."""
        self.message, self.arguments, self.line, self.question = {}, {}, b"", None


class _InboxQuestion(NamedTuple):
    """A question that waits for `AgentGate.reply`; either of a legacy server, or of a round."""

    asked: AskInbox
    server_id: MessageId | None
    request: _Request | None


class AgentGate:
    """The rules between one agent and one server. Not thread-safe.

    Each method returns what to do, in order. ``now`` is in seconds of a clock that never goes back.
    """

    def __init__(self, options: GateOptions) -> None:
        self.options = options
        self._out: list[GateAction] = []
        self._noted: set[str] = set()
        self._prefix = f"mcphost-{os.urandom(8).hex()}:"
        self._own_ids = count(1)
        self._numbers = count(1)
        self._inbox_numbers = count(1)

        self._open: dict[MessageId, _Request] = {}
        """The agent's requests by their ids."""
        self._cancelled: OrderedDict[MessageId, None] = OrderedDict()
        """Ids of cancelled requests, which the server may still answer."""
        self._unsent: OrderedDict[MessageId, None] = OrderedDict()
        """Ids of calls that the server never got; some agents cancel a call after its answer, or twice."""
        self._server_open: OrderedDict[MessageId, None] = OrderedDict()
        """Ids of the server's requests that the agent may answer."""
        self._own: dict[str, _Request | None] = {}
        """The requests by mcphost: a round of the agent's request; None: of the listing."""
        self._tokens: dict[MessageId, _Request] = {}

        self._calls: dict[int, _Call] = {}
        """Those that wait, and those whose question is still open."""
        self._sent: dict[int, _Call] = {}
        self._grants: _Memory[tuple[_Call, float]] = _Memory(KEPT_ANSWERS, self._end_grant)
        """Late decisions, with the time at which they lapse."""
        self._rounds: _Memory[_Call] = _Memory(KEPT_ANSWERS, self._end_unanswered)
        """Allowed calls that the server cannot answer without input from the agent."""
        self._inbox: dict[int, _InboxQuestion] = {}
        self._task_notes: _Memory[str] = _Memory(KEPT_ANSWERS)
        """The notes about edited arguments for results that tasks will bring, by the ids of the tasks."""

        self._listing = ToolListing()
        self._era: Literal["", "opening", "legacy", "modern"] = ""
        self._features: frozenset[str] = frozenset()
        """The capabilities that mcphost declared in the agent's place with ``initialize``."""
        self._claim = ""
        self._introduced: AgentIntroduced | None = None
        self._agent_gone = False

    # In.

    @property
    def wake_at(self) -> float | None:
        """The time at which `wake` must be called; None: not before something else happens."""
        return min(self._times(), default=None)

    def _times(self) -> Iterator[float]:
        for call in self._calls.values():
            if call.request is not None:
                yield from (each for each in (call.answer_at, call.doubt_at) if each < inf)
                if call.state == "listing":
                    yield call.list_until
        yield from (heartbeat.next_at for heartbeat in self._beating())
        yield from (lapses for _, (_, lapses) in self._grants.items())
        if self._listing.ends_at is not None:
            yield self._listing.ends_at

    @property
    def waiting(self) -> Sequence[GatedCall]:
        """The calls that were asked about and are not decided, to ask another approver."""
        asked = (call.question for call in self._calls.values() if call.state == "asked")
        return [question for question in asked if question is not None]

    @property
    def inbox(self) -> Sequence[AskInbox]:
        """The server's questions that wait for `reply`."""
        return [question.asked for question in self._inbox.values()]

    def agent_line(self, line: bytes, now: float, *, whole: bool = True) -> list[GateAction]:
        """Take a line of the agent as it came, with its newline, or the rest before the end of the stream.

        ``whole`` is False for each piece of a line that is too long.
        """
        if not whole:
            self._note("the agent wrote a line that is too long; it was not passed on")
        elif line.strip():
            try:
                read = read_agent_line(line)
            except LineRefused as refused:
                self._note(f"the agent wrote a line that was not passed on: {refused}")
                if refused.owed:
                    code = ErrorCode.INVALID_REQUEST if refused.is_json else ErrorCode.PARSE_ERROR
                    self._refuse(refused.request_id, code, f"mcphost did not pass this on: {refused}")
            else:
                self._pass(read, line, self._from_agent, ToServer, now)
        return self._done(now) if line.endswith(b"\n") or not whole else self.agent_closed(now)

    def server_line(self, line: bytes, now: float, *, whole: bool = True) -> list[GateAction]:
        """Take a line of the server, as `agent_line` does."""
        if not whole:
            self._unreadable("a line is too long", answered_in(line), now)
        elif line.strip():
            try:
                read = read_server_line(line)
            except LineRefused as refused:
                self._unreadable(str(refused), refused.request_id, now)
            else:
                self._pass(read, line, self._from_server, ToAgent, now)
        return self._done(now) if line.endswith(b"\n") or not whole else self.server_closed(now)

    def agent_closed(self, now: float) -> list[GateAction]:
        """The agent's stream ended: all that waits is withdrawn."""
        self._close("the agent closed its connection")
        self._agent_gone = True
        return self._done(now)

    def server_closed(self, now: float) -> list[GateAction]:
        """The server's stream ended: nothing can be sent any more."""
        self._close("the server has ended")
        for call in list(self._sent.values()):
            self._end(call, "lost", now)
        self._open.clear()
        self._tokens.clear()
        return self._done(now)

    def decide(self, call: int, decision: GateDecision, now: float) -> list[GateAction]:
        """Take the decision of a call; one that is not waited for has no effect."""
        found = self._calls.get(call)
        if found is None or found.state != "asked":
            return []
        found.decision = decision
        if found.request is None:
            del self._calls[call]
            found.release()
            self._grants.put(found.grant_key, (found, now + GRANT_SECONDS))
        elif decision.allow and (found.epoch != self._listing.epoch or self._lists_again(decision, now)):
            found.state = "decided"  # until the definition is known to be the one that was shown
        else:
            self._apply(found, now)
        return self._done(now)

    def _lists_again(self, decision: GateDecision, now: float) -> bool:
        """Make the listing stale if it is too old for this decision; False if it is not, or if it cannot be renewed."""
        within = decision.listed_within
        if within is None or not self._listing.is_older(within, now) or self._era not in ("legacy", "modern"):
            return False
        self._listing.change()
        return True

    def reply(
        self, number: int, now: float, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None = None
    ) -> list[GateAction]:
        """Take the answer to a server's question: a result, or a JSON-RPC error with code and message."""
        question = self._inbox.pop(number, None)
        if question is None:
            return []
        if question.server_id is not None:
            outcome = {"result": result} if error is None else {"error": error}
            self._out.append(ToServer(encode({"jsonrpc": "2.0", "id": question.server_id, **outcome}), ours=True))
        elif question.request is not None and question.request.round is not None:
            self._take_input(question.request, question.request.round, number, result, now)
        return self._done(now)

    def wake(self, now: float) -> list[GateAction]:
        """Do what is due: heartbeats, answers before the agent's limit, ends of waits."""
        ends_at = self._listing.ends_at
        if ends_at is not None and now >= ends_at:
            self._listing.give_up()
            self._settle_all_unlisted(now)
        for key, (_, lapses) in self._grants.items():
            if now >= lapses:
                self._grants.drop(key)
        for call in list(self._calls.values()):
            if call.request is not None:
                self._check_limits(call, now)
        for heartbeat in self._beating():
            if now >= heartbeat.next_at and (beat := heartbeat.beat(now)) is not None:
                self._out.append(ToAgent(encode(beat), ours=True))
        return self._done(now)

    def _check_limits(self, call: _Call, now: float) -> None:
        if now >= call.answer_at:
            self._answer_late(call, now)
        elif now >= call.doubt_at:
            call.doubt_at = inf
            if call.state == "asked":
                self._out.append(Doubt(call.number))

    # Lines.

    def _pass(
        self,
        read: GateLine,
        line: bytes,
        rule: Callable[[Message, bool, bytes | None, float], Message | None],
        onward: type[ToServer | ToAgent],
        now: float,
    ) -> None:
        whole = None if read.is_batch else line
        kept = [rule(message, read.exact, whole, now) for message in read.messages]
        if all(after is before for after, before in zip(kept, read.messages, strict=True)):
            self._out.append(onward(line))
        elif passed := [each for each in kept if each is not None]:
            self._out.append(onward(encode(passed if read.is_batch else passed[0]), ours=True))

    def _done(self, now: float) -> list[GateAction]:
        self._advance(now)
        out, self._out = self._out, []
        return out

    def _note(self, text: str) -> None:
        """Say a sentence once: a side that breaks the rules does so in each line."""
        kind = text.partition(":")[0]
        if kind not in self._noted:
            self._noted.add(kind)
            self._out.append(Note(text))

    def _refuse(self, request_id: MessageId | None, code: int, words: str) -> None:
        """Answer a message of the agent that is not passed on; one with the id of another gets no answer."""
        if request_id is None or request_id not in self._open:
            self._out.append(ToAgent(encode(failure(request_id, code, words)), ours=True))

    def _unreadable(self, reason: str, answered: MessageId | None, now: float) -> None:
        self._note(f"the server wrote a line that was not passed on: {reason}")
        if answered is None:
            return
        message = failure(answered, ErrorCode.INTERNAL_ERROR, f"mcphost cannot read the server's answer: {reason}")
        if (answer := self._from_server(message, True, None, now)) is not None:
            self._out.append(ToAgent(encode(answer), ours=True))

    # From the agent.

    def _from_agent(self, message: Message, exact: bool, line: bytes | None, now: float) -> Message | None:
        method, given = message.get("method"), message.get("id")
        if method is None:
            return self._answer_of_agent(message)
        if not isinstance(method, str):
            self._refuse(id_of(given), ErrorCode.INVALID_REQUEST, "The method is not a string.")
            return None
        is_notification = "id" not in message or (given is None and method.startswith("notifications/"))
        if is_notification:
            return self._notification_of_agent(method, message, now)
        if method == "tools/call" and (problem := _call_problem(message)) is not None:
            self._refuse(id_of(given), *problem)
            return None
        request_id = id_of(given)
        if request_id is None:
            return message
        if request_id in self._open:
            self._note("the agent used the id of an open request again; the second request was not passed on")
            return None
        if isinstance(request_id, str) and request_id.startswith(self._prefix):
            self._refuse(request_id, ErrorCode.INVALID_REQUEST, "mcphost uses this id.")
            return None
        if len(self._open) >= OPEN_REQUESTS:
            self._refuse(request_id, ErrorCode.INTERNAL_ERROR, "Too many requests have no answer.")
            return None
        return self._open_request(_Request(request_id, method), message, line, now)

    def _open_request(self, request: _Request, message: Message, line: bytes | None, now: float) -> Message | None:
        self._open[request.id] = request
        self._cancelled.pop(request.id, None)
        self._unsent.pop(request.id, None)
        params = as_dict(message.get("params"))
        passed = message
        if request.method == "initialize":
            passed = self._initialize(request, message, params)
        else:
            request.meta = as_dict(params.get("_meta"))
            version = request.meta.get(_VERSION)
            if isinstance(version, str):
                passed = self._modern_request(request, message, params, version)
        if request.method == "tools/list":
            request.page = self._listing.page(params)
        if request.method in ("tasks/get", "tasks/result"):
            request.task = as_text(params.get("taskId"))
        if request.method == "tools/call":
            self._hold(request, passed, line if passed is message else None, now)
            return None
        if request.features and request.method in MAY_NEED_INPUT:
            request.message = passed
        return passed

    def _initialize(self, request: _Request, message: Message, params: dict[str, Any]) -> Message:
        version = params.get("protocolVersion")
        self._era, request.revision = "opening", as_text(version)
        self._introduce(as_dict(params.get("clientInfo")), "legacy", request.revision)
        declared = params.get("capabilities")
        if not isinstance(declared, dict):
            return message
        added = self._added(declared, find_revision(version) or NEWEST_HANDSHAKE)
        self._features = frozenset(added)
        return {**message, "params": {**params, "capabilities": declared | added}} if added else message

    def _modern_request(self, request: _Request, message: Message, params: dict[str, Any], version: str) -> Message:
        request.modern, request.revision = self._era not in ("opening", "legacy"), version
        if not request.modern:
            return message
        if request.method != "server/discover":  # an older server may refuse that, and another era begin
            self._open_modern(request)
        declared = request.meta.get(_CAPABILITIES)
        if not isinstance(declared, dict):
            return message
        added = self._added(declared, find_revision(version) or NEWEST_MODERN)
        if not added:
            return message
        request.features = frozenset(added)
        return {**message, "params": {**params, "_meta": {**request.meta, _CAPABILITIES: declared | added}}}

    def _open_modern(self, request: _Request) -> None:
        self._era = "modern"
        self._introduce(as_dict(request.meta.get(_CLIENT_INFO)), "modern", request.revision)

    def _added(self, declared: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
        """The capabilities that mcphost declares beside, or instead of, those of the agent."""
        if self.options.questions == "agent":
            return {}
        ours = self.options.answers.under(revision)
        replaces = self.options.questions == "here"
        return {
            name: value
            for name, value in ours.items()
            if name in ASKS_FOR.values() and (replaces or name not in declared)
        }

    def _introduce(self, info: dict[str, Any], era: Literal["legacy", "modern"], revision: str) -> None:
        name, version = (as_text(info.get(each))[:NAME_LENGTH] for each in ("name", "version"))
        self._claim = name
        introduced = AgentIntroduced(name, version, era, revision[:NAME_LENGTH])
        if introduced != self._introduced:
            self._introduced = introduced
            self._out.append(introduced)

    def _answer_of_agent(self, message: Message) -> Message | None:
        if "result" not in message and "error" not in message:
            return message
        given = message.get("id")
        answered = id_of(given)
        if answered is None:
            return None if given is not None else message
        if answered not in self._server_open:
            self._note("the agent answered a request that the server did not send; the answer was not passed on")
            return None
        del self._server_open[answered]
        return message

    def _notification_of_agent(self, method: str, message: Message, now: float) -> Message | None:
        if method == "tools/call":
            self._note("the agent called a tool without an id; the call was not passed on")
            return None
        if method == "notifications/cancelled":
            return self._cancel(message, now)
        return message

    def _cancel(self, message: Message, now: float) -> Message | None:
        params = as_dict(message.get("params"))
        cancelled = id_of(params.get("requestId"))
        request = None if cancelled is None else self._open.get(cancelled)
        if request is None:
            return None if cancelled in self._unsent else message
        self._forget(request)
        call = request.call
        if call is not None and request.held:
            if call.state == "asked":
                self._out.append(Withdraw(call.number, "the agent cancelled the call"))
            elif call.state == "decided":
                self._out.append(Finished(call.number, "cancelled", 0.0))
            self._calls.pop(call.number, None)
            if call.before is not None:
                self._end(call.before, "cancelled")
            return None
        if call is not None:
            self._end(call, "cancelled", now)
        if request.round is not None:
            self._drop_inbox(request)
            return None
        if request.own_id is not None:
            self._own.pop(request.own_id, None)
            return {**message, "params": {**params, "requestId": request.own_id}}
        _add(self._cancelled, request.id)
        return message

    # Calls that wait.

    def _hold(self, request: _Request, message: Message, line: bytes | None, now: float) -> None:
        params = message["params"]
        token, limits = id_of(request.meta.get("progressToken")), limits_of(self.options.agent or self._claim)
        within = limits.seconds(self.options.answer_within, progress=token is not None)
        arguments = params.get("arguments") or {}
        if line is not None and is_read_otherwise(line, message):
            line = None
        call = _Call(
            number=next(self._numbers),
            request=request,
            message=message,
            line=line if line is not None else encode(message),
            as_written=line is not None,
            tool=params["name"],
            arguments=arguments,
            arguments_digest=_digest(canonical(arguments)),
            list_until=now + LIST_SECONDS,
            answer_at=now + within,
            doubt_at=now + limits.silence if token is None else inf,
        )
        request.call, request.held = call, True
        held = sum(len(each.line) for each in self._calls.values())
        if len(self._calls) >= HELD_CALLS or held + len(call.line) > HELD_BYTES:
            self._decline(request, TOO_MANY)
            return
        if "requestState" in params or "inputResponses" in params:
            call.before = self._rounds.take(_round_key(call, params.get("requestState")))
        if token is not None:
            request.heartbeat = Heartbeat(token, now)
            self._tokens[token] = request
        self._calls[call.number] = call

    def _advance(self, now: float) -> None:
        """Settle the calls whose definition is known, and list the tools where one is not."""
        missing: _Call | None = None
        for call in list(self._calls.values()):
            if call.request is None or call.epoch == self._listing.epoch:
                continue
            known = self._listing.known(call.tool)
            if known is None and call.state == "listing" and now >= call.list_until:
                known = KnownTool()
            if known is not None:
                self._settle(call, known, now)
            else:
                missing = missing or call
        if missing is None or self._listing.ends_at is not None:
            return
        request = missing.request
        if self._era == "legacy":
            self._list(self._listing.begin(None, now))
        elif request is not None and request.modern:
            meta = {key: value for key, value in request.meta.items() if key in (_VERSION, _CLIENT_INFO)}
            self._list(self._listing.begin({**meta, _CAPABILITIES: {}}, now))
        elif self._era != "opening":  # the server was not opened, so it may not be asked
            self._settle_all_unlisted(now)

    def _list(self, params: Mapping[str, Any]) -> None:
        own_id = self._own_id(None)
        message = {"jsonrpc": "2.0", "id": own_id, "method": "tools/list", "params": params}
        self._out.append(ToServer(encode(message), ours=True))

    def _own_id(self, request: _Request | None) -> str:
        own_id = f"{self._prefix}{next(self._own_ids)}"
        self._own[own_id] = request
        return own_id

    def _settle_all_unlisted(self, now: float) -> None:
        """Go on without a definition: the server cannot be made to list its tools."""
        for call in list(self._calls.values()):
            if call.request is not None and call.epoch != self._listing.epoch:
                self._settle(call, KnownTool(), now)

    def _settle(self, call: _Call, tool: KnownTool, now: float) -> None:
        call.epoch = self._listing.epoch
        if call.state != "listing":
            if tool.text == call.definition:
                if call.state == "decided":
                    self._apply(call, now)
                return
            if call.state == "asked":
                self._out.append(Withdraw(call.number, "the tool's definition has changed"))
            else:
                self._out.append(Finished(call.number, "cancelled", 0.0))
            self._renumber(call, next(self._numbers))
            call.definition = tool.text
            self._ask(call, tool, now)
            return
        call.definition = tool.text
        before, request = call.before, call.request
        if before is not None and before.definition == tool.text:
            self._renumber(call, before.number)
            call.decision = before.decision
            self._apply(call, now)
        elif (granted := self._grants.take(call.grant_key)) is not None:
            self._renumber(call, granted[0].number)
            call.decision = granted[0].decision
            self._apply(call, now)
        elif (open_question := self._overdue(call)) is not None and request is not None:
            self._calls.pop(call.number)
            self._calls.pop(open_question.number)
            call.number, call.questions = open_question.number, open_question.questions
            self._calls[call.number] = call
            self._put(call, tool, now)
        else:
            self._ask(call, tool, now)
        if before is not None and call.number != before.number:
            self._end(before, "lost")
        call.before = None

    def _overdue(self, call: _Call) -> _Call | None:
        """The open question about the same call, which the agent was answered before."""
        same = (each for each in self._calls.values() if each.request is None and each.grant_key == call.grant_key)
        return next(same, None)

    def _renumber(self, call: _Call, number: int) -> None:
        self._calls.pop(call.number, None)
        call.number = number
        self._calls[number] = call

    def _ask(self, call: _Call, tool: KnownTool, now: float) -> None:
        assert call.request is not None
        call.questions += 1
        if call.questions > REPEATED_QUESTIONS:
            self._decline(call.request, UNSTEADY)
        else:
            self._put(call, tool, now)

    def _put(self, call: _Call, tool: KnownTool, now: float) -> None:
        assert call.request is not None
        within = None if call.answer_at == inf else max(0.0, call.answer_at - now)
        heard = call.request.heartbeat is not None
        call.state = "asked"
        call.question = GatedCall(
            call.number, call.request.id, call.tool, tool.definition, call.arguments, within, heard
        )
        self._out.append(Ask(call.question))

    def _apply(self, call: _Call, now: float) -> None:
        """Do what was decided."""
        assert call.request is not None
        if not call.decision.allow:
            self._decline(call.request, call.decision.words or DECLINED)
            return
        edited = call.decision.arguments
        message, line = call.message, call.line
        if edited is not None and _digest(canonical(edited)) != call.arguments_digest:
            call.note = edit_note(edited)
            message = {**message, "params": {**message["params"], "arguments": edited}}
            line = encode(message)
        request = call.request
        request.held, call.state, call.sent_at = False, "sent", now
        call.release()
        if request.features:
            request.message = message
        self._calls.pop(call.number, None)
        self._sent[call.number] = call
        self._out += [Sent(call.number), ToServer(line, ours=bool(call.note) or not call.as_written)]

    def _decline(self, request: _Request, words: str) -> None:
        """Answer a request in the server's place, and forget it."""
        self._forget(request)
        if request.call is not None:
            self._calls.pop(request.call.number, None)
        if request.method == "tools/call":
            answer = refusal(request.id, words, modern=request.modern)
        else:
            answer = failure(request.id, ErrorCode.INTERNAL_ERROR, words)
        self._out.append(ToAgent(encode(answer), ours=True))

    def _answer_late(self, call: _Call, now: float) -> None:
        """Answer before the agent gives up, and keep the question."""
        request = call.request
        assert request is not None
        self._decline(request, NOT_LISTED if call.state == "listing" else OVERDUE)
        call.request = None
        if call.before is not None:
            self._rounds.put(_round_key(call, as_dict(call.message.get("params")).get("requestState")), call.before)
        if call.state == "asked":
            call.message, call.line = {}, b""
            self._calls[call.number] = call
            self._out.append(Overdue(call.number))
        elif call.state == "decided":
            call.release()
            self._grants.put(call.grant_key, (call, now + GRANT_SECONDS))

    def _beating(self) -> list[Heartbeat]:
        """The heartbeats of the calls that wait for the user."""
        if not (self._calls or self._inbox):
            return []
        waits = [call.request for call in self._calls.values()]
        waits += [question.request or self._request_of(question.asked.call) for question in self._inbox.values()]
        return [each.heartbeat for each in dict.fromkeys(waits) if each is not None and each.heartbeat is not None]

    def _request_of(self, number: int | None) -> _Request | None:
        call = None if number is None else self._sent.get(number)
        return None if call is None else call.request

    def _forget(self, request: _Request) -> None:
        self._open.pop(request.id, None)
        if request.held:
            _add(self._unsent, request.id)
        heartbeat = request.heartbeat
        token = None if heartbeat is None else heartbeat.token
        if token is not None and self._tokens.get(token) is request:
            del self._tokens[token]

    def _end(self, call: _Call, state: CallEnd, now: float | None = None) -> None:
        self._sent.pop(call.number, None)
        self._out.append(Finished(call.number, state, 0.0 if now is None else now - call.sent_at))
        for number, question in list(self._inbox.items()):
            if question.server_id is not None and question.asked.call == call.number:
                del self._inbox[number]
                answer = unanswered(question.server_id, question.asked.method)
                self._out += [DropInbox(number), ToServer(encode(answer), ours=True)]

    def _end_unanswered(self, call: _Call) -> None:
        self._end(call, "lost")

    def _end_grant(self, grant: tuple[_Call, float]) -> None:
        if grant[0].decision.allow:
            self._end(grant[0], "cancelled")

    def _close(self, reason: str) -> None:
        for call in self._calls.values():
            if call.state == "asked":
                self._out.append(Withdraw(call.number, reason))
            elif call.state == "decided":
                self._out.append(Finished(call.number, "cancelled", 0.0))
            if call.request is not None:
                self._forget(call.request)
            if call.before is not None:
                self._end(call.before, "cancelled")
        self._calls.clear()
        self._grants.clear()
        self._rounds.clear()
        self._out += [DropInbox(number) for number in self._inbox]
        self._inbox.clear()
        self._listing.give_up()

    # From the server.

    def _from_server(self, message: Message, exact: bool, line: bytes | None, now: float) -> Message | None:
        method = message.get("method")
        if method is None:
            return self._answer_of_server(message, exact, now)
        if not isinstance(method, str):
            return message
        if "id" in message:
            return self._request_of_server(method, message)
        params = as_dict(message.get("params"))
        if method == "notifications/tools/list_changed":
            self._listing.change()
        elif method == "notifications/progress":
            token = id_of(params.get("progressToken"))
            request = None if token is None else self._tokens.get(token)
            if request is not None and request.heartbeat is not None:
                return message if not request.held and request.heartbeat.passes(params.get("progress")) else None
        elif method == "notifications/cancelled":
            cancelled = id_of(params.get("requestId"))
            for number, question in self._inbox.items():
                if cancelled is not None and question.server_id == cancelled:
                    del self._inbox[number]
                    self._out.append(DropInbox(number))
                    return None
        return message

    def _request_of_server(self, method: str, message: Message) -> Message | None:
        server_id = id_of(message["id"])
        if server_id is None:
            return message
        if self._agent_gone or self._era == "modern" or ASKS_FOR.get(method) not in self._features:
            _add(self._server_open, server_id)
            return message
        if any(question.server_id == server_id for question in self._inbox.values()):
            self._note("the server used the id of an open request again; the second request was dropped")
        elif len(self._inbox) >= PENDING_SERVER_REQUESTS:
            refused = failure(server_id, ErrorCode.INTERNAL_ERROR, "Too many requests are waiting for the user.")
            self._out.append(ToServer(encode(refused), ours=True))
        else:
            sent = list(self._sent)
            call = sent[0] if len(sent) == 1 else None
            self._ask_inbox(method, as_dict(message.get("params")), call, server_id, None)
        return None

    def _ask_inbox(
        self,
        method: str,
        params: Mapping[str, Any],
        call: int | None,
        server_id: MessageId | None,
        request: _Request | None,
    ) -> int:
        asked = AskInbox(next(self._inbox_numbers), method, params, call)
        self._inbox[asked.number] = _InboxQuestion(asked, server_id, request)
        self._out.append(asked)
        return asked.number

    def _answer_of_server(self, message: Message, exact: bool, now: float) -> Message | None:
        if "result" not in message and "error" not in message:
            return message
        given = message.get("id")
        answered = id_of(given)
        if answered is None:
            return None if given is not None else message
        if isinstance(answered, str) and answered.startswith(self._prefix):
            return self._answer_to_own(answered, message, exact, now)
        request = self._open.get(answered)
        if request is not None and not request.held and request.round is None and request.own_id is None:
            return self._answered(request, message, exact, now)
        if request is None and answered in self._cancelled:
            del self._cancelled[answered]
            return message
        self._note("the server answered a request that it did not get, or had answered; the answer was not passed on")
        return None

    def _answer_to_own(self, own_id: str, message: Message, exact: bool, now: float) -> Message | None:
        if own_id not in self._own:
            return None
        request = self._own.pop(own_id)
        if request is not None:
            request.own_id = None
            return self._answered(request, message, exact, now)
        if self._listing.ends_at is not None:
            following = self._listing.go_on(message, now) if exact else self._listing.give_up()
            if isinstance(following, dict):
                self._list(following)
            elif not following:
                self._settle_all_unlisted(now)
        return None

    def _answered(self, request: _Request, message: Message, exact: bool, now: float) -> Message | None:
        """Take the server's answer to a request of the agent; return what the agent gets."""
        result, call = as_dict(message.get("result")), request.call
        if "error" not in message:
            self._learn(request, result, exact, now)
        elif request.method == "initialize":
            self._era = ""
        needs_input = result.get("resultType") == "input_required" and request.method in MAY_NEED_INPUT
        if needs_input and request.features and exact and self._begin_round(request, result):
            return None
        self._forget(request)
        if call is not None and needs_input:
            self._sent.pop(call.number, None)
            self._rounds.put(_round_key(call, result.get("requestState")), call)
        elif call is not None:
            failed = "error" in message or result.get("isError") is True
            self._end(call, "failed" if failed else "done", now)
        changed = message if message.get("id") == request.id else {**message, "id": request.id}
        if call is not None and call.note and not needs_input:
            if task := task_of(result):
                self._task_notes.put(task, call.note)
            changed = with_note(changed, call.note)
        elif request.task and (note := self._task_notes.get(request.task)) is not None:
            changed = with_note(changed, note)
        if changed is not message and not exact:
            return failure(request.id, ErrorCode.INTERNAL_ERROR, "mcphost cannot read the server's answer.")
        return changed

    def _learn(self, request: _Request, result: dict[str, Any], exact: bool, now: float) -> None:
        if request.method == "initialize":
            self._era = "legacy"
            revision, known = as_text(result.get("protocolVersion")), self._introduced
            if known is not None and revision:
                self._introduce({"name": known.name, "version": known.version}, "legacy", revision)
        elif request.method == "server/discover" and request.modern and self._era in ("", "modern"):
            self._open_modern(request)
        elif request.page is not None and exact:
            self._listing.take_page(request.page, result, now)

    # Rounds of input that mcphost answers.

    def _begin_round(self, request: _Request, result: dict[str, Any]) -> bool:
        """Get the inputs that the server needs; False if the agent is to answer them."""
        try:
            inputs = read_inputs(result.get("inputRequests"))
        except InvalidResult:
            return False
        ours = [each for each in inputs.values() if ASKS_FOR.get(each.method) in request.features]
        if not ours:
            return False
        state = result.get("requestState")
        request.rounds += 1
        problem = self._round_problem(request, inputs, len(ours), state)
        if problem is not None:
            self._end_request(request, problem)
            return True
        call = None if request.call is None else request.call.number
        keys = {self._ask_inbox(each.method, each.params, call, None, request): key for key, each in inputs.items()}
        request.round = _InputRound(state, keys)
        return True

    def _round_problem(
        self, request: _Request, inputs: Mapping[str, ServerInput], ours: int, state: object
    ) -> str | None:
        if ours < len(inputs):
            return "The server asks the agent and mcphost at once, which mcphost cannot put together."
        if not isinstance(state, str | None) or len(state or "") > REQUEST_STATE_BYTES:
            return TOO_MUCH_INPUT
        if len(inputs) > INPUTS_IN_A_ROUND or len(self._inbox) + len(inputs) > PENDING_SERVER_REQUESTS:
            return TOO_MUCH_INPUT
        return TOO_MUCH_INPUT if request.rounds > INPUT_ROUNDS else None

    def _take_input(
        self, request: _Request, begun: _InputRound, number: int, result: Mapping[str, Any] | None, now: float
    ) -> None:
        if result is None:
            self._drop_inbox(request)
            self._end_request(request, INPUT_REFUSED)
            return
        begun.answers[begun.keys.pop(number)] = result
        if begun.keys or request.message is None:
            return
        request.round, request.own_id = None, self._own_id(request)
        if request.heartbeat is not None:
            request.heartbeat.restarted = True
        params = {
            name: value
            for name, value in as_dict(request.message.get("params")).items()
            if name not in ("inputResponses", "requestState")
        }
        params["inputResponses"] = begun.answers
        if begun.state is not None:
            params["requestState"] = begun.state
        self._out.append(ToServer(encode({**request.message, "id": request.own_id, "params": params}), ours=True))

    def _end_request(self, request: _Request, words: str) -> None:
        if request.call is not None:
            self._end(request.call, "failed")
        self._decline(request, words)

    def _drop_inbox(self, request: _Request) -> None:
        request.round = None
        for number in [number for number, question in self._inbox.items() if question.request is request]:
            del self._inbox[number]
            self._out.append(DropInbox(number))


def _call_problem(message: Message) -> tuple[int, str] | None:
    """Code and words for a tool call that is not certain to be one."""
    params = message.get("params")
    if id_of(message.get("id")) is None:
        return ErrorCode.INVALID_REQUEST, "The id of a tool call must be a string or a number."
    if message.get("result") is not None or message.get("error") is not None:
        return ErrorCode.INVALID_REQUEST, "A tool call cannot be an answer as well."
    if not isinstance(params, dict) or not isinstance(params.get("name"), str):
        return ErrorCode.INVALID_PARAMS, "A tool call needs the name of its tool."
    if not isinstance(params.get("arguments"), dict | None):
        return ErrorCode.INVALID_PARAMS, "The arguments of a tool call must be an object."
    if is_disguised(params, _CALL_MEMBERS):
        return ErrorCode.INVALID_PARAMS, "A key differs by its case alone from one that decides about the call."
    return None


def _round_key(call: _Call, state: object) -> object:
    return (call.tool, call.arguments_digest, _digest(canonical(state)))


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def _add(ids: OrderedDict[MessageId, None], added: MessageId) -> None:
    ids[added] = None
    if len(ids) > OPEN_REQUESTS:
        ids.popitem(last=False)
