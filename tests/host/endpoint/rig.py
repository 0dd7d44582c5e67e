"""A host over servers in this process, and agents that it serves; each side in any era."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcphost.config import Config, entry_of
from mcphost.errors import ConnectionLost
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.connections.subscriptions import SubscriptionState
from mcphost.host.endpoint.service import EndpointOptions
from mcphost.host.endpoint.session import EndpointSession
from mcphost.protocol.lifecycle.revisions import META_PREFIX, NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, Response, decode, encode
from mcphost.serving.negotiation import ServerIntroduction
from mcphost.serving.served_request import ClientAnswer, ClientAsk, RequestKey, ServedRequest
from mcphost.serving.session import ServedContent, ServerSession
from mcphost.transports.base import Inbound, ProcessReport
from tests.host.conftest import RecordingHost

Json = dict[str, Any]
ERAS = {"legacy": NEWEST_HANDSHAKE, "modern": NEWEST_MODERN}
ALL: Json = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
"""The capabilities of an agent that answers everything."""

Tool = Callable[[ServedRequest], object]


class ServerContent(ServedContent):
    """A server: its tools by name, each served by a function; ``begun`` are the requests that came, the newest last."""

    def __init__(self, **tools: Tool) -> None:
        self.tools = tools
        self.definitions: dict[str, Json] = {
            name: {"name": name, "inputSchema": {"type": "object"}, "description": f"Does {name}."} for name in tools
        }
        self.capabilities: Json = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        }
        self.instructions = "Be kind."
        self.results: dict[str, Json] = {
            "resources/list": {"resources": [{"uri": "file:///a", "name": "a"}]},
            "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "file:///{name}", "name": "any"}]},
            "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]},
            "resources/read": {"contents": [{"uri": "file:///a", "text": "A"}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]},
            "completion/complete": {"completion": {"values": ["Ann"], "hasMore": False}},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        }
        self.begun: list[ServedRequest] = []
        self.opened_sessions = 0
        self.came = asyncio.Event()
        """Set by each request."""
        self.session: ServerSession

    def introduction(self, revision: Revision) -> ServerIntroduction:
        return ServerIntroduction({"name": "rig", "version": "1"}, self.capabilities, self.instructions)

    def prepare(self, then: Callable[[], None]) -> None:
        then()

    def opened(self) -> None:
        self.opened_sessions += 1

    def begin(self, request: ServedRequest) -> None:
        self.begun.append(request)
        self.came.set()
        if request.method == "tools/list":
            request.finish({"tools": list(self.definitions.values())})
        elif request.method == "tools/call":
            self.tools[request.params["name"]](request)
        else:
            request.finish(self.results[request.method])

    async def until(self, method: str) -> ServedRequest:
        """The first request of this method that comes, or came."""
        async with asyncio.timeout(20):
            while not self.all(method):
                self.came.clear()
                await self.came.wait()
        return self.all(method)[0]

    def all(self, method: str) -> list[ServedRequest]:
        return [each for each in self.begun if each.method == method]


class ServerInProcess:
    """A transport to a server in this process; as over stdio, all requests share one stream."""

    own_stream = False
    handshake_only = False

    def __init__(self, content: ServerContent) -> None:
        self._content = content
        self._inbound: Inbound | None = None
        self._waiting: dict[object, asyncio.Future[Response]] = {}
        content.session = self.session = ServerSession(content, self._from_server)

    async def open(self, inbound: Inbound) -> None:
        self._inbound = inbound

    def agreed(self, revision: Revision) -> None:
        pass

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = answer
        try:
            self.session.receive(encode(request))
            return await answer
        finally:
            del self._waiting[request.id]

    async def send(self, message: Notification | Response) -> None:
        self.session.receive(encode(message))

    async def listen(self) -> None:
        return

    async def aclose(self) -> None:
        self.session.close()

    def report(self) -> ProcessReport:
        return ProcessReport()

    def lose(self) -> None:
        """The server is gone."""
        assert self._inbound is not None
        lost = ConnectionLost("the server has ended")
        for answer in self._waiting.values():
            answer.set_exception(lost)
        self._inbound.closed(lost)

    def _from_server(self, message: Any, about: RequestKey | None) -> None:
        data = json.dumps(message).encode()
        asyncio.get_running_loop().call_soon(self._read, data)  # in order, and never within a request

    def _read(self, data: bytes) -> None:
        for read in decode(data):
            if isinstance(read, Response):
                if (waiting := self._waiting.get(read.id)) is not None and not waiting.done():
                    waiting.set_result(read)
            elif self._inbound is not None and not isinstance(read, Malformed):
                self._inbound.message(read)


class Agent:
    """A client of the endpoint; ``sent`` is all that mcphost wrote to it."""

    def __init__(self, session: EndpointSession, revision: Revision, capabilities: Mapping[str, Any]) -> None:
        self.endpoint, self.revision, self.capabilities = session, revision, capabilities
        self.sent: list[Json] = []
        self.changed = asyncio.Event()
        self.session = ServerSession(session, self._write)
        session.attach(self.session)
        self._last = 0

    def _write(self, message: Any, about: RequestKey | None) -> None:
        self.sent.append(message)
        self.changed.set()
        self.changed = asyncio.Event()

    async def open(self) -> Json:
        """Introduce the agent as its era does; the result."""
        if self.revision.modern:
            return await self.result("server/discover")
        params = {
            "protocolVersion": self.revision.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "rig-agent", "version": "1"},
        }
        result = await self.result("initialize", params)
        self.notify("notifications/initialized")
        return result

    def start(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> int:
        """Send a request; its id."""
        self._last += 1
        stamped: Json = dict(params or {})
        if self.revision.modern:
            meta = {
                f"{META_PREFIX}protocolVersion": self.revision.version,
                f"{META_PREFIX}clientCapabilities": self.capabilities,
                f"{META_PREFIX}clientInfo": {"name": "rig-agent", "version": "1"},
                **meta,
            }
        if meta:
            stamped["_meta"] = meta
        self.session.take({"jsonrpc": "2.0", "id": self._last, "method": method, "params": stamped})
        return self._last

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.session.take({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    def reply(self, key: Any, result: Mapping[str, Any]) -> None:
        self.session.take({"jsonrpc": "2.0", "id": key, "result": result})

    async def until(self, found: Callable[[Json], bool]) -> Json:
        """The first message of this kind that comes, or came."""
        async with asyncio.timeout(20):
            while True:
                changed = self.changed
                for message in self.sent:
                    if found(message):
                        return message
                await changed.wait()

    async def answer(self, key: int) -> Json:
        return await self.until(lambda message: message.get("id") == key and "method" not in message)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        """Send a request; the whole answer."""
        return await self.answer(self.start(method, params, **meta))

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        answer = await self.ask(method, params, **meta)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        answer = await self.ask(method, params, **meta)
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> Json:
        return await self.result("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    def notices(self, method: str) -> list[Json]:
        """The params of these notifications."""
        return [each.get("params", {}) for each in self.sent if each.get("method") == f"notifications/{method}"]

    async def notice(self, method: str) -> Json:
        found = await self.until(lambda message: message.get("method") == f"notifications/{method}")
        params: Json = found.get("params", {})
        return params

    def close(self) -> None:
        self.session.close()
        self.endpoint.closed()


class EndpointRig:
    """A running host with servers in this process."""

    def __init__(self, running: RecordingHost, contents: Mapping[str, ServerContent]) -> None:
        self.host, self.contents = running, contents
        self.transports: dict[str, ServerInProcess] = {}

    async def agent(
        self,
        revision: Revision = NEWEST_HANDSHAKE,
        capabilities: Mapping[str, Any] = ALL,
        given: str = "claude-code",
        *,
        opens: bool = True,
        **options: Any,
    ) -> Agent:
        """An agent, which has opened its session unless ``opens`` is False."""
        facts = AgentFacts(given or "an agent", given=given)
        agent = Agent(self.host.endpoint.open(EndpointOptions(facts, **options)), revision, capabilities)
        if opens:
            await agent.open()
        return agent

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until this is so, checked after each event of the host."""
        changed = asyncio.Event()
        stop = self.host.bus.observe(lambda event: changed.set())
        async with asyncio.timeout(20):
            while not condition():
                changed.clear()
                await changed.wait()
        stop()

    async def subscribed(self, server: str, uri: str) -> None:
        """Wait until the host is subscribed to a resource."""
        all_of = self.host.servers[server].subscriptions.all
        await self.until(lambda: uri in all_of and all_of[uri].state is SubscriptionState.WATCHING)

    async def level(self, server: str, level: LogLevel) -> None:
        """Wait until a server was asked for this level of log messages."""
        await self.until(lambda: self.host.servers[server].level is level)


