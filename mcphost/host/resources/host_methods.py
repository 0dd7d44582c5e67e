"""What a front may ask of servers besides calling a tool, as plain methods of the host.

Knows which desk does what. Refuses to know how: these are names for what the desks do.

All of them raise UnknownName, ServerNotReady, Declined, or as a request does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mcphost.client.paging import ListedItems
from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.subscriptions import Subscription
from mcphost.host.resources.completion import CompletionService
from mcphost.host.resources.reading import ReadingService
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.tasks import KeptTask, kept_tasks

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import Completion, CompletionRef, GetPromptResult, ReadResourceResult, Task


class Asking:
    """The host's methods about resources, prompts, completion and tasks."""

    _reading: ReadingService
    _completing: CompletionService

    @property
    def calls(self) -> Mapping[int, ToolCall]:
        """The calls of this run."""
        raise NotImplementedError

    def server(self, name: str) -> Connection:
        """A connection; raises UnknownName."""
        raise NotImplementedError

    # Resources, prompts, completion.

    async def read_resource(self, server: str, uri: str, *, origin: str = "you") -> ReadResourceResult:
        """Read a resource, listed or not, the URI as it stands. Raises ResourceMissing where there is none."""
        return await self._reading.read(server, uri, origin)

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, object], *, origin: str = "you"
    ) -> GetPromptResult:
        """The messages of a prompt. Raises InvalidArguments where a required argument is missing."""
        return await self._reading.prompt(server, name, arguments, origin)

    async def relist(self, server: str, kind: CatalogKind) -> None:
        """List again now what a server offers of this kind, after a sign-in where it takes one.

        A listing that fails for another reason is noted, and the last one stays.
        """
        await self._reading.relist(server, kind)

    async def current(self, server: str, kind: CatalogKind) -> None:
        """Wait until the catalog holds what the server offers of this kind; starts a lazy server."""
        await self.server(server).reach()
        await self.server(server).current(kind)

    def completes(self, server: str) -> bool:
        """Does this server suggest values for arguments, as far as is known?"""
        return self._completing.offered(server)

    async def complete(
        self, server: str, ref: CompletionRef, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion:
        """Suggestions for an argument, now; ``context`` holds the other arguments of the same form."""
        return await self._completing.complete(server, ref, argument, value, context or {})

    async def suggest(
        self, server: str, ref: CompletionRef, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> Completion | None:
        """The same for every key somebody types: asked once typing pauses, and None once another text was asked for.

        Never raises: a server that cannot say suggests nothing.
        """
        return await self._completing.suggest(server, ref, argument, value, context or {})

    async def subscribe(self, server: str, uri: str, *, origin: str = "you") -> Subscription:
        """Watch a resource, across reconnects, until `unsubscribe`; each change is a ResourceUpdated."""
        return await self._reading.watch(server, uri, origin)

    async def unsubscribe(self, server: str, uri: str) -> None:
        """Watch it no more. Raises UnknownName alone."""
        await self._reading.unwatch(server, uri)

    def watches(self, server: str) -> Mapping[str, Subscription]:
        """What is watched on a server, by URI."""
        return self.server(server).watches.all

    # Tasks.

    async def list_tasks(self, server: str) -> ListedItems[Task]:
        """The tasks a server keeps, those of earlier runs included. Raises CapabilityMissing where it lists none."""
        return await self._reading.tasks(server)

    def known_tasks(self, server: str, told: Iterable[Task] | None = None) -> list[KeptTask]:
        """The tasks that were told of (None: those of this run, as last told), each with the call that began it."""
        return kept_tasks(server, told, self.calls.values())

    async def cancel_task(self, server: str, task: str, *, origin: str = "you") -> Task:
        """Stop a task by its id, begun by whomever; how it stands now. A call that waits for it ends as cancelled."""
        waiting = [call for call in self.calls.values() if call.waits_for(server, task)]
        for call in waiting:
            call.stopping = True
        try:
            return await self._reading.cancel_task(server, task, origin)
        except McphostError:
            for call in waiting:
                call.stopping = False
            raise
