"""The block of agents below the servers; keys disconnect them and decline what they ask."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.session import AgentSession
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.consent.origin import short_folder
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.messages import AgentDisconnectRequested, AgentMuteToggled
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

FOLDED: Final = 8
"""Columns below which a row is the mark of its state."""

DETAILS: Final = 4
"""Rows that describe the selected agent below the list."""

ROWS_FOR_DETAILS: Final = DETAILS + 2
COLUMNS_FOR_DETAILS: Final = 20
"""The least size of the block in which there is room for them."""

KEPT: Final = 20
"""Agents that are listed after they went away."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent with its sessions, one for each of its servers: the connected ones first."""

    sessions: tuple[AgentSession, ...]

    @property
    def facts(self) -> AgentFacts:
        """Those of its newest session, which may know more."""
        return self.sessions[-1].agent if self.connected else self.sessions[0].agent

    @property
    def key(self) -> tuple[int, str, int]:
        return key_of(self.sessions[0])

    @property
    def live(self) -> tuple[AgentSession, ...]:
        """The connected sessions."""
        return tuple(session for session in self.sessions if session.connected)

    @property
    def connected(self) -> bool:
        return any(session.connected for session in self.sessions)

    @property
    def calls(self) -> int:
        return sum(session.call_count for session in self.sessions)

    @property
    def waiting(self) -> int:
        return sum(session.waiting for session in self.sessions)

    @property
    def declining(self) -> bool:
        """True if everything that it asks is declined."""
        return self.connected and all(session.declining for session in self.live)

    @property
    def since(self) -> float:
        return min(session.since for session in self.sessions)


def key_of(session: AgentSession) -> tuple[int, str, int]:
    """The process of the agent; without one, each session is an agent of its own."""
    agent = session.agent
    return (agent.pid, agent.program, 0) if agent.pid else (0, "", session.number)


def agents_of(sessions: Iterable[AgentSession], ended: Iterable[AgentSession]) -> list[AgentRow]:
    """The agents with their sessions: the connected ones, oldest first, then the last `KEPT` that went away."""
    found: dict[tuple[int, str, int], list[AgentSession]] = {}
    for session in sessions:
        found.setdefault(key_of(session), []).append(session)
    connected = len(found)
    for session in ended:
        found.setdefault(key_of(session), []).append(session)
    return [AgentRow(tuple(each)) for each in list(found.values())[: connected + KEPT]]


class AgentsPane(FilteredRows[AgentRow]):
    HELP = (
        "The agents that reach their servers through mcphost. ● connected  ? waits for you  ⊘ muted  ◌ gone.\n"
        "Opening one shows its card."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "disconnect", "disconnect", id="agents.disconnect", tooltip="End its servers; asks first"),
        Binding("M", "mute", "mute", id="agents.mute", tooltip="Decline all it asks until mcphost exits"),
        Binding("M", "listen", "listen", id="agents.listen", tooltip="Ask you again about what it asks"),
    ]

    DEFAULT_CSS = """
    AgentsPane {
        height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
        RowList { height: auto; }
        .details { height: auto; color: $foreground-muted; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    @dataclass
    class Selected(Message):
        """The user opened this agent."""

        agent: AgentRow

    def __init__(self) -> None:
        super().__init__(lambda row, width: agent_row(row, width, self.search), _search_text, empty="", examples="name")
        self._details = Static(markup=False, classes="details")

    def compose(self) -> ComposeResult:
        self.border_title = "Agents"
        yield from super().compose()
        yield self._details

    def show_agents(self, agents: Sequence[AgentRow]) -> None:
        """List these agents; the cursor stays on its own."""
        self.show_items(agents, keep=lambda row: row.key)
        waiting = sum(each.waiting for each in agents)
        self.border_title = f"Agents · {waiting} waiting" if waiting else "Agents"
        self._describe()
        self.refresh_bindings()

    def on_resize(self, event: Resize) -> None:
        """Describe the selected agent where there is room for it below the list."""
        height = event.size.height - 2  # the frame
        described = height >= ROWS_FOR_DETAILS and event.size.width >= COLUMNS_FOR_DETAILS
        self._details.display = described
        self.rows.styles.max_height = max(1, height - (DETAILS if described else 0))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "disconnect":
            return self.item is not None and self.item.connected
        if action in ("mute", "listen"):
            return self.item is not None and self.item.connected and self.item.declining is (action == "listen")
        return super().check_action(action, parameters)

    def action_disconnect(self) -> None:
        """Ask the user, then end the agent's sessions."""
        if self.item is not None:
            self.post_message(AgentDisconnectRequested(numbers_of(self.item)))

    def action_mute(self) -> None:
        """Decline everything that the agent asks."""
        if self.item is not None:
            self.post_message(AgentMuteToggled(numbers_of(self.item), True))

    def action_listen(self) -> None:
        """Ask the user again."""
        if self.item is not None:
            self.post_message(AgentMuteToggled(numbers_of(self.item), False))

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[AgentRow]) -> None:
        event.stop()
        self._describe()
        self.refresh_bindings()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[AgentRow]) -> None:
        event.stop()
        self.post_message(self.Selected(event.item))

    def _describe(self) -> None:
        self._details.update("" if self.item is None else "\n".join(details_of(self.item)))


