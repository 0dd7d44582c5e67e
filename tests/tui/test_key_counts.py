"""The number of keys for common jobs, besides the text that is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.results.view import ResultView, Tab
from mcphost.tui.sampling.dialogs import ModelScreen
from tests.host.history.histories import run
from tests.host.server_requests.pending import form
from tests.tui.chat.chats import chatting
from tests.tui.elicitation.questions import NAME, ask, at, got, question_stage
from tests.tui.stage import NARROW, WIDE, Stage, demo, echo, on_stage, server, servers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"]),
]


class Counted:
    """A user who counts keys; typed text does not count."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.keys = stage, 0

    async def press(self, *keys: str) -> None:
        self.keys += len(keys)
        await self.stage.press(*keys)

    async def type(self, text: str) -> None:
        await self.stage.write(text)


async def ran(stage: Stage, text: str) -> ToolCall:
    """Run `echo` from its form, with this text."""
    await stage.open_tool("echo")
    await stage.shows("echo › echo")
    await stage.write(text)
    await stage.press("ctrl+r")
    await stage.call_dialog()
    await stage.press("y")
    call = await stage.ended()
    await stage.until(lambda app: app.main.tools.step == "result" and app.focused is not None)
    return call


async def test_a_tool_is_found_and_its_form_opened_with_two_keys(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        user = Counted(stage)
        await user.press("slash")
        await user.type("echo")
        await user.press("enter")
        await stage.until(lambda app: app.main.tools.step == "form")
        assert user.keys == 2


async def test_running_a_form_and_running_it_again_take_two_keys_each(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        await stage.open_tool("echo")
        await stage.write("said twice")
        user = Counted(stage)
        await user.press("ctrl+r")
        await stage.call_dialog()
        await user.press("y")
        first = await stage.ended()
        assert user.keys == 2
        await stage.until(lambda app: not isinstance(app.screen, ToolCallScreen))
        user = Counted(stage)
        await user.press("a")
        await stage.call_dialog()
        await user.press("y")
        second = await stage.ended()
        assert user.keys == 2
        assert second.number != first.number
        assert dict(second.arguments) == dict(first.arguments) == {"text": "said twice"}
        assert second.state.ended


async def test_running_again_with_one_argument_changed_takes_three_keys(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        user = Counted(stage)
        await user.press("slash")
        await user.type("adds two")
        await user.press("enter")
        await stage.write("1")
        await stage.press("tab")
        await stage.write("2")
        await user.press("ctrl+r")
        await stage.call_dialog()
        await user.press("y")
        first = await stage.ended()
        assert (user.keys, dict(first.arguments)) == (4, {"a": 1, "b": 2})
        await stage.until(lambda app: app.main.tools.step == "result" and app.focused is not None)
        user = Counted(stage)
        await user.press("escape")
        await user.type("39")
        await user.press("ctrl+r")
        await stage.call_dialog()
        await user.press("y")
        second = await stage.ended()
        assert (user.keys, dict(second.arguments)) == (3, {"a": 1, "b": 39})


async def test_another_tool_is_opened_from_a_result_with_four_keys(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        await ran(stage, "x")
        user = Counted(stage)
        await user.press("escape", "escape", "slash")
        await user.type("add")
        await user.press("enter")
        await stage.shows("echo › add")
        assert user.keys == 4


async def test_a_resource_is_read_with_three_keys(size: tuple[int, int]) -> None:
    async with on_stage(demo(), size=size) as stage:
        await stage.ready()
        user = Counted(stage)
        await user.press("e", "slash")
        await user.type("instruments")
        await user.press("enter")
        await stage.until(lambda app: app.main.resources is not None and app.main.resources.reading_in_view)
        assert user.keys == 3


async def test_the_log_lines_of_a_call_and_the_call_again_take_two_keys(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        call = stage.call("log", {"count": 3})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.press("h", "enter")
        await stage.until(lambda app: app.main.tools.shown_call == call.number)
        user = Counted(stage)
        await user.press("f3")
        logs = stage.app.main.logs
        assert {each.call for each in logs.rows.items} == {call.number}
        await user.press("C")
        await stage.until(lambda app: app.main.tools.has_focus_within)
        assert user.keys == 2
        await stage.press("f3", "escape")
        assert {each.call for each in logs.rows.items} == {call.number, None}
        await stage.press("escape")
        await stage.until(lambda app: app.main.tools.has_focus_within and app.main.tools.step == "result")


async def test_the_raw_json_of_a_result_takes_one_key(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        await ran(stage, "x")
        user = Counted(stage)
        await user.press("3")
        await stage.until(lambda app: app.main.query_one(ResultView).tab is Tab.RAW)
        assert user.keys == 1


async def test_why_a_server_failed_is_shown_with_one_key(size: tuple[int, int]) -> None:
    gone = server("echo.py").model_copy(update={"command": "/no/such/program"})
    async with on_stage(servers(fine=server("echo.py"), gone=gone), size=size) as stage:
        await stage.until(lambda app: app.host.servers["fine"].ready)
        await stage.shows("1 failed")
        user = Counted(stage)
        await user.press("c")
        await stage.shows("/no/such/program")
        assert user.keys == 1
        await stage.press("s")
        await stage.shows("gone")
        await stage.press("end", "enter")
        await stage.until(lambda app: app.main.card.has_focus_within)


async def test_a_server_s_form_is_filled_in_and_sent_with_two_keys(size: tuple[int, int]) -> None:
    async with question_stage(size=size) as stage:
        call = ask(stage, form(NAME))
        await at(stage, FormElicitationScreen)
        user = Counted(stage)
        await user.type("Ada")
        await user.press("ctrl+r", "y")
        assert await got(stage, call) == {"action": "accept", "content": {"name": "Ada"}}
        assert user.keys == 2


async def test_the_model_of_a_chat_is_switched_with_three_keys(size: tuple[int, int]) -> None:
    async with chatting(others=["small"], size=size) as stage:
        user = Counted(stage)
        await user.press("ctrl+o")
        await stage.at(ModelScreen)
        await user.press("down", "enter")
        await stage.gone()
        await stage.until(lambda _: stage.chat.entry == "small")
        assert user.keys == 3


async def test_the_last_call_of_yesterday_is_run_again_with_three_keys(size: tuple[int, int], tmp_path: Path) -> None:
    async with run(tmp_path / "history.sqlite") as yesterday:
        yesterday.add({"text": "again"}, tool="echo", server="echo")
    async with on_stage(echo(), tmp_path, size=size) as stage:
        await stage.ready()
        user = Counted(stage)
        await user.press("h")
        await stage.until(lambda app: app.main.calls.item is not None)
        await user.press("ctrl+r")
        await stage.call_dialog()
        await user.press("y")
        call = await stage.ended()
        assert user.keys == 3
        assert (call.arguments, call.state) == ({"text": "again"}, CallState.DONE)
