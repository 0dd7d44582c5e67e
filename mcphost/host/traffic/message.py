"""Messages of the traffic: kept as bytes, parsed when first looked at, and paired (a response with its request)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol

from mcphost.host.traffic.request_state import StateSummary, hide_state, state_summary
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import ASKS_FOR, META_PREFIX
from mcphost.protocol.models.tools import says_failure
from mcphost.protocol.wire.jsonrpc import Malformed, Message, Notification, Request, RequestId, Response, decode

GLIMPSE: Final = 256 << 10
"""Bytes above which only the ends of a message are parsed: parsing all would be noticeable."""

_ENDS: Final = 4096
_BATCH: Final = 10_000


LISTEN: Final = "subscriptions/listen"
DISCOVER: Final = "server/discover"

OPEN: Final = "open"
"""The status of a request whose answer is the end of a stream."""

INPUT_REQUIRED: Final = "input_required"
"""The status of a result that needs input first, and its ``resultType``."""


class MessageKind(Enum):
    """The kinds of messages, and of what else passes over a wire."""

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"
    """A response that is a JSON-RPC error."""
    NOTIFICATION = "notification"
    BATCH = "batch"
    MALFORMED = "malformed"
    """JSON that is not a message, or a message that was refused unread."""
    STDERR = "stderr"
    STRAY = "stray"
    """Text where a message should have been."""
    HTTP = "http"
    """The head of an HTTP request or answer."""
    CACHE = "cache"
    """A kept result took the place of a request."""


class Abandoned(Enum):
    """Why a request without an answer gets none; the value is its status."""

    NOT = "waiting"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The connection ended first."""
    REPLACED = "replaced"
    """A listening request that broke off, or that another one replaced."""
    EXPORTED = "unanswered"
    """Its file holds no answer."""


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """The facts that parsing found in a message."""

    kind: MessageKind
    method: str = ""
    id: RequestId | None = None
    code: int | None = None
    """The code of a JSON-RPC error, or the status of an HTTP answer."""
    failed: bool = False
    """A tool's result that says that the tool failed."""
    about: RequestId | None = None
    """The request that a progress or cancel notice is about."""
    needs: tuple[tuple[str, int], ...] = ()
    """The needs of an ``input_required`` result: methods with their numbers."""
    state: StateSummary | None = None
    """The ``requestState`` of an ``input_required`` result, or of the retry that carries it back."""
    retries: bool = False
    """A request that gives what an earlier one needed."""
    parts: tuple[MessageFacts, ...] = ()
    """The messages of a batch."""


class CallWaits(Protocol):
    """For whom a call waited that a gate held; in seconds."""

    @property
    def waited_for_you(self) -> float | None: ...

    @property
    def waited_for_server(self) -> float | None:
        """None: it was not sent."""


