"""JSON-RPC 2.0 as MCP uses it: bytes to messages and back.

Decoding never raises: an invalid message becomes a `Malformed`, which says why, and which request it would have
answered.

Specification: basic/index (messages), 2025-03-26 basic (batching).
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import Any, Final

from pydantic_core import to_json

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.limits import JSON_DEPTH, MESSAGE_ITEMS
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.strict_json import IN_STEPS, Refused, parse, parse_in_steps

RequestId = int | str
"""Ids are compared by type and value: ``3`` never answers ``"3"``, nor ``3.0`` or ``true`` either of them."""

VERSION: Final = "2.0"


@dataclass(frozen=True, slots=True)
class Request:
    """A call; exactly one `Response` with the same id answers it."""

    id: RequestId
    method: str
    params: Mapping[str, Any] | None = None
    remark: str = field(default="", compare=False)
    """Violation of the specification in a message that could be read."""

    def as_object(self) -> dict[str, Any]:
        return _with_params({"jsonrpc": VERSION, "id": self.id, "method": self.method}, self.params)


@dataclass(frozen=True, slots=True)
class Notification:
    """A message without an answer."""

    method: str
    params: Mapping[str, Any] | None = None
    remark: str = field(default="", compare=False)

    def as_object(self) -> dict[str, Any]:
        return _with_params({"jsonrpc": VERSION, "method": self.method}, self.params)


@dataclass(frozen=True, slots=True)
class ErrorObject:
    """Why a request failed, in the words of the side that refused it."""

    code: int
    message: str
    data: Any = None

    @classmethod
    def read(cls, value: object) -> ErrorObject | None:
        """Parse an error object; None if it breaks the specification."""
        if type(value) is not dict or type(value.get("code")) is not int or type(value.get("message")) is not str:
            return None
        return cls(value["code"], value["message"], value.get("data"))

    def as_object(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request: ``error`` or ``result``. The id of an error may be None."""

    id: RequestId | None
    result: Mapping[str, Any] | None = None
    error: ErrorObject | None = None
    remark: str = field(default="", compare=False)

    def as_object(self) -> dict[str, Any]:
        if self.error is not None:
            return {"jsonrpc": VERSION, "id": self.id, "error": self.error.as_object()}
        return {"jsonrpc": VERSION, "id": self.id, "result": self.result or {}}


@dataclass(frozen=True, slots=True)
class Malformed:
    """Something received that is not a valid message.

    ``answers`` is the id of our request that it answers; ``asks`` the id of the server's request that is owed an error
    with ``code``. ``limit`` is the limit it exceeds, if that is its only fault.
    """

    reason: str
    data: bytes
    answers: RequestId | None = None
    asks: RequestId | None = None
    is_json: bool = True
    code: ErrorCode = ErrorCode.INVALID_REQUEST
    limit: int | None = None


Message = Request | Notification | Response


def shown_id(request_id: RequestId | None) -> str:
    """An id with its type where that is a text: ``"1"`` does not answer ``1``."""
    return f'"{request_id[:ID_LENGTH]}" (a text)' if isinstance(request_id, str) else str(request_id)


ID_LENGTH: Final = 40
"""Characters of an id that a sentence quotes."""

QUOTED_WORDS: Final = 300
"""Characters that a reason quotes of an answer that breaks the specification: what the server says may be there."""

REFUSED_ANSWERS: Final = 100
"""Requests that fail when a batch with their responses is refused; the default size of a batch."""


def encode(message: Message) -> bytes:
    """One line of UTF-8 without a raw newline. A lone surrogate is replaced by ``?``."""
    return encode_value(message.as_object())


def encode_value(given: Any) -> bytes:
    """As `encode`, of a message as a value, or of a batch."""
    # pydantic's serializer takes a fifth of the time. It refuses surrogates and deep nesting, and writes small, large
    # and infinite floats differently; a text that only looks like one costs no more than the time.
    try:
        line = to_json(given)
    except ValueError:
        return _encoded(given)
    return _encoded(given) if _EXPONENT(line) or _SMALL(line) or _NAN(line) or _INFINITY(line) else line


def _encoded(message: Any) -> bytes:
    return _encoder.encode(message).encode("utf-8", "replace")


# Four patterns that begin with a literal, which is searched for ten times as fast as one of four branches.
_EXPONENT: Final = re.compile(rb"e(?<=\de)").search
_SMALL: Final = re.compile(rb"0\.0000").search
_NAN: Final = re.compile(rb"NaN").search
_INFINITY: Final = re.compile(rb"Infinity").search
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(
    data: bytes, *, batch_items: int = 0, max_items: int = MESSAGE_ITEMS, max_depth: int = JSON_DEPTH
) -> Sequence[Message | Malformed]:
    """Decode one JSON text: a message, or a batch of up to ``batch_items`` (0: no batches).

    Blocks for long with a large text: use `decode_in_steps` on the event loop.
    """
    if len(data) < IN_STEPS:
        return _decode_small(data, batch_items, max_depth)
    steps = decode_in_steps(data, batch_items=batch_items, max_items=max_items, max_depth=max_depth)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            messages: Sequence[Message | Malformed] = end.value
            return messages


