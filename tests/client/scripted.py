"""A transport with a script and a record, and an observer that records everything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Message, Notification, Request, Response
from mcphost.transports.base import Inbound, ProcessReport

NEVER = object()
"""An answer that does not come."""

Answer = Any
"""A result, an ErrorObject, an exception to raise, NEVER, a function of the request, or a list of these in turn."""


class ScriptedTransport:
    """Answers each method as ``script`` says, and records all that was sent, in order."""

    own_stream = False
    handshake_only = False

    def __init__(self, script: Mapping[str, Answer]) -> None:
        self.script = dict(script)
        self.revision: Revision | None = None
        self.sent: list[Message] = []
        self.inbound: Inbound | None = None
        self.waiting = 0
        self.closed = 0

    def methods(self) -> list[str]:
        """Methods of the messages sent; ``reply`` for a response."""
        return ["reply" if isinstance(message, Response) else message.method for message in self.sent]

    def replies(self) -> list[dict[str, Any]]:
        """The responses sent, as objects."""
        return [message.as_object() for message in self.sent if isinstance(message, Response)]

    def requests(self, method: str) -> list[Request]:
        return [message for message in self.sent if isinstance(message, Request) and message.method == method]

    def says(self, method: str, params: Any = None) -> None:
        """The server sends a notification."""
        assert self.inbound is not None
        self.inbound.message(Notification(method, params))

    def asks(self, request_id: int | str, method: str, params: Any = None) -> None:
        """The server sends a request."""
        assert self.inbound is not None
        self.inbound.message(Request(request_id, method, params))

    def agreed(self, revision: Revision) -> None:
        self.revision = revision

    async def open(self, inbound: Inbound) -> None:
        self.inbound = inbound

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        self.sent.append(request)
        self.waiting += 1
        try:
            return await self._respond(request, self.script[request.method])
        finally:
            self.waiting -= 1

    async def _respond(self, request: Request, answer: Answer) -> Response:
        while callable(answer) or isinstance(answer, list):
            answer = answer.pop(0) if isinstance(answer, list) else answer(request)
        if answer is NEVER:
            await asyncio.Event().wait()
        if isinstance(answer, asyncio.Future):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, ErrorObject):
            return Response(request.id, error=answer)
        return Response(request.id, result=answer)

    async def send(self, message: Notification | Response) -> None:
        self.sent.append(message)
        answer = self.script.get("reply" if isinstance(message, Response) else message.method)
        if isinstance(answer, Exception):
            raise answer
        if answer is NEVER:
            await asyncio.Event().wait()

    async def listen(self) -> None:
        answer = self.script.get("listen")
        failure = answer.pop(0) if isinstance(answer, list) and answer else None
        if isinstance(failure, Exception):
            raise failure

    async def aclose(self) -> None:
        self.closed += 1

    def report(self) -> ProcessReport:
        return ProcessReport()


class Notes:
    """An observer that records everything, in order, as (what, value)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def all(self, what: str) -> list[Any]:
        return [value for kind, value in self.heard if kind == what]

    def logged(self, params: Mapping[str, Any]) -> None:
        self.heard.append(("logged", params))

    def list_changed(self, kind: str) -> None:
        self.heard.append(("changed", kind))

    def resource_updated(self, uri: str) -> None:
        self.heard.append(("updated", uri))

    def served_from_cache(self, method: str, params: Mapping[str, Any], freshness: Freshness) -> None:
        self.heard.append(("cached", (method, params, freshness)))

    def elicitation_completed(self, elicitation: str) -> None:
        self.heard.append(("completed", elicitation))

    def listening_changed(self) -> None:
        self.heard.append(("listening", None))

    def task_changed(self, task: Task) -> None:
        self.heard.append(("task", task))

    def malformed(self, problem: Malformed) -> None:
        self.heard.append(("malformed", problem))

    def stderr(self, line: str) -> None:
        self.heard.append(("stderr", line))

    def noted(self, text: str) -> None:
        self.heard.append(("noted", text))

    def remarked(self, text: str) -> None:
        self.heard.append(("remarked", text))

    def lost(self, reason: Exception) -> None:
        self.heard.append(("lost", reason))
