"""The inbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcphost.host.consent.questions import RootsQuestion
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.elicitation.server_question import ServerQuestionScreen
from mcphost.tui.inbox.screen import SHOWN_QUESTIONS, InboxRow, InboxScreen, RowKind, folded, inbox_row, widths_of
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import RowList
from mcphost.tui.roots.screen import RootsScreen
from tests.host.server_requests.pending import ROOTS, form, page
from tests.tui.elicitation.questions import NAME, ask, at, question_stage
from tests.tui.stage import NARROW, calls_in, echo, on_stage, server, servers

pytestmark = pytest.mark.slow


async def test_parked_questions_are_listed_oldest_first_and_opened_by_enter(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=NARROW) as stage:
        await stage.ready()
        calls = [stage.call("echo", {"text": f"number {n}"}) for n in range(3)]
        for _ in calls:
            await stage.call_dialog()
            await stage.press("p")
        await stage.gone()
        await stage.shows("3 waiting for you")
        await stage.press("f2")
        await stage.shows("Inbox · 3 waiting for you")
        await stage.press("down", "enter")
        await stage.call_dialog()
        assert "number 1" in stage.text
        await stage.press("y")
        await stage.ended(calls[1])
        await stage.shows("2 waiting for you")
        assert [params["arguments"] for params in calls_in(record)] == [{"text": "number 1"}]
        assert [call.state for call in calls] == [CallState.ASKING, CallState.DONE, CallState.ASKING]


@pytest.mark.hostile("P09")
async def test_n_declines_one_question_and_shift_n_all_of_a_server() -> None:
    async with on_stage(servers(one=server("echo.py"), two=server("echo.py"))) as stage:
        await stage.ready()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("Nothing waits for you")
        calls = [stage.call("echo", {"text": "x"}, name) for name in ("one", "one", "two", "one")]
        await stage.shows("two     ")
        await stage.until(lambda app: len(app.approver.open) == 4)
        await stage.press("n")
        assert (await stage.ended(calls[0])).state is CallState.DECLINED
        await stage.press("N")
        await stage.ended(calls[3])
        assert [call.state.ended for call in calls] == [True, True, False, True]
        calls[2].cancel()
        await stage.shows("Nothing waits for you")
        await stage.press("escape")
        await stage.gone()


async def test_declining_all_includes_filtered_questions() -> None:
    async with on_stage(servers(one=server("echo.py"), two=server("echo.py"))) as stage:
        await stage.ready()
        await stage.press("f2")
        await stage.at(InboxScreen)
        asked = (("fail", "one"), ("environment", "one"), ("fail", "two"))
        calls = [stage.call(tool, {}, name) for tool, name in asked]
        await stage.until(lambda app: len(app.approver.open) == 3)
        await stage.press("slash")
        await stage.write("fail")
        await stage.shows("/ fail", "2 of 3")
        await stage.press("down", "N")
        await stage.until(lambda app: [call.state.ended for call in calls] == [True, True, False])
        await stage.press("escape")
        await stage.shows("two")
        await stage.at(InboxScreen)


@pytest.mark.parametrize(
    ("request_", "about"),
    [(ROOTS, "share your roots (folders)"), (form(NAME), "fill in a form"), (page(), "open a page")],
    ids=["roots", "form", "page"],
)
async def test_an_ended_question_is_listed_until_it_is_removed(request_: dict[str, Any], about: str) -> None:
    async with question_stage() as stage:
        call = ask(stage, request_)
        await stage.until(lambda app: isinstance(app.screen, ServerQuestionScreen))
        await stage.pilot.pause()
        await stage.press("escape", "escape")
        await stage.gone()
        await stage.ended(stage.call("take_back"))
        await stage.ended(call)
        second = ask(stage, request_)
        await stage.until(lambda app: isinstance(app.screen, ServerQuestionScreen))
        stage.host.servers["a"].stop()
        await stage.ended(second)
        await stage.gone()
        assert "waiting for you" not in stage.top
        assert "2 gave up waiting · f2" in stage.top
        await stage.press("f2")
        await stage.shows("Inbox · nothing waits", "◌ a", "x remove")
        rows = stage.app.screen.query_one(RowList).items
        lost, cancelled = "the connection was closed", "cancelled by the server: never mind"
        assert [row.words for row in rows] == [f"{about} · {lost}", f"{about} · {cancelled}"]
        await stage.press("enter", "n", "x")
        await stage.until(lambda app: len(app.screen.query_one(RowList).items) == 1)
        await stage.press("x")
        await stage.shows("Nothing waits for you")
        await stage.press("escape")
        await stage.gone()
        assert "gave up" not in stage.top


@pytest.mark.parametrize("width", [78, 130])
def test_a_row_of_the_inbox_uses_all_its_room(width: int) -> None:
    words, why = "open a page: “Come and have your ticket stamped”", "for call 1 · stamp_ticket · asks you"
    rows = [InboxRow(RowKind.QUESTION, "demo", 1, "?", words, why, "2 min ago", "no time limit")]
    drawn = inbox_row(rows[0], width, widths_of(rows), Search()).plain
    assert words in drawn
    assert "2 min ago" in drawn
    assert (why in drawn) == (width > 100)


async def test_an_unprompted_question_waits_in_the_inbox() -> None:
    async with question_stage(size=NARROW) as stage:
        asking = stage.app.run_worker(stage.app.approver.ask(RootsQuestion("a")))
        await stage.shows("a asks for its roots · f2")
        assert len(stage.app.screen_stack) == 1
        call = ask(stage, ROOTS)
        await at(stage, RootsScreen)
        await stage.press("x")
        await stage.ended(call)
        await stage.gone()
        await stage.press("f2", "enter")
        await at(stage, RootsScreen)
        await stage.shows("unprompted (not part of a call)")
        await stage.press("n")
        await stage.gone()
        assert not (await asking.wait()).allow


async def test_the_inbox_keeps_its_height_as_entries_go() -> None:
    async with question_stage("a", "b", size=(120, 36)) as stage:
        calls = [ask(stage, page(message="word " * 60 * each), server=name) for each, name in enumerate("ab")]
        for _ in calls:
            await at(stage, ServerQuestionScreen)
            await stage.press("p")
        await stage.gone()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.until(lambda app: len(app.screen.query_one(RowList).items) == 2)
        frame = stage.app.screen.query_one(".frame")
        before = frame.region
        assert before.height < 12
        await stage.press("down")
        assert frame.region == before
        await stage.press("n", "n")
        await stage.shows("Nothing waits for you", "put off with p.")
        assert frame.region.height >= before.height


async def test_an_empty_list_offers_only_keys_that_do_something() -> None:
    async with on_stage(size=(140, 40)) as stage:
        await stage.ready()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.press("slash")
        assert isinstance(stage.app.focused, RowList)
        await stage.press("escape", "g")
        await stage.shows("Nothing is allowed without asking.")
        assert "revoke" not in stage.text
        await stage.press("escape", "T")
        await stage.shows("No tasks.", "r refresh · esc back")
        await stage.press("escape", "h")
        await stage.shows("No calls yet")
        assert not {"open", "filter", "cancel", "again"} & {
            each.binding.action for each in stage.app.screen.active_bindings.values() if each.enabled
        }


CLAUDE = ("claude-code", 7)


def row(number: int, agent: tuple[str, int | None] | None = CLAUDE, kind: RowKind = RowKind.QUESTION) -> InboxRow:
    return InboxRow(kind, "git", number, "?", "run push", agent=agent, sessions=(3,))


@pytest.mark.hostile("P09")
def test_an_agent_that_asks_much_has_one_row_for_what_follows() -> None:
    rows = [*(row(number) for number in range(42)), row(50, ("codex", 8)), row(1, None, RowKind.MUTED)]
    found = folded(rows)
    assert [each.kind.name for each in found] == ["QUESTION"] * (SHOWN_QUESTIONS + 1) + ["FOLDED", "MUTED"]
    more = found[-2]
    assert (more.words, more.questions, more.sessions) == ("37 more of claude-code", (*range(5, 42),), (3,))


def test_the_questions_of_an_agent_are_unfolded_on_demand() -> None:
    rows = [row(number) for number in range(42)]
    assert folded(rows, {CLAUDE}) == rows
    assert folded(rows[: SHOWN_QUESTIONS + 1]) == rows[: SHOWN_QUESTIONS + 1]
