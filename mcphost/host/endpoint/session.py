"""One agent's session with mcphost as its server: one endpoint for all the servers that it may use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mcphost.config import Config
from mcphost.config.profiles import in_profile
from mcphost.errors import ConfigError, McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.state import ServerState
from mcphost.host.endpoint.context import EndpointContext, EndpointOptions
from mcphost.host.endpoint.known_servers import KnownServers
from mcphost.host.internal_error import internal_error
from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import TASKS_EXTENSION, Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError, ServerIntroduction
from mcphost.serving.pages import page
from mcphost.serving.served_request import Json, ServedRequest
from mcphost.serving.session import ServedContent, ServerSession

NAME: Final = "mcphost"

PREPARE_SECONDS: Final = 5.0
"""For servers to start before an agent learns what they offer: some agents give a server 10 s in all."""

LIST_SECONDS: Final = 8.0
"""For the lists of all servers; what comes later is announced as a change."""

ANNOUNCE_SECONDS: Final = 0.1
"""In which changes of a list are announced together."""

PAGE_ITEMS: Final = 200
"""Items of a page: with the longest definitions still a message that clients take."""

INSTRUCTIONS: Final = 32_000
"""Characters of the instructions of all servers: they are in the agent's context all the time."""

LISTS: Final[Mapping[str, tuple[CatalogKind, str, str]]] = {
    "tools/list": (CatalogKind.TOOLS, "tools", "name"),
    "prompts/list": (CatalogKind.PROMPTS, "prompts", "name"),
    "resources/list": (CatalogKind.RESOURCES, "resources", "uri"),
    "resources/templates/list": (CatalogKind.TEMPLATES, "resourceTemplates", "uriTemplate"),
}
"""The kind of the items, the member of the result, and that of an item's name."""


