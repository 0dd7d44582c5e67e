"""Picks the answer to one request out of whatever comes back for it, and hands on the rest.

Knows ids. Refuses to know where the messages come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcphost.errors import InvalidResult, McphostError, MessageTooLarge, PeerError
from mcphost.protocol.wire.jsonrpc import Malformed, Message, RequestId, Response
from mcphost.transports.base import Inbound


def why_invalid(answer: Malformed) -> PeerError:
    """What to raise to whom this would have answered."""
    told = f"the server's answer is invalid: {answer.reason}"
    return InvalidResult(told) if answer.limit is None else MessageTooLarge(told, answer.limit)


class ResponsePicker:
    """The answer to ``request_id``; to nobody where that is None, and then everything is handed on."""

    def __init__(self, request_id: RequestId | None, inbound: Inbound) -> None:
        self._request_id = request_id
        self._inbound = inbound
        self._response: Response | None = None
        self._failure: McphostError | None = None
        self.garbled: PeerError | None = None
        """What to `fail` with where no message follows a broken one that can only have been the answer."""

    @property
    def wanted(self) -> bool:
        """Does anybody wait for it still?"""
        return self._request_id is not None and not self.done

    @property
    def done(self) -> bool:
        """Is it known how the request ended?"""
        return self._response is not None or self._failure is not None

    def response(self) -> Response:
        """The answer. Raises what made it invalid."""
        if self._failure is not None:
            raise self._failure
        if self._response is None:
            raise InvalidResult("the server's answer holds no response to this request")
        return self._response

    def take(self, message: Message | Malformed) -> None:
        """Keep the answer; pass on everything else."""
        if isinstance(message, Malformed):
            self._refuse(message)
            return
        self.garbled = None
        if not isinstance(message, Response):
            self._inbound.message(message)
        elif message.id == self._request_id and message.id is not None and not self.done:
            self._response = message
        else:
            self._inbound.unmatched(message)

    def take_body(self, messages: Sequence[Message | Malformed]) -> None:
        """Take all that a body held. What stands there alone, and names no request, is about this one."""
        if len(messages) == 1:
            self._take_alone(messages[0])
        else:
            for message in messages:
                self.take(message)

    def fail(self, failure: McphostError) -> None:
        """The answer came and cannot be had."""
        if not self.done:
            self._failure = failure

    def _take_alone(self, message: Message | Malformed) -> None:
        if isinstance(message, Response) and message.id is None and message.error is not None:
            self._response = message
            return
        self.take(message)
        if isinstance(message, Malformed):
            self.fail(why_invalid(message))

    def _refuse(self, problem: Malformed) -> None:
        if problem.answers is not None and problem.answers == self._request_id:
            self.fail(why_invalid(problem))
        elif self.wanted and _can_only_be_an_answer(problem):
            self.garbled = why_invalid(problem)
        self._inbound.malformed(problem)


def _can_only_be_an_answer(problem: Malformed) -> bool:
    """Is it a broken JSON object, and none with a method, as every notification and request has?"""
    return not problem.is_json and problem.data.lstrip().startswith(b"{") and b'"method"' not in problem.data
