"""Resources, prompts and completions of agents, and the subscriptions that they share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError
from mcphost.serving.served_request import ServedRequest
from tests.host.endpoint.rig import ERAS, Agent, Json, ServerContent, rig, says

pytestmark = pytest.mark.asyncio

PROMPT = {"type": "ref/prompt", "name": "greet"}
LISTEN = {"notifications": {"resourceSubscriptions": ["file:///a"]}}


def shelf() -> ServerContent:
    return ServerContent(lamp=says("lit"))


def bare(agent: Agent, result: Json) -> Json:
    """A result without what a modern session adds."""
    added = {"resultType", "ttlMs", "cacheScope", "_meta"} if agent.revision.modern else set()
    return {name: value for name, value in result.items() if name not in added}


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_lists_reads_and_prompts_pass_unchanged(era: str, revision: Revision) -> None:
    content = shelf()
    async with rig({"rock": content}, era=era) as running:
        agent = await running.agent(revision)
        for method, params in (
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("prompts/list", {}),
            ("resources/read", {"uri": "file:///a"}),
            ("prompts/get", {"name": "greet", "arguments": {"who": "Ann"}}),
            ("completion/complete", {"ref": PROMPT, "argument": {"name": "who", "value": "A"}}),
        ):
            assert bare(agent, await agent.result(method, params)) == content.results[method]
    assert content.all("prompts/get")[0].params["arguments"] == {"who": "Ann"}
    assert content.all("completion/complete")[0].params["ref"] == PROMPT


@pytest.mark.server_requirement("SRES-25")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_missing_resource_has_the_code_of_the_agents_era(era: str, revision: Revision) -> None:
    class Empty(ServerContent):
        def begin(self, request: ServedRequest) -> None:
            if request.method == "resources/read":
                raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "No such thing.", {"uri": "file:///b"})
            super().begin(request)

    async with rig({"rock": Empty(lamp=says("lit"))}, era=era) as running:
        agent = await running.agent(revision)
        error = await agent.error("resources/read", {"uri": "file:///b"})
    code = ErrorCode.INVALID_PARAMS if revision.modern else ErrorCode.RESOURCE_NOT_FOUND
    assert error == {"code": code, "message": "No such thing.", "data": {"uri": "file:///b"}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "bow"}),
        ("prompts/get", {}),
        ("resources/read", {"uri": 1}),
        ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {}}),
        ("completion/complete", {"ref": {**PROMPT, "name": "bow"}, "argument": {}}),
    ],
)
async def test_unknown_names_and_odd_params_are_errors(method: str, params: Json) -> None:
    async with rig({"rock": shelf()}) as running:
        agent = await running.agent()
        assert (await agent.error(method, params))["code"] == ErrorCode.INVALID_PARAMS


async def test_names_of_several_servers_lead_to_each() -> None:
    rock, isle = shelf(), shelf()
    isle.results["resources/list"] = {"resources": [{"uri": "isle://b", "name": "b"}]}
    isle.results["resources/templates/list"] = {"resourceTemplates": []}
    async with rig({"rock": rock, "isle": isle}) as running:
        agent = await running.agent()
        tools = [each["name"] for each in (await agent.result("tools/list"))["tools"]]
        await agent.call("isle__lamp")
        await agent.result("prompts/get", {"name": "rock__greet"})
        await agent.result("resources/read", {"uri": "isle://b"})
    assert tools == ["rock__lamp", "isle__lamp"]
    assert [each.params["name"] for each in isle.all("tools/call")] == ["lamp"]
    assert [each.params["name"] for each in rock.all("prompts/get")] == ["greet"]
    assert [each.params["uri"] for each in isle.all("resources/read")] == ["isle://b"]
    assert rock.all("tools/call") == rock.all("resources/read") == []


async def test_a_read_is_in_the_audit_log_with_its_agent(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig({"rock": shelf()}, dependencies={"audit_path": audit}) as running:
        agent = await running.agent()
        await agent.result("resources/read", {"uri": "file:///a"})
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["event"], each["agent"], each["uri"]) for each in records] == [
        ("resource", "claude-code", "file:///a"),
        ("outcome", "claude-code", "file:///a"),
    ]


async def test_subscriptions_to_one_resource_share_one() -> None:
    content = shelf()
    async with rig({"rock": content}) as running:
        first, second = await running.agent(), await running.agent()
        for agent in (first, second):
            await agent.result("resources/subscribe", {"uri": "file:///a"})
        content.session.resource_updated("file:///a")
        for agent in (first, second):
            assert await agent.notice("resources/updated") == {"uri": "file:///a"}
        await first.result("resources/unsubscribe", {"uri": "file:///a"})
        assert content.all("resources/unsubscribe") == []
        second.close()
        await content.until("resources/unsubscribe")
        assert len(content.all("resources/subscribe")) == 1
        assert content.all("resources/read") == []
        assert running.host.resources.subscriptions("rock") == {}


@pytest.mark.parametrize("era", ERAS)
async def test_a_modern_agent_listens_to_updates(era: str) -> None:
    content = shelf()
    async with rig({"rock": content}, era=era) as running:
        agent = await running.agent(NEWEST_MODERN)
        key = agent.start("subscriptions/listen", LISTEN)
        await agent.notice("subscriptions/acknowledged")
        await running.subscribed("rock", "file:///a")
        content.session.resource_updated("file:///a")
        assert (await agent.notice("resources/updated"))["uri"] == "file:///a"
        agent.notify("notifications/cancelled", {"requestId": key})
        if era == "legacy":
            await content.until("resources/unsubscribe")


async def test_a_refused_subscription_is_refused_to_the_agent() -> None:
    class Deaf(ServerContent):
        def begin(self, request: ServedRequest) -> None:
            if request.method == "resources/subscribe":
                raise RpcError(-31000, "No.")
            super().begin(request)

    async with rig({"rock": Deaf(lamp=says("lit"))}) as running:
        agent = await running.agent(NEWEST_HANDSHAKE)
        error = await agent.error("resources/subscribe", {"uri": "file:///a"})
    assert error == {"code": -31000, "message": "No."}