Decoding = Generator[None, None, Sequence[Message | Malformed]]
"""Yields after each short step; returns the messages."""


def decode_in_steps(
    data: bytes, *, batch_items: int = 0, max_items: int = MESSAGE_ITEMS, max_depth: int = JSON_DEPTH
) -> Decoding:
    """As `decode`.

    ``max_items`` bounds the objects and arrays of a message over 1 MB, ``max_depth`` those inside each other.
    """
    if len(data) < IN_STEPS:
        return _decode_small(data, batch_items, max_depth)
    try:
        value = yield from parse_in_steps(data, max_items, max_depth)
    except Refused as refused:
        return (_unreadable(data, refused),)
    return _messages(value, data, batch_items)


def _decode_small(data: bytes, batch_items: int, max_depth: int) -> Sequence[Message | Malformed]:
    try:
        value = parse(data, max_depth)
    except Refused as refused:
        return (_unreadable(data, refused),)
    return _messages(value, data, batch_items)


def _unreadable(data: bytes, refused: Refused) -> Malformed:
    # A large text is not parsed again; if it is JSON, its last member may hold the id as well as its first.
    if refused.limit is None and len(data) < IN_STEPS:
        answers = _answered_leniently(data)
    else:
        answers = answered_by(data, data[-_LAST_BYTES:] if refused.is_json else b"")
    return Malformed(str(refused), data, answers=answers, is_json=refused.is_json, limit=refused.limit)


def _messages(value: Any, data: bytes, batch_items: int) -> Sequence[Message | Malformed]:
    return tuple(_batch(value, data, batch_items)) if type(value) is list else (_message(value, data),)


_TWO: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID: Final = rb'"id"\s*:\s*(?P<id>-?\d{1,18}|"[\w.:-]{1,80}")\s*'
_OUTCOME: Final = rb'"(?:result|error)"\s*:'
_FIRST: Final = rb"\s*\{\s*(?:%s,\s*)?%s,\s*(?:%s,\s*)?%s" % (_TWO, _ID, _TWO, _OUTCOME)
_OUTCOME_FIRST: Final = rb"\s*\{\s*(?:%s,\s*)?%s" % (_TWO, _OUTCOME)
_LAST: Final = rb",\s*%s(?:,\s*%s)?\}\s*\Z" % (_ID, _TWO)
_LAST_BYTES: Final = 200
"""Bytes at the end of a response that hold its id if that is the last member."""


def answered_by(start: bytes, end: bytes = b"") -> RequestId | None:
    """The id of an unparsed response, if it begins or ends as most programs write them; else None.

    Pass ``end`` only for a complete message.
    """
    found = re.match(_FIRST, start) or (re.match(_OUTCOME_FIRST, start) and re.search(_LAST, end))
    answered: RequestId | None = json.loads(found["id"]) if found else None
    return answered


def _answered_leniently(data: bytes) -> RequestId | None:
    """The id of an invalid response; None if that is uncertain."""
    try:
        value = _lenient.decode(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return answered_by(data)
    if type(value) is not _Pairs:
        return None
    names = [name for name, _ in value.pairs]
    if names.count("id") != 1 or "method" in names or not {"result", "error"} & set(names):
        return None
    return _id_of(dict(value.pairs))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """An object as written, perhaps with duplicate keys."""

    pairs: list[tuple[str, Any]]


_lenient: Final = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    # Only ids are read from it: one of 20 digits and more is not ours, and int() of long texts takes quadratic time.
    parse_int=lambda text: int(text) if len(text) < 20 else None,
    parse_float=lambda text: None,
    parse_constant=lambda text: None,
    strict=False,
)


def _with_params(message: dict[str, Any], params: Mapping[str, Any] | None) -> dict[str, Any]:
    if params is not None:
        message["params"] = params
    return message


def _batch(items: list[Any], data: bytes, limit: int) -> Iterator[Message | Malformed]:
    if not items:
        yield Malformed("an empty batch", data)
    elif not limit:
        yield from _refused_batch("a batch, which only revision 2025-03-26 has", items, data)
    elif len(items) > limit:
        yield from _refused_batch(f"a batch of {len(items)} messages, over the limit of {limit}", items, data)
    else:
        for item in items:
            yield _message(item, data)


def _refused_batch(reason: str, items: list[Any], data: bytes) -> Iterator[Malformed]:
    """The problem itself, and one for each request that the batch would have answered, up to `REFUSED_ANSWERS`."""
    ids = (_id_of(item) for item in items if type(item) is dict and {"result", "error"} & item.keys())
    answers = list(islice((each for each in ids if each is not None), REFUSED_ANSWERS))
    yield from (Malformed(reason, data, answers=each) for each in answers)
    if not answers:
        yield Malformed(reason, data)


