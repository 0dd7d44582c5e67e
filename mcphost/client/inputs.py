"""The one door for everything a server asks of us, and the line in front of it.

Knows how many questions may wait, which of them the server took back, and that each is owed at most one answer.
Refuses to know what an answer is made of: an `InputHandler` decides.

Specification: client/sampling, client/elicitation, client/roots; basic/utilities/ping and cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcphost.errors import McphostError
from mcphost.protocol.jsonrpc import ErrorCode, ErrorObject, Request, RequestId, Response


@dataclass(frozen=True, slots=True)
class InputRequest:
    """What a server asks: a method of the specification's, with its params as they came."""

    method: str
    params: Mapping[str, Any]


class InputRefused(McphostError):
    """The answer is an error; ``code`` and the message go to the server, so neither says anything private."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class InputHandler(Protocol):
    """Answers what a server asks."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """The result to send back. Raises InputRefused; cancelled when the server takes the question back."""


class NothingOffered:
    """The handler of a client that declared no capability: every request is for something it does not do."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Refuse: see `InputHandler.answer`."""
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, "mcphost did not offer this to the server")


class InputQueue:
    """The requests of one server that are being answered, at most ``limit`` at a time.

    ``reply`` sends a response; ``note`` takes a sentence for the log. Ping is answered here, in every state.
    """

    def __init__(
        self,
        handler: InputHandler,
        reply: Callable[[Response], Awaitable[None]],
        note: Callable[[str], None],
        limit: int,
    ) -> None:
        self._handler, self._reply, self._note, self._limit = handler, reply, note, limit
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self.open_for_all = False
        """Until the session is initialized only ping is answered."""

    def take(self, request: Request) -> None:
        """Begin to answer. A flood over the limit is dropped: the answers alone would fill the pipe."""
        if request.id in self._tasks:
            self._note(f"refused {request.method}: its id is already in use by an unanswered request")
            return
        if len(self._tasks) >= self._limit:
            self._note(f"dropped {request.method}: {self._limit} requests of this server are waiting already")
            return
        task = asyncio.create_task(self._serve(request), name=f"answer {request.method}")
        self._tasks[request.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request.id, None))

    def take_back(self, request_id: object, reason: object) -> None:
        """The server no longer wants the answer: stop the work and send nothing."""
        task = self._tasks.get(request_id) if type(request_id) in (int, str) else None  # type: ignore[call-overload]
        if task is None:
            return
        self._note(f"the server took back its request{f': {reason}' if isinstance(reason, str) else ''}")
        task.cancel()

    async def aclose(self) -> None:
        """Stop answering."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, request: Request) -> None:
        response = await self._response(request)
        try:
            await self._reply(response)
        except McphostError as error:
            self._note(f"the answer to {request.method} was not delivered: {error}")

    async def _response(self, request: Request) -> Response:
        if request.method == "ping":
            return Response(request.id, result={})
        try:
            if not self.open_for_all:
                raise InputRefused(ErrorCode.INVALID_REQUEST, "the session is not initialized yet")
            return Response(request.id, await self._handler.answer(_read(request)))
        except InputRefused as refused:
            self._note(f"refused {request.method}: {refused}")
            return Response(request.id, error=ErrorObject(refused.code, str(refused)))
        except Exception as error:  # the server is owed an answer, and must learn nothing of our insides
            self._note(f"failed to answer {request.method}: {type(error).__name__}")
            return Response(
                request.id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, "mcphost failed to answer")
            )


def _read(request: Request) -> InputRequest:
    return InputRequest(request.method, request.params or {})
