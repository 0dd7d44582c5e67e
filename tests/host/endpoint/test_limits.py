"""The bounds of what an agent gets: the tools of its profile, its revision, and the size of a result."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.client.session_opening import MARK_KEY
from mcphost.config import ServerConfig
from mcphost.host.loop_guard import ITSELF, OWN_MARK, may_be_mcphost
from mcphost.protocol.lifecycle.revisions import NEWEST_MODERN, V2025_03_26, V2025_11_25, Revision
from mcphost.serving.negotiation import RpcError
from mcphost.serving.served_request import ServedRequest
from tests.host.endpoint.rig import Agent, ServerContent, rig, says, texts


@pytest.mark.server_requirement("STOOL-20", "STOOL-21")
async def test_a_tool_outside_the_profile_is_unknown() -> None:
    servers = {"git": ServerContent(log=says("log"), push=says("push")), "docs": ServerContent(find=says("found"))}
    profiles = {"p": {"tools": ["git:*", "!git:push"]}}
    async with rig(servers, profiles=profiles) as running:
        agent = await running.agent(profile="p")
        assert [tool["name"] for tool in (await agent.result("tools/list"))["tools"]] == ["git__log"]
        assert texts(await agent.call("git__log")) == ["log"]
        for name in ("git__push", "docs__find", "push"):
            assert (await agent.error("tools/call", {"name": name}))["code"] == -32602
        assert servers["git"].all("tools/call") != []
        assert servers["docs"].all("tools/call") == []


@pytest.mark.parametrize("revision", [V2025_03_26, V2025_11_25])
async def test_an_older_agent_gets_what_its_revision_has(revision: Revision) -> None:
    content = ServerContent(tool=says("sum", structuredContent=[1, 2]))
    content.definitions["tool"]["outputSchema"] = {"type": "array"}
    async with rig({"s": content}, era="modern") as running:
        agent = await running.agent(revision)
        assert "outputSchema" not in (await agent.result("tools/list"))["tools"][0]
        result = await agent.call("tool")
        assert texts(result) == ["sum", "[1, 2]"]
        assert "structuredContent" not in result


async def test_the_error_of_a_server_keeps_its_code_only_in_its_era() -> None:
    def fails(request: ServedRequest) -> None:
        request.fail(RpcError(-32055, "mine", {"a": 1}))

    async with rig({"s": ServerContent(tool=fails)}) as running:
        modern, legacy = await running.agent(NEWEST_MODERN), await running.agent(V2025_11_25)
        own: dict[str, Any] = {"code": -32055, "message": "mine", "data": {"a": 1}}
        assert await legacy.error("tools/call", {"name": "tool"}) == own
        assert await modern.error("tools/call", {"name": "tool"}) == {"code": -32603, "message": "mine", "data": own}


async def test_the_whole_of_a_large_result_can_be_read() -> None:
    content = ServerContent(tool=says("a" * 5_000))
    del content.capabilities["resources"]
    async with rig({"s": content}, serve={"max_result": 1_000}) as running:
        agent = await running.agent()
        result = await agent.call("tool")
        assert texts(result)[0] == "a" * 1_000
        whole = await agent.result("resources/read", {"uri": result["content"][-1]["uri"]})
        assert whole["contents"][0]["text"] == "a" * 5_000
        other = await running.agent()
        assert "error" in await other.ask("resources/read", {"uri": result["content"][-1]["uri"]})


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
async def test_mcphost_does_not_serve_itself(method: str) -> None:
    async with rig({}) as running:
        revision = NEWEST_MODERN if method == "server/discover" else V2025_11_25
        agent = await running.agent(revision)
        again = Agent(agent.endpoint, revision, {})
        params = {"protocolVersion": revision.version, "capabilities": {}, "_meta": {MARK_KEY: OWN_MARK}}
        error = await again.error(method, {} if revision.modern else params, **{MARK_KEY: OWN_MARK})
        assert error == {"code": -32600, "message": ITSELF}


@pytest.mark.parametrize(
    ("entry", "marked"),
    [
        ({"command": "mcphost", "args": ["serve"]}, True),
        ({"command": "env", "args": ["A=1", "/opt/mcphost/python", "-m", "mcphost", "serve"]}, True),
        ({"command": "git-server"}, False),
        ({"url": "http://127.0.0.1:8000/mcp"}, True),
        ({"url": "https://example.com/mcphost"}, False),
    ],
)
def test_only_what_may_be_mcphost_gets_the_name_of_the_process(entry: dict[str, Any], *, marked: bool) -> None:
    assert may_be_mcphost(ServerConfig.model_validate(entry, strict=False)) is marked
