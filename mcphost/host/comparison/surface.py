"""The surface of a server: what it says of itself and offers, from a connection, a recording or a lock. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from mcphost.config.surface_lock import safe_identity, steady_skill, writable
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.schema_changes import arguments_of
from mcphost.json_values import as_dict, as_list, as_text, canonical, dicts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import find_revision
from mcphost.protocol.models.base import digest_of, without_volatile
from mcphost.redaction import Mask, masked_value, redacted

if TYPE_CHECKING:
    from mcphost.host.connections.connection import Connection
    from mcphost.host.recordings.recording import RecordedSession

HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

KEYS: Final = {CatalogKind.RESOURCES: "uri", CatalogKind.TEMPLATES: "uriTemplate", CatalogKind.SKILLS: "uri"}
"""The member that names an item, where that is not ``name``."""

LISTED_BY: Final = {
    CatalogKind.TOOLS: "tools/list",
    CatalogKind.RESOURCES: "resources/list",
    CatalogKind.TEMPLATES: "resources/templates/list",
    CatalogKind.PROMPTS: "prompts/list",
    CatalogKind.SKILLS: "skills/list",
}

FRONTMATTER: Final = "frontmatter."
"""Before the names of a skill's fields among its members."""

SKILLS_PATH: Final = f"extensions.{SKILLS_EXTENSION}"
"""The capability of servers with skills; one without it has none."""

_MAY_BE_EMPTY: Final = ("extensions", "experimental")
"""Capabilities that are lists of others."""

ERA_BOUND: Final = frozenset({"listChanged", "tasks", TASKS_EXTENSION})
"""Capabilities that each era has in a form of its own, or that say how it announces changes."""

_MEMBER_DIGITS: Final = 16
"""Digits of the hash of a single member, which only says if it changed; all of an item's hash count."""


@dataclass(frozen=True, slots=True)
class SurfaceItem:
    """A tool, prompt, resource, template or skill. A lock knows all but its ``definition``, which is None then."""

    name: str
    digest: str
    members: Mapping[str, str]
    """A short hash of each member but the name; of a skill's frontmatter, of each of its fields."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """See `arguments_of`."""
    hints: Mapping[str, bool] = field(default_factory=dict)
    """The claims in the annotations of a tool."""
    definition: Mapping[str, Any] | None = None
    files: Mapping[str, str] | None = None
    """The digests and sizes of a skill's files, by their paths; None if it gives none."""

    @classmethod
    def of(cls, kind: CatalogKind, definition: Mapping[str, Any]) -> SurfaceItem:
        """The item with this definition."""
        key = KEYS.get(kind, "name")
        steady = without_volatile(definition)
        if kind is CatalogKind.SKILLS:
            steady = steady_skill(steady)
        others = ((member, value) for member, value in _members(kind, steady) if member != key)
        members = {writable(member): hash_of(value)[:_MEMBER_DIGITS] for member, value in others}
        annotations = as_dict(definition.get("annotations"))
        return cls(
            writable(as_text(definition.get(key))),
            digest_of(steady),
            members,
            _arguments(kind, definition),
            {name: annotations[name] for name in HINTS if isinstance(annotations.get(name), bool)},
            steady,
            _files(steady) if kind is CatalogKind.SKILLS else None,
        )


SurfaceItems = Mapping[str, SurfaceItem]


@dataclass(frozen=True, slots=True)
class Surface:
    """The words of a server about itself, and its offers. A kind that is not in ``kinds`` is not known."""

    label: str
    """The name in reports."""
    entry: str = ""
    """The configured server that this is; empty where it is none."""
    identity: str = ""
    """The command line or address, as approvals show it; empty where that is not known."""
    name: str = ""
    version: str = ""
    revision: str = ""
    capabilities: Mapping[str, str] = field(default_factory=dict)
    """See `capability_paths`."""
    instructions: str | None = ""
    """None where only its digest is known."""
    instructions_digest: str = ""
    kinds: Mapping[CatalogKind, SurfaceItems] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        revision = find_revision(self.revision)
        return revision is not None and revision.modern


def surface(
    label: str,
    *,
    capabilities: Mapping[str, Any],
    instructions: str,
    server_info: Mapping[str, Any],
    offered: Mapping[CatalogKind, Iterable[Mapping[str, Any]]],
    entry: str = "",
    identity: str = "",
    revision: str = "",
) -> Surface:
    """The surface with these parts, as they came."""
    kinds: dict[CatalogKind, SurfaceItems] = {
        kind: {item.name: item for item in (SurfaceItem.of(kind, each) for each in definitions)}
        for kind, definitions in offered.items()
    }
    paths = capability_paths(capabilities)
    if SKILLS_PATH not in paths:
        kinds.setdefault(CatalogKind.SKILLS, {})
    return Surface(
        label,
        entry,
        identity,
        as_text(server_info.get("name")),
        as_text(server_info.get("version")),
        revision,
        paths,
        instructions,
        text_digest(instructions),
        kinds,
    )


