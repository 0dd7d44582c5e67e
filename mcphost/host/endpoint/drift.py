"""Tools that changed since the user saw them: with ``[serve] drift = "hold"``, agents do not get them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcphost.config import Config
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
        self._moved: dict[tuple[str, str], str] = {}
        """Tools that changed in this run, as they are now."""
        self.version = 0
        """Grows when other tools may be held back."""

    def note(self, server: str, before: Sequence[Tool], now: Sequence[Tool]) -> None:
        """A server's tools are others now."""
        known = {tool.name: tool for tool in before}
        for tool in now:
            old = known.get(tool.name)
            if old is not None and old.canonical != tool.canonical:
                self._moved[server, tool.name] = tool.canonical

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
        return ApprovalStatus.CHANGED in found or self._moved.get((server, tool.name)) == tool.canonical
