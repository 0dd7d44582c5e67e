"""The card of an agent: its names by grade, its servers, and its last calls."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.agents.session import AgentCall, AgentCallState, AgentSession, shown_program
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.agents.list import AgentRow, mark_of, numbers_of, since_text
from mcphost.tui.consent.origin import short_folder
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.messages import AgentDisconnectRequested, AgentMuteToggled
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.textual_private.corrections import ScrolledColumn

SHOWN_SERVERS: Final = 20
"""Servers of an agent on its card."""

SHOWN_CALLS: Final = 12
"""Last calls of an agent on its card."""


class AgentScreen(FramedScreen[None]):
    """Shows the card of the agent that ``read`` returns; None: it is no longer kept."""

    QUESTIONS_ABOVE = True
    HELP = "An agent's card: what it claims, what the system knows of it, its servers and its last calls."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "disconnect", "disconnect", id="agent.disconnect", tooltip="End its servers; asks first"),
        Binding(
            "M", "mute", "mute", id="agent.mute", tooltip="Decline all it asks until mcphost exits, or listen again"
        ),
        Binding("y", "copy", "copy", id="agent.copy", tooltip="Copy the card as text"),
        Binding("escape", "back", "back", id="agent.back", tooltip="Close the card"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    AgentScreen > .frame { width: 96%; max-width: 130; height: auto; max-height: 90%; padding: 0 1; }
    """

    def __init__(self, read: Callable[[], AgentRow | None]) -> None:
        super().__init__()
        self._read = read
        self._facts = FactsTable()

    def compose(self) -> ComposeResult:
        with self.framed("Agent", "", ScrolledColumn()):
            yield self._facts

    def on_mount(self) -> None:
        self.refresh_card()

    def refresh_card(self) -> None:
        """Read the agent again."""
        row = self._read()
        if row is None:
            return
        self.frame.border_title = Content(f"Agent · {show_line(row.facts.label, 60)}")
        keys = f"D disconnect · M {'listen' if row.declining else 'mute'} · " if row.connected else ""
        self.frame.border_subtitle = Content(f"{keys}y copy · esc back")
        self._facts.show_facts(card_facts(row, time.time()))
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("disconnect", "mute"):
            row = self._read()
            return row is not None and row.connected
        return True

    def action_disconnect(self) -> None:
        """Ask the user, then end the agent's sessions."""
        if (row := self._read()) is not None:
            self.post_message(AgentDisconnectRequested(numbers_of(row)))

    def action_mute(self) -> None:
        """Decline everything that the agent asks, or ask the user again."""
        if (row := self._read()) is not None:
            self.post_message(AgentMuteToggled(numbers_of(row), not row.declining))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._facts.text)


def card_facts(row: AgentRow, now: float) -> Iterator[Fact]:
    """The card; ``now`` is a Unix time."""
    yield from _state(row, now)
    yield from _group("It claims", _claims(row))
    yield from _group("The system says", _system(row))
    yield from _group("Its entry says", _configuration(row))
    for session in row.sessions[:SHOWN_SERVERS]:
        title = f"{show_line(session.server, 60)} · {session.role}{'' if session.connected else ' · gone'}"
        yield from _group(title, _served(session) if session.role == "serve" else _session(session))
    if (more := len(row.sessions) - SHOWN_SERVERS) > 0:
        yield fact("", f"and {more} more servers")
    yield from _group("Last calls", _calls(row))


def _group(title: str, facts: Iterator[Fact]) -> Iterator[Fact]:
    listed = list(facts)
    if listed:
        yield Fact("", Content(""), wide=True)
        yield Fact("", Content.styled(title, "bold $text-accent"), wide=True)
        yield from listed


