"""The poet of the demo asks for a language model: with the user as the model, and with one that uses its tool."""

from __future__ import annotations

import pytest

from mcphost.providers.base import AnswerFinished, TextDelta, ToolUseReady
from mcphost.tui.consent.tool_call import ToolCallScreen
from tests.host.sampling.sampling_host import MODEL, Attempt
from tests.tui.elicitation.questions import at
from tests.tui.sampling.samplings import sampling_config, sampling_stage
from tests.tui.stage import NARROW, demo

pytestmark = pytest.mark.slow


@pytest.mark.requirement("SAMP-02", "SAMP-03", "SAMP-09")
async def test_a_newcomer_without_a_model_writes_the_verse() -> None:
    async with sampling_stage(config=demo().model_copy(update={"models": {}}), size=NARROW) as stage:
        await stage.open_tool("write_verse")
        await stage.press("ctrl+r")
        await at(stage, ToolCallScreen)
        await stage.press("y")
        await stage.listens()
        await stage.shows("You are the model: write an answer to this prompt?", "You are the poet of a lighthouse")
        await stage.shows("for call 1", "no model is configured")
        await stage.press("y")
        await stage.shows("You are the model: write the answer", "Write a verse of four lines about the fog.")
        await stage.write("the fog is here")
        await stage.press("ctrl+r")
        await stage.shows("Send this answer to “demo”?", "the fog is here")
        await stage.listens()
        await stage.press("y")
        await stage.gone()
        call = await stage.ended()
        assert call.outcome is not None
        assert "the fog is here\n\n(by human; it stopped: endTurn)" in str(call.outcome.raw["content"][0]["text"])
        await stage.shows("the fog is here", "(by human; it stopped: endTurn)")


@pytest.mark.requirement("SAMP-16", "SAMP-18")
async def test_a_model_looks_out_of_the_window_first() -> None:
    looks: Attempt = [
        TextDelta("Let me see."),
        ToolUseReady("u1", "look_out", {}, True),
        AnswerFinished("toolUse", "claude"),
    ]
    verse: Attempt = [TextDelta("Ships at dusk"), AnswerFinished("endTurn", "claude")]
    config = demo().model_copy(update={"models": sampling_config({"claude": MODEL}).models})
    async with sampling_stage({"claude": [looks, verse]}, config) as stage:
        call = stage.call("write_verse", {"about": "dusk"})
        await at(stage, ToolCallScreen)
        await stage.press("y")
        await stage.listens()
        await stage.press("y")
        await stage.shows('→ wants the tool "look_out" · id "u1"', "with tool calls")
        await stage.listens()
        await stage.press("y")
        await stage.until(lambda _: len(stage.host.sampling.all) == 2)
        await stage.listens()
        await stage.press("G")
        await stage.shows('"tall ship"')
        await stage.press("y")
        await stage.shows("Ships at dusk")
        await stage.listens()
        await stage.press("y")
        await stage.ended(call)
        assert call.outcome is not None
        assert "(by claude; it stopped: endTurn)" in str(call.outcome.raw)
