"""What one server asks, brought to the desk that answers such questions.

Knows methods, and for which call a server probably asks. Refuses to know what an answer is made of.

Specification: client/roots, client/sampling, client/elicitation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcphost.client.server_requests import InputRefused, InputRequest
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.traffic.book import current_call
from mcphost.protocol.wire.jsonrpc import ErrorCode


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request of a server's, with the call it is asked for as far as can be told."""

    server: str
    params: Mapping[str, Any]
    call: ToolCall | None = None
    sure: bool = False
    """Is that certain? It came on the call's own stream, or no other call runs on that server."""

    @property
    def number(self) -> int | None:
        """The call's number."""
        return None if self.call is None else self.call.number

    @property
    def tool(self) -> str:
        """The tool that is called; empty where no call is known."""
        return "" if self.call is None else self.call.request.tool


class RequestService(Protocol):
    """Answers one kind of question."""

    async def answer(self, asked: ServerRequest) -> Mapping[str, Any]:
        """The result to send. Raises InputRefused; cancelled when the server takes the question back."""


class ServerRequestService:
    """Answers one server (`mcphost.client.server_requests.InputHandler`).

    ``desk`` finds who answers a method; ``sent`` are the calls that were sent to this server and have not ended, oldest
    first; ``leave`` ends what is open with an answer.
    """

    def __init__(
        self,
        server: str,
        desk: Callable[[str], RequestService | None],
        sent: Callable[[str], list[ToolCall]],
        leave: Callable[[str], None],
    ) -> None:
        self._server, self._desk, self._sent, self._leave = server, desk, sent, leave

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """See `mcphost.client.server_requests.InputHandler.answer`."""
        desk = self._desk(request.method)
        if desk is None:
            raise InputRefused(ErrorCode.METHOD_NOT_FOUND, f"mcphost does not answer {request.method[:80]}")
        call, sure = self._call()
        return await desk.answer(ServerRequest(self._server, request.params, call, sure))

    def leave(self) -> None:
        """See `mcphost.client.server_requests.InputHandler.leave`."""
        self._leave(self._server)

    def _call(self) -> tuple[ToolCall | None, bool]:
        """The call it is asked for. Over HTTP it is the one whose answer's stream brought the question."""
        sent = self._sent(self._server)
        exact = current_call.get()
        for call in sent:
            if call.number == exact:
                return call, True
        return (sent[-1], len(sent) == 1) if sent else (None, False)
