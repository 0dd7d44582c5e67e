"""Tools that changed since the user saw them: with ``[serve] drift = "hold"``, agents do not get them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcphost.config import Config, entry_of
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.approvals import ApprovalStatus, Gate
from mcphost.host.consent.broker import ConsentBroker
from mcphost.protocol.models.tools import Tool


class Drift:
    """The changed tools of all servers.

    A tool counts as seen if the user allowed it as it is now, for calls of mcphost or of any agent.
    """

    def __init__(self, config: Callable[[], Config], servers: Servers, consent: ConsentBroker) -> None:
        self._config, self._servers, self._consent = config, servers, consent
        self._first: dict[tuple[str, str, str], str] = {}
        """Tools as they were first in this run, by entry, by what runs it, and by name."""
        self.version = 0
        """Grows when other tools may be held back."""

    def note(self, server: str, tools: Iterable[Tool]) -> None:
        """Take note of a server's tools, older ones first; each process of an entry may list others."""
        connection = self._servers.get(server)
        if connection is not None:
            for tool in tools:
                self._first.setdefault((entry_of(server), connection.config.identity, tool.name), tool.canonical)

    def approvals_changed(self) -> bool:
        """Take note that the user may have seen other tools; True if that makes a difference."""
        if self._config().serve.drift != "hold":
            return False
        self.version += 1
        return True

    def holds(self, server: str, tool: Tool, agent: str = "") -> bool:
        """True if this tool is held back until the user looked at it."""
        connection = self._servers.get(server)
        if connection is None or self._config().serve.drift != "hold":
            return False
        gates = (None, Gate(), Gate(agent=agent)) if agent else (None, Gate())
        identity, approvals = connection.config.identity, self._consent.approvals
        found = {approvals.status_of(server, identity, tool, gate).kind for gate in gates}
        if ApprovalStatus.UNCHANGED in found:
            return False
        first = self._first.get((server, identity, tool.name), tool.canonical)
        return ApprovalStatus.CHANGED in found or first != tool.canonical
