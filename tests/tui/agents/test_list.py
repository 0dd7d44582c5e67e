from __future__ import annotations

from textual.app import App, ComposeResult

from mcphost.host.agents.session import AgentCallState, AgentSession
from mcphost.tui.agents.list import KEPT, AgentRow, AgentsPane, agent_row, agents_of, details_of
from mcphost.tui.kit.ranking import Search
from tests.tui.agents.sessions import call, claude, session


def gone(*numbers: int) -> list[AgentSession]:
    """Sessions of as many agents that went away."""
    found = [session(number, agent=claude(pid=5000 + number)) for number in numbers]
    for each in found:
        each.ended_at = each.since + 60
    return found


def drawn(row: AgentRow, width: int = 22) -> str:
    return agent_row(row, width, Search()).plain.rstrip()


def test_the_sessions_of_one_process_are_one_agent() -> None:
    sessions = [session(1), session(2, "files"), session(3, agent=claude(pid=4888, label="codex"))]
    assert [len(row.sessions) for row in agents_of(sessions, [])] == [2, 1]


def test_sessions_without_a_process_stay_apart() -> None:
    sessions = [session(1, agent=claude(pid=None)), session(2, agent=claude(pid=None))]
    assert len(agents_of(sessions, [])) == 2


def test_agents_that_went_away_are_bounded() -> None:
    rows = agents_of([session(1)], gone(*range(10, 100)))
    assert [row.connected for row in rows] == [True] + [False] * KEPT


def test_a_row_names_the_agent_and_what_waits() -> None:
    asking = session(1)
    call(asking, 7)
    assert drawn(AgentRow((asking,))) == "? claude-code   asks 1"


def test_a_row_marks_a_muted_agent_and_one_that_is_gone() -> None:
    muted = session(1)
    muted.declining = True
    assert drawn(AgentRow((muted,))).endswith("muted")
    assert drawn(AgentRow(tuple(gone(1)))) == "◌ claude-code     gone"


def test_a_folded_row_is_its_mark() -> None:
    assert drawn(AgentRow((session(1),)), 4) == "●"


def test_a_name_obeys_nobody() -> None:
    assert "\x1b" not in drawn(AgentRow((session(1, agent=claude(label="\x1b[31mred [b]")),)))


def test_details_name_the_process_the_folder_and_what_it_asks() -> None:
    asking = session(1)
    call(asking, 7)
    call(asking, 8, "git_log", state=AgentCallState.DONE)
    process, folder, since, asks = details_of(AgentRow((asking,)))
    assert (process, folder, asks) == ("pid 4711 · claude", "/work/lighthouse", "asks: git_push")
    assert since.endswith(" · 2 calls")


class Block(App[None]):
    def compose(self) -> ComposeResult:
        yield AgentsPane()


async def test_the_cursor_stays_on_its_agent_while_others_come_and_go() -> None:
    app = Block()
    async with app.run_test(size=(26, 30)) as pilot:
        pane = app.query_one(AgentsPane)
        many = [session(number, agent=claude(pid=100 + number, label=f"agent-{number}")) for number in range(20)]
        pane.show_agents(agents_of(many, []))
        pane.rows.focus()
        pane.rows.highlighted = 7
        many[7].ended_at = many[7].since + 1
        pane.show_agents(agents_of(many[8:], [many[7], *many[:3]]))
        await pilot.pause()
        assert pane.item is not None
        assert pane.item.facts.label == "agent-7"
        assert pane.rows.has_focus
        assert not pane.check_action("disconnect", ())


async def test_the_key_of_a_muted_agent_listens_again() -> None:
    app = Block()
    async with app.run_test(size=(26, 30)) as pilot:
        pane, muted = app.query_one(AgentsPane), session(1)
        pane.show_agents(agents_of([muted], []))
        pane.rows.focus()
        await pilot.pause()
        assert app.screen.active_bindings["M"].binding.description == "mute"
        muted.declining = True
        pane.show_agents(agents_of([muted], []))
        await pilot.pause()
        assert app.screen.active_bindings["M"].binding.description == "listen"
