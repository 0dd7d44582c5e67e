"""The connections of all configured servers, by name and in the order they are configured."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from mcphost.errors import UnknownName
from mcphost.host.background import BackgroundTasks
from mcphost.host.connections.connection import Connection

REFRESH_SECONDS: Final = 5.0
"""For lists that are used whether or not they could be fetched again."""


class Servers(Mapping[str, Connection]):
    """A connection by its server's name; subscripting raises UnknownName, which lists the names there are.

    Iterating leaves instances out: they are found by name, and belong to the entry that is there.
    """

    def __init__(self, background: BackgroundTasks) -> None:
        self._background = background
        self._connections: dict[str, Connection] = {}
        self._supervisors: dict[str, asyncio.Task[None]] = {}

    def __getitem__(self, name: str) -> Connection:
        if name not in self._connections:
            known = ", ".join(self) or "none"
            raise UnknownName(f"no server is called {name!r}; configured: {known}")
        return self._connections[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, each in self._connections.items() if not each.instance)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._connections

    def get(self, name: str, default: object = None) -> Connection | None:  # type: ignore[override]
        """The connection; None where no server has that name."""
        return self._connections.get(name)

    def of_entry(self, entry: str) -> list[Connection]:
        """The entry's own connection, and those of its instances."""
        return [each for each in self._connections.values() if each.entry == entry]

    async def ready(self, names: Sequence[str] | None = None) -> None:
        """Wait until these servers (all that start by themselves) are ready or have failed for the first time."""
        chosen = [self[name] for name in names] if names else list(self.values())
        for connection in chosen if names else ():
            connection.start()
        await asyncio.gather(*(connection.settled() for connection in chosen))

    async def refresh_lists(self) -> None:
        """List again what is past its ``ttlMs``, since it is about to be used. Waits at most `REFRESH_SECONDS`.

        Never raises: a failure is noted, and the old items stay.
        """
        connections = [each for each in self.values() if each.ready]
        expired = [(each, kind) for each in connections for kind, listing in each.listings if listing.expired]
        if expired:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_SECONDS):
                    await asyncio.gather(*(each.current(kind) for each, kind in expired), return_exceptions=True)

    def add(self, connection: Connection) -> None:
        """Supervise a connection from now on."""
        name = connection.name
        self._connections[name] = connection
        task = self._supervisors[name] = self._background.start(connection.supervise(), f"server {name}")
        task.add_done_callback(lambda _: connection.supervision_ended())

    def remove(self, name: str) -> asyncio.Task[None]:
        """Forget a server; return its supervisor, which is still to be cancelled."""
        del self._connections[name]
        return self._supervisors.pop(name)

    def put_in_order(self, names: Iterable[str]) -> None:
        """Change the order to that of ``names``."""
        for name in names:
            self._connections[name] = self._connections.pop(name)

    def cancel(self) -> None:
        """End all supervisors, and with them the connections."""
        for task in self._supervisors.values():
            task.cancel()
