"""A keychain in memory, and an importer over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import LoadedConfig, parse
from mcphost.errors import ConfigError
from mcphost.imports.found import FoundServer, Origin, digest_of
from mcphost.imports.importer import Importer
from mcphost.imports.remembered import ImportRecords


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


OpenImporter = Callable[..., Importer]


@pytest.fixture
def keychain() -> MemoryKeychain:
    return MemoryKeychain()


@pytest.fixture
def importer(tmp_path: Path, keychain: MemoryKeychain) -> OpenImporter:
    """`importer(own="[servers…]")`: opened as at each start, over the same files."""
    (tmp_path / "state").mkdir()

    def opened(own: str = "", *, without_keychain: bool = False) -> Importer:
        loaded: LoadedConfig = parse(own)
        records = ImportRecords(tmp_path / "state", pytest.fail)
        return Importer(tmp_path / "servers.toml", loaded, records, None if without_keychain else keychain)

    return opened


def found(
    name: str, table: dict[str, Any], *, source: str = "claude-code", place: str = "/f", **more: Any
) -> FoundServer:
    """A server as a reader of another program's file gives it."""
    return FoundServer(name, Origin(source, place, name, digest_of(table)), table, **more)
