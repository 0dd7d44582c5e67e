"""Answers the requests of a server, a bounded number at a time.

What the answer is made of is decided by an `InputHandler`; ping is answered here.

Specification: client/sampling, client/elicitation, client/roots; basic/utilities/ping and cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any, Final, Protocol

from mcphost.cancellation import is_cancelled
from mcphost.client.deadlines import TimeBudget
from mcphost.errors import McphostError
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.capabilities import FORM, modes_of
from mcphost.protocol.lifecycle.results import ServerInput
from mcphost.protocol.lifecycle.revisions import ASKS_FOR, RELATED_TASK
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request, RequestId, Response

QUICK_REPLIES: Final = 1000
"""Immediate responses (pings, refusals) that may be unsent at one moment: a server that does not read them must not
fill the memory."""

LEAVE_SECONDS: Final = 0.5
"""Seconds that closing waits for the last answers, so that the server learns that no other will come."""


@dataclass(frozen=True, slots=True)
class InputPurpose:
    """The client request that a modern server cannot answer without an input, and the round."""

    method: str
    name: str
    """Of the tool or prompt, or the URI of the resource."""
    round: int
    budget: TimeBudget = field(compare=False)
    """The time left for the request: all of mcphost's own waiting, but not that for a person or a model."""
    declined: list[object] = field(compare=False)
    """The questions of this request that were declined without asking a person."""
    inputs: Mapping[str, ServerInput] = field(default_factory=dict, compare=False)
    """All that the server needs in the round, by its keys."""


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A request of the server, with unvalidated params."""

    method: str
    params: Mapping[str, Any]
    purpose: InputPurpose | None = None
    """The purpose that a modern server states; None for a request of an older one, which states none."""
    key: str = ""
    """The key of a modern server's request in its round."""


class InputRefused(McphostError):
    """Answer with an error. ``code`` and the message are sent to the server: put nothing private in them.

    ``quiet``: the refusal is logged already.
    """

    def __init__(self, code: int, message: str, *, quiet: bool = False) -> None:
        self.code, self.quiet = code, quiet
        super().__init__(message)


class InputHandler(Protocol):
    """Answers server requests."""

    def check(self, request: InputRequest) -> None:
        """Raise InputRefused if the request cannot be answered, whatever the user decides."""

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the result. Raises InputRefused.

        It is cancelled when the server cancels its request or is gone; the message of the CancelledError says which.
        """

    def leave(self) -> None:
        """The connection is about to close: answer all pending requests at once."""


class NothingOffered:
    """The handler of a client that declared no capability: refuses every request."""

    def check(self, request: InputRequest) -> None:
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, "mcphost did not offer this to the server")

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, "mcphost did not offer this to the server")

    def leave(self) -> None:
        return


class OnlyDeclared:
    """Passes on only requests that the declared ``capabilities`` allow, and refuses all others."""

    def __init__(self, handler: InputHandler) -> None:
        self._handler = handler
        self.capabilities: Mapping[str, Any] = {}

    def check(self, request: InputRequest) -> None:
        self._check_declared(request)
        self._handler.check(request)

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        self._check_declared(request)
        return await self._handler.answer(request)

    def _check_declared(self, request: InputRequest) -> None:
        if ASKS_FOR.get(request.method) not in self.capabilities:
            NothingOffered().check(request)
        mode = FORM if (given := request.params.get("mode")) is None else given
        known = isinstance(mode, str) and mode in modes_of(self.capabilities)
        if request.method == "elicitation/create" and not known:
            raise InputRefused(ErrorCode.INVALID_PARAMS, "mcphost did not offer to elicit in this mode")

    def leave(self) -> None:
        self._handler.leave()


class ServerRequestQueue:
    """The pending requests of one server, at most ``limit``. Ping is answered in every state.

    ``reply`` sends a response; ``note`` takes a sentence for the log; ``meanwhile`` is entered while a handler runs.
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
        self._refusals = 0
        self.initialized = False
        """Before initialization only ping is answered."""

    def take(self, request: Request) -> None:
        """Start to answer; refuse if the limit is reached."""
        if request.method == "ping":
            self._reply_soon(Response(request.id, result={}))
        elif request.id in self._tasks:  # a refusal would answer the pending request with this id
            self._note(f"ignored {request.method}: its id is already in use by an unanswered request")
        elif len(self._tasks) >= self._limit:
            self._refuse_overload(request.id)
        elif not self._stopped:
            task = asyncio.create_task(self._serve(request), name=f"answer {request.method[:80]}")
            self._tasks[request.id] = task
            task.add_done_callback(lambda _: self._ended(request.id))

    def _ended(self, request_id: RequestId) -> None:
        self._tasks.pop(request_id, None)
        if self._refusals > 1:
            self._note(f"refused {self._refusals} of the server's requests in all: {self._limit} were waiting")
        self._refusals = 0

    def _refuse_overload(self, request_id: RequestId) -> None:
        # The log names the first, and later how many there were.
        self._refusals += 1
        reason = f"{self._limit} requests are waiting already"
        if self._refusals == 1:
            self.refuse(request_id, ErrorCode.INTERNAL_ERROR, reason)
        else:
            self._reply_soon(Response(request_id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, reason)))

    def refuse(self, request_id: RequestId, code: int, reason: str) -> None:
        """Answer with an error. ``reason`` is sent to the server."""
        self._note(f"refused the server's request {request_id!r}: {reason}")
        self._reply_soon(Response(request_id, error=ErrorObject(code, reason)))

    def cancel(self, request_id: object, reason: object) -> None:
        """The server cancelled its request: stop working on it and send nothing."""
        task = self._tasks.get(request_id) if type(request_id) in (int, str) else None  # type: ignore[call-overload]
        if task is None:
            return
        why = f": {reason}" if isinstance(reason, str) else ""
        self._note(f"the server took back its request{why}")
        task.cancel(f"cancelled by the server{why}")

    def stop(self) -> None:
        """Stop answering for good: the connection is gone or about to close."""
        self._stopped = True
        for task in (*self._tasks.values(), *self._quick):
            task.cancel("the connection was lost")

    async def aclose(self) -> None:
        """Let the handler answer pending requests, `stop`, and wait until nothing runs."""
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
            if not self.initialized:
                raise InputRefused(ErrorCode.INVALID_REQUEST, "the session is not initialized yet")
            with self._meanwhile():
                result = await self._handler.answer(_read(request))
            return Response(request.id, _with_related_task(request, result))
        except InputRefused as refused:
            if not refused.quiet:
                self._note(f"refused {request.method}: {refused}")
            return Response(request.id, error=ErrorObject(refused.code, str(refused)))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return self._failed(request, "cancelled inside")
        except Exception as error:  # answer anyway, but do not leak why it failed
            return self._failed(request, type(error).__name__)

    def _failed(self, request: Request, why: str) -> Response:
        self._note(f"failed to answer {request.method}: {why}")
        return Response(request.id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, "mcphost failed to answer"))


def _read(request: Request) -> InputRequest:
    return InputRequest(request.method, request.params or {})


def _with_related_task(request: Request, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name the related task in the answer if the request did."""
    meta = (request.params or {}).get("_meta")
    related = as_dict(meta).get(RELATED_TASK)
    if related is None:
        return result
    return {**result, "_meta": {**result.get("_meta", {}), RELATED_TASK: related}}