def numbers_of(row: AgentRow) -> tuple[int, ...]:
    """The numbers of its connected sessions."""
    return tuple(session.number for session in row.live)


def mark_of(row: AgentRow) -> tuple[str, str]:
    """The mark of the agent's state, and its style."""
    if not row.connected:
        return "◌", "$foreground-muted"
    if row.waiting:
        return "?", "$text-warning"
    return ("⊘", "$text-warning") if row.declining else ("●", "$text-success")


def agent_row(row: AgentRow, width: int, search: Search) -> Content:
    mark, style = mark_of(row)
    if width < FOLDED:
        return Content.styled(mark, style)
    remark = f"asks {row.waiting}" if row.waiting else "muted" if row.declining else str(row.calls or "")
    remark = remark if row.connected else "gone"
    last = Cell(remark, "$foreground-muted", len(remark), len(remark), "right")
    name = Cell(search.mark(show_line(row.facts.label, 60)), "" if row.connected else "$foreground-muted", 6)
    return columns(width, [Cell(mark, style, 1, 1), name, last])


def details_of(row: AgentRow) -> Iterator[str]:
    """Its process, folder and time, and what waits, in four short lines."""
    agent = row.facts
    program = show_line(PurePath(agent.program).name, 40)
    yield " · ".join(filter(None, [f"pid {agent.pid}" if agent.pid else "", program]))
    yield short_folder(agent.folder)
    yield f"since {since_text(row.since)} · {row.calls:,} call{'' if row.calls == 1 else 's'}"
    yield waiting_words(row)


def waiting_words(row: AgentRow) -> str:
    """The calls that wait for the user, by name, or that none will."""
    if row.declining:
        return "muted: M listens again"
    several = len({server for session in row.sessions for server in (session.servers or [session.server])}) > 1
    waiting = [call for session in row.sessions for call in session.calls.values() if call.state.waits]
    tools = [f"{call.server}:{call.tool}" if several else call.tool for call in waiting]
    return f"asks: {show_line(', '.join(tools[:4]), 60)}" if tools else ""


def since_text(moment: float) -> str:
    """The time of day of a Unix time; the day, too, if it is not today."""
    day = date_text(moment)
    return f"{'' if day == date_text(time.time()) else f'{day} '}{clock_text(moment)[:5]}"


def _search_text(row: AgentRow) -> SearchText:
    servers = " ".join(name for session in row.sessions for name in (session.server, *session.servers))
    return SearchText(row.facts.label, servers, more=row.facts.folder)
