"""One thing that passed over a wire, kept as the bytes it was; what it means is found out when somebody looks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mcphost.protocol.wire.jsonrpc import Malformed, Message, Notification, Request, RequestId, Response, decode

GLIMPSE: Final = 256 << 10
"""Bytes of a message above which only its ends are read to find out what it is: reading all would be felt."""

_ENDS: Final = 4096
_BATCH: Final = 10_000


class FrameKind(Enum):
    """What a frame is."""

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"
    """A response that is a JSON-RPC error."""
    NOTIFICATION = "notification"
    BATCH = "batch"
    MALFORMED = "malformed"
    """JSON that is no message, or a message that was refused unread."""
    STDERR = "stderr"
    STRAY = "stray"
    """Text where a message should have been."""
    HTTP = "http"
    """The head of an HTTP request or answer."""


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """What a frame says of itself."""

    kind: FrameKind
    method: str = ""
    id: RequestId | None = None
    code: int | None = None
    """The code of a JSON-RPC error, or the status of an HTTP answer."""
    failed: bool = False
    """A tool's result that says that the tool failed."""
    about: RequestId | None = None
    """The request that a progress or cancel notice is about."""
    parts: tuple[FrameFacts, ...] = ()
    """The messages of a batch."""


class Frame:
    """What passed at one moment. ``data`` is as it stood on the wire, secrets included: show it by the traffic book.

    ``time`` is seconds since the epoch, ``at`` of a monotonic clock; ``size`` is in bytes, also where ``data`` is only
    its start. ``note`` is the kind of what a transport noted, empty for messages. ``call`` is the host's call it
    belongs to. ``partner`` (a frame's number), ``latency`` (seconds) and ``asked`` (the method a response answers) are
    there once the book paired it.
    """

    __slots__ = (
        "_facts", "asked", "at", "call", "connection", "data", "latency", "note", "number", "partner", "sent", "server",
        "size", "time",
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
    ) -> None:
        self.number, self.time, self.at = number, time, at
        self.server, self.connection = server, connection
        self.sent, self.note = sent, note
        self.data, self.size, self.call = data, size, call
        self.partner: int | None = None
        self.latency: float | None = None
        self.asked = ""
        self._facts: FrameFacts | None = None

    @property
    def facts(self) -> FrameFacts:
        if self._facts is None:
            self._facts = _noted(self) if self.note else read_facts(self.data, whole=not self.cut)
        return self._facts

    @property
    def kind(self) -> FrameKind:
        return self.facts.kind

    @property
    def id(self) -> RequestId | None:
        """The id of a request or response."""
        return self.facts.id

    @property
    def method(self) -> str:
        """The method, of a response that of its request; empty where it is not known."""
        return self.facts.method or self.asked

    @property
    def direction(self) -> str:
        """``out`` from mcphost to the server, ``in`` the other way."""
        return "out" if self.sent else "in"

    @property
    def cut(self) -> bool:
        """Was it too large to keep whole?"""
        return self.size > len(self.data)

    @property
    def status(self) -> tuple[str, ...]:
        """How it went, in words and codes: ``waiting`` or ``answered``, ``ok``, ``failed`` or ``error``, ``404``."""
        facts = self.facts
        code = () if facts.code is None else (str(facts.code),)
        match facts.kind:
            case FrameKind.REQUEST:
                return ("waiting" if self.partner is None else "answered",)
            case FrameKind.RESPONSE:
                return ("failed" if facts.failed else "ok",)
            case FrameKind.ERROR | FrameKind.MALFORMED | FrameKind.STRAY:
                return ("error", *code)
            case _:
                return code

    def keep_start(self, size: int) -> None:
        """Let go of what is beyond ``size`` bytes, once it is known what the whole was."""
        self._facts = None if self.note else read_facts(self.data, whole=True)
        self.data = self.data[:size]

    def raw(self) -> str:
        """The text as it came."""
        text = self.data.decode("utf-8", "replace")
        return f"{text}… {self.size - len(self.data)} bytes more" if self.cut else text


