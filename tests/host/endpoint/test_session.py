"""The session of an agent: what it is offered, and how changes are announced."""

from __future__ import annotations

import pytest

from mcphost.protocol.lifecycle.revisions import Revision
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
