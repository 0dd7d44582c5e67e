"""The server's side of one client's session, in both eras: messages in, messages out, and requests to a port.

Nothing here waits. A modern request is served without a handshake, on its own; all others follow ``initialize``.

Specification: basic/lifecycle, basic/utilities, server; 2026-07-28 basic/patterns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import META_PREFIX, NEWEST_HANDSHAKE, Revision
from mcphost.protocol.limits import BATCH_ITEMS, JSON_DEPTH
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.strict_json import Refused, parse
from mcphost.serving.batches import AnswerBatch
from mcphost.serving.client_state import ClientState
from mcphost.serving.negotiation import (
    ClientDeclaration,
    InvalidParamsError,
    RpcError,
    ServerIntroduction,
    agreed,
    check_method,
    declaration_in,
    log_level,
    versions,
)
from mcphost.serving.rounds import answer_asks
from mcphost.serving.served_request import ClientAnswer, Json, RequestKey, ServedRequest, log_message
from mcphost.serving.subscriptions import SUBSCRIBED_ITEMS, SubscriptionStreams
from mcphost.serving.tasks import ServedTask
from mcphost.serving.time_limits import NO_TIMERS, Timers

OPEN_REQUESTS: Final = 1_000
"""Requests of one client in flight: more are not awaited, but sent in error."""

EARLY_MESSAGES: Final = 64
"""Messages that a client may send before ``initialize`` is answered; the others are refused."""

CACHEABLE: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/directory/read",
        "skills/list",
        "skills/get",
    }
)
"""Requests whose modern results say how long they are fresh."""

MODERN_MEMBERS: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Members of results that only the modern revisions have."""

_log = logging.getLogger(__name__)

Write = Callable[[Any, RequestKey | None], None]


