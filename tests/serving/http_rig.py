"""An HTTP listener with its content and an HTTP client, which sends plain requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from mcphost.protocol.lifecycle.revisions import META_PREFIX, Revision
from mcphost.serving.http_listener import PATH, SESSION_HEADER, HttpContent, HttpListener
from mcphost.serving.negotiation import ServerIntroduction
from mcphost.serving.served_request import ClientAnswer, ClientAsk, Json, ServedRequest
from tests.serving.session_rig import ALL, CAPABILITIES

MODERN = "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class SiteContent(HttpContent):
    """Does as the tool's name says: `now`, `later` with progress, `ask`, or `never`."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.asked = asyncio.Event()

    def introduction(self, revision: Revision) -> ServerIntroduction:
        return ServerIntroduction({"name": "http", "version": "1"}, CAPABILITIES)

    def input_schema(self, tool: str) -> Json:
        region = {"type": "string", "x-mcp-header": "Region"}
        return {"type": "object", "properties": {"region": region}} if tool == "marked" else {}

    def begin(self, request: ServedRequest) -> None:
        done = {"content": [{"type": "text", "text": request.params.get("name", "")}]}
        request.on_cancel = self.cancelled.set

        def answered(answer: ClientAnswer) -> None:
            if answer.result is not None:
                request.finish({"content": [{"type": "text", "text": json.dumps(dict(answer.result))}]})

        match request.params.get("name"):
            case "later":
                request.progress({"progress": 1})
                request.finish(done)
            case "ask":
                self.asked.set()
                request.ask(ClientAsk("roots/list", {}, answered))
            case "never":
                request.progress({"progress": 1})
            case _:
                request.finish(done)


class HttpSite:
    """A listener with two clients, and an HTTP client for the first."""

    def __init__(self, listener: HttpListener, contents: dict[str, SiteContent], port: int) -> None:
        self.listener, self.contents = listener, contents
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self.http = httpx.AsyncClient(headers={"Authorization": "Bearer one", **ACCEPT}, trust_env=False)

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        return await self.http.post(self.url, content=json.dumps(message), headers=headers)

    async def modern(self, method: str, params: Json | None = None, key: Any = 1, **headers: str) -> httpx.Response:
        message, own = modern(method, params, key)
        return await self.post(message, **{**own, **{name.replace("_", "-"): value for name, value in headers.items()}})

    async def open(self, revision: Revision, token: str = "one") -> dict[str, str]:
        """Do the handshake; the headers of its session."""
        params = {"protocolVersion": revision.version, "capabilities": ALL, "clientInfo": {"name": "t", "version": "1"}}
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self.post(request("initialize", params), **headers)
        assert answer.json()["result"]["protocolVersion"] == revision.version
        headers |= {SESSION_HEADER: answer.headers[SESSION_HEADER], "MCP-Protocol-Version": revision.version}
        assert (
            await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        ).status_code == 202
        return headers

    async def call(self, revision: Revision, name: str, key: int = 7) -> httpx.Response:
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": 5}}
        if revision.modern:
            return await self.modern("tools/call", params, key)
        return await self.post(request("tools/call", params, key), **await self.open(revision))


def request(method: str, params: Json, key: Any = 1) -> Json:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def modern(method: str, params: Json | None = None, key: Any = 1) -> tuple[Json, dict[str, str]]:
    """A modern request with its headers."""
    given = dict(params or {})
    capabilities = given.pop("capabilities", ALL)
    meta = {f"{META_PREFIX}protocolVersion": MODERN, f"{META_PREFIX}clientCapabilities": capabilities}
    given["_meta"] = {**given.get("_meta", {}), **meta}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    name = given.get("name") or given.get("uri") or given.get("taskId")
    return request(method, given, key), headers | ({"Mcp-Name": name} if name else {})


def events(text: str) -> list[Json]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
