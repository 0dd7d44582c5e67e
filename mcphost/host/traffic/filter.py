"""The language in which traffic is searched: ``server:db method:tools/* latency>100ms -status:ok "connection lost"``.

The grammar is that of the log's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mcphost.host.filter_terms import (
    COMPARE,
    FilterError,
    FilterLanguage,
    any_like,
    call_numbers,
    listed,
    one_of,
    split_terms,
)
from mcphost.host.traffic.message import INPUT_REQUIRED, OPEN, Abandoned, MessageKind, TrafficMessage
from mcphost.lazy_dataclass import dataclass

Test = Callable[[TrafficMessage], bool]

EXAMPLES: Final = (
    "words  server:NAME  agent:NAME  method:tools/*  id:7  dir:in  kind:error  status:404  size>1k  latency>100ms"
    '  call:12  -not  "two words"'
)

COMPARED: Final = "size and latency"


@dataclass(frozen=True, slots=True)
class TrafficFilter:
    """The conditions of a filter, all of which a message must meet; none: every message passes."""

    text: str = ""
    tests: tuple[Test, ...] = ()
    words: tuple[str, ...] = ()
    """The texts that occur in each message that passes."""
    names_id: bool = False
    """The filter tests ids, so the list shows them."""

    def passes(self, message: TrafficMessage) -> bool:
        """True if the message meets every condition. It must come from the book, which has paired it."""
        return all(test(message) for test in self.tests)


def parse_traffic_filter(text: str) -> TrafficFilter:
    """Read a filter as typed. Terms are separated by blanks, and all of them must be true of a message.

    ``a,b`` after a field means one of them; ``*`` stands for any characters, ``status:4xx`` for all those codes;
    ``size:1k`` and ``latency:100ms`` mean at least so much, on an answer and on its request. Raises FilterError.
    """
    text = text.strip()
    terms = list(split_terms(text))
    names_id = any(term.field == "id" for term in terms)
    return TrafficFilter(text, tuple(map(_LANGUAGE.test, terms)), _LANGUAGE.sought(terms), names_id)


_ANSWERS: Final = frozenset({MessageKind.RESPONSE, MessageKind.ERROR})


def _words(text: str) -> Test:
    wanted = text.casefold()
    in_json = wanted.isascii() and wanted.isprintable()
    # Bytes are searched as they are where that finds the same: it takes a fifth of the time.
    raw = wanted.encode() if in_json else b""

    def test(message: TrafficMessage) -> bool:
        if raw and (raw in message.data.lower()):
            return True
        if (
            message.kind in _ANSWERS and wanted in message.method.casefold()
        ):  # shown with it, and written in the request
            return True
        escaped_or_foreign = b"\\" in message.data or not message.data.isascii()
        return escaped_or_foreign and wanted in _readable(message)

    return test


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\/]))")


def _readable(message: TrafficMessage) -> str:
    """The text as it is read: the escapes of JSON as what they stand for."""
    text = message.data.decode("utf-8", "replace")
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text).casefold()


def _like(field: str, of: Callable[[TrafficMessage], str]) -> Callable[[str, str], Test]:
    def maker(sign: str, value: str) -> Test:
        like = any_like(listed(field, sign, value, compared=COMPARED))
        return lambda message: like(of(message))

    return maker


def _server(sign: str, value: str) -> Test:
    """A server of an agent is also found by its own name."""
    like = any_like(listed("server", sign, value, compared=COMPARED))
    return lambda message: like(message.place) or (bool(message.agent) and like(message.server.rpartition(">")[2]))


def _agent(sign: str, value: str) -> Test:
    """``agent:claude`` is any whose name begins so; ``agent:*`` is any at all."""
    like = any_like([f"{name}*" for name in listed("agent", sign, value, compared=COMPARED)])
    return lambda message: bool(message.agent) and like(message.agent)


def _text(sign: str, value: str) -> Test:
    tests = [_words(text) for text in listed("text", sign, value, compared=COMPARED)]
    return lambda message: any(test(message) for test in tests)


def _direction(sign: str, value: str) -> Test:
    names = one_of("direction", listed("dir", sign, value, compared=COMPARED), ["in", "out"])
    return lambda message: message.direction in names


def _kind(sign: str, value: str) -> Test:
    names = one_of("kind", listed("kind", sign, value, compared=COMPARED), [kind.value for kind in MessageKind])
    return lambda message: message.kind.value in names


_CODE: Final = re.compile(r"-?\d[\dx]*")


def _status(sign: str, value: str) -> Test:
    words = listed("status", sign, value, compared=COMPARED)
    for word in words:
        if not _CODE.fullmatch(word) and not any(map(any_like([word]), _STATES)):
            raise FilterError(f"There is no status {word}; there are {', '.join(_STATES)} and codes, as in status:404.")
    like = any_like([word.replace("x", "?") if _CODE.fullmatch(word) else word for word in words])
    return lambda message: any(map(like, message.status))


_STATES: Final = (*(each.value for each in Abandoned), OPEN, INPUT_REQUIRED, "answered", "ok", "failed", "error")


def _call(sign: str, value: str) -> Test:
    wanted = call_numbers(sign, value, compared=COMPARED)
    return lambda message: wanted(message.call)


_MEASURE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([a-z\u03bc]*)")
_BYTES: Final = {"": 1, "b": 1, "k": 1000, "kb": 1000, "m": 1_000_000, "mb": 1_000_000}
_SECONDS: Final = {"": 1e-3, "us": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def _measured(field: str, value: str, units: dict[str, float] | dict[str, int]) -> float:
    found = _MEASURE.fullmatch(value)
    if found is None or found[2] not in units:
        raise FilterError(f"{value} is no {field}; write for example {_EXAMPLE[field]}.")
    return float(found[1]) * units[found[2]]


def _size(sign: str, value: str) -> Test:
    bound, compare = _measured("size", value, _BYTES), COMPARE[sign]
    return lambda message: compare(message.size, bound)


def _latency(sign: str, value: str) -> Test:
    bound, compare = _measured("latency", value, _SECONDS), COMPARE[sign]
    return lambda message: message.latency is not None and compare(message.latency, bound)


_EXAMPLE: Final = {
    "server": "server:git",
    "agent": "agent:claude*",
    "method": "method:tools/call",
    "id": "id:7",
    "dir": "dir:in",
    "kind": "kind:error",
    "status": "status:404",
    "size": "size>1k",
    "latency": "latency>100ms",
    "text": "text:lost",
    "call": "call:12",
}

_LANGUAGE: Final[FilterLanguage[TrafficMessage]] = FilterLanguage(
    fields={
        "server": _server,
        "agent": _agent,
        "method": _like("method", lambda message: message.method),
        "id": _like("id", lambda message: "" if message.id is None else str(message.id)),
        "dir": _direction,
        "kind": _kind,
        "status": _status,
        "size": _size,
        "latency": _latency,
        "text": _text,
        "call": _call,
    },
    examples=_EXAMPLE,
    words=_words,
)
