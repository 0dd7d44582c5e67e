"""What a connection needs while it stands: its tools listed again when they change, and a pulse.

Knows intervals and floods. Refuses to know when a server is started, and what its tools are used for.

Specification: server/tools, list changes; basic/utilities/ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcphost.client.client import Client
from mcphost.client.listing import Rejected
from mcphost.config import ServerConfig
from mcphost.errors import ConnectionLost, McphostError, PeerError
from mcphost.host.catalog import usable
from mcphost.protocol.types import LogLevel, Tool

RELIST_DELAY: Final = 0.1
"""Seconds in which more changes may come: servers announce several at once."""

RELIST_PAUSE: Final = 2.0
"""Seconds between two listings, however often a server announces changes."""

PING_MISSES: Final = 2
"""Pings in a row without a sign of life after which a connection counts as dead."""

PING_SECONDS: Final = 10.0
"""Seconds a ping may take at most; less where pings come more often."""

Note = Callable[[LogLevel, str], None]


class ToolList:
    """The tools of one server as last listed.

    ``listed`` is told the tools whenever they are others than before, ``changed`` that anything here is.
    """

    def __init__(self, note: Note, listed: Callable[[list[Tool]], None], changed: Callable[[], None]) -> None:
        self._note, self._listed, self._changed = note, listed, changed
        self._stale = asyncio.Event()
        self._reading = asyncio.Lock()
        self._lives = 0
        self.tools: list[Tool] = []
        self.rejected: list[Rejected] = []
        self.notice: str | None = None

    @property
    def is_stale(self) -> bool:
        """Did the server say that it has other tools by now?"""
        return self._stale.is_set()

    def mark_stale(self) -> None:
        """What was listed is out of date."""
        self._stale.set()

    def clear(self) -> None:
        """The connection ended: nothing is offered, and a listing still under way no longer counts."""
        self._lives += 1
        if self.tools:
            self.tools = []
            self._listed(self.tools)

    async def read(self, client: Client, config: ServerConfig) -> None:
        """List the tools now. A listing that fails is noted, and the last one stays. Never two at once."""
        async with self._reading:
            life = self._lives
            try:
                self._stale.clear()
                await self._read(client, config, life)
            except McphostError as error:
                self.failed(str(error), life)
        self._changed()

    def failed(self, reason: str, life: int | None = None) -> None:
        """Keep why the tools could not be listed."""
        if life in (None, self._lives):
            self.notice = f"listing the tools failed: {reason}"
            self._note(LogLevel.WARNING, self.notice)

    async def keep_current(self, client: Client, config: Callable[[], ServerConfig]) -> None:
        """List again whenever the list is stale, but not too often. Never ends by itself."""
        while True:
            await self._stale.wait()
            await asyncio.sleep(RELIST_DELAY)
            self._note(LogLevel.DEBUG, "the server's tools changed; listing them again")
            await self.read(client, config())
            await asyncio.sleep(RELIST_PAUSE)

    async def _read(self, client: Client, config: ServerConfig, life: int) -> None:
        listing = await client.list_tools()
        if life != self._lives:
            return
        self.tools, self.rejected = usable(listing, config)
        self.notice = listing.notice
        for refused in listing.rejected:
            self._note(LogLevel.WARNING, f"left out the tool {refused.name[:80]}: {refused.reason}")
        if listing.notice:
            self._note(LogLevel.WARNING, listing.notice)
        self._listed(self.tools)


@dataclass(frozen=True, slots=True)
class Pulse:
    """Whether a server still answers: asked every ``interval`` seconds, but not while ``busy``.

    A program that does one thing at a time answers no ping during a call, and the call has limits of its own.
    """

    interval: float
    busy: Callable[[], bool]
    note: Note

    async def watch(self, client: Client) -> None:
        """Ask until the server misses too many in a row. Raises ConnectionLost then, and never returns."""
        misses = 0
        while misses < PING_MISSES:
            await asyncio.sleep(self.interval)
            if not self.busy():
                misses = 0 if await self._answers(client) else misses + 1
        raise ConnectionLost(f"the server answered none of {misses} pings")

    async def _answers(self, client: Client) -> bool:
        try:
            await client.ping(min(self.interval, PING_SECONDS))
        except PeerError:
            return True  # a bad answer is an answer
        except McphostError as error:
            self.note(LogLevel.WARNING, f"no answer to a ping: {error}")
            return self.busy()
        return True
