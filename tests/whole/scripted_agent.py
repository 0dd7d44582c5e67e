"""An agent without a library: it says a script in one era, and keeps all that it gets for each request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcphost.protocol.lifecycle.revisions import META_PREFIX

Message = dict[str, Any]

SECONDS = 60.0
"""For an answer: the servers are real, and the machine is busy."""

CAPABILITIES: Message = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
INFO = {"name": "scripted-agent", "version": "1"}
FORM = {"action": "accept", "content": {"ok": True, "city": "Rome", "name": "Ada"}}
SAMPLE = {"role": "assistant", "model": "scripted", "content": {"type": "text", "text": "The Forum"}}
ANSWERS: Mapping[str, Message] = {
    "elicitation/create": FORM,
    "sampling/createMessage": SAMPLE,
    "roots/list": {"roots": [{"uri": "file:///agent", "name": "agent"}]},
}
LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
MODERN = "2026-07-28"
MODERN_MEMBERS = frozenset({"resultType", "ttlMs", "cacheScope"})
OWN_META = frozenset({f"{META_PREFIX}serverInfo"})


@dataclass
class Outcome:
    """All that an agent got for one request, without ids and without what only one era has."""

    answer: Message = field(default_factory=dict)
    """The ``result`` or the ``error``."""
    progress: list[Message] = field(default_factory=list)
    logged: list[Message] = field(default_factory=list)
    asked: list[Message] = field(default_factory=list)


class ScriptedAgent:
    """Speaks through ``send`` to a server, whose lines `receive` takes; with `revision` MODERN without a handshake."""

    def __init__(self, send: Callable[[bytes], object], revision: str) -> None:
        self._send, self.revision = send, revision
        self.modern = revision == MODERN
        self.introduction: Message = {}
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._now = Outcome()
        self._last = 0
        self.announced: list[str] = []

    def receive(self, line: bytes) -> None:
        """Take a line of the server."""
        if not line.strip().startswith((b"{", b"[")):
            return
        message = json.loads(line)
        for each in message if isinstance(message, list) else [message]:
            self._take(each)

    async def open(self) -> None:
        """Learn what the server offers."""
        if self.modern:
            answer = await self._request("server/discover", {})
        else:
            params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": INFO}
            answer = await self._request("initialize", params)
            self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert "result" in answer, answer
        self.introduction = answer["result"]
        if not self.modern and "logging" in self.introduction["capabilities"]:
            await self._request("logging/setLevel", {"level": "debug"})

    async def say(self, method: str, params: Mapping[str, Any]) -> Outcome:
        """Make a request, answer what the server asks in it, and return all that came for it."""
        self._now = outcome = Outcome()
        params, token = dict(params), f"token-{self._last}"
        params["_meta"] = {**params.get("_meta", {}), "progressToken": token}
        answer = await self._request(method, params)
        while answer.get("result", {}).get("resultType") == "input_required":
            needed, state = answer["result"].get("inputRequests") or {}, answer["result"].get("requestState")
            responses = {key: self._respond(each["method"], each.get("params")) for key, each in needed.items()}
            more = {} if state is None else {"requestState": state}
            answer = await self._request(method, {**params, "inputResponses": responses, **more})
        outcome.answer = comparable(answer)
        return outcome

    async def listed(self, member: str) -> list[Message]:
        """All pages of a list."""
        found, cursor = list[Message](), Message()
        while True:
            answer = (await self.say(LISTS[member], cursor)).answer
            found += answer.get("result", {}).get(member, [])
            if "nextCursor" not in answer.get("result", {}):
                return found
            cursor = {"cursor": answer["result"]["nextCursor"]}

    async def run(self, script: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Outcome]:
        return [await self.say(method, params) for method, params in script]

    async def _request(self, method: str, params: Mapping[str, Any]) -> Message:
        self._last += 1
        if self.modern:
            meta = {
                "protocolVersion": MODERN,
                "clientInfo": INFO,
                "clientCapabilities": CAPABILITIES,
                "logLevel": "debug",
            }
            own = {f"{META_PREFIX}{name}": value for name, value in meta.items()}
            params = {**params, "_meta": {**params.get("_meta", {}), **own}}
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return await asyncio.wait_for(answer, SECONDS)

    def _take(self, message: Message) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            waiting = self._answers.pop(message.get("id"), None)  # type: ignore[arg-type]
            if waiting is not None and not waiting.done():
                waiting.set_result({name: message[name] for name in ("result", "error") if name in message})
        elif "id" in message:
            answered = method in ANSWERS
            said = (
                {"result": self._respond(method, params)} if answered else {"error": {"code": -32601, "message": "no"}}
            )
            self._write({"jsonrpc": "2.0", "id": message["id"], **said})
        elif method == "notifications/progress":
            self._now.progress.append({name: value for name, value in params.items() if name != "progressToken"})
        elif method == "notifications/message":
            self._now.logged.append(params)
        else:
            self.announced.append(method)

    def _respond(self, method: str, params: Message | None) -> Message:
        params = {name: value for name, value in (params or {}).items() if name != "_meta"}
        self._now.asked.append({"method": method, **({"params": params} if params else {})})
        return ANSWERS[method]

    def _write(self, message: Message) -> None:
        self._send(json.dumps(message).encode() + b"\n")


def comparable(answer: Message) -> Message:
    """The answer without the members that only one era has, and without what names the server's own process."""
    if "result" not in answer:
        return answer
    result = {name: value for name, value in answer["result"].items() if name not in MODERN_MEMBERS}
    meta = {name: value for name, value in result.pop("_meta", {}).items() if name not in OWN_META}
    return {"result": {**result, **({"_meta": meta} if meta else {})}}