class EndpointSession(ServedContent):
    """The content of one session (`mcphost.serving.session.ServedContent`). `attach` it right after it was made."""

    def __init__(
        self,
        number: int,
        options: EndpointOptions,
        context: EndpointContext,
        known: KnownServers,
        ended: Callable[[EndpointSession], None],
    ) -> None:
        self.number, self.options = number, options
        self.agent = options.agent
        """With what the agent says of itself, once it has."""
        self._context, self._known, self._ended = context, known, ended
        self._session: ServerSession | None = None
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._closed = False

    def attach(self, session: ServerSession) -> None:
        """The session in which this is served."""
        self._session = session

    def closed(self) -> None:
        """The agent is gone: end what runs for it."""
        if self._closed:
            return
        self._closed = True
        for timer in self._due.values():
            timer.cancel()
        self._ended(self)

    # What is served.

    @property
    def entries(self) -> Sequence[str]:
        """The entries of the configuration that this agent may use, in their order."""
        config = self._config
        chosen = self.options.servers
        return [name for name, entry in config.servers.items() if (name in chosen if chosen else entry.enabled)]

    @property
    def _config(self) -> Config:
        config = self._context.config()
        with suppress(ConfigError):  # the profile is gone since the session began
            return in_profile(config, self.options.profile)[0]
        return config.model_copy(update={"servers": {}})

    def _exposed(self, entry: str, name: str) -> str:
        return name if len(self.entries) == 1 else f"{entry}__{name}"

    # `ServedContent`.

    def introduction(self, revision: Revision) -> ServerIntroduction:
        identity = {"name": NAME, "title": NAME, "version": self._context.version}
        return ServerIntroduction(identity, self._capabilities(), self._instructions())

    def prepare(self, then: Callable[[], None]) -> None:
        if all(self._known.get(entry) for entry in self.entries):
            then()
            return

        async def prepared() -> None:
            await self._reached(self.entries, PREPARE_SECONDS)
            then()

        self._start(prepared(), "prepare an agent's session")

    def begin(self, request: ServedRequest) -> None:
        if (listed := LISTS.get(request.method)) is not None:
            self._answer(request, self._list(request, *listed))
        else:
            raise RpcError(ErrorCode.METHOD_NOT_FOUND, f"There is no method {request.method}.")

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """See `mcphost.serving.http_listener.HttpContent`."""
        for entry, item in self._items(CatalogKind.TOOLS):
            if self._exposed(entry, item.name) == tool:
                return as_dict(item.received.get("inputSchema"))
        return {}

    # From the service.

    def items_changed(self, server: str, kind: CatalogKind) -> None:
        """A server's list is another now."""
        if self._session is None or self._closed or server not in self.entries:
            return
        name = kind.capability
        if name not in self._due:
            self._due[name] = asyncio.get_running_loop().call_later(ANNOUNCE_SECONDS, self._announce, name)

    def _announce(self, kind: str) -> None:
        del self._due[kind]
        if self._session is not None:
            self._session.list_changed(kind)

    # The introduction.

    def _capabilities(self) -> Json:
        known = [self._known.get(entry) for entry in self.entries]
        declared = [
            {"tools": {}, "prompts": {}, "resources": {}} if each is None else each.capabilities for each in known
        ]
        offered: Json = {}
        for kind in ("tools", "prompts", "resources"):
            if any(kind in each for each in declared):
                offered[kind] = {"listChanged": True}
        if any(as_dict(each.get("resources")).get("subscribe") for each in declared):
            offered["resources"]["subscribe"] = True
        for name in ("logging", "completions"):
            if any(name in each for each in declared):
                offered[name] = {}
        if "tools" in offered:
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
            offered["extensions"] = {TASKS_EXTENSION: {}}
        return offered

    def _instructions(self) -> str:
        texts = [
            (entry, known.introduction.instructions or "")
            for entry in self.entries
            if (known := self._known.get(entry))
        ]
        if len(self.entries) == 1:
            return "".join(text for _, text in texts)[:INSTRUCTIONS]
        return "\n\n".join(f"# {entry}\n\n{text}" for entry, text in texts if text)[:INSTRUCTIONS]

    # Lists.

    async def _list(self, request: ServedRequest, kind: CatalogKind, member: str, key: str) -> Json:
        await self._reached(self.entries, LIST_SECONDS, kind)
        definitions = [self._definition(entry, item, key) for entry, item in self._items(kind)]
        return {"ttlMs": self._fresh_milliseconds(kind), **page(member, definitions, request.params, PAGE_ITEMS)}

    def _items(self, kind: CatalogKind) -> Iterator[tuple[str, Any]]:
        """The items of this kind, each with its entry."""
        for entry in self.entries:
            for item in self._known.items(entry, kind):
                yield entry, item

    def _definition(self, entry: str, item: Any, key: str) -> Json:
        definition: Json = item.definition()
        return definition if key != "name" else {**definition, "name": self._exposed(entry, item.name)}

    def _fresh_milliseconds(self, kind: CatalogKind) -> int:
        """For which the whole list is fresh: as long as the part that is so shortest."""
        return min((self._fresh_part(entry, kind) for entry in self.entries), default=0)

    def _fresh_part(self, entry: str, kind: CatalogKind) -> int:
        connection, now = self._context.servers.get(entry), time.monotonic()
        freshness = None if connection is None else connection.listings.of_kind(kind).freshness
        if freshness is None or freshness.until == float("inf"):
            return 0
        return max(0, round((freshness.until - now) * 1000))

    async def _reached(self, entries: Sequence[str], seconds: float, kind: CatalogKind | None = None) -> None:
        """Wait until these servers run, and have listed their items of a kind, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(self._reach(entry, kind) for entry in entries))

    async def _reach(self, entry: str, kind: CatalogKind | None) -> None:
        """Wait for a server, and start it unless the user wants to do that. Never raises."""
        connection = self._context.servers.get(entry)
        if connection is None:
            return
        if connection.state is ServerState.STOPPED and entry in self.options.servers:
            connection.start()
        with suppress(McphostError):
            await connection.reach()
            if kind is not None and connection.listings.declared(kind):
                await connection.current(kind)

    # Requests.

    def _answer(self, request: ServedRequest, work: Coroutine[Any, Any, Mapping[str, Any]]) -> None:
        """Answer a request with the result of this work."""

        async def answered() -> None:
            try:
                request.finish(await work)
            except RpcError as error:
                request.fail(error)
            except McphostError as error:
                request.fail(RpcError(ErrorCode.INTERNAL_ERROR, self._context.reporting.mask(str(error))))
            except Exception as error:
                request.fail(RpcError(ErrorCode.INTERNAL_ERROR, str(internal_error(error))))

        task = self._start(answered(), f"serve {request.method}")
        request.on_cancel = partial(_cancel, task)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._context.background.start(work, name)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