class TrafficMessage:
    """A message, or something else that passed (a line of stderr, the head of an HTTP request).

    ``data`` is what was on the wire, secrets included; `TrafficBook.raw` masks them. If the message was large, ``data``
    is only its start, and ``size`` the bytes of the whole. ``time`` is seconds since the epoch, ``at`` of a monotonic
    clock. ``note`` is the kind of what is not a message, else empty. ``call`` is the number of the tool call it belongs
    to. Pairing sets ``partner`` (a message's number), ``latency`` (seconds) and ``asked`` (the method of the request).
    ``during`` is the call that ran when the message was received; a server's request counts as part of it.
    ``abandoned`` says why no answer is expected any more. ``head`` is the number of the HTTP head that a request was
    sent with. ``probe``: a request, or its answer, that asks a server which revisions it speaks before a session is
    open. ``round`` counts the requests, from 1, that a modern server got for one answer. ``agent`` is the one that
    speaks to the server in mcphost's place; ``injected``: neither of the two wrote it, but a gate between them.
    ``waits`` are those of a call that a gate held.
    """

    __slots__ = (
        "_facts", "abandoned", "agent", "asked", "at", "call", "connection", "data", "during", "head", "injected",
        "latency", "note", "number", "partner", "probe", "round", "sent", "server", "size", "time", "waits",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        time: float,
        at: float,
        server: str,
        connection: int,
        sent: bool,
        note: str,
        data: bytes,
        size: int,
        call: int | None,
        agent: str = "",
        *,
        injected: bool = False,
    ) -> None:
        self.number, self.time, self.at = number, time, at
        self.agent, self.injected = agent, injected
        self.waits: CallWaits | None = None
        self.server, self.connection = server, connection
        self.sent, self.note = sent, note
        self.data, self.size, self.call = data, size, call
        self.during: int | None = None
        self.partner: int | None = None
        self.latency: float | None = None
        self.asked = ""
        self.abandoned = Abandoned.NOT
        self.head: int | None = None
        self.probe = False
        self.round = 1
        self._facts: MessageFacts | None = None

    @property
    def facts(self) -> MessageFacts:
        if self._facts is None:
            self._facts = _noted(self) if self.note else read_facts(self.data, whole=not self.cut)
        return self._facts

    @property
    def kind(self) -> MessageKind:
        return self.facts.kind

    @property
    def id(self) -> RequestId | None:
        return self.facts.id

    @property
    def place(self) -> str:
        """The server's name, after that of the agent if one speaks to it: ``AGENT>SERVER``."""
        return f"{self.agent}>{self.server.rpartition('>')[2]}" if self.agent else self.server

    @property
    def method(self) -> str:
        """The method; of a response that of its request. Empty if unknown."""
        return self.facts.method or self.asked

    @property
    def direction(self) -> str:
        """``out`` from mcphost to the server, ``in`` the other way."""
        return "out" if self.sent else "in"

    @property
    def cut(self) -> bool:
        """True if ``data`` is only the start."""
        return self.size > len(self.data)

    @property
    def status(self) -> tuple[str, ...]:
        """The outcome in words and codes, such as ``waiting``, ``ok``, ``error`` or ``404``."""
        facts = self.facts
        code = () if facts.code is None else (str(facts.code),)
        match facts.kind:
            case MessageKind.REQUEST:
                if self.partner is not None:
                    return ("answered",)
                open_stream = facts.method == LISTEN and self.abandoned is Abandoned.NOT
                return (OPEN if open_stream else self.abandoned.value,)
            case MessageKind.RESPONSE if facts.needs or facts.state is not None:
                return (INPUT_REQUIRED,)
            case MessageKind.RESPONSE:
                return ("failed" if facts.failed else "ok",)
            case MessageKind.ERROR | MessageKind.MALFORMED | MessageKind.STRAY:
                return ("error", *code)
            case _:
                return code

    def keep_start(self, size: int) -> None:
        """Parse all that there is, then keep only its first ``size`` bytes."""
        self._facts = None if self.note else read_facts(self.data, whole=not self.cut)
        self.data = self.data[:size]

    def raw(self) -> str:
        """The text as received, a ``requestState`` only by its size and digest; invalid UTF-8 is replaced."""
        text = hide_state(self.data.decode("utf-8", "replace"))
        return f"{text}… {self.size - len(self.data)} bytes more" if self.cut else text