def _message(value: Any, data: bytes) -> Message | Malformed:
    if type(value) is not dict:
        return Malformed(f"a JSON {_kind(value)}, not a message", data)
    if None in value.values():
        value, remark = _without_nulls(value)
        message = _message_of(value, data)
        return message if not remark or isinstance(message, Malformed) else replace(message, remark=remark)
    return _message_of(value, data)


def _without_nulls(value: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A message without its null members that may be absent, and a remark if it had any.

    Some programs write all members of all messages. An answer has a result or an error: one that is null is absent
    beside the other, not alone.
    """
    method, absent = value.get("method"), {"method", "params"}
    if method is not None:
        absent |= {"result", "error"}
        if isinstance(method, str) and method.startswith("notifications/"):
            absent.add("id")  # elsewhere the id decides what the message is
    elif "result" in value and "error" in value:
        absent.add("result" if value["error"] is not None else "error")
    nulls = [name for name, member in value.items() if member is None and name in absent]
    if not nulls:
        return value, ""
    return (
        {name: member for name, member in value.items() if name not in nulls},
        f"messages with null as {', '.join(sorted(nulls))}, which must be absent instead",
    )


def _message_of(value: dict[str, Any], data: bytes) -> Message | Malformed:
    is_answer = "result" in value or "error" in value
    if "method" in value and is_answer:
        return Malformed("a method and an answer in one", data, answers=_id_of(value))
    if "method" in value:
        return _call(value, data)
    if is_answer:
        return _response(value, data)
    rest = {name: member for name, member in value.items() if name not in ("jsonrpc", "id")}
    return Malformed(f"neither a method nor a result nor an error{_says(rest)}", data, answers=_id_of(value))


def _id_of(value: dict[str, Any]) -> RequestId | None:
    """The id if it is valid: true and 3.0 equal 1 and 3 in Python, but are not ids."""
    given = value.get("id")
    return given if type(given) in (int, str) else None


def _call(value: dict[str, Any], data: bytes) -> Message | Malformed:
    method, params, request_id = value["method"], value.get("params"), _id_of(value)
    if value.get("jsonrpc") != VERSION:
        return Malformed('"jsonrpc" is not "2.0"', data, asks=request_id)
    if type(method) is not str:
        return Malformed("the method is not a string", data, asks=request_id)
    remark = ""
    if params == []:  # how PHP writes an object without members
        params, remark = None, "messages with an empty array as params, which must be an object"
    if params is not None and type(params) is not dict:
        return Malformed("params is not an object", data, asks=request_id, code=ErrorCode.INVALID_PARAMS)
    if "id" not in value:
        return Notification(method, params, remark)
    if request_id is None:
        return Malformed("the id is neither a string nor an integer", data)
    return Request(request_id, method, params, remark)


def _response(value: dict[str, Any], data: bytes) -> Message | Malformed:
    request_id, result, error = _id_of(value), value.get("result"), value.get("error")
    if value.get("jsonrpc") != VERSION:
        problem = f'"jsonrpc" is not "2.0"{_says(error)}'
    elif "error" not in value:
        if request_id is not None and type(result) is dict:
            return Response(request_id, result)
        problem = (
            "a result whose id is neither a string nor an integer"
            if request_id is None
            else f"the result is a JSON {_kind(result)}, not an object{_says(result)}"
        )
    elif "result" in value:
        problem = f"both a result and an error{_says(error)}"
    elif request_id is None and value.get("id") is not None:
        problem = "an error whose id is neither a string nor an integer"
    elif (read := ErrorObject.read(error)) is not None:
        return Response(request_id, error=read)
    elif type(error) is not dict:
        problem = f"the error is a JSON {_kind(error)}, not an object{_says(error)}"
    elif type(error.get("code")) is not int:
        problem = f"the error's code is not an integer{_says(error)}"
    else:
        problem = f"the error's message is not a string{_says(error)}"
    return Malformed(problem, data, answers=request_id)


def _says(value: object) -> str:
    """The server's words in a value of the wrong shape, as a clause after a reason."""
    words = words_in(value)
    rest = "…" if len(words) > QUOTED_WORDS else ""
    return f"; it says: {words[:QUOTED_WORDS]}{rest}" if words else ""


_SAID_IN: Final = ("message", "error", "detail", "description", "reason", "text", "content", "data")
"""Members that hold what a server says, the likeliest first."""


def words_in(value: object) -> str:
    """The text in a JSON value of any shape, or else the value as JSON; empty for null and what is empty.

    A ``requestState`` is left out: it may hold what only the server may know.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(words_in, value)))
    found = next((value[name] for name in _SAID_IN if value.get(name)), None) if isinstance(value, dict) else None
    if isinstance(found, str | list | dict):
        return words_in(found)
    shown = _without_state(value)
    return json.dumps(shown, ensure_ascii=False) if shown not in (None, {}) else ""


def _without_state(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_state(member) for name, member in value.items() if name != "requestState"}
    return [_without_state(item) for item in value] if isinstance(value, list) else value


def _kind(value: Any) -> str:
    names: Mapping[type, str] = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        type(None): "null",
    }
    return names.get(type(value), "number")