def pretty(text: str) -> str:
    """JSON over several lines; anything else as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


_STATUS: Final = re.compile(r"HTTP (\d{3})\b")


def _noted(frame: Frame) -> FrameFacts:
    start = frame.data[:200].decode("utf-8", "replace")
    status = _STATUS.match(start) if frame.note == "http" else None
    return FrameFacts(FrameKind(frame.note), code=int(status[1]) if status else None)


# From bytes to facts.

_ID: Final = rb'(?P<id>-?\d{1,18}|"[\w.:/-]{1,80}")'
_HEAD: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*' + _ID + rb'\s*,\s*)?(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
    rb'"(?P<what>result|error|method)"\s*:\s*(?:"(?P<method>[\w./$-]{1,200})")?'
)
_TAIL: Final = re.compile(rb'"id"\s*:\s*' + _ID + rb"\s*\}\s*$")
_FAILED: Final = re.compile(rb'"isError"\s*:\s*true')


def read_facts(data: bytes, *, whole: bool) -> FrameFacts:
    """What a message is; a large one by its ends where they tell. Not ``whole``: only its start is there."""
    if len(data) > GLIMPSE or not whole:
        glimpse = _glimpse(data)
        if glimpse is not None:
            return glimpse
    if len(data) > GLIMPSE:  # no message as any program writes them: reading it whole could hold the event loop
        return FrameFacts({b"[": FrameKind.BATCH, b"{": FrameKind.MALFORMED}.get(data.lstrip()[:1], FrameKind.STRAY))
    messages = decode(data, batch_items=_BATCH)
    if len(messages) == 1 and not data.lstrip().startswith(b"["):
        return _facts_of(messages[0])
    if len(messages) == 1 and isinstance(messages[0], Malformed):
        return FrameFacts(FrameKind.MALFORMED)
    return FrameFacts(FrameKind.BATCH, parts=tuple(map(_facts_of, messages)))


def _glimpse(data: bytes) -> FrameFacts | None:
    head = _HEAD.match(data[:_ENDS])
    if head is None:
        return None
    found = head["id"] or _id_at_the_end(data)
    request_id: RequestId | None = json.loads(found) if found else None
    if head["what"] == b"method":
        kind = FrameKind.NOTIFICATION if request_id is None else FrameKind.REQUEST
        return FrameFacts(kind, (head["method"] or b"").decode(), request_id)
    if head["what"] == b"error":
        return FrameFacts(FrameKind.ERROR, id=request_id)
    failed = any(_FAILED.search(end) for end in (data[:_ENDS], data[-_ENDS:]))
    return FrameFacts(FrameKind.RESPONSE, id=request_id, failed=failed)


def _id_at_the_end(data: bytes) -> bytes | None:
    tail = _TAIL.search(data[-200:])
    return tail["id"] if tail else None


def _facts_of(message: Message | Malformed) -> FrameFacts:
    match message:
        case Request():
            return FrameFacts(FrameKind.REQUEST, message.method, message.id)
        case Notification():
            return FrameFacts(FrameKind.NOTIFICATION, message.method, about=_about(message))
        case Response(error=None):
            return FrameFacts(FrameKind.RESPONSE, id=message.id, failed=(message.result or {}).get("isError") is True)
        case Response():
            assert message.error is not None
            return FrameFacts(FrameKind.ERROR, id=message.id, code=message.error.code)
        case _:
            return FrameFacts(FrameKind.MALFORMED if message.is_json else FrameKind.STRAY, id=message.answers)


_ABOUT: Final = {"notifications/progress": "progressToken", "notifications/cancelled": "requestId"}


def _about(notice: Notification) -> RequestId | None:
    named: Any = (notice.params or {}).get(_ABOUT.get(notice.method, ""))
    return named if type(named) in (int, str) else None


REMEMBERED: Final = 20_000
"""Requests that are remembered; the oldest are forgotten first, long after anybody waits for their answer."""


@dataclass(frozen=True, slots=True)
class PairedRequest:
    """A request that passed: ``at`` is seconds of the frames' monotonic clock."""

    number: int
    at: float
    method: str
    call: int | None


_Key = tuple[str, int, bool, type, RequestId]


class FramePairing:
    """Fed every frame in order, says what each belongs to."""

    def __init__(self) -> None:
        self._asked: dict[_Key, PairedRequest] = {}

    def add(self, frame: Frame) -> PairedRequest | None:
        """The request that this frame answers, or reports on; remembers it where it is a request itself."""
        facts = frame.facts
        found: PairedRequest | None = None
        for part in facts.parts or (facts,):
            if part.kind is FrameKind.REQUEST and part.id is not None:
                self._remember(frame, part, part.id)
            else:
                found = found or self._found(frame, part)
        return found

    def _remember(self, frame: Frame, part: FrameFacts, request_id: RequestId) -> None:
        if len(self._asked) >= REMEMBERED:
            del self._asked[next(iter(self._asked))]
        asked = PairedRequest(frame.number, frame.at, part.method, frame.call)
        self._asked[_key(frame, frame.sent, request_id)] = asked

    def _found(self, frame: Frame, part: FrameFacts) -> PairedRequest | None:
        if part.id is not None:
            return self._asked.get(_key(frame, not frame.sent, part.id))
        if part.about is None:
            return None
        # Progress comes from who answers, a cancel notice from who asked.
        asker = frame.sent if part.method == "notifications/cancelled" else not frame.sent
        return self._asked.get(_key(frame, asker, part.about))


def is_answer(frame: Frame) -> bool:
    """Does the frame end the waiting for a request?"""
    facts = frame.facts
    kinds = {part.kind for part in facts.parts} or {facts.kind}
    return bool(kinds & {FrameKind.RESPONSE, FrameKind.ERROR, FrameKind.MALFORMED}) and FrameKind.REQUEST not in kinds


def _key(frame: Frame, sent: bool, request_id: RequestId) -> _Key:
    return frame.server, frame.connection, sent, type(request_id), request_id
