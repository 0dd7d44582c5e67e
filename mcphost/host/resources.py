"""Reads and subscribes to resources, gets prompts, lists again, and completes arguments.

Specification: server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcphost.client.client import RequestTimeouts
from mcphost.errors import InvalidArguments, McphostError
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.servers import Servers
from mcphost.host.connections.subscriptions import USER, Subscription

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import Completion, CompletionRef, GetPromptResult
    from mcphost.protocol.models.resources import ReadResourceResult

DEBOUNCE: Final = 0.15
"""Seconds without another key before a server is asked."""

KEPT_SECONDS: Final = 30.0
"""Seconds for which an answer is reused for the same question."""

KEPT_ANSWERS: Final = 256

TIMEOUTS: Final = RequestTimeouts(10.0, 10.0)
"""Whoever types has typed on by then."""

_Field = tuple[str, "CompletionRef", str]
_Question = tuple[_Field, str, frozenset[tuple[str, str]], float | None]


class ResourceService:
    """Resources and prompts. All methods raise UnknownName, ServerNotReady, Declined, or as a request does."""

    def __init__(self, servers: Servers, catalog: Catalog, requests: AuditedRequests) -> None:
        self._servers, self._catalog, self._requests = servers, catalog, requests

    async def read(self, server: str, uri: str, *, origin: str = "you", again: bool = False) -> ReadResourceResult:
        """Read a resource, listed or not, the URI unchanged; ``again``: from the server even if it is kept.

        Raises ResourceMissing if it does not exist.
        """
        record = {"event": "resource", "uri": uri}
        return await self._requests.send(
            server, record, uri, origin, lambda client: client.resources.read(uri, again=again)
        )

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, object], *, origin: str = "you"
    ) -> GetPromptResult:
        """Get the messages of a prompt. Raises InvalidArguments where a required argument is missing."""
        connection = self._servers[server]
        await self._requests.reach(connection)
        await connection.current(CatalogKind.PROMPTS)
        missing = self._catalog.prompt(server, name).missing(arguments)
        if missing:
            raise InvalidArguments([(each, "is required") for each in missing])
        record = {"event": "prompt", "prompt": name, "arguments": arguments}
        return await self._requests.send(
            server, record, name, origin, lambda client: client.prompts.get(name, arguments)
        )

    async def relist(self, server: str, kind: CatalogKind) -> None:
        """List the items of this kind again, after a sign-in if that is needed.

        A listing that fails for another reason is noted, and the last one stays.
        """
        connection = self._servers[server]

        async def listed() -> None:
            await connection.relist(kind)
            if (refusal := connection.listings.of_kind(kind).refusal) is not None:
                raise refusal.again()

        await self._requests.reach(connection)
        await self._requests.repeat(connection, f"the list of {kind.value}", listed)

    async def current(self, server: str, kind: CatalogKind) -> None:
        """Wait until the catalog holds what the server offers of this kind; starts a lazy server."""
        connection = self._servers[server]
        await connection.reach()
        await connection.current(kind)

    async def subscribe(self, server: str, uri: str, *, origin: str = "you", holder: object = USER) -> Subscription:
        """Subscribe to a resource, across reconnects, until each holder has called `unsubscribe`.

        Each change of what the user holds is a ResourceUpdated.
        """
        subscriptions, record = self._servers[server].subscriptions, {"event": "subscription", "uri": uri}
        return await self._requests.send(
            server, record, uri, origin, lambda client: subscriptions.add(client, uri, holder)
        )

    async def unsubscribe(self, server: str, uri: str, *, holder: object = USER) -> None:
        """End a subscription. Raises UnknownName alone."""
        connection = self._servers[server]
        await connection.subscriptions.drop(connection.client if connection.ready else None, uri, holder)

    def subscriptions(self, server: str) -> Mapping[str, Subscription]:
        """The subscriptions of the user."""
        found = self._servers[server].subscriptions.all
        return {uri: each for uri, each in found.items() if USER in each.holders}


class CompletionService:
    """Suggests values for arguments."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._kept: OrderedDict[_Question, tuple[float, Completion]] = OrderedDict()
        self._asking: dict[_Field, asyncio.Task[Completion]] = {}

    def offered(self, server: str) -> bool:
        try:
            return self._servers[server].client.completions.offered
        except McphostError:
            return False

    async def complete(
        self, server: str, ref: CompletionRef, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """Ask now, or answer from what was answered lately in this connection. Raises as a request does.

        ``context`` holds the other arguments of the same form.
        """
        context = context or {}
        connection = self._servers[server]
        client = await connection.reach()
        question = ((server, ref, argument), value, frozenset(context.items()), connection.ready_at)
        kept = self._kept.get(question)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        answer = await client.completions.complete(ref, argument, value, context, timeouts=TIMEOUTS)
        self._kept[question] = time.monotonic() + KEPT_SECONDS, answer
        self._kept.move_to_end(question)
        if len(self._kept) > KEPT_ANSWERS:
            self._kept.popitem(last=False)
        return answer

    async def suggest(
        self, server: str, ref: CompletionRef, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion | None:
        """Ask once typing pauses. None: the text is another by now, and the later call brings what is to be shown.

        Never raises an error: a server that cannot say suggests nothing.
        """
        field = server, ref, argument
        before = self._asking.get(field)
        if before is not None:
            before.cancel()
        asking = asyncio.ensure_future(self._after_a_pause(server, ref, argument, value, context or {}))
        self._asking[field] = asking
        try:
            await asyncio.wait([asking])
            superseded = asking.cancelled() or self._asking.get(field) is not asking
            return None if superseded else asking.result()
        except McphostError:
            from mcphost.protocol.models.prompts import Completion  # late: a tool call never gets here

            return Completion()
        finally:
            asking.cancel()
            if self._asking.get(field) is asking:
                del self._asking[field]

    async def _after_a_pause(
        self, server: str, ref: CompletionRef, argument: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        await asyncio.sleep(DEBOUNCE)
        return await self.complete(server, ref, argument, value, context)
