"""Picks the response to one request out of the messages on its stream, and passes on the rest."""

from __future__ import annotations

from collections.abc import Sequence

from mcphost.errors import InvalidResult, McphostError, MessageTooLarge, PeerError
from mcphost.protocol.wire.jsonrpc import Malformed, Message, RequestId, Response, shown_id
from mcphost.transports.base import Inbound


def why_invalid(answer: Malformed) -> PeerError:
    """The exception for the request that this would have answered."""
    reason = f"the server's answer is invalid: {answer.reason}"
    return InvalidResult(reason) if answer.limit is None else MessageTooLarge(reason, answer.limit)


class ResponsePicker:
    """Finds the response to ``request_id``; None passes everything on to ``inbound``."""

    def __init__(self, request_id: RequestId | None, inbound: Inbound) -> None:
        self._request_id = request_id
        self._inbound = inbound
        self._response: Response | None = None
        self._failure: McphostError | None = None
        self.mismatch = ""
        """The id of an answer that came instead, as a clause; empty if none did."""
        self.garbled: PeerError | None = None
        """The failure if no message follows a broken one that can only have been the response."""

    @property
    def pending(self) -> bool:
        """True while the response is awaited."""
        return self._request_id is not None and not self.done

    @property
    def done(self) -> bool:
        """True once the request has a response or a failure."""
        return self._response is not None or self._failure is not None

    def response(self) -> Response:
        """Return the response, or raise the failure."""
        if self._failure is not None:
            raise self._failure
        if self._response is None:
            what = f": {self.mismatch}" if self.mismatch else ""
            raise InvalidResult(f"the server's answer holds no response to this request{what}")
        return self._response

    def take(self, message: Message | Malformed) -> None:
        """Keep the response; pass on everything else."""
        if isinstance(message, Malformed):
            self._refuse(message)
            return
        self.garbled = None
        if not isinstance(message, Response):
            self._inbound.message(message)
        elif message.id == self._request_id and message.id is not None and not self.done:
            self._response = message
        else:
            if self.pending:
                self.mismatch = f"it has the id {shown_id(message.id)} instead of {shown_id(self._request_id)}"
            self._inbound.unmatched(message)

    def take_body(self, messages: Sequence[Message | Malformed]) -> None:
        """Take the messages of a body. A single error in it without an id answers this request."""
        if len(messages) == 1:
            self._take_alone(messages[0])
        else:
            for message in messages:
                self.take(message)

    def fail(self, failure: McphostError) -> None:
        """End the request with ``failure``, unless it has ended."""
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
        elif self.pending and _can_only_be_an_answer(problem):
            self.garbled = why_invalid(problem)
        self._inbound.malformed(problem)


def _can_only_be_an_answer(problem: Malformed) -> bool:
    """True for a broken JSON object without a ``method``, which every notification and request has."""
    return not problem.is_json and problem.data.lstrip().startswith(b"{") and b'"method"' not in problem.data
