"""The agents of the running screen: their sessions begin and end here, and their calls are decided."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from mcphost.errors import UnknownName
from mcphost.host.agents.session import AgentCall, AgentSession
from mcphost.host.events import AgentsChanged, EventBus

KEPT_SESSIONS: Final = 50
"""Ended sessions that are kept to be seen."""


class AgentService:
    """The agents that are connected through a tap or gate."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._sessions: dict[int, AgentSession] = {}
        self._ended: deque[AgentSession] = deque(maxlen=KEPT_SESSIONS)

    @property
    def sessions(self) -> Sequence[AgentSession]:
        """The connected ones, oldest first."""
        return tuple(self._sessions.values())

    @property
    def ended(self) -> Sequence[AgentSession]:
        """The last ended ones, the newest first."""
        return tuple(reversed(self._ended))

    def session(self, number: int) -> AgentSession:
        """A connected session. Raises UnknownName."""
        found = self._sessions.get(number)
        if found is None:
            raise UnknownName(f"agent {number} is not connected")
        return found

    def call(self, number: int) -> AgentCall | None:
        """A call of a connected agent; None if it is not kept."""
        found = (session.calls.get(number) for session in self._sessions.values())
        return next((call for call in found if call is not None), None)

    def disconnect(self, number: int) -> None:
        """End an agent's session with its server. Raises UnknownName."""

    def decline_all(self, number: int, on: bool = True) -> None:
        """Decline everything that an agent asks, what is open too, until this is taken back. Raises UnknownName."""
        self.session(number).declining = on
        self._bus.publish(AgentsChanged(number))
