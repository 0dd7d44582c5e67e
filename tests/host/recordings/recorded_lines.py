"""Writes sessions as lines of traffic, as they pass in the era of the session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count, groupby
from typing import Any

from mcphost.host.recordings.recording import RecordedEvent, RecordedExchange, RecordedSession
from mcphost.host.traffic.file import line_of
from mcphost.host.traffic.message import TrafficMessage

STARTED = 1_700_000_000.0
Message = tuple[float, bool, Mapping[str, Any]]


def written(*sessions: RecordedSession) -> bytes:
    """The lines of these sessions, one after the other."""
    return b"".join(line(session, *message) for session in sessions for message in messages_of(session))


def line(session: RecordedSession, at: float, sent: bool, message: Any, *, size: int = 0, note: str = "") -> bytes:
    data = message.encode() if isinstance(message, str) else json.dumps(message).encode()
    size = size or len(data)
    passed = TrafficMessage(1, STARTED + at, at, session.server, session.connection, sent, note, data, size, None)
    return line_of(passed, str, None)


def messages_of(session: RecordedSession) -> Iterator[Message]:
    ids, notices = count(1), list(session.notices)
    yield from ((notice.at, False, _notification(notice)) for notice in notices if notice.after == -1)
    for place, exchange in enumerate(session.exchanges):
        pass_on = _modern if session.modern else _legacy
        yield from pass_on(exchange, ids)
        yield from ((notice.at, False, _notification(notice)) for notice in notices if notice.after == place)


def _legacy(exchange: RecordedExchange, ids: Iterator[int]) -> Iterator[Message]:
    own = next(ids)
    yield exchange.at, True, _request(own, exchange.method, exchange.params)
    for event in exchange.events:
        at = exchange.at + event.after
        if event.kind != "question":
            yield at, False, _notification(event)
            continue
        asked = f"s{next(ids)}"
        yield at, False, _request(asked, event.method, event.params)
        if event.answer is not None:
            yield at, True, {"jsonrpc": "2.0", "id": asked, **event.answer}
    yield from _end(exchange, own)


def _modern(exchange: RecordedExchange, ids: Iterator[int]) -> Iterator[Message]:
    own = next(ids)
    yield exchange.at, True, _request(own, exchange.method, exchange.params)
    for after, group in groupby(exchange.events, key=lambda event: (event.after, event.kind == "question")):
        events, at = [*group], exchange.at + after[0]
        if events[0].kind != "question":
            yield from ((at, False, _notification(event)) for event in events)
            continue
        state = f"state-{next(ids)}"
        asked = {event.key: {"method": event.method, "params": event.params} for event in events}
        needs = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        yield at, False, {"jsonrpc": "2.0", "id": own, "result": needs}
        if any(event.answer is not None for event in events):
            own = next(ids)
            answers = {event.key: event.answer["result"] for event in events if event.answer is not None}
            params = {**exchange.params, "inputResponses": answers, "requestState": state}
            yield at, True, _request(own, exchange.method, params)
    yield from _end(exchange, own)


def _end(exchange: RecordedExchange, own: int) -> Iterator[Message]:
    if exchange.seconds is not None:
        outcome = {"result": exchange.result} if exchange.error is None else {"error": exchange.error}
        yield exchange.at + exchange.seconds, False, {"jsonrpc": "2.0", "id": own, **outcome}


def _request(own: int | str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": own, "method": method, "params": params}


def _notification(event: RecordedEvent | Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": event.method, "params": event.params}
