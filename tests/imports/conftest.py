"""A keychain in memory, and an importer over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mcphost.config import LoadedConfig, parse
from mcphost.errors import ConfigError
from mcphost.imports.found import FoundServer, Origin, digest_of
from mcphost.imports.importer import Importer
from mcphost.imports.remembered import ImportRecords

_T = TypeVar("_T")


class MemoryKeychain:
    """A `mcphost.imports.importer.SecretStore` that remembers what was done, and can refuse or forget."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self.refuses = False
        self.forgets = False

    async def read(self, name: str) -> str | None:
        self._check()
        return self.items.get(name)

    async def write(self, name: str, secret: str) -> None:
        self._check()
        if not self.forgets:
            self.items[name] = secret

    async def delete(self, name: str) -> None:
        self._check()
        self.items.pop(name, None)

    def _check(self) -> None:
        if self.refuses:
            raise ConfigError("the keychain cannot be used: it is locked")


class HeldKeychain(MemoryKeychain):
    """A keychain whose calls wait until the test lets them go on, and go on to their end where a caller gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        """The events that pending calls wait for."""
        self.held = True
        self._working: list[asyncio.Task[Any]] = []

    async def read(self, name: str) -> str | None:
        return await self._called(super().read(name))

    async def write(self, name: str, secret: str) -> None:
        await self._called(super().write(name, secret))

    async def delete(self, name: str) -> None:
        await self._called(super().delete(name))

    async def ended(self) -> None:
        """Wait for the calls whose callers gave up."""
        await asyncio.gather(*self._working)

    async def _called(self, work: Coroutine[Any, Any, _T]) -> _T:
        async def working() -> _T:
            if self.held:
                go_on = asyncio.Event()
                self.calls.put_nowait(go_on)
                await go_on.wait()
            return await work

        call = asyncio.create_task(working())
        self._working.append(call)
        return await asyncio.shield(call)


OpenImporter = Callable[..., Importer]


@pytest.fixture
def keychain() -> MemoryKeychain:
    return MemoryKeychain()


@pytest.fixture
def importer(tmp_path: Path, keychain: MemoryKeychain) -> OpenImporter:
    """`importer(own="[servers…]")`: opened as at each start, over the same files."""
    (tmp_path / "state").mkdir()

    def opened(own: str = "", *, secrets: MemoryKeychain | None = keychain) -> Importer:
        loaded: LoadedConfig = parse(own)
        records = ImportRecords(tmp_path / "state", pytest.fail)
        return Importer(tmp_path / "servers.toml", loaded, records, secrets)

    return opened


def found(
    name: str, table: dict[str, Any], *, source: str = "claude-code", place: str = "/f", **more: Any
) -> FoundServer:
    """A server as a reader of another program's file gives it."""
    return FoundServer(name, Origin(source, place, name, digest_of(table)), table, **more)
