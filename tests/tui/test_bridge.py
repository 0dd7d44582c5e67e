"""Events and questions between the host and the screen."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from textual.message import Message

from mcphost.config.limits import Limits
from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.questions import Answer, ToolCallQuestion
from mcphost.host.events import CallChanged, EventBus, Logged, ServerChanged
from mcphost.protocol.models.tools import Tool
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import FRAME, EventGatherer, HostChanged, QuestionsChanged, ScreenApprover
from tests.conftest import Until
from tests.tui.stage import NARROW, hostile, on_stage

pytestmark = pytest.mark.slow
TOOL = Tool.model_validate({"name": "t", "inputSchema": {"type": "object"}})
QUESTION = ToolCallQuestion(1, "s", TOOL, {}, "you", "run", ToolApproval(ApprovalStatus.NEW), "rule")


class Recorder:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def post_message(self, message: Message) -> bool:
        self.messages.append(message)
        return True


@pytest.mark.requirement("PROG-06")
async def test_a_thousand_events_before_the_app_looked_are_one_message(until: Until) -> None:
    bus, front = EventBus(), Recorder()
    gatherer = EventGatherer(bus, front)
    for number in range(1000):
        bus.publish(Logged())
        bus.publish(CallChanged(7))
        bus.publish(ServerChanged(str(number % 3)))
    await until(lambda: front.messages)
    bus.publish(ServerChanged("late"))
    await asyncio.sleep(3 * FRAME)  # nothing is to come, so there is no condition to wait for
    (message,) = front.messages
    assert isinstance(message, HostChanged)
    assert message.take() == {Logged(), CallChanged(7), *(ServerChanged(name) for name in ("0", "1", "2", "late"))}
    bus.publish(Logged())
    await until(lambda: len(front.messages) == 2)
    gatherer.close()
    bus.publish(Logged())
    assert len(front.messages) == 2


@pytest.mark.hostile("F01")
@pytest.mark.requirement("HOST-05")
async def test_a_flood_of_logs_is_thirty_messages_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []
    handle = McphostApp.on_host_changed

    def counted(app: McphostApp, message: HostChanged) -> None:
        taken.append(time.monotonic())
        handle(app, message)

    monkeypatch.setattr(McphostApp, "on_host_changed", counted)
    few = Limits(log_lines_per_second=50)  # so that lines are dropped however long the flood takes
    async with on_stage(hostile("notification-flood", "--count", 10_000, limits=few), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("act")
        await stage.call_dialog()
        taken.clear()
        began = time.monotonic()
        await stage.press("y")
        await stage.gone()
        await stage.press("h")
        await stage.until(lambda app: app.main.calls.has_focus_within)
        await stage.ended()
        assert len(taken) <= (time.monotonic() - began) / FRAME + 2
        assert stage.host.logs.dropped("hostile")


async def test_a_question_has_one_answer_and_is_closed_by_it(until: Until) -> None:
    approver, front = ScreenApprover(), Recorder()
    asking = asyncio.create_task(approver.ask(QUESTION))
    await until(lambda: approver.open)
    approver.attach(front)
    (number,) = approver.open
    assert approver.answer(number, Answer(allow=True))
    assert not approver.open
    assert not approver.answer(number, Answer(allow=False))
    assert (await asking).allow
    assert [type(message) for message in front.messages] == [QuestionsChanged] * 2


async def test_a_withdrawn_question_is_closed_and_answers_to_it_are_nothing(until: Until) -> None:
    approver = ScreenApprover()
    asking = asyncio.create_task(approver.ask(replace(QUESTION, call=2)))
    await until(lambda: approver.open)
    (number,) = approver.open
    asking.cancel()
    await until(lambda: not approver.open)
    assert not approver.answer(number, Answer(allow=True))