@asynccontextmanager
async def rig(
    contents: Mapping[str, ServerContent],
    *,
    era: str = "legacy",
    share: str | None = "all",
    approver: Any = None,
    policy: Mapping[str, Any] | None = None,
    dependencies: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[EndpointRig]:
    """A host over these servers, by name; calls need no question unless ``policy`` says so."""
    transports: dict[str, ServerInProcess] = {}

    async def opened(config: Config, name: str) -> ServerInProcess:
        transports[name] = transports[entry_of(name)] = ServerInProcess(contents[entry_of(name)])
        return transports[name]

    entries = {name: {"command": "in-process", "protocol": era, "share": share} for name in contents}
    values = {"servers": entries, "policy": {"default": "allow"} if policy is None else policy, **more}
    config = Config.model_validate(values, strict=False)
    async with RecordingHost(config, approver, open_transport=opened, **(dependencies or {})) as running:
        found = EndpointRig(running, contents)
        found.transports = transports
        yield found


def says(text: str, **more: Any) -> Tool:
    """A tool that answers with a text."""
    return lambda request: request.finish({"content": [{"type": "text", "text": text}], **more})


def asks(method: str, params: Mapping[str, Any]) -> Tool:
    """A tool that asks the client, and answers with the answer."""

    def tool(request: ServedRequest) -> None:
        def take(answer: ClientAnswer) -> None:
            request.finish({"content": [], "structuredContent": dict(answer.result or {})})

        request.ask(ClientAsk(method, params, take))

    return tool


def texts(result: Mapping[str, Any]) -> list[str]:
    return [each["text"] for each in result["content"] if each["type"] == "text"]