def surface_of(connection: Connection, label: str = "", entry: str = "") -> Surface | None:
    """The surface of a connected server, without kinds whose listing failed; None where it is not connected."""
    session = connection.session
    if session is None or not connection.ready:
        return None
    listings = [(kind, listing) for kind, listing in connection.listings if listing.failure is None]
    return surface(
        label or connection.name,
        capabilities=session.server.capabilities,
        instructions=session.server.instructions or "",
        server_info=session.server.server_info.received,
        offered={kind: [item.definition() for item in listing.items] for kind, listing in listings},
        entry=entry,
        identity=safe_identity(connection.config.identity),
        revision=session.revision.version,
    )


def surface_of_recording(session: RecordedSession, label: str, identity: str = "") -> Surface:
    """The surface of a recorded server, without kinds that its recording does not list."""
    said, offered = session.introduction, dict[CatalogKind, Iterable[Mapping[str, Any]]]()
    for kind, method in LISTED_BY.items():
        if (items := session.listing(method)) is not None:
            offered[kind] = items
    info = as_dict(said.get("serverInfo")) or as_dict(
        as_dict(said.get("_meta")).get("io.modelcontextprotocol/serverInfo")
    )
    return surface(
        label,
        capabilities=as_dict(said.get("capabilities")),
        instructions=as_text(said.get("instructions")),
        server_info=info,
        offered=offered,
        entry=session.server,
        identity=identity,
        revision=session.revision,
    )


def as_kept(surface: Surface, mask: Mask) -> Surface:
    """The surface with what a recording of it would mask; what only a lock knows of it stays."""

    def hide(text: str) -> str:
        return redacted(text, mask)

    kinds: dict[CatalogKind, SurfaceItems] = {}
    for kind, items in surface.kinds.items():
        kept = (
            each if each.definition is None else SurfaceItem.of(kind, masked_value(each.definition, hide))
            for each in items.values()
        )
        kinds[kind] = {each.name: each for each in kept}
    if surface.instructions is None:
        return replace(surface, kinds=kinds)
    instructions = hide(surface.instructions)
    return replace(surface, kinds=kinds, instructions=instructions, instructions_digest=text_digest(instructions))


def capability_paths(declared: Mapping[str, Any], ignored: Container[str] = ()) -> dict[str, str]:
    """The capabilities by path, such as ``tools.listChanged``, with their values as JSON where it is not ``true``.

    Empty extensions and experiments are the same as none.
    """
    return dict(sorted(_paths(declared, "", ignored)))


def _paths(declared: Mapping[str, Any], above: str, ignored: Container[str]) -> Iterator[tuple[str, str]]:
    for name, value in declared.items():
        if name in ignored or value is None or value is False or (name in _MAY_BE_EMPTY and not value):
            continue
        path = f"{above}{name}"
        yield path, "" if value is True or isinstance(value, dict) else canonical(value)
        if isinstance(value, dict) and path.count(".") < 8:
            yield from _paths(value, f"{path}.", ignored)


def text_digest(text: str) -> str:
    """``sha256:`` and the hash of a text; empty for none."""
    return f"sha256:{hash_of(text)}" if text else ""


def hash_of(value: Any) -> str:
    """The SHA-256 (hex) of a JSON value, whatever the order of members."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _members(kind: CatalogKind, definition: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in definition.items():
        if kind is CatalogKind.SKILLS and name == "frontmatter" and isinstance(value, dict):
            yield from ((f"{FRONTMATTER}{field}", each) for field, each in value.items())
        else:
            yield name, value


def _files(skill: Mapping[str, Any]) -> dict[str, str] | None:
    resources, folder = skill.get("resources"), as_text(skill.get("uri")).rpartition("/")[0]
    if not isinstance(resources, list):
        return None
    return {
        writable(as_text(each.get("uri")).removeprefix(f"{folder}/")): writable(
            f"{as_text(each.get('digest'))}, {canonical(each.get('size'))} bytes"
        )
        for each in dicts_in(resources)
    }


def _arguments(kind: CatalogKind, definition: Mapping[str, Any]) -> dict[str, str]:
    if kind is CatalogKind.TOOLS:
        return {writable(name): each for name, each in arguments_of(definition.get("inputSchema")).items()}
    if kind is not CatalogKind.PROMPTS:
        return {}
    named = (each for each in dicts_in(as_list(definition.get("arguments"))) if isinstance(each.get("name"), str))
    return {writable(each["name"]): "string" + (", required" if each.get("required") is True else "") for each in named}
