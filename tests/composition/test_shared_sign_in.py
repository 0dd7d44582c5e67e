"""One sign-in for everything that runs of a server."""

from __future__ import annotations

import asyncio

import pytest

from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.host.connections.instances import Holder
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallState, ToolCall
from tests.auth.people import Echo, Guarded, Web, browse


class _Yes:
    async def ask(self, question: Question) -> Answer:
        return Answer(True)


async def _call_all(host: Host) -> list[ToolCall]:
    """Call the server for eight sessions at once, each by an instance of its own."""
    names = [await host.instances.lease("web", Holder(number, "agent")) for number in range(8)]
    calls = [host.tool_calls.call(name, "echo", {"text": "x"}) for name in names]
    await asyncio.gather(*(call.finished.wait() for call in calls))
    return calls


async def test_eight_sessions_share_one_sign_in_and_one_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPHOST_KEYCHAIN", "off")
    browsing: list[asyncio.Task[object]] = []

    async def open_url(url: str) -> str:
        browsing.append(asyncio.ensure_future(browse(url)))
        return ""

    guard = Guarded(inner=Echo(stateless=True, listens=False), rotates=True)
    with Web(guard) as web:
        server = {"url": web.url, "transport": "http", "protocol": "legacy", "start": "lazy"}
        config = Config.model_validate({"servers": {"web": server}, "policy": {"default": "allow"}}, strict=False)
        async with Host(config, dependencies(_Yes(), Values({}), open_url=open_url)) as host:
            assert {call.state for call in await _call_all(host)} == {CallState.DONE}
            assert [(each.number, each.server) for each in host.sign_ins.all.values()] == [(1, "web")]
            assert len(host.instances.of("web")) == 8
            guard.valid.clear()
            assert {call.state for call in await _call_all(host)} == {CallState.DONE}
            assert (guard.renewed, guard.reused) == (1, [])
            await host.sign_ins.sign_out("web@agent-3")
            assert not (await host.sign_ins.status("web")).signed_in
    await asyncio.gather(*browsing)
