"""A server behind a gate asks the user, who answers, mutes it, and looks at its budget."""

from __future__ import annotations

import pytest

from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.inbox.screen import InboxScreen
from tests.host.sampling.sampling_host import create
from tests.tui.agents.sessions import ask, connected
from tests.tui.sampling.samplings import sampling_stage

pytestmark = pytest.mark.slow

FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


async def test_the_server_of_an_agent_asks_and_is_muted() -> None:
    async with sampling_stage(size=(120, 36)) as stage, connected(stage.host) as (agent, port):
        ask(agent)
        await stage.until(lambda _: port.decisions)
        agent.sent(1)
        agent.requested(1, "elicitation/create", FORM, 1)
        await stage.at(FormElicitationScreen)
        await stage.shows("“git through claude-code” asks you", "for call 1 · git_push")
        await stage.press("escape", "M")
        await stage.until(lambda _: port.replies)
        assert port.replies == {1: {"action": "decline"}}
        await stage.gone()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("muted: declines everything it asks")
        await stage.press("M", "escape")
        agent.requested(2, "sampling/createMessage", create("Hello")["params"], 1)
        dialog = await stage.listens()
        await stage.shows("git through claude-code")
        dialog.action_budget()
        await stage.until(lambda _: any("has no budget" in note for note in stage.notes))
        await stage.press("M")
        await stage.until(lambda _: port.refusals)
