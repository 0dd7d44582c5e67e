"""Reads the lines between an agent and its server so that no message can hide in one.

What an agent writes must mean one thing only: a server may split lines at a carriage return, take the last of two equal
keys, or compare keys without case.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mcphost.protocol.limits import BATCH_ITEMS, JSON_DEPTH, MESSAGE_BYTES
from mcphost.protocol.wire.strict_json import Refused, parse

MessageId = str | int | float
Message = dict[str, Any]

DECIDING: Final = ("jsonrpc", "id", "method", "params", "result", "error")
"""Members that decide what a message is."""

ID_SEARCHED: Final = 1_000_000
"""Bytes of a refused line in which its id is searched for."""


class LineRefused(Exception):
    """Says why a line may not pass.

    ``request_id`` is the id of the message in it, if that is certain; with ``owed``, its writer awaits an answer.
    """

    def __init__(
        self, reason: str, *, is_json: bool = True, request_id: MessageId | None = None, owed: bool = True
    ) -> None:
        super().__init__(reason)
        self.is_json, self.request_id, self.owed = is_json, request_id, owed


class GateLine(NamedTuple):
    messages: Sequence[Message]
    is_batch: bool = False
    exact: bool = True
    """False if the values are not all that the line says; then it may only pass as it is."""


def read_agent_line(line: bytes) -> GateLine:
    """Read a line of an agent. Raises LineRefused."""
    body = _body(line)
    try:
        return _messages(parse(body, JSON_DEPTH), exact=True)
    except Refused as refused:
        asks, owed = _question_in(body)
        raise LineRefused(str(refused), is_json=refused.is_json, request_id=asks, owed=owed) from None


def read_server_line(line: bytes) -> GateLine:
    """Read a line of a server, in which values may be duplicate, deep or large. Raises LineRefused."""
    body = _body(line)
    try:
        return _messages(parse(body, JSON_DEPTH), exact=True)
    except Refused as refused:
        if not refused.is_json:
            raise LineRefused(str(refused), is_json=False, request_id=_answered(body)) from None
        value, unique = _read_leniently(body)
        if type(value) is not dict or not unique:
            raise LineRefused(str(refused), request_id=_answered(body)) from None
        return _messages(value, exact=False)


def answered_in(piece: bytes) -> MessageId | None:
    """The id of the response that begins with ``piece``, if that is certain."""
    return _answered(piece[:ID_SEARCHED])


_compact: Final = json.JSONEncoder(separators=(",", ":")).encode


def encode(value: object) -> bytes:
    """A line of plain ASCII with its newline, which no reader splits."""
    return _compact(value).encode() + b"\n"


def id_of(value: object) -> MessageId | None:
    """An id as a key: ``1`` is ``1.0``, but neither ``"1"`` nor ``true``; None for any other value."""
    return value if type(value) in (str, int, float) else None  # type: ignore[return-value]


def is_disguised(names: Collection[str], deciding: Collection[str]) -> bool:
    """True if one of these names differs from a deciding one by its case alone."""
    folded = [each.casefold() for each in deciding]
    return any(name not in deciding and name.casefold() in folded for name in names)


def is_read_otherwise(line: bytes, message: Message) -> bool:
    """True if the message may say something else than its line: half a pair of surrogates was read as another text."""
    return b"\\ud" in line.lower() and r"\ufffd" in json.dumps(message)


def _body(line: bytes) -> bytes:
    body = line.strip(b" \t\r\n")
    if len(body) > MESSAGE_BYTES:
        raise LineRefused(f"longer than {MESSAGE_BYTES} bytes", request_id=_answered(body[:ID_SEARCHED]), owed=False)
    # Between two values it is white space of JSON, at which programs that read text split a line.
    if b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
        raise LineRefused("a carriage return within the line")
    return body


def _messages(value: Any, *, exact: bool) -> GateLine:
    is_batch = type(value) is list
    messages = value if is_batch else [value]
    if not messages or not all(type(each) is dict for each in messages):
        raise LineRefused("not a message, nor an array of messages")
    if len(messages) > BATCH_ITEMS:
        raise LineRefused(f"a batch of {len(messages)} messages, over the limit of {BATCH_ITEMS}")
    for each in messages:
        if not _KNOWN.issuperset(each) and is_disguised(each, DECIDING):
            reason = "a key that differs by its case alone from one that decides what the message is"
            raise LineRefused(reason, request_id=None if is_batch else _asked_id(each), owed=_is_question(each))
    return GateLine(messages, is_batch, exact)


_KNOWN: Final = frozenset(DECIDING)


class _Uniqueness:
    """Builds objects, and remembers of the last one, which is the outermost, if its keys were unique."""

    unique = True

    def build(self, pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
        members = dict(pairs)
        self.unique = len(members) == len(pairs)
        return members


def _read_leniently(body: bytes) -> tuple[Any, bool]:
    """The value of a text, or None, and if the keys of its outermost object are unique."""
    hook = _Uniqueness()
    decoder = json.JSONDecoder(
        object_pairs_hook=hook.build,
        parse_int=lambda text: int(text) if len(text) < 400 else 0,  # int() of long texts takes quadratic time
        parse_constant=_refuse_constant,
    )
    try:
        return decoder.decode(body.decode("utf-8").removeprefix("\ufeff")), hook.unique
    except (ValueError, RecursionError):
        return None, False


def _refuse_constant(text: str) -> float:
    raise ValueError(text)


def _question_in(body: bytes) -> tuple[MessageId | None, bool]:
    """The id of a refused request, or None if that is uncertain, and if an answer is owed."""
    if len(body) > ID_SEARCHED:
        return None, True
    value, unique = _read_leniently(body)
    if type(value) is not dict:
        return None, True
    return (_asked_id(value) if unique else None), _is_question(value)


def _asked_id(message: Message) -> MessageId | None:
    return id_of(message.get("id")) if _is_question(message) else None


def _is_question(message: Message) -> bool:
    return "id" in message and "result" not in message and "error" not in message


def _answered(body: bytes) -> MessageId | None:
    from mcphost.protocol.wire.jsonrpc import answered_by  # late: for refused lines alone

    return answered_by(body)
