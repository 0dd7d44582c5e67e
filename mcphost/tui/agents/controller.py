"""Shows the agents, disconnects them, and declines what they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand

from mcphost.errors import UnknownName
from mcphost.host.events import AgentsChanged, Event
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.messages import AgentDisconnectRequested, AgentMuteToggled
from mcphost.tui.kit.modal_screen import AskScreen, QuestionDialog
from mcphost.tui.main.screen import MainScreen

if TYPE_CHECKING:  # late: the first frame does without agents
    from mcphost.tui.agents.list import AgentRow, AgentsPane


class AgentsController:
    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main

    def changed(self, events: Iterable[Event]) -> None:
        """Update the block and the open card after events of the host."""
        if any(isinstance(event, AgentsChanged) for event in events):
            self.update()

    def update(self) -> None:
        agents = self._agents()
        if agents:
            self._main.show_agents(agents)
        from mcphost.tui.agents.card import AgentScreen  # late: the first frame does without agents

        for screen in self._app.screen_stack:
            if isinstance(screen, AgentScreen):
                screen.refresh_card()
            elif isinstance(screen, QuestionDialog):
                screen.agent_changed()

    def _agents(self) -> list[AgentRow]:
        from mcphost.tui.agents.list import agents_of  # late: the first frame does without agents

        return agents_of(self._host.agents.sessions, self._host.agents.ended)

    def on_agents_pane_selected(self, event: AgentsPane.Selected) -> None:
        self.open_card(event.agent)

    def open_card(self, agent: AgentRow) -> None:
        from mcphost.tui.agents.card import AgentScreen

        self._app.push_screen(AgentScreen(partial(self._find, agent.key, agent)))

    def _find(self, key: tuple[int, str, int], last: AgentRow) -> AgentRow:
        """The agent as it is now; as it was ``last``, if it is no longer kept."""
        return next((each for each in self._agents() if each.key == key), last)

    def on_agent_disconnect_requested(self, event: AgentDisconnectRequested) -> None:
        """Ask the user, then end these sessions."""
        sessions = [each for each in self._host.agents.sessions if each.number in event.sessions]
        if not sessions:
            return
        label = show_line(sessions[0].agent.label, 40)

        def answered(yes: bool | None) -> None:
            if yes:
                self._for_each(event.sessions, self._host.agents.disconnect)
                self._app.notify(f"Disconnected “{label}”.", markup=False)

        names = ", ".join(show_line(name, 40) for each in sessions for name in (each.servers or [each.server]))
        facts: list[Fact] = [
            fact("ends", names),
            fact("", "The agent loses these servers until it starts them again; its open calls fail."),
        ]
        self._app.push_screen(AskScreen(f"Disconnect “{label}”?", facts, "disconnect"), answered)

    def on_agent_mute_toggled(self, event: AgentMuteToggled) -> None:
        self._for_each(event.sessions, partial(self._host.agents.decline_all, on=event.muted))

    def _for_each(self, sessions: Iterable[int], act: Callable[[int], object]) -> None:
        for number in sessions:
            with suppress(UnknownName):  # it went away meanwhile
                act(number)

    def commands(self) -> Iterator[SystemCommand]:
        """Commands of the palette for each connected agent."""
        if not self._host.agents.sessions:
            return
        for agent in self._agents():
            if not agent.connected:
                continue
            label, numbers = show_line(agent.facts.label, 40), tuple(session.number for session in agent.live)
            where = f"pid {agent.facts.pid}" if agent.facts.pid else "its process is not known"
            yield SystemCommand(f"Show the agent “{label}”", where, partial(self.open_card, agent))
            end = partial(self._app.post_message, AgentDisconnectRequested(numbers))
            yield SystemCommand(f"Disconnect the agent “{label}”", f"{where}; asks first", end)
            title = f"{'Listen again to' if agent.declining else 'Decline everything of'} the agent “{label}”"
            mute = partial(self._app.post_message, AgentMuteToggled(numbers, not agent.declining))
            yield SystemCommand(title, where, mute)
