"""Sends requests of the traffic again; a tool call is asked for as any other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from mcphost.errors import McphostError, NotDone
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.background import BackgroundTasks
from mcphost.host.connections.servers import Servers
from mcphost.host.internal_error import internal_error
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.traffic.message import MessageKind, TrafficMessage
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import META_PREFIX
from mcphost.protocol.wire.jsonrpc import Request, decode
from mcphost.redaction import MASK

ONCE: Final = frozenset({"initialize", "server/discover", "subscriptions/listen"})
"""The methods that belong to the beginning of a session and to no other moment."""

_OF_A_ROUND: Final = ("inputResponses", "requestState")


def is_resendable(message: TrafficMessage) -> bool:
    """True for a request of mcphost that may be sent twice in a session."""
    own = message.sent and not message.agent
    return own and message.kind is MessageKind.REQUEST and message.method not in ONCE


def request_in(message: TrafficMessage) -> Request:
    """The request to send again, without what belonged to that one time: its progress token, the metadata of a modern
    session, which stamps its own, and the answers of a round. Raises NotDone with the reason if it cannot.
    """
    if not message.sent or message.agent or message.kind is not MessageKind.REQUEST:
        raise NotDone("only requests that mcphost sent can be sent again")
    if message.cut:
        raise NotDone("this request was too large to be kept whole, so that it cannot be sent again")
    if MASK.encode() in message.data:
        raise NotDone(f"a secret was taken out of this request ({MASK}), so that it cannot be sent again")
    (request,) = decode(message.data)
    if not isinstance(request, Request) or request.method in ONCE:
        raise NotDone(f"{message.method} cannot be sent again in the same session; restart the server instead")
    return Request(request.id, request.method, _fresh(request.params))


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The tool and arguments of a recorded ``tools/call``."""

    tool: str
    arguments: Mapping[str, Any]
    as_task: bool


def tool_call_in(request: Request) -> RecordedCall:
    """The call in a ``tools/call``. Raises NotDone where it names no tool."""
    params = request.params or {}
    tool, arguments = params.get("name"), params.get("arguments", {})
    if type(tool) is not str or type(arguments) is not dict:
        raise NotDone("this tools/call does not say which tool is called with what")
    return RecordedCall(tool, arguments, "task" in params)


def _fresh(params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if params is None:
        return None
    rest = {name: value for name, value in params.items() if name not in ("_meta", *_OF_A_ROUND)}
    given = params.get("_meta")
    if type(given) is not dict:
        return {**rest, "_meta": given} if "_meta" in params else rest
    names = (name for name in given if name != "progressToken" and not name.startswith(META_PREFIX))
    meta = {name: given[name] for name in names}
    return {**rest, "_meta": meta} if meta else rest


class ResentRequest:
    """A request on its way again; its answer is in the traffic, too."""

    def __init__(self, server: str, request: Request) -> None:
        self.server, self.request = server, request
        self.answer: Mapping[str, Any] | None = None
        self.error: McphostError | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, background: BackgroundTasks, work: Awaitable[Mapping[str, Any]]) -> None:
        """Carry it out in a task of its own."""
        self._task = background.start(self._run(work), f"resend {self.request.method}")

    def cancel(self) -> None:
        """Stop it, and notify the server."""
        if self._task is not None:
            self._task.cancel()

    async def result(self) -> Mapping[str, Any]:
        """Wait for the answer. Raises what stopped it, or CancelledError when it was cancelled."""
        if self._task is not None:
            await asyncio.shield(self._task)
        if self.error is not None:
            raise self.error
        if self.answer is None:
            raise asyncio.CancelledError
        return self.answer

    async def _run(self, work: Awaitable[Mapping[str, Any]]) -> None:
        try:
            self.answer = await work
        except McphostError as error:
            self.error = error
        except Exception as error:  # a fault in here must end neither the calls nor the servers
            self.error = internal_error(error)


class Resender:
    """Sends requests of the traffic again."""

    def __init__(
        self,
        servers: Servers,
        tool_calls: ToolCallService,
        requests: AuditedRequests,
        background: BackgroundTasks,
    ) -> None:
        self._servers, self._tool_calls, self._requests = servers, tool_calls, requests
        self._background = background

    def resend(self, message: TrafficMessage, *, origin: str = "you") -> ToolCall | ResentRequest:
        """Send a request again, to the server it went to. Returns at once; await ``result()``.

        Raises NotDone where it cannot be sent again, or UnknownName.
        """
        request, server = request_in(message), self._servers[message.server].name
        if request.method == "tools/call":
            call = tool_call_in(request)
            return self._tool_calls.call(server, call.tool, call.arguments, origin=origin, as_task=call.as_task)
        resent = ResentRequest(server, request)
        work = self._requests.send_unchanged(server, request.method, request.params, origin)
        resent.begin(self._background, work)
        return resent
