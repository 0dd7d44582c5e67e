"""One request of a client, from its arrival to its answer.

What it asks of the client is a request of its own in the era of handshakes. A modern request asks by a result that
requires input, and continues with the client's next attempt. A task asks in its status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

from mcphost.json_values import as_dict
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import MAY_NEED_INPUT, RELATED_TASK, Revision, has_extension
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.batches import AnswerBatch
from mcphost.serving.negotiation import ClientDeclaration, RpcError

RequestKey = int | str
Json = dict[str, Any]


class ClientAnswer(NamedTuple):
    """The client's answer to a request of the server; with neither member, none will come."""

    result: Mapping[str, Any] | None = None
    error: RpcError | None = None


class ClientAsk(NamedTuple):
    """A request to the client; ``take`` gets its answer, once."""

    method: str
    params: Mapping[str, Any]
    take: Callable[[ClientAnswer], None]
    key: str | None = None
    """Its name in a modern result, which must be new in the request; None: any."""


class RequestOwner(Protocol):
    """Sends what a request has to say."""

    def send(self, message: Any, about: RequestKey | None) -> None: ...

    def log(self, level: LogLevel, data: Any, logger: str, about: RequestKey | None) -> None: ...

    def send_log(self, level: LogLevel, data: Any, logger: str, about: RequestKey | None) -> None:
        """Send a log message of whatever level."""

    def new_key(self) -> str: ...

    def asked(self, request: ServedRequest, keys: Sequence[str]) -> None:
        """The request has opened these asks."""

    def settled(self, request: ServedRequest, key: str) -> None:
        """The request no longer waits for this ask, answered or not."""

    def start_task(self, request: ServedRequest) -> None:
        """Answer the request with a task."""

    def finished(self, request: ServedRequest, outcome: Json) -> None:
        """The request has ended, with ``result`` or ``error``."""


