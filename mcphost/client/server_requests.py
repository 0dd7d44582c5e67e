"""The one door for everything a server asks of us, and the line in front of it.

Knows how many questions may wait, which of them the server took back, and that each is owed at most one answer.
Refuses to know what an answer is made of: an `InputHandler` decides.

Specification: client/sampling, client/elicitation, client/roots; basic/utilities/ping and cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcphost.errors import McphostError
from mcphost.protocol.eras.capabilities import FORM, modes_of
from mcphost.protocol.eras.revisions import ASKS_FOR
from mcphost.protocol.wire.jsonrpc import ErrorCode, ErrorObject, Request, RequestId, Response

QUICK_REPLIES: Final = 1000
"""Answers that cost no thought (pings, refusals) and are being written at one moment. A server that reads its answers
never comes near; one that only asks would otherwise fill our memory through its own full pipe."""

LEAVE_SECONDS: Final = 0.5
"""How long closing waits for answers to what is still open: the server should hear that nobody will answer."""


@dataclass(frozen=True, slots=True)
class InputRequest:
    """What a server asks: a method of the specification's, with its params as they came."""

    method: str
    params: Mapping[str, Any]


class InputRefused(McphostError):
    """The answer is an error; ``code`` and the message go to the server, so neither says anything private.

    ``quiet``: whoever refused has seen to the log.
    """

    def __init__(self, code: int, message: str, *, quiet: bool = False) -> None:
        self.code, self.quiet = code, quiet
        super().__init__(message)


class InputHandler(Protocol):
    """Answers what a server asks."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """The result to send back. Raises InputRefused; cancelled when the server takes the question back."""

    def leave(self) -> None:
        """We are about to go: let what is still open have its answer at once."""


class NothingOffered:
    """The handler of a client that declared no capability: every request is for something it does not do."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Refuse: see `InputHandler.answer`."""
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, "mcphost did not offer this to the server")

    def leave(self) -> None:
        """Nothing is open: see `InputHandler.leave`."""


class OnlyDeclared:
    """A handler that is asked only for what ``capabilities`` told the server it may ask, whatever the server does."""

    def __init__(self, handler: InputHandler) -> None:
        self._handler = handler
        self.capabilities: Mapping[str, Any] = {}

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """See `InputHandler.answer`."""
        if ASKS_FOR.get(request.method) not in self.capabilities:
            return await NothingOffered().answer(request)
        mode = request.params.get("mode", FORM)
        known = isinstance(mode, str) and mode in modes_of(self.capabilities)
        if request.method == "elicitation/create" and not known:
            raise InputRefused(ErrorCode.INVALID_PARAMS, "mcphost did not offer to elicit in this mode")
        return await self._handler.answer(request)

    def leave(self) -> None:
        """See `InputHandler.leave`."""
        self._handler.leave()


