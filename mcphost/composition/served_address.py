"""Joins an address of this machine with the sessions of the host's endpoint."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from errno import EADDRINUSE
from typing import Literal

from mcphost.composition.bearers import BEARERS, Bearers
from mcphost.errors import ConfigError, NotDone
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.endpoint.service import EndpointOptions, EndpointService
from mcphost.host.endpoint.session import EndpointSession
from mcphost.host.file_watch import FileWatch
from mcphost.lazy_dataclass import dataclass
from mcphost.serving.http_listener import PATH, HttpListener


class ServedAddress:
    """Agents that come to an address, each with its token; see `mcphost.serving.listener.ServedConnection`."""

    def __init__(self, endpoint: EndpointService, choice: AddressChoice, bearers: Bearers) -> None:
        self._endpoint, self._choice, self._bearers = endpoint, choice, bearers
        self._listener = HttpListener(self._open_content, self._admits)
        self._watch = FileWatch([bearers.store.path(BEARERS)], self._listener.end_refused)
        self.address = ""

    async def open(self, port: int) -> None:
        """Listen on loopback; 0: at any port. Raises NotDone."""
        try:
            bound = await self._listener.open(port)
        except OSError as error:
            why = "another program listens there" if error.errno == EADDRINUSE else error.strerror
            raise NotDone(f"mcphost cannot listen at 127.0.0.1:{port}: {why}") from None
        self._watch.start()  # where that cannot be done, a revoked token ends its sessions at its next request
        self.address = f"http://127.0.0.1:{bound}{PATH}"

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 10):
            pass

    async def aclose(self) -> None:
        self._watch.close()
        await self._listener.aclose()

    def _admits(self, token: str) -> bool:
        with suppress(ConfigError):
            return self._bearers.agent_of(token) is not None
        return False

    def _open_content(self, token: str, path: str) -> EndpointSession | None:
        agent, chosen = self._bearers.agent_of(token), self._choice.at(path)
        if agent is None or chosen is None:
            return None
        servers, profile = chosen
        facts = AgentFacts(agent, given=agent)
        return self._endpoint.open(
            EndpointOptions(facts, servers, profile, self._choice.questions, self._choice.approve)
        )


@dataclass(frozen=True, slots=True)
class AddressChoice:
    """The choices of a command line for all agents that come to an address."""

    servers: tuple[str, ...] = ()
    """None: all."""
    profile: str | None = None
    questions: Literal["agent", "here"] = "agent"
    approve: bool = False

    def at(self, path: str) -> tuple[tuple[str, ...], str | None] | None:
        """Servers and profile at a path, which names one of them; None where it names another than those chosen."""
        if not path:
            return self.servers, self.profile
        if path.startswith("@"):
            return (self.servers, path[1:]) if self.profile in (None, path[1:]) else None
        return ((path,), self.profile) if not self.servers or path in self.servers else None
