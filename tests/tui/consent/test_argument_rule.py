"""The dialog for an argument rule: its patterns, the past calls, and the rule that results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.protocol.models.tools import Tool
from mcphost.tui.consent.argument_rule import ArgumentRuleScreen
from mcphost.tui.consent.grants import GrantsScreen
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.kit.reader import ReaderScreen
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow


async def make(stage: Stage, arguments: dict[str, Any], tool: str = "echo") -> ToolCall:
    """Call the tool, and open the screen for a rule."""
    call = stage.call(tool, arguments)
    await stage.call_dialog()
    await stage.press("space", "space", "w")
    await opened(stage)
    return call


async def opened(stage: Stage) -> ArgumentRuleScreen:
    await stage.until(lambda app: isinstance(app.screen, ArgumentRuleScreen) and app.screen.shown_for() >= 0)
    await stage.until(lambda _: "looking for past calls" not in stage.text)
    assert isinstance(stage.app.screen, ArgumentRuleScreen)
    return stage.app.screen


def patterns(stage: Stage) -> list[str]:
    return [field.value for field in stage.app.screen.query(Input)]


@pytest.mark.hostile("P10")
@pytest.mark.requirement("SEC-01", "TOOLS-29", "HOST-04")
async def test_a_rule_is_tried_holds_is_listed_and_taken_back() -> None:
    async with on_stage(echo("--harmless"), size=NARROW) as stage:
        await stage.ready()
        for text, key in (("SELECT 1", "y"), ("SELECT secrets", "n"), ("DROP t", "n")):
            call = stage.call("echo", {"text": text})
            await stage.call_dialog()
            await stage.press(key)
            await stage.ended(call)
        call = await make(stage, {"text": "SELECT 2"})
        assert patterns(stage) == [r"^SELECT\b"]
        await stage.shows("2 of 3 past calls · ▲ 1 declined", "✗ call 3", "✓ call 2", "text=SELECT secrets", "declined")
        assert "anything may stand after it" in stage.text
        await stage.press("shift+tab", "enter")
        await stage.press("enter", "u")
        assert (await stage.ended(call)).state is CallState.DONE
        await stage.gone()
        assert not await stage.needs_consent({"text": "SELECT 3"})
        assert await stage.needs_consent({"text": "DROP u"})
        await stage.press("g")
        await stage.at(GrantsScreen)
        await stage.shows("text matches", "until mcphost exits", r"echo › echo: where text matches '^SELECT\b'")
        await stage.press("enter")
        await stage.at(ReaderScreen)
        await stage.press("escape", "x")
        await stage.shows("Nothing is allowed without asking")
        await stage.press("escape")
        assert await stage.needs_consent({"text": "SELECT 4"})


@pytest.mark.hostile("P10")
async def test_always_lapses_when_the_tool_changes(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with on_stage(echo("--harmless"), state) as stage:
        await stage.ready()
        call = await make(stage, {"text": "main"})
        assert patterns(stage) == ["^main$"]
        await stage.press("enter", "a")
        await stage.ended(call)
    async with on_stage(echo("--harmless"), state) as stage:
        await stage.ready()
        assert not await stage.needs_consent({"text": "main"})
        call = await make(stage, {"text": "other"})
        await stage.shows("would have allowed 0 of 2 past calls · this run, earlier runs")
        await stage.press("escape", "escape")
        dialog = await stage.call_dialog()
        assert call.state is CallState.ASKING
        assert "where text matches '^main$', always" in stage.flat
        await stage.press("n")
        await stage.ended(call)
        tool = dialog.question.tool
        stage.host.catalog.keep("echo", [Tool.read({**tool.definition(), "description": "Now it also sends mail."})])
        assert await stage.needs_consent({"text": "main"})


NO_RULE = [
    ("(", "is not a regular expression"),
    ("(?=hi)", "takes too long to try"),
    ("h{999}{999}", "takes too long to try"),
    ("^ho", "does not match this call"),
    ("x" * 2001, "has more than 2,000 characters"),
    ("", "a rule needs at least one pattern"),
]


@pytest.mark.hostile("P10")
async def test_a_rule_that_does_not_fit_the_call_allows_nothing() -> None:
    async with on_stage(echo("--harmless")) as stage:
        await stage.ready()
        call = await make(stage, {"text": "hi"})
        await stage.press("escape")
        for pattern, words in NO_RULE:
            stage.app.screen.query_one(Input).value = pattern
            await stage.shows(words)
            await stage.press("u", "a", "enter")
            assert call.state is CallState.ASKING
        stage.app.screen.query_one(Input).value = "^h"
        await stage.shows("matches this call")
        await stage.press("u")
        assert (await stage.ended(call)).state is CallState.DONE
        assert [grant.when for grant in stage.host.consent.approvals.grants()] == [{"text": "^h"}]


async def test_only_texts_have_patterns_and_what_has_none_may_be_anything() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        call = await make(stage, {"count": 1, "level": "info", "logger": "x.y"}, "log")
        assert patterns(stage) == ["^info$", r"^x\.y$"]
        await stage.shows("▸ level   ▏^info$", "  logger  ▏^x")  # as in a form
        await stage.press("ctrl+t")
        assert patterns(stage) == ["", r"^x\.y$"]
        await stage.press("ctrl+t", "enter", "ctrl+t")
        assert patterns(stage) == ["^info$", ""]
        await stage.press("enter", "u")
        assert (await stage.ended(call)).state is CallState.DONE
        assert not await stage.needs_consent({"count": 0, "level": "info"}, "log")
        assert await stage.needs_consent({"count": 0, "level": "debug"}, "log")
        assert await stage.needs_consent({"count": 0}, "log")


@pytest.mark.parametrize(("tool", "arguments"), [("add", {"a": 1, "b": 2}), ("environment", {"names": ["a"]})])
async def test_without_texts_no_rule_is_offered(tool: str, arguments: dict[str, Any]) -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        call = stage.call(tool, arguments)
        await stage.call_dialog()
        assert "choose by arguments" not in stage.text
        await stage.press("w")
        assert isinstance(stage.app.screen, ToolCallScreen)
        await stage.press("n")
        await stage.ended(call)


@pytest.mark.hostile("P10")
async def test_a_tool_that_claims_to_destroy_gets_no_rule_for_always() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        tool = stage.host.catalog.tool("echo", "echo")
        stage.host.catalog.keep(
            "echo", [Tool.read({**tool.definition(), "annotations": {"readOnlyHint": False, "destructiveHint": True}})]
        )
        call = await make(stage, {"text": "hi"})
        await stage.shows("not offered: the tool says that it is destructive")
        await stage.press("enter", "a", "enter")  # the cursor is where no harm is done
        await stage.call_dialog()
        assert call.state is CallState.ASKING
        await stage.press("n")
        await stage.ended(call)


@pytest.mark.hostile("P08")
async def test_no_rule_is_made_of_what_was_not_seen_to_its_end() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "\n".join("x" * 30)})
        await stage.call_dialog()
        await stage.press("w")
        assert isinstance(stage.app.screen, ToolCallScreen)
        await stage.press(*["space"] * 14, "w")
        await opened(stage)
        call.cancel()
        await stage.gone()


@pytest.mark.hostile("T08", "T09", "T10")
async def test_hostile_text_is_marked_in_patterns_and_past_calls() -> None:
    text = "[red]a\u202eb\x1b[2J\u200b"
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        first = stage.call("echo", {"text": text})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(first)
        call = await make(stage, {"text": text})
        assert patterns(stage) == [r"^\[red\]a\u202eb\u001b\[2J\u200b$"]
        await stage.shows("would have allowed 1 of 1 past calls", "text=[red]a⟨U+202E⟩b␛[2J⟨U+200B⟩")
        await stage.press("enter", "u")
        assert (await stage.ended(call)).state is CallState.DONE


async def test_a_rule_is_made_of_the_arguments_as_they_were_edited() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hi"})
        await stage.call_dialog()
        await stage.press("e")
        await stage.at(EditArgumentsScreen)
        await stage.press("end", "o", "ctrl+r")
        await stage.call_dialog()
        await stage.press("w")
        await opened(stage)
        assert patterns(stage) == ["^hio$"]
        await stage.press("enter", "u")
        assert (await stage.ended(call)).arguments == {"text": "hio"}
        assert not await stage.needs_consent({"text": "hio"})
