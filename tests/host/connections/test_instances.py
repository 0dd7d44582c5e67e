from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.host.connections.instances import Holder
from mcphost.protocol.models.content import TextContent
from mcphost.serving.served_request import ServedRequest
from tests.host.conftest import RecordingHost, ScriptedApprover
from tests.host.endpoint.rig import ServerContent, ServerInProcess

ONE, TWO = Holder(1, "claude-code"), Holder(2, "claude-code")


class CountingServer(ServerContent):
    """Counts the calls of its own session, as a stateful server would."""

    def __init__(self) -> None:
        super().__init__(count=self._count)
        self._calls = 0

    def _count(self, request: ServedRequest) -> None:
        self._calls += 1
        request.finish({"content": [{"type": "text", "text": str(self._calls)}]})


class InstanceHost(RecordingHost):
    """A host whose server of every connection is a new one."""

    def __init__(self, entry: Mapping[str, Any], approver: ScriptedApprover | None = None, **more: Any) -> None:
        self.contents: dict[str, CountingServer] = {}
        self.opened: list[str] = []
        values = {"servers": {"git": {"command": "in-process", "start": "lazy", **entry}}, **more.pop("values", {})}
        super().__init__(Config.model_validate(values, strict=False), approver, open_transport=self._opened, **more)

    async def _opened(self, config: Config, name: str) -> ServerInProcess:
        content = self.contents[name] = CountingServer()
        self.opened.append(name)
        return ServerInProcess(content)

    async def count(self, holder: Holder) -> str:
        """Call the tool for an agent's session; the server's answer."""
        call = await self.run(await self.instances.lease("git", holder), "count")
        assert call.outcome is not None, call.error
        (block,) = call.outcome.content
        assert isinstance(block, TextContent)
        return block.text


@asynccontextmanager
async def hosting(approver: ScriptedApprover | None = None, **entry: Any) -> AsyncIterator[InstanceHost]:
    values = {"policy": entry.pop("policy", {"default": "allow"})}
    dependencies = entry.pop("dependencies", {})
    async with InstanceHost(entry, approver, values=values, **dependencies) as running:
        yield running


@pytest.mark.parametrize(
    ("entry", "counted", "opened"),
    [
        ({"protocol": "legacy"}, ["1", "2", "1"], ["git@claude-code", "git@claude-code-2"]),
        ({"protocol": "modern"}, ["1", "2", "3"], ["git"]),
        ({"protocol": "legacy", "share": "all"}, ["1", "2", "3"], ["git"]),
        ({"protocol": "modern", "share": "session"}, ["1", "2", "1"], ["git@claude-code", "git@claude-code-2"]),
        ({}, ["1", "2", "3"], ["git"]),
    ],
    ids=["a legacy server", "a modern one", "shared by all", "private by the file", "of an unknown era"],
)
async def test_a_session_sees_what_others_did_only_if_shared(
    entry: dict[str, Any], counted: list[str], opened: list[str]
) -> None:
    async with hosting(**entry) as running:
        assert [await running.count(ONE), await running.count(ONE), await running.count(TWO)] == counted
        assert running.opened == opened


@pytest.mark.parametrize(
    ("holders", "counted"),
    [
        ((Holder(1, "a", given="a"), Holder(2, "a", given="a"), Holder(3, "b", given="b")), ["1", "2", "1"]),
        ((Holder(1, "a"), Holder(2, "a")), ["1", "1"]),
    ],
    ids=["by the name of --as", "a claimed name joins nothing"],
)
async def test_an_agent_shares_one_among_its_sessions(holders: tuple[Holder, ...], counted: list[str]) -> None:
    async with hosting(share="agent") as running:
        assert [await running.count(holder) for holder in holders] == counted


async def test_a_host_for_one_session_uses_the_entrys_own() -> None:
    async with hosting(protocol="legacy") as running:
        assert await running.count(ONE._replace(alone=True)) == "1"
        assert running.opened == ["git"]
