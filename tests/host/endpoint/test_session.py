"""The session of an agent: what it is offered, and how changes are announced."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mcphost.config.surface_lock import SurfaceLock
from mcphost.errors import ConfigError, UnknownName
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections import listings
from mcphost.host.connections.state import ServerState
from mcphost.host.endpoint import session
from mcphost.host.endpoint.session import PAGE_ITEMS
from mcphost.protocol.lifecycle.revisions import META_PREFIX, NEWEST_MODERN, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from tests.host.endpoint.rig import ERAS, ServerContent, rig, says

pytestmark = pytest.mark.asyncio


def lighthouse() -> ServerContent:
    return ServerContent(lamp=says("lit"), horn=says("loud"))


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.server_requirement("STOOL-05", "STOOL-06")
async def test_one_server_keeps_its_names_and_definitions(era: str, revision: Revision) -> None:
    content = lighthouse()
    async with rig({"rock": content}, era=era) as running:
        agent = await running.agent(revision)
        tools = (await agent.result("tools/list"))["tools"]
    assert tools == list(content.definitions.values())


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_returns_the_servers_result(era: str, revision: Revision) -> None:
    async with rig({"rock": lighthouse()}, era=era) as running:
        agent = await running.agent(revision)
        result = await agent.call("lamp")
    assert result["content"] == [{"type": "text", "text": "lit"}]


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_list_is_announced_once_it_is_known(era: str, revision: Revision) -> None:
    content = lighthouse()
    async with rig({"rock": content}, era=era) as running:
        agent = await running.agent(revision)
        if revision.modern:
            agent.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await agent.notice("subscriptions/acknowledged")
        await agent.result("tools/list")
        content.definitions["bell"] = {"name": "bell", "inputSchema": {"type": "object"}}
        content.session.list_changed("tools")
        await agent.notice("tools/list_changed")
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp", "horn", "bell"]


async def test_an_equal_list_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANNOUNCE_SECONDS", 0)
    monkeypatch.setattr(listings, "RELIST_PAUSE", 0)
    content = lighthouse()
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        for method in ("tools/list", "prompts/list"):
            await agent.result(method)
        await running.host.servers["rock"].relist()
        content.results["prompts/list"] = {"prompts": []}
        content.session.list_changed("prompts")
        await agent.notice("prompts/list_changed")
        assert agent.notices("tools/list_changed") == []


async def test_a_server_that_is_away_keeps_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANNOUNCE_SECONDS", 0)
    content = lighthouse()
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        before = await agent.result("tools/list")
        running.host.servers["rock"].stop()
        await running.until(lambda: not running.host.servers["rock"].ready)
        assert await agent.result("tools/list") == before
        assert agent.notices("tools/list_changed") == []


@pytest.mark.server_requirement("SLIFE-11")
async def test_capabilities_are_those_of_the_servers() -> None:
    content = ServerContent(lamp=says("lit"))
    content.capabilities = {"tools": {}}
    async with rig({"rock": content}) as running:
        agent = await running.agent(opens=False)
        opened = await agent.open()
    assert opened["capabilities"] == {"tools": {"listChanged": True}}
    assert opened["instructions"] == "Be kind."
    assert opened["serverInfo"]["name"] == "mcphost"


async def test_instructions_of_several_servers_name_each() -> None:
    async with rig({"rock": lighthouse(), "isle": lighthouse()}) as running:
        agent = await running.agent(opens=False)
        assert (await agent.open())["instructions"] == "# rock\n\nBe kind.\n\n# isle\n\nBe kind."


async def test_only_the_chosen_servers_are_served() -> None:
    async with rig({"rock": lighthouse(), "isle": lighthouse()}) as running:
        agent = await running.agent(servers=("isle",))
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp", "horn"]
        with pytest.raises(UnknownName, match="no server is called 'reef'"):
            await running.agent(servers=("reef",))


async def test_a_profile_limits_servers_and_tools() -> None:
    profiles = {"night": {"servers": ["rock"], "tools": ["!rock:horn"]}}
    async with rig({"rock": lighthouse(), "isle": lighthouse()}, profiles=profiles) as running:
        agent = await running.agent(profile="night")
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp"]
        assert (await agent.error("tools/call", {"name": "horn"}))["code"] == ErrorCode.INVALID_PARAMS
        with pytest.raises(ConfigError, match="there is no profile day"):
            await running.agent(profile="day")


async def test_a_long_list_has_pages() -> None:
    content = ServerContent(**{f"t{number}": says("") for number in range(PAGE_ITEMS + 1)})
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        first = await agent.result("tools/list")
        second = await agent.result("tools/list", {"cursor": first["nextCursor"]})
        assert (len(first["tools"]), len(second["tools"])) == (PAGE_ITEMS, 1)
        assert (await agent.error("tools/list", {"cursor": "else"}))["code"] == ErrorCode.INVALID_PARAMS


async def test_a_changed_tool_is_held_until_the_user_saw_it() -> None:
    content = lighthouse()
    async with rig({"rock": content}, serve={"drift": "hold"}) as running:
        agent = await running.agent()
        await agent.result("tools/list")
        content.definitions["horn"] = {**content.definitions["horn"], "description": "Also deletes."}
        content.session.list_changed("tools")
        await agent.notice("tools/list_changed")
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp"]
        agent.sent.clear()
        await running.host.run("rock", "horn")
        await agent.notice("tools/list_changed")
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp", "horn"]


async def test_an_agent_gets_only_tools_as_locked() -> None:
    async with rig({"rock": lighthouse()}) as running:
        host = running.host
        await host.servers.ready(["rock"])
        locked = {each.name: {"definition": each.digest} for each in host.servers["rock"].tools}
        del locked["horn"]
        lock = SurfaceLock.model_validate({"version": 1, "servers": {"rock": {"tools": locked}}})
        policy = host.config.policy.with_lock(Path("mcphost.lock"), lock)
        await host.apply(host.config.model_copy(update={"policy": policy}))
        agent = await running.agent()
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp"]


async def test_a_tool_that_only_one_process_changed_is_held() -> None:
    content = lighthouse()
    async with rig({"rock": content}, share="session", serve={"drift": "hold"}) as running:
        agent = await running.agent()
        await agent.result("tools/list")
        content.definitions["horn"] = {**content.definitions["horn"], "description": "Also deletes."}
        await agent.call("lamp")
        known = running.host.endpoint.known
        await running.until(lambda: bool(known.items("rock@claude-code", CatalogKind.TOOLS)))
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp"]


async def test_a_tool_that_was_away_for_a_while_is_held() -> None:
    content = lighthouse()
    async with rig({"rock": content}, serve={"drift": "hold"}) as running:
        agent = await running.agent()
        await agent.result("tools/list")
        horn = content.definitions.pop("horn")
        content.session.list_changed("tools")
        known = running.host.endpoint.known
        await running.until(lambda: len(known.items("rock", CatalogKind.TOOLS)) == 1)
        content.definitions["horn"] = {**horn, "description": "Also deletes."}
        content.session.list_changed("tools")
        await running.until(lambda: len(known.items("rock", CatalogKind.TOOLS)) == 2)
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp"]


async def test_a_log_message_during_the_users_call_is_no_agents() -> None:
    content = ServerContent(lamp=lambda request: None)
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        agent.start("tools/call", {"name": "lamp"})
        await content.until("tools/call")
        users = asyncio.create_task(running.host.run("rock", "lamp"))
        await running.until(lambda: len(content.all("tools/call")) == 2)
        content.all("tools/call")[1].log(LogLevel.ERROR, "private", "lamp")
        content.session.log(LogLevel.ERROR, "private", "")
        for request in content.all("tools/call"):
            request.finish({"content": []})
        await users
        assert agent.notices("message") == []


async def test_the_log_of_a_server_that_is_not_shared_is_no_agents() -> None:
    content = lighthouse()
    async with rig({"rock": content}, share="session") as running:
        agent = await running.agent()
        await agent.result("tools/list")
        content.session.log(LogLevel.ERROR, "about the user's call", "")
        await agent.call("lamp")
        assert agent.notices("message") == []


@pytest.mark.server_requirement("SLOG-05")
async def test_log_messages_pass_by_the_level_of_each_session() -> None:
    content = lighthouse()
    async with rig({"rock": content}) as running:
        quiet, curious = await running.agent(), await running.agent()
        await quiet.result("logging/setLevel", {"level": "error"})
        await curious.result("logging/setLevel", {"level": "debug"})
        await running.level("rock", LogLevel.DEBUG)
        content.session.log(LogLevel.DEBUG, {"fog": True}, "watch")
        content.session.log(LogLevel.ERROR, "rocks", "")
        await quiet.notice("message")
        assert quiet.notices("message") == [{"level": "error", "data": "rocks"}]
        assert curious.notices("message") == [
            {"level": "debug", "logger": "watch", "data": {"fog": True}},
            {"level": "error", "data": "rocks"},
        ]


async def test_a_log_message_during_a_call_is_its_agents_alone() -> None:
    content = ServerContent(lamp=lambda request: None)
    async with rig({"rock": content}) as running:
        caller, other = await running.agent(), await running.agent()
        caller.start("tools/call", {"name": "lamp"})
        request = await content.until("tools/call")
        request.log(LogLevel.ERROR, "private", "lamp")
        await caller.notice("message")
        assert other.notices("message") == []


@pytest.mark.server_requirement("SLOG-08", "SLOG-11")
async def test_a_modern_agent_gets_only_the_logs_of_its_request() -> None:
    content = ServerContent(lamp=lambda request: None)
    async with rig({"rock": content}) as running:
        agent = await running.agent(NEWEST_MODERN)
        content.session.log(LogLevel.ERROR, "nobody's", "")
        agent.start("tools/call", {"name": "lamp"}, **{f"{META_PREFIX}logLevel": "info"})
        request = await content.until("tools/call")
        request.log(LogLevel.ERROR, "the lamp's", "lamp")
        assert (await agent.notice("message"))["data"] == "the lamp's"
        assert len(agent.notices("message")) == 1


async def test_each_agent_has_a_stateful_server_of_its_own() -> None:
    content = lighthouse()
    async with rig({"rock": content}, share=None) as running:
        first, second = await running.agent(), await running.agent()
        for agent in (first, second):
            await agent.call("lamp")
            await agent.result("resources/subscribe", {"uri": "file:///a"})
        assert running.host.instances.of("rock") == ["rock@claude-code", "rock@claude-code-2"]
        running.transports["rock@claude-code"].session.resource_updated("file:///a")
        await first.notice("resources/updated")
        assert second.notices("resources/updated") == []
        first.close()
        assert running.host.instances.of("rock") == ["rock@claude-code-2"]


async def test_a_removed_server_takes_its_items_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANNOUNCE_SECONDS", 0)
    async with rig({"rock": lighthouse(), "isle": lighthouse()}) as running:
        agent = await running.agent()
        await agent.result("tools/list")
        config = running.host.config
        await running.host.apply(config.model_copy(update={"servers": {"rock": config.servers["rock"]}}))
        await agent.notice("tools/list_changed")
        assert [each["name"] for each in (await agent.result("tools/list"))["tools"]] == ["lamp", "horn"]


async def test_the_instructions_name_a_server_that_does_not_run() -> None:
    content = lighthouse()
    async with rig({"rock": content}) as running:
        running.host.servers["rock"].stop()
        await running.until(lambda: running.host.servers["rock"].state is ServerState.STOPPED)
        agent = await running.agent(opens=False)
        assert (await agent.open())["instructions"] == "The tools of rock are missing, since this server is stopped."


async def test_the_reason_of_a_missing_server_ends_with_one_mark() -> None:
    async with rig({"rock": lighthouse()}) as running:
        running.host.servers["rock"].stop()
        await running.until(lambda: running.host.servers["rock"].state is ServerState.STOPPED)
        running.host.servers["rock"].reason = "is the url right?"
        agent = await running.agent(opens=False)
        assert (await agent.open())["instructions"].endswith("stopped: is the url right?")


async def test_an_older_agent_gets_the_logs_of_a_modern_server() -> None:
    async with rig({"rock": lighthouse()}, era="modern") as running:
        await running.agent()
        await running.level("rock", LogLevel.INFO)
