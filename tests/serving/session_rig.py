"""A session whose content does as a test says, and its client, which writes values and reads what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import META_PREFIX, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.client_state import ClientState
from mcphost.serving.negotiation import ServerIntroduction
from mcphost.serving.served_request import RequestKey, ServedRequest
from mcphost.serving.session import ServedContent, ServerSession
from tests.serving.manual_timers import ManualTimers

Json = dict[str, Any]

CAPABILITIES: Json = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "completions": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    "extensions": {TASKS_EXTENSION: {}},
}
ALL: Json = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}, "extensions": {TASKS_EXTENSION: {}}}
QUESTION: Json = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


class SessionRig(ServedContent):
    """``begun`` are the requests that the content has to serve, the newest last."""

    def __init__(self, revision: Revision, capabilities: Mapping[str, Any] = ALL) -> None:
        self.revision, self.capabilities = revision, capabilities
        self.offers = CAPABILITIES
        self.begun: list[ServedRequest] = []
        self.sent: list[Any] = []
        self.openings = 0
        self.told: list[Any] = []
        """The notices to the content, other than `opened`."""
        self.timers = ManualTimers()
        self.state = ClientState(self.timers)
        self.session = ServerSession(self, self._write, self.state)
        self._last = 0

    def introduction(self, revision: Revision) -> ServerIntroduction:
        return ServerIntroduction({"name": "rig", "version": "1"}, self.offers, "Be kind.")

    def _write(self, message: Any, about: RequestKey | None) -> None:
        self.sent.append(message)

    def opened(self) -> None:
        self.openings += 1

    def level_changed(self, level: LogLevel) -> None:
        self.told.append(level)

    def subscriptions_changed(self, uris: frozenset[str]) -> None:
        self.told.append(set(uris))

    def roots_changed(self) -> None:
        self.told.append("roots")

    def closed(self) -> None:
        self.told.append("closed")

    def begin(self, request: ServedRequest) -> None:
        self.begun.append(request)

    def open(self) -> SessionRig:
        """Do the handshake, where the revision has one."""
        if not self.revision.modern:
            params = {"protocolVersion": self.revision.version, "capabilities": self.capabilities}
            self.ask("initialize", params)
            self.notify("notifications/initialized")
            self.sent.clear()
        return self

    def meta(self, **more: Any) -> Json:
        if not self.revision.modern:
            return more
        return {
            f"{META_PREFIX}protocolVersion": self.revision.version,
            f"{META_PREFIX}clientCapabilities": self.capabilities,
            **more,
        }

    def start(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> int:
        """Send a request; its id."""
        self._last += 1
        stamped = {**(params or {}), "_meta": self.meta(**meta)}
        self.session.take({"jsonrpc": "2.0", "id": self._last, "method": method, "params": stamped})
        return self._last

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        """Send a request; its answer, which came at once."""
        return self.answer(self.start(method, params, **meta))

    def call(self, **meta: Any) -> ServedRequest:
        """Call a tool; the request that the content has to serve."""
        self.start("tools/call", {"name": "t", "arguments": {}}, **meta)
        return self.begun[-1]

    def answer(self, key: Any) -> Json:
        (found,) = self.answers(key)
        return found

    def answers(self, key: Any) -> list[Json]:
        return [each for each in self.sent if each.get("id") == key and "method" not in each]

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.session.take({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    def notices(self, method: str) -> list[Json]:
        """The params of these notifications."""
        return [each.get("params", {}) for each in self.sent if each.get("method") == f"notifications/{method}"]

    def reply(self, result: Mapping[str, Any]) -> Json | None:
        """Answer the open question as the era does it; the answer to the attempt, if the client sends one."""
        if not self.revision.modern:
            request = next(each for each in reversed(self.sent) if "id" in each and "method" in each)
            self.session.take({"jsonrpc": "2.0", "id": request["id"], "result": result})
            return None
        asked = self.sent[-1]["result"]
        responses = dict.fromkeys(asked["inputRequests"], result)
        params = {"name": "t", "arguments": {}, "inputResponses": responses, "requestState": asked["requestState"]}
        key = self.start("tools/call", params)
        return next(iter(self.answers(key)), None)
