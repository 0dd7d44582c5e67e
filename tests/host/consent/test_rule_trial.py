"""The earlier calls that a rule by argument is tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.consent.rule_trial import (
    EARLIER_CALLS,
    EARLIER_CHARACTERS,
    EarlierCalls,
    earlier_calls,
    tried,
)
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.tools import Tool
from tests.host.history.histories import run


def question(call: int = 9) -> ToolCallQuestion:
    tool = Tool.read({"name": "act", "inputSchema": {}})
    return ToolCallQuestion(call, "s", tool, {}, "you", "run s", ToolApproval(ApprovalStatus.NEW), "")


@pytest.mark.hostile("P10")
async def test_past_calls_are_those_of_the_tool_and_the_newest_first(tmp_path: Path) -> None:
    async with run(tmp_path / "history") as before:
        before.add({"a": "old"}, declined=True)
        before.add({"a": "other"}, tool="b")
        before.add({"a": "other"}, server="t")
        other = before.begin({"a": "x"})
        other.identity = "run another"
        before.end(other)
    async with run(tmp_path / "history") as here:
        here.add({"a": "x"})
        here.begin({"a": "y"})
        here.begin({"a": "x"}, server="t")
        here.begin({"a": "x"}, task="t")
        asked = here.begin({"a": "me"})
        past = await earlier_calls(question(asked.number), here.history)
    assert past.reaches == "this run, earlier runs"
    trials = tried({"a": "^x$"}, past)
    assert [(each.call.arguments["a"], each.allowed) for each in trials] == [("y", False), ("x", True), ("old", False)]
    assert [each.call.state is CallState.DECLINED for each in trials] == [False, False, True]
    assert trials[0].call.name == "call 2"


async def test_without_a_history_past_calls_are_of_this_run() -> None:
    async with run(None) as here:
        here.add({"a": "x"})
        past = await earlier_calls(question(), here.history)
    assert ([each.name for each in past.calls], past.reaches) == (["call 1"], "this run; no history is kept")


async def test_past_calls_are_of_this_run_where_the_file_is_unreadable(tmp_path: Path) -> None:
    async with run(tmp_path) as here:
        here.begin({"a": "x"})
        past = await earlier_calls(question(), here.history)
    assert ([each.name for each in past.calls], past.reaches) == (["call 1"], "this run; the history cannot be read")


@pytest.mark.hostile("P08")
async def test_no_more_past_calls_are_tried_than_can_be_at_once() -> None:
    """A hostile model cannot make the preview slow."""
    async with run(None) as here:
        for number in range(EARLIER_CALLS + 1):
            here.begin({"a": str(number)})
        assert len((await earlier_calls(question(-1), here.history)).calls) == EARLIER_CALLS
    async with run(None) as here:
        for _ in range(5):
            here.begin({"a": "x" * 60_000})
        assert len((await earlier_calls(question(-1), here.history)).calls) == EARLIER_CHARACTERS // 60_000
    assert tried({"a": "x"}, EarlierCalls()) == []