def pretty(text: str) -> str:
    """Indent JSON; return anything else unchanged."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


_STATUS: Final = r"HTTP (\d{3})\b"


def _noted(message: TrafficMessage) -> MessageFacts:
    start = message.data[:200].decode("utf-8", "replace")
    status = re.match(_STATUS, start) if message.note == "http" else None
    return MessageFacts(MessageKind(message.note), code=int(status[1]) if status else None)


# From bytes to facts.

_ID: Final = rb'(?P<id>-?\d{1,18}|"[\w.:/-]{1,80}")'
# The order of the members as most libraries write them: jsonrpc and id in either order, then what the message is. A
# response may have its id last, after the result: hence the tail.
_HEAD: Final = (
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*' + _ID + rb'\s*,\s*)?(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
    rb'"(?P<what>result|error|method)"\s*:\s*(?:"(?P<method>[\w./$-]{1,200})")?'
)
_TAIL: Final = rb'"id"\s*:\s*' + _ID + rb"\s*\}\s*$"
_FAILED: Final = rb'"isError"\s*:\s*true'


def read_facts(data: bytes, *, whole: bool) -> MessageFacts:
    """Parse a message; of a large one only the two ends, if they suffice. ``whole``: is ``data`` complete?"""
    if len(data) > GLIMPSE or not whole:
        glimpse = _glimpse(data)
        if glimpse is not None:
            return glimpse
    if len(data) > GLIMPSE:  # an unusual layout: parsing all of it could block the event loop
        return MessageFacts(
            {b"[": MessageKind.BATCH, b"{": MessageKind.MALFORMED}.get(data.lstrip()[:1], MessageKind.STRAY)
        )
    messages = decode(data, batch_items=_BATCH)
    if len(messages) == 1 and not data.lstrip().startswith(b"["):
        return _facts_of(messages[0])
    if len(messages) == 1 and isinstance(messages[0], Malformed):
        return MessageFacts(MessageKind.MALFORMED)
    return MessageFacts(MessageKind.BATCH, parts=tuple(map(_facts_of, messages)))


def _glimpse(data: bytes) -> MessageFacts | None:
    head = re.match(_HEAD, data[:_ENDS])
    if head is None:
        return None
    found = head["id"] or _id_at_the_end(data)
    request_id: RequestId | None = json.loads(found) if found else None
    if head["what"] == b"method":
        kind = MessageKind.NOTIFICATION if request_id is None else MessageKind.REQUEST
        return MessageFacts(kind, (head["method"] or b"").decode(), request_id)
    if head["what"] == b"error":
        return MessageFacts(MessageKind.ERROR, id=request_id)
    failed = any(re.search(_FAILED, end) for end in (data[:_ENDS], data[-_ENDS:]))
    return MessageFacts(MessageKind.RESPONSE, id=request_id, failed=failed)


def _id_at_the_end(data: bytes) -> bytes | None:
    tail = re.search(_TAIL, data[-200:])  # longer than any id that `_ID` matches, with its name and white space
    return tail["id"] if tail else None


def _facts_of(message: Message | Malformed) -> MessageFacts:
    match message:
        case Request():
            return _request_facts(message.method, message.id, message.params or {})
        case Notification():
            return MessageFacts(MessageKind.NOTIFICATION, message.method, about=_about(message))
        case Response(error=None):
            return _result_facts(message.id, message.result or {})
        case Response():
            assert message.error is not None
            return MessageFacts(MessageKind.ERROR, id=message.id, code=message.error.code)
        case _:
            return MessageFacts(MessageKind.MALFORMED if message.is_json else MessageKind.STRAY, id=message.answers)


def _request_facts(method: str, request_id: RequestId, params: Mapping[str, Any]) -> MessageFacts:
    state = state_summary(params.get("requestState"))
    retries = state is not None or isinstance(params.get("inputResponses"), dict)
    return MessageFacts(MessageKind.REQUEST, method, request_id, state=state, retries=retries)


def _result_facts(request_id: RequestId | None, result: Mapping[str, Any]) -> MessageFacts:
    failed = says_failure(result.get("isError"))
    if result.get("resultType") != INPUT_REQUIRED:
        return MessageFacts(MessageKind.RESPONSE, id=request_id, failed=failed)
    asked = result.get("inputRequests")
    inputs = asked.values() if isinstance(asked, dict) else ()
    needs = Counter(str(each.get("method")) if isinstance(each, dict) else "?" for each in inputs)
    return MessageFacts(
        MessageKind.RESPONSE,
        id=request_id,
        needs=tuple(needs.most_common(NEEDS)),
        state=state_summary(result.get("requestState")),
    )


NEEDS: Final = 10
"""Kinds of input that are counted; a hostile server invents any number."""

CANCELLED: Final = "notifications/cancelled"
_ABOUT: Final = {"notifications/progress": "progressToken", CANCELLED: "requestId"}


def _about(notice: Notification) -> RequestId | None:
    named: Any = (notice.params or {}).get(_ABOUT.get(notice.method, ""))
    return named if type(named) in (int, str) else None


REMEMBERED: Final = 20_000
"""Unanswered requests that are remembered; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class PairedRequest:
    """A request that a later message belongs to. ``at`` is seconds of a monotonic clock."""

    number: int
    at: float
    method: str
    call: int | None
    probe: bool = False
    round: int = 1


_Key = tuple[str, int, bool, type, RequestId]


