"""Remembers the imported servers: their origins, names and keychain items.

It holds no secret. Everything here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Final

from mcphost.config import read_toml, update_toml
from mcphost.config.state import Report
from mcphost.imports.found import Origin
from mcphost.json_values import as_text, dicts_in, texts_in
from mcphost.lazy_dataclass import dataclass

FILE: Final = "imports.toml"


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """An entry of ``servers.toml`` and where it came from."""

    name: str
    origins: tuple[Origin, ...]
    """Where it was found; several programs may have the same server. The first is the one it was taken from."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """The entry as it was written, with references in place of secrets."""
    content: str = ""
    """The SHA-256 (hex) of the entry as it was found, secrets included."""
    secrets: tuple[str, ...] = ()
    """The keys where secrets stood, such as ``env.TOKEN``."""
    items: tuple[str, ...] = ()
    """The names of its items in the keychain."""


class ImportRecords:
    """The state file of imported servers, and of the keychain items that mcphost wrote."""

    def __init__(self, state: Path, report: Report) -> None:
        self._file, self._report = state / FILE, report

    def servers(self) -> dict[str, ImportedServer]:
        """By name. Raises ConfigError."""
        return {server.name: server for server in _servers(read_toml(self._file, self._report))}

    def items(self) -> tuple[str, ...]:
        """The names of all keychain items that mcphost wrote and did not delete, sorted. Raises ConfigError."""
        return _items(read_toml(self._file, self._report))

    def remember(self, server: ImportedServer) -> None:
        """Replace what is known of the server of this name. Raises ConfigError."""
        self._change(
            lambda servers: {**servers, server.name: server},
            lambda items: {*items, *server.items},
        )

    def restore(self, name: str, before: ImportedServer | None, *, without: Iterable[str]) -> None:
        """Take back `remember`, ``without`` the items that were new then. Raises ConfigError."""
        new = {*without} - {*(before.items if before else ())}
        kept = {name: before} if before else {}
        self._change(
            lambda servers: {each: known for each, known in servers.items() if each != name} | kept,
            lambda items: items - new,
        )

    def forget(self, name: str) -> None:
        """Forget a server, but not its keychain items. Raises ConfigError."""
        self._change(lambda servers: {each: known for each, known in servers.items() if each != name})

    def add_item(self, name: str) -> None:
        """Remember that the keychain has this item. Raises ConfigError."""
        self._change(items=lambda items: {*items, name})

    def drop_item(self, name: str) -> None:
        """Forget that the keychain had this item. Raises ConfigError."""
        self._change(items=lambda items: items - {name})

    def _change(
        self,
        servers: Callable[[dict[str, ImportedServer]], dict[str, ImportedServer]] = lambda known: known,
        items: Callable[[set[str]], set[str]] = lambda known: known,
    ) -> None:
        def changed(data: Mapping[str, Any]) -> dict[str, Any]:
            after = servers({server.name: server for server in _servers(data)})
            return {
                "items": sorted(items(set(_items(data)))),
                "server": [_as_table(after[name]) for name in sorted(after)],
            }

        update_toml(self._file, changed, self._report)


def as_utf8(text: str) -> str:
    """``text`` as a file can hold it: a path may have bytes that are not text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _as_table(server: ImportedServer) -> dict[str, Any]:
    return {
        "name": server.name,
        "content": server.content,
        "secrets": list(server.secrets),
        "items": list(server.items),
        "origin": [{key: as_utf8(part) for key, part in asdict(origin).items()} for origin in server.origins],
        "table": dict(server.table),
    }


def _servers(data: Mapping[str, Any]) -> Iterator[ImportedServer]:
    for entry in dicts_in(data.get("server")):
        match entry:
            case {"name": str(name), "content": str(content), "table": dict(table)}:
                origins = tuple(_origins(entry.get("origin")))
                if origins:
                    secrets, items = tuple(texts_in(entry.get("secrets"))), tuple(texts_in(entry.get("items")))
                    yield ImportedServer(name, origins, table, content, secrets, items)


def _origins(value: object) -> Iterator[Origin]:
    for entry in dicts_in(value):
        match entry:
            case {"source": str(source), "place": str(place), "name": str(name), "digest": str(digest)}:
                yield Origin(source, place, name, digest, as_text(entry.get("scope")))


def _items(data: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(texts_in(data.get("items"))))