def _state(row: AgentRow, now: float) -> Iterator[Fact]:
    mark, style = mark_of(row)
    if row.connected:
        yield fact("state", f"{mark} connected since {since_text(row.since)}", style)
    else:
        ended = max((session.ended_at or now) for session in row.sessions)
        yield fact("state", f"{mark} gone since {since_text(ended)}; connected since {since_text(row.since)}", style)
    if row.declining:
        yield fact("questions", "muted: all it asks is declined until mcphost exits. M listens again", "$text-warning")
    elif row.waiting:
        yield fact("questions", f"{row.waiting} waiting for you: f2 lists them, M declines all", "$text-warning")
    yield fact("calls", f"{row.calls:,}")


def _claims(row: AgentRow) -> Iterator[Fact]:
    agent = row.facts
    words = f"{show_line(agent.claimed, 80)} {show_line(agent.version, 40)}".strip()
    yield fact("name", words or "nothing yet")


def _system(row: AgentRow) -> Iterator[Fact]:
    agent = row.facts
    yield fact("program", show_line(agent.program, 400) or "not known")
    yield fact("pid", str(agent.pid or "not known"))
    yield fact("folder", short_folder(agent.folder) or "not known")


def _configuration(row: AgentRow) -> Iterator[Fact]:
    given = row.facts.given
    served = any(session.role == "serve" for session in row.sessions)
    named = f"{show_line(given, 80)} ({'--as or its token' if served else '--as'}): rules may name it"
    yield fact("name", named if given else "none, for lack of --as: no rule can name it")


def _session(session: AgentSession) -> Iterator[Fact]:
    yield fact("URL" if session.url else "command", shown_program(session.url or shlex.join(session.command)))
    child = f" · pid {session.child}" if session.child else ""
    revision = f" · revision {show_line(session.revision, 20)}" if session.revision else ""
    yield fact("since", f"{since_text(session.since)}{child}{revision}")
    if session.role == "gate" and session.questions != "agent":
        whom = "you" if session.questions == "here" else "the agent and you"
        yield fact("questions", f"those of the server go to {whom}")
    if session.dropped:
        words = f"{session.dropped:,} copies left out: there were too many at once"
        yield fact("traffic", words, "$text-warning")


def _served(session: AgentSession) -> Iterator[Fact]:
    revision = f" · revision {show_line(session.revision, 20)}" if session.revision else ""
    yield fact("since", f"{since_text(session.since)}{revision}")
    if session.profile is not None:
        yield fact("profile", show_line(session.profile, 80))
    servers = [*session.servers.items()]
    for number, (entry, server) in enumerate(servers[:SHOWN_SERVERS]):
        own = "" if server == entry else f" · {show_line(server, 80)}, for this agent alone"
        yield fact("" if number else "servers", f"{show_line(entry, 60)}{own}")
    if (more := len(servers) - SHOWN_SERVERS) > 0:
        yield fact("", f"and {more} more")
    if not servers:
        yield fact("servers", "none")


def _calls(row: AgentRow) -> Iterator[Fact]:
    calls = [call for session in row.sessions for call in session.calls.values()]
    calls.sort(key=lambda each: each.number, reverse=True)
    for call in islice(calls, SHOWN_CALLS):
        style = "$text-warning" if call.state.waits else ""
        yield fact(f"call {call.number}", f"{show_line(f'{call.server}:{call.tool}', 80)} · {call_words(call)}", style)


_STATES: Final = {
    AgentCallState.BEGUN: "begun: its server starts, or lists its tools",
    AgentCallState.WAITING: "waits for you",
    AgentCallState.OVERDUE: "waits for you; the agent may call again",
    AgentCallState.ALLOWED: "allowed",
    AgentCallState.SENT: "running",
}


def call_words(call: AgentCall) -> str:
    """The call's state, and how long it waited for the user and for the server."""
    words = [_STATES.get(call.state, call.state.value)]
    if call.waited_for_you is not None and (call.by == "user" or call.state.waits):
        words.append(f"you {duration_text(call.waited_for_you)}")
    if call.waited_for_server is not None:
        words.append(f"server {duration_text(call.waited_for_server)}")
    return " · ".join(words)