class MessagePairing:
    """Finds the request of each message. Pass it every message in order."""

    def __init__(self) -> None:
        self._asked: dict[_Key, PairedRequest] = {}
        self._opened: dict[str, int] = {}
        """By server, its newest connection on which anything but a probe was requested."""
        self._rounds: dict[tuple[str, int, str, str | int], int] = {}
        """The round of the retry that is awaited: by server, connection and method, and by state or call."""

    def add(self, message: TrafficMessage) -> PairedRequest | None:
        """Return the request that this message answers or reports on; remember the message if it is a request."""
        facts = message.facts
        found: PairedRequest | None = None
        for part in facts.parts or (facts,):
            if part.kind is MessageKind.REQUEST and part.id is not None:
                if message.call is None and part.method in ASKS_FOR:
                    message.call = message.during
                self._remember(message, part, part.id)
            else:
                found = found or self._found(message, part)
        if found is not None and facts.kind in (MessageKind.RESPONSE, MessageKind.ERROR):
            message.probe, message.round = found.probe, found.round
            if facts.needs or facts.state is not None:
                self._await_retry(message, found)
        return found

    def request(self, server: str, connection: int, request_id: RequestId) -> int | None:
        """The number of the request that was sent with this id; None if it has not been added."""
        found = self._asked.get((server, connection, True, type(request_id), request_id))
        return None if found is None else found.number

    def _await_retry(self, message: TrafficMessage, request: PairedRequest) -> None:
        if len(self._rounds) >= REMEMBERED:
            del self._rounds[next(iter(self._rounds))]
        state = message.facts.state
        by = state.digest if state is not None else request.call
        if by is not None:
            self._rounds[message.server, message.connection, request.method, by] = request.round + 1

    def _place_in_opening(self, message: TrafficMessage, part: MessageFacts) -> None:
        """Note whether it is a probe, and which round it is."""
        if part.method != DISCOVER:
            self._opened[message.server] = message.connection
        message.probe = part.method == DISCOVER and self._opened.get(message.server) != message.connection
        if part.retries:
            by = part.state.digest if part.state is not None else message.call
            if by is not None:
                key = message.server, message.connection, part.method, by
                message.round = self._rounds.pop(key, message.round)

    def _remember(self, message: TrafficMessage, part: MessageFacts, request_id: RequestId) -> None:
        if len(self._asked) >= REMEMBERED:
            del self._asked[next(iter(self._asked))]
        if message.sent:
            self._place_in_opening(message, part)
        asked = PairedRequest(message.number, message.at, part.method, message.call, message.probe, message.round)
        key = _key(message, message.sent, request_id)
        if not (message.injected and key in self._asked):  # else a gate sends on what the agent asked for
            self._asked[key] = asked

    def _found(self, message: TrafficMessage, part: MessageFacts) -> PairedRequest | None:
        if part.id is not None:
            return self._asked.get(_key(message, not message.sent, part.id))
        if part.about is None:
            return None
        # Progress comes from who answers, a cancel notice from who asked.
        asker = message.sent if part.method == CANCELLED else not message.sent
        return self._asked.get(_key(message, asker, part.about))


def is_answer(message: TrafficMessage) -> bool:
    """True for a response, or a malformed one."""
    facts = message.facts
    kinds = {part.kind for part in facts.parts} or {facts.kind}
    return (
        bool(kinds & {MessageKind.RESPONSE, MessageKind.ERROR, MessageKind.MALFORMED})
        and MessageKind.REQUEST not in kinds
    )


def is_cancellation(message: TrafficMessage) -> bool:
    """True if the message cancels the request that it is about."""
    return message.facts.method == CANCELLED


def _key(message: TrafficMessage, sent: bool, request_id: RequestId) -> _Key:
    return message.server, message.connection, sent, type(request_id), request_id


def metadata_words(text: str) -> str:
    """The reserved metadata of a modern message in words; empty without any."""
    if META_PREFIX not in text:
        return ""
    try:
        message = as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return ""
    meta = as_dict(as_dict(message.get("params") or message.get("result")).get("_meta"))
    names = (name for name in meta if name.startswith(META_PREFIX))
    return " · ".join(f"{name.removeprefix(META_PREFIX)} {_short(meta[name])}" for name in names)


def _short(value: object) -> str:
    """An implementation by name and version, an object by its members, and any other single value as it is."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return f"{value['name']} {_short(value.get('version', ''))}".strip()
    if isinstance(value, dict):
        return ", ".join(value) or "none"
    return "…" if isinstance(value, list) else str(value)