class ServedRequest:
    """A request as it is served. Nothing here waits; after its end, calls have no effect."""

    def __init__(
        self, owner: RequestOwner, key: RequestKey, method: str, params: Json, declaration: ClientDeclaration
    ) -> None:
        self._owner = owner
        self.key: RequestKey | None = key
        """The client's id; None while the request waits for the next attempt, and once it is a task."""
        self.method, self.params, self.declaration = method, params, declaration
        self.batch: AnswerBatch | None = None
        self.asks: dict[str, ClientAsk] = {}
        self.on_cancel: Callable[[], object] = _nothing
        """Called when the client no longer waits for the answer."""
        self.over = False
        self.outcome: Json | None = None
        """The outcome of a request that ended while it waited for the next attempt."""
        self.task_id: str | None = None
        self.message = ""
        """The last message of its progress."""
        self._token = _token_in(params)
        self._reported = -inf

    @property
    def revision(self) -> Revision:
        return self.declaration.revision

    @property
    def has_token(self) -> bool:
        """True if the client hears of progress."""
        return self._token is not None

    @property
    def may_start_task(self) -> bool:
        """True if the client takes a task as the answer to this call."""
        if self.method != "tools/call" or self.key is None:
            return False
        if self.revision.modern:
            return has_extension(TASKS_EXTENSION, self.declaration.capabilities)
        return self.revision.tasks and "task" in self.params

    def start_task(self) -> None:
        """Answer with a task, which brings the outcome; only if `may_start_task`. Raises RpcError."""
        self._owner.start_task(self)

    def progress(self, report: Mapping[str, Any]) -> None:
        """Send progress, if the client gave a token for it; ``report`` has no token."""
        self.message = report.get("message") or self.message
        silent = self._token is None or (self.revision.modern and self.task_id is not None)
        # It must grow, and clients count on that.
        if self.over or silent or report["progress"] <= self._reported:
            return
        self._reported = report["progress"]
        params = {"progressToken": self._token, **self.related(report)}
        self._owner.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}, self.key)

    def log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Send a log message, if the client wants that level."""
        if self.over:
            return
        if not self.revision.modern:
            self._owner.log(level, data, logger, self.key)
            return
        least = self.declaration.log_level
        if self.key is not None and least is not None and level >= least:
            self._owner.send_log(level, data, logger, self.key)

    def ask(self, *asks: ClientAsk) -> None:
        """Ask the client, in one round if there are several. Raises UndeclaredError, and RpcError if it may not ask."""
        for each in asks:
            self.declaration.require(each.method, each.params)
        if self.revision.modern and self.method not in MAY_NEED_INPUT:
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"{self.method} cannot ask for input.")
        if self.over:
            for each in asks:
                each.take(ClientAnswer())
            return
        added: dict[str, ClientAsk] = {}
        for each in asks:
            named = each.key if self.revision.modern and each.key not in {*self.asks, *added} else None
            key = self._owner.new_key() if named is None else named
            added[key] = each._replace(params=_in_revision(each.params, self.revision))
        self.asks |= added
        self._owner.asked(self, tuple(added))

    def aside(self) -> ServedRequest:
        """A request without an answer, in which a client of a handshake is asked between its own requests."""
        found = ServedRequest(self._owner, "", self.method, {}, self.declaration)
        found.key, found.over = None, self.revision.modern
        return found

    def related(self, params: Mapping[str, Any]) -> Json:
        """The params of a message with the name of the task that it is about, in the older dialect of tasks."""
        if self.task_id is None or self.revision.modern:
            return dict(params)
        return {**params, "_meta": {**as_dict(params.get("_meta")), RELATED_TASK: {"taskId": self.task_id}}}

    def complete_elicitation(self, elicitation_id: str) -> None:
        """Announce that the user did what a URL elicitation was for; modern revisions have no such notice."""
        if not self.over and not self.revision.modern:
            params = {"elicitationId": elicitation_id}
            self._owner.send(
                {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}, self.key
            )

    def answer(self, key: str, answer: ClientAnswer) -> None:
        """Pass on the client's answer; one to no open ask is dropped."""
        ask = self.asks.pop(key, None)
        if ask is not None:
            self._owner.settled(self, key)
            ask.take(answer)

    def withdraw(self, ask: ClientAsk) -> None:
        """Take back an open ask. A modern client cannot be informed: its answer is dropped."""
        for key in [key for key, each in self.asks.items() if each.take == ask.take]:
            del self.asks[key]
            self._owner.settled(self, key)

    def give_up(self, key: str, words: str) -> None:
        """Go on without the client's answer."""
        self.answer(key, ClientAnswer(error=RpcError(ErrorCode.INTERNAL_ERROR, words)))

    def finish(self, result: Mapping[str, Any]) -> None:
        self._end({"result": dict(result)})

    def fail(self, error: RpcError) -> None:
        self._end({"error": error.as_object()})

    def cancel(self) -> None:
        """End without an answer."""
        if not self.over:
            self.over = True
            self._release()
            self.on_cancel()

    def suspend(self) -> None:
        """Continue without the client's id, until its next attempt, or as a task."""
        self.key = None
        if self.revision.modern:
            self._token = None

    def renew(self, owner: RequestOwner, params: Json, declaration: ClientDeclaration) -> None:
        """Take over what the client's next attempt declares; its id becomes `key` once its answers were passed on."""
        self._owner, self.declaration = owner, declaration
        self._token, self._reported = _token_in(params), -inf

    def _end(self, outcome: Json) -> None:
        if not self.over:
            self.over = True
            self._release()
            self._owner.finished(self, outcome)

    def _release(self) -> None:
        while self.asks:
            key, ask = self.asks.popitem()
            self._owner.settled(self, key)
            ask.take(ClientAnswer())


def log_message(level: LogLevel, data: Any, logger: str) -> Json:
    params = {"level": level.wire, **({"logger": logger} if logger else {}), "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def _in_revision(params: Mapping[str, Any], revision: Revision) -> Json:
    """The params of an ask without the members that the revision lacks."""
    unknown = "elicitationId" if revision.modern else "mode" if "url" not in revision.elicitation else ""
    return {name: value for name, value in params.items() if name != unknown}


def _token_in(params: Json) -> RequestKey | None:
    token = as_dict(params.get("_meta")).get("progressToken")
    return token if type(token) in (int, str) else None


def _nothing() -> None:
    pass
