"""Requests that wait for the client's next attempt, by the state that goes out and comes back.

The state is a random name for what is kept here. It is valid once, for a while, and for the same request only.

Specification: 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import os
from typing import Any, Final

from mcphost.serving.negotiation import InvalidParamsError
from mcphost.serving.served_request import ClientAnswer, Json, ServedRequest
from mcphost.serving.time_limits import Expiry, Timers

ROUND_SECONDS: Final = 3_600.0
"""For a person to answer; the client may never try again."""

WAITING_REQUESTS: Final = 64
"""Requests of one client that wait; the oldest are given up, since no user answers that many."""

_OF_THE_ROUND: Final = frozenset({"_meta", "inputResponses", "requestState"})


class Rounds:
    """The waiting requests of one client."""

    def __init__(self, timers: Timers) -> None:
        self._waiting: dict[str, ServedRequest] = {}
        self._expiry: Expiry[str] = Expiry(timers, ROUND_SECONDS, self._give_up)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def park(self, request: ServedRequest) -> Json:
        """The result that asks the client for what the request needs."""
        state = os.urandom(16).hex()
        self._waiting[state] = request
        self._expiry.add(state)
        if len(self._waiting) > WAITING_REQUESTS:
            self._give_up(next(iter(self._waiting)))
        needs = {key: {"method": ask.method, "params": ask.params} for key, ask in request.asks.items()}
        return {"resultType": "input_required", "inputRequests": needs, "requestState": state}

    def take(self, method: str, params: Json) -> ServedRequest:
        """The request that this attempt continues. Raises InvalidParamsError."""
        state = params["requestState"]
        request = self._waiting.get(state) if isinstance(state, str) else None
        if request is None:
            raise InvalidParamsError("This requestState is not known, or not any more. Call again without it.")
        if request.method != method or _core(request.params) != _core(params):
            raise InvalidParamsError("This requestState belongs to another request.")
        responses_in(params)
        self._forget(state)
        return request

    def expire(self) -> None:
        """Give up the requests whose time is over."""
        self._expiry.expire()

    def clear(self) -> None:
        for state in list(self._waiting):
            self._give_up(state)

    def _give_up(self, state: str) -> None:
        self._forget(state).cancel()

    def _forget(self, state: str) -> ServedRequest:
        self._expiry.discard(state)
        return self._waiting.pop(state)


def answer_asks(request: ServedRequest, params: Json) -> None:
    """Pass on the client's responses. Those to no open ask are ignored. Raises InvalidParamsError."""
    for key, response in responses_in(params).items():
        request.answer(key, ClientAnswer(response))


def responses_in(params: Json) -> dict[str, dict[str, Any]]:
    """The ``inputResponses``. Raises InvalidParamsError."""
    responses = params.get("inputResponses", {})
    if not isinstance(responses, dict) or not all(isinstance(each, dict) for each in responses.values()):
        raise InvalidParamsError("inputResponses is not an object of objects.")
    return responses


def _core(params: Json) -> Json:
    return {name: value for name, value in params.items() if name not in _OF_THE_ROUND}