class InputQueue:
    """The requests of one server that are being answered, at most ``limit`` at a time.

    ``reply`` sends a response; ``note`` takes a sentence for the log; ``meanwhile`` is entered while the handler is
    at work. Ping is answered here, in every state.
    """

    def __init__(
        self,
        handler: InputHandler,
        reply: Callable[[Response], Awaitable[None]],
        note: Callable[[str], None],
        limit: int,
        meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._handler, self._reply, self._note, self._limit = handler, reply, note, limit
        self._meanwhile = meanwhile
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self._quick: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._turned_away = 0
        self.open_for_all = False
        """Until the session is initialized only ping is answered."""

    def take(self, request: Request) -> None:
        """Begin to answer; beyond the limit the answer is a refusal."""
        if request.method == "ping":
            self._reply_soon(Response(request.id, result={}))
        elif request.id in self._tasks:  # a refusal would carry the id of the question that still waits
            self._note(f"ignored {request.method}: its id is already in use by an unanswered request")
        elif len(self._tasks) >= self._limit:
            self._turn_away(request.id)
        elif not self._stopped:
            task = asyncio.create_task(self._serve(request), name=f"answer {request.method[:80]}")
            self._tasks[request.id] = task
            task.add_done_callback(lambda _: self._ended(request.id))

    def _ended(self, request_id: RequestId) -> None:
        self._tasks.pop(request_id, None)
        if self._turned_away > 1:
            self._note(f"refused {self._turned_away} of the server's requests in all: {self._limit} were waiting")
        self._turned_away = 0

    def _turn_away(self, request_id: RequestId) -> None:
        """Refuse one beyond the limit; the log tells of the first and of how many there were."""
        self._turned_away += 1
        reason = f"{self._limit} requests are waiting already"
        if self._turned_away == 1:
            self.refuse(request_id, ErrorCode.INTERNAL_ERROR, reason)
        else:
            self._reply_soon(Response(request_id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, reason)))

    def refuse(self, request_id: RequestId, code: int, reason: str) -> None:
        """Answer with an error and no more thought. ``reason`` goes to the server."""
        self._note(f"refused the server's request {request_id!r}: {reason}")
        self._reply_soon(Response(request_id, error=ErrorObject(code, reason)))

    def take_back(self, request_id: object, reason: object) -> None:
        """The server no longer wants the answer: stop the work and send nothing."""
        task = self._tasks.get(request_id) if type(request_id) in (int, str) else None  # type: ignore[call-overload]
        if task is None:
            return
        self._note(f"the server took back its request{f': {reason}' if isinstance(reason, str) else ''}")
        task.cancel()

    def stop(self) -> None:
        """Stop answering, now and from now on: the server is gone, or about to be."""
        self._stopped = True
        for task in (*self._tasks.values(), *self._quick):
            task.cancel()

    async def aclose(self) -> None:
        """Let open questions have their answers, `stop`, and wait until nothing runs any more."""
        if self._tasks and not self._stopped:
            self._handler.leave()
            await asyncio.wait(self._tasks.values(), timeout=LEAVE_SECONDS)
        self.stop()
        await asyncio.gather(*self._tasks.values(), *self._quick, return_exceptions=True)

    def _reply_soon(self, response: Response) -> None:
        if self._stopped:
            return
        if len(self._quick) >= QUICK_REPLIES:
            self._note(f"did not answer the server's request {response.id!r}: it does not read its answers")
            return
        task = asyncio.create_task(self._deliver(response))
        self._quick.add(task)
        task.add_done_callback(self._quick.discard)

    async def _serve(self, request: Request) -> None:
        await self._deliver(await self._response(request))

    async def _deliver(self, response: Response) -> None:
        try:
            await self._reply(response)
        except McphostError as error:
            self._note(f"the answer to the server's request {response.id!r} was not delivered: {error}")

    async def _response(self, request: Request) -> Response:
        try:
            if not self.open_for_all:
                raise InputRefused(ErrorCode.INVALID_REQUEST, "the session is not initialized yet")
            with self._meanwhile():
                result = await self._handler.answer(_read(request))
            return Response(request.id, _of_the_same_task(request, result))
        except InputRefused as refused:
            if not refused.quiet:
                self._note(f"refused {request.method}: {refused}")
            return Response(request.id, error=ErrorObject(refused.code, str(refused)))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return self._failed(request, "cancelled inside")
        except Exception as error:  # the server is owed an answer, and must learn nothing of our insides
            return self._failed(request, type(error).__name__)

    def _failed(self, request: Request, why: str) -> Response:
        self._note(f"failed to answer {request.method}: {why}")
        return Response(request.id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, "mcphost failed to answer"))


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _read(request: Request) -> InputRequest:
    return InputRequest(request.method, request.params or {})


def _of_the_same_task(request: Request, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer to a question that belongs to a task says so too."""
    from mcphost.protocol.models.tasks import RELATED_TASK  # late: few servers ask

    meta = (request.params or {}).get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    if related is None:
        return result
    return {**result, "_meta": {**result.get("_meta", {}), RELATED_TASK: related}}
