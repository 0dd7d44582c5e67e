"""Surfaces in a lock, and whole definitions in the JSON file beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcphost.config.files import read_regular
from mcphost.config.state import replace_file
from mcphost.config.surface_lock import LOCK_BYTES, LockedItem, LockedServer, SurfaceLock, lock_text, read_lock
from mcphost.errors import ConfigError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.surface import SKILLS_PATH, Surface, SurfaceItem, SurfaceItems, text_digest
from mcphost.json_values import as_dict
from mcphost.protocol.models.base import digest_of
from mcphost.providers.base import estimate_tokens
from mcphost.redaction import Mask, masked_value

TABLES: Final = {
    CatalogKind.TOOLS: "tools",
    CatalogKind.PROMPTS: "prompts",
    CatalogKind.TEMPLATES: "templates",
    CatalogKind.RESOURCES: "resources",
    CatalogKind.SKILLS: "skills",
}
"""The tables of a locked server."""

_VALUED: Final = re.compile(r"(.*?)(?: = (.*))?", re.DOTALL)

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")

Full = Mapping[str, Any]
"""Whole definitions by server, kind and name, and instructions by server."""


class Lock(NamedTuple):
    """A lock as it was read. ``full`` is empty where there are no whole definitions."""

    path: Path
    content: SurfaceLock
    full: Full

    def surface(self, server: str) -> Surface | None:
        """The surface of a server; None where the lock has no such server."""
        locked = self.content.servers.get(server)
        return None if locked is None else surface_of_lock(server, locked, as_dict(self.full.get(server)))

    @property
    def servers(self) -> Sequence[str]:
        return tuple(self.content.servers)


def full_path(path: Path) -> Path:
    """The file of whole definitions beside a lock."""
    return path.with_name(f"{path.name}.json")


def open_lock(path: Path) -> Lock:
    """Read a lock, and the whole definitions beside it. Blocks; raises ConfigError, FileNotFoundError."""
    return Lock(path, read_lock(path), read_full(full_path(path)))


def read_full(path: Path) -> Full:
    """Whole definitions; empty if the file does not exist. Raises ConfigError."""
    try:
        return as_dict(json.loads(read_regular(path, LOCK_BYTES)))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise ConfigError("is not JSON; remove it, or write it again with mcphost lock --full", path=path) from None


def surface_of_lock(server: str, locked: LockedServer, full: Mapping[str, Any] = {}) -> Surface:
    """The surface that a lock holds, with those whole definitions that have the digest of the lock."""
    kinds: dict[CatalogKind, SurfaceItems] = {}
    for kind, table in TABLES.items():
        items: Mapping[str, LockedItem] | None = getattr(locked, table)
        if items is not None:
            whole = as_dict(full.get(table))
            kinds[kind] = {name: _item(kind, name, each, whole.get(name)) for name, each in items.items()}
    capabilities = {found[1]: found[2] or "" for found in map(_VALUED.fullmatch, locked.capabilities) if found}
    if SKILLS_PATH not in capabilities:
        kinds.setdefault(CatalogKind.SKILLS, {})
    instructions = full.get("instructions") if locked.instructions else ""
    known = isinstance(instructions, str) and text_digest(instructions) == locked.instructions
    return Surface(
        server,
        server,
        locked.identity,
        locked.name,
        locked.server_version,
        locked.revision,
        capabilities,
        instructions if known else None,
        locked.instructions,
        kinds,
    )


def _item(kind: CatalogKind, name: str, locked: LockedItem, definition: object) -> SurfaceItem:
    if isinstance(definition, dict) and digest_of(definition) == locked.definition:
        return SurfaceItem.of(kind, definition)
    return SurfaceItem(name, locked.definition, locked.members, locked.arguments, locked.hints, files=locked.files)


def locked_server(surface: Surface, mask: Mask, *, resources: bool) -> LockedServer:
    """The part of a surface that a lock keeps; resources only if that is wanted, since many servers change them."""
    tables: dict[str, Any] = {}
    for kind, items in _kept(surface, resources=resources):
        tables[TABLES[kind]] = {mask(name): _locked_item(kind, item, mask) for name, item in items.items()}
    capabilities = (path + (f" = {value}" if value else "") for path, value in surface.capabilities.items())
    return LockedServer(
        identity=mask(surface.identity),
        name=mask(surface.name),
        server_version=mask(surface.version),
        revision=mask(surface.revision),
        instructions=surface.instructions_digest,
        capabilities=tuple(map(mask, capabilities)),
        **tables,
    )


def _kept(surface: Surface, *, resources: bool) -> Iterator[tuple[CatalogKind, SurfaceItems]]:
    for kind, items in surface.kinds.items():
        undeclared = kind is CatalogKind.SKILLS and not items and SKILLS_PATH not in surface.capabilities
        if not undeclared and (kind is not CatalogKind.RESOURCES or resources):
            yield kind, items


def _locked_item(kind: CatalogKind, item: SurfaceItem, mask: Mask) -> LockedItem:
    tokens = None
    if kind is CatalogKind.TOOLS and item.definition is not None:
        shown = [item.definition.get(member) for member in ("name", "description", "inputSchema")]
        tokens = estimate_tokens(json.dumps(shown, ensure_ascii=False))
    return LockedItem(
        definition=item.digest,
        tokens=tokens,
        members={mask(name): digest for name, digest in item.members.items()},
        arguments={mask(name): mask(words) for name, words in item.arguments.items()},
        hints=dict(item.hints),
        files=None if item.files is None else {mask(path): mask(words) for path, words in item.files.items()},
    )


def full_server(surface: Surface, mask: Mask, *, resources: bool) -> dict[str, Any]:
    """The whole definitions of a surface. One that holds a secret is left out."""
    tables: dict[str, Any] = {}
    for kind, items in _kept(surface, resources=resources):
        tables[TABLES[kind]] = dict(_whole(items, mask))
    if surface.instructions and mask(surface.instructions) == surface.instructions:
        tables["instructions"] = surface.instructions
    return tables


def _whole(items: SurfaceItems, mask: Mask) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, item in items.items():
        definition = dict(item.definition or {})
        if definition and masked_value(definition, mask) == definition:
            yield name, definition


def line_of(text: str, server: str, kind: CatalogKind | None, item: str) -> int:
    """The line of an item's table in the text of a lock, else that of its server; 0 without either."""
    tables = [[server], *([[server, TABLES[kind], item]] if kind else [])]
    found = 0
    for names in tables:
        heading = ".".join(("servers", *(name if _BARE.fullmatch(name) else json.dumps(name) for name in names)))
        at = text.find(f"\n[{heading}]\n")
        found = text.count("\n", 0, at) + 2 if at >= 0 else found
    return found


def write_lock(path: Path, content: SurfaceLock, full: Full | None) -> None:
    """Replace a lock, and the whole definitions beside it unless ``full`` is None. Blocks; raises ConfigError."""
    text = lock_text(content).encode()
    if len(text) > LOCK_BYTES:
        raise ConfigError(f"would have more than {LOCK_BYTES:,} bytes; name fewer servers", path=path)
    if full is not None:
        whole = json.dumps(full, indent=2, sort_keys=True)
        replace_file(full_path(path), f"{whole}\n".encode(), mode=0o644)
    replace_file(path, text, mode=0o644)
