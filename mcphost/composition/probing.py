"""Builds what `mcphost.host.server_rules` probes a server with: bare transports, without a client."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mcphost.composition.lookup import resolve_in_thread
from mcphost.composition.secret_items import keychain_is_used
from mcphost.composition.sign_in import SignIns
from mcphost.config import Config, ResolvedServer, Values, state_folder
from mcphost.host.server_rules.opening_rules import EXIT_SECONDS
from mcphost.host.server_rules.ports import Channel, RawHttp
from mcphost.host.traffic.book import TrafficBook
from mcphost.protocol.urls import is_loopback
from mcphost.transports.base import MessageObserver, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport

if TYPE_CHECKING:
    import httpx


class ProbedServer:
    """One server of the configuration, which every session opens again."""

    def __init__(
        self,
        server: ResolvedServer,
        transport: str,
        auth: httpx.Auth | None,
        message_bytes: int,
        traffic: Callable[[], MessageObserver],
        opening_seconds: float,
    ) -> None:
        self._server, self._auth, self.traffic, self.opening_seconds = server, auth, traffic, opening_seconds
        self._limits = TransportLimits(message_bytes=message_bytes, exit_grace=EXIT_SECONDS)
        self.transports: Sequence[str] = ("stdio",)
        self.loopback = False
        if server.url is not None:
            import httpx  # late: servers over stdio need no HTTP

            self.transports = {"auto": ("http", "sse"), "sse": ("sse",)}.get(transport, ("http",))
            self.loopback = is_loopback(httpx.URL(server.url).host)

    def channel(self, observer: MessageObserver) -> Channel:
        server = self._server
        if server.command is not None:
            command = Command(server.command, server.args, server.env, server.cwd)
            return StdioTransport(command, self._limits, os.environ, observer=observer)
        from mcphost.transports.http.sse_2024 import SseTransport

        return SseTransport(server.url or "", self._limits, headers=server.headers, auth=self._auth, observer=observer)

    def http(self, observer: MessageObserver) -> RawHttp:
        from mcphost.transports.http.probing import HttpProbing

        server, limit = self._server, self._limits.message_bytes
        return HttpProbing(server.url or "", limit, headers=server.headers, auth=self._auth, observer=observer)


class ProbedServers:
    """Finds the servers of one run, whose messages go to ``traffic``; close it at its end."""

    def __init__(self, config: Config, values: Values, traffic: TrafficBook) -> None:
        self._config, self._values, self._traffic = config, values, traffic
        self._sign_ins = SignIns(values, state_folder(os.environ) / "locks", keychain=keychain_is_used(os.environ))

    async def find(self, name: str) -> ProbedServer:
        """Raises ConfigError."""
        config = self._config
        server, auth = await resolve_in_thread(
            config,
            self._values,
            name,
            lambda found: None if found.url is None else self._sign_ins.presenter(config, found),
        )
        entry, limit = config.servers[name], config.limits_for(name).message_bytes
        tap = partial(self._traffic.tap, name)
        return ProbedServer(server, entry.transport, auth, limit, tap, entry.startup_timeout_sec)

    async def aclose(self) -> None:
        await self._sign_ins.aclose()
