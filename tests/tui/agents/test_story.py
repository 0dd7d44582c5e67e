"""An agent connects, asks and is answered, and is disconnected."""

from __future__ import annotations

import pytest

from mcphost.host.agents.session import AgentCallState
from mcphost.tui.agents.card import AgentScreen
from mcphost.tui.agents.list import AgentsPane
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.kit.modal_screen import AskScreen
from tests.tui.agents.sessions import ask, claude, connect
from tests.tui.stage import echo, on_stage

pytestmark = pytest.mark.slow


async def test_an_agent_asks_is_answered_and_is_disconnected() -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        agent, port = await connect(stage.host, claude())
        ask(agent)
        await stage.call_dialog()
        await stage.shows("claude-code (pid 4711 in /work/lighthouse) wants to run git:git_push", "the agent waits")
        await stage.press("y")
        await stage.until(lambda _: port.decisions)
        assert (port.decisions[0].allow, port.decisions[0].by) == (True, "user")
        agent.sent(1)
        agent.finished(1, "done", 0.2)
        await stage.shows("● claude-code", "pid 4711 · claude", "1 call")
        await stage.press("G", "enter")
        await stage.at(AgentScreen)
        await stage.shows("git:git_push · done")
        await stage.press("D")
        await stage.at(AskScreen)
        await stage.press("y", "escape")
        await stage.shows("◌ claude-code", "gone")


async def test_a_late_answer_to_an_agent_that_may_have_gone_needs_two_keys() -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        agent, port = await connect(stage.host, claude(given=""))
        ask(agent)
        await stage.call_dialog()
        await stage.shows('"claude-code" (so it says')
        agent.overdue(1)
        await stage.shows("it may make this call once within 10 minutes", "was asked to call again")
        agent.doubted(1)
        await stage.shows("may have given up")
        await stage.press("space", "y")
        await stage.at(AskScreen)
        assert not port.decisions
        await stage.press("n")
        await stage.at(ToolCallScreen)
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.press("y")
        await stage.until(lambda _: port.decisions)


async def test_a_parked_call_counts_down_and_a_muted_agent_is_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        agent, port = await connect(stage.host, claude())
        rings: list[str] = []
        monkeypatch.setattr(stage.app, "write_to_terminal", rings.append)
        stage.app.attention.blurred()
        ask(agent)
        await stage.until(lambda _: rings == ["\a"])
        stage.app.attention.focused()
        await stage.call_dialog()
        await stage.press("p")
        await stage.shows("claude-code wants to run git:git_push · waits")
        assert stage.app.questions.counts_down
        await stage.press("f2")
        await stage.shows("by claude-code (pid 4711)", "s more")
        await stage.press("escape", "G", "M")
        await stage.until(lambda _: port.decisions)
        assert not port.decisions[0].allow
        await stage.shows("muted")
        assert agent.session.calls[next(iter(agent.session.calls))].state is AgentCallState.DECLINED
        assert not stage.app.questions.counts_down


async def test_the_block_follows_twenty_agents() -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        agents = [await connect(stage.host, claude(pid=5000 + number)) for number in range(20)]
        for agent, _ in agents:
            ask(agent)
        await stage.call_dialog()
        block = stage.app.main.query_one(AgentsPane)
        await stage.until(lambda _: block.border_title == "Agents · 20 waiting")
        await stage.press("y")
        await stage.until(lambda _: agents[0][1].decisions and block.border_title == "Agents · 19 waiting")
        for agent, _ in agents:
            agent.closed()
        await stage.gone()
        await stage.until(lambda _: block.border_title == "Agents")
        assert [row.connected for row in block.rows.items] == [False] * 20
        assert not stage.app.approver.open
        await stage.shows("◌ claude-code", "gone")
