"""Sends requests that need no question, since asking for them is the consent; each is written to the audit log.

A request that needs a sign-in is retried after it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from mcphost.client.client import Client
from mcphost.errors import McphostError, SessionExpired
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.internal_error import without_secrets
from mcphost.host.reporting import Reporting
from mcphost.host.sign_in.retry import SignInRetry

_T = TypeVar("_T")


class AuditedRequests:
    """Sends audited requests to all servers."""

    def __init__(self, servers: Servers, sign_in_retry: SignInRetry, reporting: Reporting) -> None:
        self._servers, self._sign_in_retry = servers, sign_in_retry
        self._audit, self._mask = reporting.audit, reporting.mask
        self._running: Counter[str] = Counter()

    async def send(
        self,
        server: str,
        record: Mapping[str, Any],
        operation: str,
        origin: str,
        request: Callable[[Client], Awaitable[_T]],
    ) -> _T:
        """Reach the server, write ``record`` down, and return what ``request`` brings.

        ``operation`` says what is done in a word, such as a URI. Raises UnknownName, ServerNotReady, Declined, or as a
        request does.
        """
        connection = self._servers[server]
        await self.reach(connection)
        retried = self._sign_in_retry.operation(connection, operation)
        fields = {"server": server, "sent_to": connection.config.identity, "asked_by": origin}
        await self._audit.before({**record, **fields})
        began, outcome = time.monotonic(), "cancelled"
        try:
            work = retried.run(lambda: _repeated_in_a_new_session(connection, request))
            result = await self._awaited(connection, work)
            outcome = "done"
        except McphostError as error:
            outcome = f"error: {error}"
            raise
        finally:
            seconds = round(time.monotonic() - began, 3)
            self._audit.note({**record, "event": "outcome", "server": server, "outcome": outcome, "seconds": seconds})
        return result

    async def send_unchanged(
        self, server: str, method: str, params: Mapping[str, Any] | None, origin: str
    ) -> Mapping[str, Any]:
        """Send any request unchanged; return its result object. Raises as `send`."""
        record = {"event": "request", "method": method, "params": params}
        return await self.send(server, record, method, origin, lambda client: client.request(method, params))

    async def reach(self, connection: Connection) -> None:
        """Wait until the server is up, after a sign-in where it takes one. Raises ServerNotReady."""
        await self._sign_in_retry.operation(connection, "the connection").run(connection.reach)

    async def repeat(self, connection: Connection, operation: str, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do what is not written down, and once more after each sign-in that it takes."""
        return await self._awaited(connection, self._sign_in_retry.operation(connection, operation).run(work))

    def running(self, server: str) -> bool:
        """True while the server has a request from here."""
        return self._running[server] > 0

    async def _awaited(self, connection: Connection, work: Awaitable[_T]) -> _T:
        """Wait for it; an error loses the secrets that it quotes."""
        self._running[connection.name] += 1
        try:
            return await work
        except McphostError as error:
            raise without_secrets(error, self._mask) from None
        finally:
            self._running[connection.name] -= 1
            if not self._running[connection.name]:
                del self._running[connection.name]


async def _repeated_in_a_new_session(connection: Connection, request: Callable[[Client], Awaitable[_T]]) -> _T:
    """Send once more where the server forgot the session: what is sent here changes nothing."""
    try:
        return await request(connection.client)
    except SessionExpired:
        with suppress(TimeoutError):
            async with asyncio.timeout(connection.config.startup_timeout_sec):
                await connection.settled(retries=True)
    return await request(connection.client)
