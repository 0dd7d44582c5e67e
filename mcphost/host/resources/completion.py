"""Requests completions while the user types: not for every key, and not twice for the same text.

Specification: server/utilities/completion.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcphost.client.client import RequestTimeouts
from mcphost.errors import McphostError
from mcphost.host.connections.servers import Servers

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import Completion, CompletionRef

DEBOUNCE: Final = 0.15
"""Seconds without another key before a server is asked."""

KEPT_SECONDS: Final = 30.0
"""How long an answer is good for the same question."""

KEPT_ANSWERS: Final = 256

TIMEOUTS: Final = RequestTimeouts(10.0, 10.0)
"""Whoever types has typed on by then."""

_Field = tuple[str, "CompletionRef", str]
_Question = tuple[_Field, str, frozenset[tuple[str, str]], float | None]


class CompletionService:
    """Suggests values for arguments."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._kept: OrderedDict[_Question, tuple[float, Completion]] = OrderedDict()
        self._asking: dict[_Field, asyncio.Task[Completion]] = {}

    def offered(self, server: str) -> bool:
        """Is it worth asking this server?"""
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
