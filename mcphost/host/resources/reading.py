"""Reads resources, gets prompts and looks after tasks for whoever asked: no dialog, since asking is the consent, but
every one written down.

Knows the order of these steps. Refuses to know how a request travels, and what is done with what it brings.

Specification: server/resources, server/prompts, basic/utilities/tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems
from mcphost.errors import AuthorizationRequired, InvalidArguments, McphostError, SessionExpired
from mcphost.host.audit import AuditWriter
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.subscriptions import Subscription
from mcphost.host.consent.approvals import sent_to
from mcphost.host.error_boundary import without_secrets
from mcphost.host.tool_calls.authorization_retry import AuthorizationRetry

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import GetPromptResult, ReadResourceResult, Task

Result = TypeVar("Result")


class ReadingService:
    """``server`` finds a connection or raises UnknownName; ``mask`` takes secrets out of what errors quote."""

    def __init__(
        self,
        server: Callable[[str], Connection],
        catalog: Catalog,
        witness: AuditWriter,
        admission: AuthorizationRetry,
        mask: Callable[[str], str],
    ) -> None:
        self._server, self._catalog, self._witness, self._mask = server, catalog, witness, mask
        self._admission = admission

    async def read(self, server: str, uri: str, origin: str) -> ReadResourceResult:
        """Read a resource, whether it is listed or not."""
        return await self._do(server, {"event": "resource", "uri": uri}, origin, lambda it: it.resources.read(uri))

    async def prompt(self, server: str, name: str, arguments: Mapping[str, object], origin: str) -> GetPromptResult:
        """Get the messages of a prompt; raises InvalidArguments where a required argument is missing."""
        connection = self._server(server)
        await self._reach(connection)
        await connection.current(CatalogKind.PROMPTS)
        missing = self._catalog.prompt(server, name).missing(arguments)
        if missing:
            raise InvalidArguments([(each, "is required") for each in missing])
        record = {"event": "prompt", "prompt": name, "arguments": arguments}
        return await self._do(server, record, origin, lambda it: it.prompts.get(name, arguments))

    async def relist(self, server: str, kind: CatalogKind) -> None:
        """List again now."""
        connection = self._server(server)

        async def listed() -> None:
            await connection.relist(kind)
            if (refusal := connection.offers.of(kind).refusal) is not None:
                raise AuthorizationRequired(refusal.www_authenticate, status=refusal.status)

        await self._reach(connection)
        await self._admission.attempt(connection, f"the list of {kind.value}").through(listed)

    async def watch(self, server: str, uri: str, origin: str) -> Subscription:
        """Subscribe to a resource."""
        watches = self._server(server).watches
        return await self._do(server, {"event": "subscription", "uri": uri}, origin, lambda it: watches.add(it, uri))

    async def unwatch(self, server: str, uri: str) -> None:
        """End a subscription."""
        connection = self._server(server)
        await connection.watches.drop(connection.client if connection.ready else None, uri)

    async def tasks(self, server: str) -> ListedItems[Task]:
        """The tasks a server keeps."""
        connection = self._server(server)
        await self._reach(connection)
        attempt = self._admission.attempt(connection, "the list of tasks")
        return await self._quoting(attempt.through(lambda: connection.client.tasks.list()))

    async def cancel_task(self, server: str, task: str, origin: str) -> Task:
        """Stop a task of whomever's; how it stands now."""
        record = {"event": "task", "task": task, "status": "cancel"}
        return await self._do(server, record, origin, lambda it: it.tasks.cancel(task))

    async def request(
        self, server: str, method: str, params: Mapping[str, Any] | None, origin: str
    ) -> Mapping[str, Any]:
        """Any other request, as it stands; its result object."""
        record = {"event": "request", "method": method, "params": params}
        return await self._do(server, record, origin, lambda it: it.request(method, params))

    async def _do(
        self, server: str, record: Mapping[str, Any], origin: str, work: Callable[[Client], Awaitable[Result]]
    ) -> Result:
        connection = self._server(server)
        await self._reach(connection)
        attempt = self._admission.attempt(connection, _operation(record))
        told = {"server": server, "sent_to": sent_to(connection.config), "asked_by": origin}
        await self._witness.before({**record, **told})
        began, outcome = time.monotonic(), "cancelled"
        try:
            result = await self._quoting(attempt.through(lambda: _repeated_in_a_new_session(connection, work)))
            outcome = "done"
        except McphostError as error:
            outcome = f"error: {error}"
            raise
        finally:
            seconds = round(time.monotonic() - began, 3)
            self._witness.note({**record, "event": "outcome", "server": server, "outcome": outcome, "seconds": seconds})
        return result

    async def _reach(self, connection: Connection) -> None:
        await self._admission.attempt(connection, "the connection").through(connection.reach)

    async def _quoting(self, work: Awaitable[Result]) -> Result:
        try:
            return await work
        except McphostError as error:
            raise without_secrets(error, self._mask) from None


def _operation(record: Mapping[str, Any]) -> str:
    """What is refused or admitted, in a word."""
    return next(str(record[key]) for key in ("uri", "prompt", "method", "task") if key in record)


async def _repeated_in_a_new_session(connection: Connection, work: Callable[[Client], Awaitable[Result]]) -> Result:
    """What changes nothing is done once more where the server forgot the session. Raises what the second try does."""
    try:
        return await work(connection.client)
    except SessionExpired:
        with suppress(TimeoutError):
            async with asyncio.timeout(connection.config.startup_timeout_sec):
                await connection.settled(retries=True)
    return await work(connection.client)
