"""The agents of the running screen: their sessions begin and end here."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import count
from typing import Any, Final, Literal

from mcphost.config.gated import GatedProgram
from mcphost.errors import UnknownName
from mcphost.host.agents.connected import AgentContext, AgentPort, ConnectedAgent
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.host.agents.kernel_facts import ProcessFacts, agent_of, caller_of
from mcphost.host.agents.served import ServedAgent, ServedContext, ServedPort
from mcphost.host.agents.server_questions import AgentServerQuestions
from mcphost.host.agents.session import AgentCall, AgentSession, shown_program
from mcphost.host.background import BackgroundTasks
from mcphost.host.events import AgentsChanged, CallChanged, CallFinished, Event, EventBus
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.traffic.book import TrafficBook
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

SERVED: Final = "mcphost"
"""The server of a served agent."""

KEPT_SESSIONS: Final = 50
"""Ended sessions that are kept to be seen."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """The words of a tap or gate about itself and its server."""

    role: Literal["tap", "gate"]
    name: str
    """The server's name."""
    given: str
    """The agent's name by ``--as``; empty without one."""
    program: GatedProgram
    since: float
    """Unix time."""
    child: int | None
    questions: Literal["agent", "here", "both"]
    secrets: Sequence[str] = field(default=(), repr=False)
    """Values that are masked, such as those of an address's headers."""


class AgentService:
    """The agents that are connected through a tap or gate, or to mcphost as their server."""

    def __init__(
        self,
        gated: GatedCalls,
        questions: AgentServerQuestions,
        traffic: TrafficBook,
        calls: CallRegistry,
        asks: Callable[[int], bool],
        background: BackgroundTasks,
        bus: EventBus,
        *,
        caller: Callable[[int], ProcessFacts] = caller_of,
    ) -> None:
        self._traffic, self._bus, self._caller = traffic, bus, caller
        self.gated, self.next_number = gated, calls.next_number
        self._context = AgentContext(
            gated, questions, background, calls.next_number, self._changed, self._session_ended
        )
        self._served = ServedContext(calls, asks, self._changed, self._session_ended)
        self._connected: dict[int, ConnectedAgent | ServedAgent] = {}
        self._ended: deque[AgentSession] = deque(maxlen=KEPT_SESSIONS)
        self._numbers = count(1)
        self._follows = False

    @property
    def sessions(self) -> Sequence[AgentSession]:
        """The connected ones, oldest first."""
        return tuple(agent.session for agent in self._connected.values())

    @property
    def ended(self) -> Sequence[AgentSession]:
        """The last ended ones, the newest first."""
        return tuple(reversed(self._ended))

    def call(self, number: int) -> AgentCall | None:
        """The call of a connected agent with this number, as of `ToolCallQuestion.call`; None if it is not kept."""
        return next((call for each in self.sessions if (call := each.calls.get(number)) is not None), None)

    async def connect(self, introduction: Introduction, pid: int, port: AgentPort) -> ConnectedAgent:
        """Begin a session for a tap or gate with this process id."""
        caller = await asyncio.to_thread(self._caller, pid)
        agent = agent_of(caller, introduction.given)
        program = introduction.program
        self._context.gated.keep_secrets(program, introduction.secrets)
        server = GatedServer(introduction.name, program)
        session = AgentSession(
            next(self._numbers),
            introduction.role,
            introduction.name,
            agent,
            command=program.command,
            url=program.url or "",
            identity=program.identity,
            since=introduction.since,
            child=introduction.child,
            questions=introduction.questions,
        )
        tap = self._traffic.agent_tap(session.traffic_name, agent.label)
        connected = self._connected[session.number] = ConnectedAgent(session, server, port, tap, self._context)
        self._changed(session.number)
        return connected

    def add_served(
        self, agent: AgentFacts, servers: Sequence[str], profile: str | None, port: ServedPort
    ) -> ServedAgent:
        """Begin a session for an agent to which mcphost is the server of these entries."""
        session = AgentSession(
            next(self._numbers), "serve", SERVED, agent, servers=servers, profile=profile, since=time.time()
        )
        tap = self._traffic.agent_tap(session.traffic_name, agent.label)
        served = self._connected[session.number] = ServedAgent(session, port, tap, self._served)
        self._follow_calls()
        self._changed(session.number)
        return served

    def _follow_calls(self) -> None:
        """Let served agents follow their calls, from the first of these agents on."""
        if not self._follows:
            self._follows = True
            self._bus.observe(self._call_changed, CallChanged, CallFinished)

    def _call_changed(self, event: Event) -> None:
        for agent in tuple(self._connected.values()):
            if isinstance(agent, ServedAgent) and isinstance(event, CallChanged | CallFinished):
                agent.call_changed(event.call)

    def disconnect(self, number: int) -> None:
        """End an agent's session with its server. Raises UnknownName."""
        self._find(number).disconnect()

    def decline_all(self, number: int, on: bool = True) -> None:
        """Decline everything that an agent asks, what is open too, until this is taken back. Raises UnknownName."""
        self._find(number).decline_all(on)

    def close(self) -> None:
        """Withdraw all that agents and their servers ask."""
        for agent in tuple(self._connected.values()):
            agent.closed()

    def _find(self, number: int) -> ConnectedAgent | ServedAgent:
        found = self._connected.get(number)
        if found is None:
            raise UnknownName(f"agent {number} is not connected")
        return found

    def _changed(self, number: int) -> None:
        self._bus.publish(AgentsChanged(number))

    def _session_ended(self, session: AgentSession) -> None:
        self._connected.pop(session.number, None)
        self._ended.append(session)
        self._changed(session.number)


def as_json(session: AgentSession) -> dict[str, Any]:
    """A session for ``mcphost agents --json``, its texts safe to show."""
    agent = session.agent
    return {
        "session": session.number,
        "role": session.role,
        "server": show_line(session.server),
        "servers": {show_line(entry): show_line(server) for entry, server in session.servers.items()},
        "profile": None if session.profile is None else show_line(session.profile),
        "agent": show_line(agent.label),
        "given": show_line(agent.given),
        "claimed": show_line(f"{agent.claimed} {agent.version}".strip()),
        "pid": agent.pid,
        "program": show_line(agent.program, 400),
        "folder": show_line(agent.folder, 400),
        "identity": shown_program(session.identity),
        "since": session.since,
        "calls": session.call_count,
        "waiting": session.waiting,
        "messages": session.messages,
        "dropped": session.dropped,
        "declining": session.declining,
    }
