"""Takes what servers ask to the service that answers it, and says which questions a server may ask.

Specification: client/roots, client/sampling, client/elicitation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputRefused, InputRequest
from mcphost.config import Config
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.server_requests.pending import PendingRequests
from mcphost.host.server_requests.request import ServerRequest
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.traffic.book import current_call
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.host.sampling.service import SamplingService

METHOD_CHARACTERS: Final = 80
"""Characters of an unknown method in the error that refuses it."""


class ServerRequestService:
    """Answers the requests of all servers.

    ``sampling`` creates its service when it is first needed. ``writes``: a person can write what a model would.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        pending: PendingRequests,
        calls: CallRegistry,
        roots: RootsService,
        elicitation: ElicitationService,
        sampling: Callable[[], SamplingService],
        *,
        writes: bool,
    ) -> None:
        self._config, self._writes = config, writes
        self.pending, self.calls = pending, calls
        self.roots, self.elicitation, self._sampling = roots, elicitation, sampling

    def handler(self, server: str) -> ServerRequestHandler:
        """Return what answers the requests of one server."""
        return ServerRequestHandler(server, self)

    def capabilities(self, server: str) -> ClientCapabilities:
        """Only what somebody here can answer, and the configuration lets this server ask."""
        samples = bool(self._config().models) or self._writes
        return ClientCapabilities(
            roots=self.roots.declared(server),
            elicitation=self.elicitation.modes(server),
            sampling=self._sampling().declared(server) if samples else None,
        )

    async def answer(self, method: str, request: ServerRequest) -> Mapping[str, Any]:
        """Return the result to send. Raises InputRefused; cancelled when the server takes the request back."""
        match method:
            case "roots/list":
                return await self.roots.answer(request)
            case "elicitation/create":
                return await self.elicitation.answer(request)
            case "sampling/createMessage":
                return await self._sampling().answer(request)
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, f"mcphost does not answer {method[:METHOD_CHARACTERS]}")


class ServerRequestHandler:
    """Answers one server (`mcphost.client.server_requests.InputHandler`)."""

    def __init__(self, server: str, service: ServerRequestService) -> None:
        self._server, self._service = server, service

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the result to send; see `mcphost.client.server_requests.InputHandler.answer`."""
        call, certain = self._call()
        return await self._service.answer(request.method, ServerRequest(self._server, request.params, call, certain))

    def leave(self) -> None:
        """End what is open: the connection is about to be closed."""
        self._service.pending.leave(self._server)

    def _call(self) -> tuple[ToolCall | None, bool]:
        """The call it is asked for. Over HTTP it is the one whose answer's stream brought the question."""
        sent = self._service.calls.sent(self._server)
        exact = current_call.get()
        for call in sent:
            if call.number == exact:
                return call, True
        return (sent[-1], len(sent) == 1) if sent else (None, False)