class ServedContent(Protocol):
    """The server's content, which a session calls; nothing of it may wait. Derive from it to leave out notices."""

    def introduction(self, revision: Revision) -> ServerIntroduction: ...

    def prepare(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the introduction is known, at once or later; ``initialize`` is answered then."""
        then()

    def begin(self, request: ServedRequest) -> None:
        """Begin to serve a request for lists, tools, resources, prompts or completions.

        Raises RpcError to refuse it. Results have the shape of the newest revision.
        """

    # Notices.

    def introduced(self, capabilities: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """The client has declared these capabilities; `prepare` follows."""
        return

    def opened(self) -> None:
        """The client has ended the handshake."""
        return

    def level_changed(self, level: LogLevel) -> None:
        """The client of a handshake wants log messages of this level or above; at first of INFO."""
        return

    def subscriptions_changed(self, uris: frozenset[str]) -> None:
        """The client is subscribed to these resources now, in one way or the other."""
        return

    def roots_changed(self) -> None:
        """The client has other roots than before."""
        return

    def closed(self) -> None:
        """The client is gone; nothing follows."""
        return


class SessionHandle(Protocol):
    """A session as its content uses it, apart from requests."""

    def log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Send a log message of the session; modern clients get none."""

    def list_changed(self, kind: str) -> None:
        """Announce a changed list: ``tools``, ``prompts`` or ``resources``."""

    def resource_updated(self, uri: str) -> None:
        """Announce a changed resource to a client that wants to know."""

    def disconnect(self) -> None:
        """End the session, and the connection to its client."""


class ServerSession:
    """One session of a client.

    ``write`` takes messages, each with the id of the client's request that it is about, or None. ``state`` is what the
    client keeps over several sessions; without it, this session is its only one. ``timers`` are those of an event loop;
    without them, what is open for too long ends with the next message.
    """

    def __init__(
        self, content: ServedContent, write: Write, state: ClientState | None = None, timers: Timers = NO_TIMERS
    ) -> None:
        self._content, self._write = content, write
        self._state, self._has_own_state = state or ClientState(timers), state is None
        self._client: ClientDeclaration | None = None
        """The declaration of the handshake; None before."""
        self.on_disconnect: Callable[[], object] = _nothing
        """Ends the connection to the client."""
        self._early: list[Any] | None = None
        """Messages that wait until ``initialize`` is answered; None: they need not."""
        self._initializes = self._opened = self._closed = False
        self._level = LogLevel.INFO
        self._subscribed: set[str] = set()
        self._running: dict[RequestKey, ServedRequest] = {}
        self._asked: dict[str, ServedRequest] = {}
        self._rounds, self._tasks = self._state.rounds, self._state.tasks
        self._subscriptions = SubscriptionStreams(self.send, self._subscriptions_changed)
        self._state.observers.append(self._announce_task)
        self._methods: dict[str, Callable[[ServedRequest], Json | None]] = {
            "ping": lambda request: {},
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
            "tasks/get": self._tasks.get,
            "tasks/update": self._tasks.update,
            "tasks/cancel": self._tasks.cancel,
            "tasks/list": self._tasks.list,
            "tasks/result": self._tasks.result,
        }

    # From the client.

    def receive(self, line: bytes) -> None:
        """Take a line of JSON."""
        try:
            value = parse(line, JSON_DEPTH)
        except Refused as refused:
            self.refuse_unread(str(refused))
        else:
            self.take(value)

    def refuse_unread(self, reason: str) -> None:
        """Answer a message that could not be parsed."""
        self._refuse(RpcError(ErrorCode.PARSE_ERROR, f"This message was not read: {reason}."))

    def take(self, value: Any) -> None:
        """Take a parsed message, or a batch."""
        self._state.expire()
        if self._early is not None and len(self._early) < EARLY_MESSAGES:
            self._early.append(value)
        elif not isinstance(value, list):
            self._take(value, None)
        elif self._client is None or not self._client.revision.batches or not value:
            self._refuse(_invalid("A message is one JSON object."))
        elif len(value) > BATCH_ITEMS:
            self._refuse(_invalid(f"A batch has at most {BATCH_ITEMS} messages."))
        else:
            about = next((key for key in map(_asked_by, value) if key is not None), None)
            with AnswerBatch(lambda answers: self.send(answers, about)) as batch:
                for each in value:
                    self._take(each, batch)

    def close(self) -> None:
        """The client is gone, or goes: end everything."""
        if self._closed:
            return
        self._subscriptions.close()
        self._closed = True
        self._state.observers.remove(self._announce_task)
        for request in (*self._running.values(), *self._asked.values()):
            request.cancel()
        self._running.clear()
        self._note_subscriptions(frozenset())
        if self._has_own_state:
            self._state.close()
            self._content.closed()

    @property
    def revision(self) -> Revision | None:
        """The one that the handshake agreed on; None before."""
        return None if self._client is None else self._client.revision

    # From the content (`SessionHandle`).

    def disconnect(self) -> None:
        self.close()
        self.on_disconnect()

    def log(self, level: LogLevel, data: Any, logger: str, about: RequestKey | None = None) -> None:
        if self._client is not None and level >= self._level:
            self.send_log(level, data, logger, about)

    def list_changed(self, kind: str) -> None:
        if self._opened and as_dict(self._capabilities().get(kind)).get("listChanged"):
            self.send({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})
        self._subscriptions.list_changed(kind)

    def resource_updated(self, uri: str) -> None:
        if uri in self._subscribed:
            self.send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
        self._subscriptions.resource_updated(uri)

    # From requests (`RequestOwner`).

    def send(self, message: Any, about: RequestKey | None = None) -> None:
        if not self._closed:
            self._write(message, about)

    def send_log(self, level: LogLevel, data: Any, logger: str, about: RequestKey | None) -> None:
        rate = self._state.logs
        if not rate.admit():
            return
        if refused := rate.take_refused():
            words = f"{refused} log messages were left out: more than {rate.most} in a second."
            self.send(log_message(level, words, logger), about)
        self.send(log_message(level, data, logger), about)

    def new_key(self) -> str:
        return self._state.new_key()

    def asked(self, request: ServedRequest, keys: Sequence[str]) -> None:
        for key in keys:
            self._state.asks.add((request, key))
        if not request.revision.modern:
            for key in keys:
                ask = request.asks[key]
                self._asked[key] = request
                message = {"jsonrpc": "2.0", "id": key, "method": ask.method, "params": request.related(ask.params)}
                self.send(message, request.key)
        elif request.key is not None:
            self._park(request, request.key)
        if request.task_id is not None:
            self._tasks.change(request)

    def start_task(self, request: ServedRequest) -> None:
        key = request.key
        assert key is not None
        self._answer(request, key, {"result": self._tasks.start(request)})

    def settled(self, request: ServedRequest, key: str) -> None:
        self._state.asks.discard((request, key))
        if not request.revision.modern and self._asked.pop(key, None) is not None:
            params = {"requestId": key, "reason": "The call that asked needs no answer any more."}
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, request.key)

    def finished(self, request: ServedRequest, outcome: Json) -> None:
        if request.task_id is not None:
            self._tasks.end(request, outcome)
        elif request.key is None:
            request.outcome = outcome
        else:
            self._answer(request, request.key, outcome)

    # One message.

    def _take(self, message: Any, batch: AnswerBatch | None) -> None:
        key = _asked_by(message)
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise _invalid("A message is a JSON object of JSON-RPC 2.0.")
            if "method" not in message:
                self._take_answer(message)
            elif "id" in message:
                self._take_request(message, key, batch)
            else:
                self._take_notification(message)
        except RpcError as error:
            self._refuse(error, batch, key)

    def _take_request(self, message: Json, key: RequestKey | None, batch: AnswerBatch | None) -> None:
        if key is None:
            raise _invalid("An id is a string or an integer.")
        request = self._opened_request(key, message)
        try:
            if batch is not None:
                request.batch = batch
                batch.add()
            self._running[key] = request
            self._serve(request)
        except RpcError as error:
            request.fail(error)
        except Exception:  # a fault in serving one request ends neither the session nor the others in it
            _log.exception("a client's request failed: %s", request.method)
            request.fail(RpcError(ErrorCode.INTERNAL_ERROR, "The server failed here; its log says how."))

    def _opened_request(self, key: RequestKey, message: Json) -> ServedRequest:
        method, params = message["method"], message.get("params")
        params = {} if params is None else params
        if type(method) is not str:
            raise _invalid("A method is a string.")
        if key in self._running:
            raise _invalid("A request with this id is open.")
        declaration = (declaration_in(params) if isinstance(params, dict) else None) or self._client
        known = declaration or ClientDeclaration(NEWEST_HANDSHAKE, {}, {})
        check_method(method, known, self._content.introduction(known.revision))
        if not isinstance(params, dict):
            raise InvalidParamsError("params is not an object.")
        if declaration is None and method not in ("initialize", "ping"):
            raise _invalid("Send initialize first.")
        if len(self._running) >= OPEN_REQUESTS:
            raise _invalid(f"{OPEN_REQUESTS} requests are open.")
        if method == "initialize" and self._initializes:
            raise _invalid("A session has one initialize request.")
        return ServedRequest(self, key, method, params, known)

    def _serve(self, request: ServedRequest) -> None:
        uri = request.params.get("uri")
        if request.method == "resources/subscribe" and len(self._subscribed - {uri}) >= SUBSCRIBED_ITEMS:
            raise InvalidParamsError(f"This client is subscribed to {SUBSCRIBED_ITEMS} resources already.")
        if request.method == "initialize":
            self._initializes, self._early = True, []
            self._introduced(request, as_dict(request.params.get("capabilities")))
            self._content.prepare(lambda: self._finish_with(request, self._initialize))
        elif request.method == "server/discover":
            self._introduced(request, request.declaration.capabilities)
            self._content.prepare(lambda: self._finish_with(request, self._discover))
        elif request.revision.modern and "requestState" in request.params:
            self._continue(request)
        elif own := self._methods.get(request.method):
            if request.revision.modern and request.method.startswith("tasks/"):
                request.declaration.require_tasks()
            if (result := own(request)) is not None:
                request.finish(result)
        else:
            self._content.begin(request)

    def _introduced(self, request: ServedRequest, capabilities: Mapping[str, Any]) -> None:
        self._content.introduced(capabilities, as_dict(request.params.get("_meta")))

    def _finish_with(self, request: ServedRequest, answer: Callable[[ServedRequest], Json]) -> None:
        if not (request.over or self._closed):
            request.finish(answer(request))
        if request.method == "initialize" and self._early is not None:
            early, self._early = self._early, None
            for each in early:
                self.take(each)

    def _continue(self, attempt: ServedRequest) -> None:
        """Go on with the request that waits for this attempt."""
        request, key = self._rounds.take(attempt.method, attempt.params), attempt.key
        assert key is not None
        self._running[key] = request
        request.renew(self, attempt.params, attempt.declaration)
        answer_asks(request, attempt.params)
        if request.outcome is not None:
            self._answer(request, key, request.outcome)
        elif request.asks:
            self._park(request, key)
        else:
            request.key = key

    def _park(self, request: ServedRequest, key: RequestKey) -> None:
        request.suspend()
        self._answer(request, key, {"result": self._rounds.park(request)})

    def _take_notification(self, message: Json) -> None:
        method, params = message["method"], as_dict(message.get("params"))
        if method == "notifications/initialized" and self._client is not None and not self._opened:
            self._opened = True
            self._content.opened()
        elif method == "notifications/roots/list_changed" and self._opened:
            self._content.roots_changed()
        elif method == "notifications/cancelled":
            key = _valid_id(params.get("requestId"))
            if key is not None and (request := self._running.pop(key, None)):
                request.cancel()
                if request.batch is not None:
                    request.batch.settle(None)

    def _take_answer(self, message: Json) -> None:
        key = message.get("id")
        request = self._asked.pop(key, None) if isinstance(key, str) else None
        if request is None or key is None:
            return
        error = message.get("error")
        if isinstance(error, dict):
            code, words = error.get("code"), error.get("message")
            refusal = RpcError(code if type(code) is int else 0, str(words), error.get("data"))
            request.answer(key, ClientAnswer(error=refusal))
        else:
            request.answer(key, ClientAnswer(as_dict(message.get("result"))))
        if request.task_id is not None and not request.over:
            self._tasks.change(request)

    # Answers.

    def _answer(self, request: ServedRequest, key: RequestKey, outcome: Json) -> None:
        self._running.pop(key, None)
        if "result" in outcome:
            self._subscribe(request)
            outcome = {"result": self._shaped(request, outcome["result"])}
        elif request.revision.modern and outcome["error"]["code"] == ErrorCode.RESOURCE_NOT_FOUND:
            outcome = {"error": {**outcome["error"], "code": int(ErrorCode.INVALID_PARAMS)}}
        answer = {"jsonrpc": "2.0", "id": key, **outcome}
        if request.batch is None:
            self.send(answer, key)
        else:
            request.batch.settle(answer)

    def _refuse(self, error: RpcError, batch: AnswerBatch | None = None, key: RequestKey | None = None) -> None:
        answer = {"jsonrpc": "2.0", "id": key, "error": error.as_object()}
        if batch is None:
            self.send(answer, key)
        else:
            batch.add()
            batch.settle(answer)

    def _shaped(self, request: ServedRequest, result: Mapping[str, Any]) -> Json:
        """The result with the members that its era has."""
        if not request.revision.modern:
            return {name: value for name, value in result.items() if name not in MODERN_MEMBERS}
        identity = self._content.introduction(request.revision).identity
        meta = {**as_dict(result.get("_meta")), f"{META_PREFIX}serverInfo": identity}
        fresh = {"ttlMs": 0, "cacheScope": "private"}
        hints = fresh if request.method in CACHEABLE and result.get("resultType") != "input_required" else {}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    def _subscribe(self, request: ServedRequest) -> None:
        uri = request.params.get("uri")
        if request.method == "resources/subscribe" and isinstance(uri, str):
            self._subscribed.add(uri)
        elif request.method == "resources/unsubscribe" and isinstance(uri, str):
            self._subscribed.discard(uri)
        else:
            return
        self._subscriptions_changed()

    def _subscriptions_changed(self) -> None:
        self._note_subscriptions(self._subscriptions.uris | self._subscribed)

    def _note_subscriptions(self, uris: frozenset[str]) -> None:
        if self._state.subscribe(self, uris):
            self._content.subscriptions_changed(self._state.subscribed)

    # Methods of the session itself.

    def _initialize(self, request: ServedRequest) -> Json:
        params, revision = request.params, agreed(request.params.get("protocolVersion"))
        self._client = ClientDeclaration(
            revision, as_dict(params.get("capabilities")), as_dict(params.get("clientInfo"))
        )
        introduction = self._content.introduction(revision)
        shared = introduction.under(revision)
        return {"protocolVersion": revision.version, "serverInfo": introduction.identity, **shared}

    def _discover(self, request: ServedRequest) -> Json:
        introduction = self._content.introduction(request.revision)
        return {
            "supportedVersions": versions(),
            "ttlMs": introduction.fresh_milliseconds,
            **introduction.under(request.revision),
        }

    def _set_level(self, request: ServedRequest) -> Json:
        self._level = log_level(request.params.get("level"))
        self._content.level_changed(self._level)
        return {}

    def _listen(self, request: ServedRequest) -> None:
        self._subscriptions.listen(request, self._content.introduction(request.revision).capabilities)

    def _capabilities(self) -> Mapping[str, Any]:
        revision = NEWEST_HANDSHAKE if self._client is None else self._client.revision
        return self._content.introduction(revision).capabilities

    def _announce_task(self, task: ServedTask) -> None:
        if task.request.revision.modern:
            self._subscriptions.task_changed(task.whole())
        else:
            self.send({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task.summary()})


def _nothing() -> None:
    pass


def _asked_by(message: Any) -> RequestKey | None:
    """The id of a request; None if it has no valid one."""
    return _valid_id(message.get("id")) if isinstance(message, dict) and "method" in message else None


def _valid_id(value: Any) -> RequestKey | None:
    return value if type(value) in (int, str) else None


def _invalid(words: str) -> RpcError:
    return RpcError(ErrorCode.INVALID_REQUEST, words)
