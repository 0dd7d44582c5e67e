"""Names under which an agent finds the items of several servers, in both directions.

The items of a single server keep their names. A name depends on its own server and item alone, so that it stays the
same whatever else is served.

Specification: server/tools (tool names), server/resources (URIs, templates), extensions/apps (``_meta.ui``).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, count
from typing import Any, Final

from mcphost.config.fields import ALIAS
from mcphost.json_values import as_dict

NAME_CHARACTERS: Final = 45
"""Characters of a name: agents put their own name of this endpoint before it, and models take 64."""

_HEAD: Final = 4
"""Characters of a server's name before the digits that tell it from others."""

_SEPARATOR: Final = "__"
"""No alias holds it, or ends with a part of it, so the first one ends the alias."""

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
_SCHEME_PART: Final = re.compile(r"[a-z0-9.-]+")
_PREFIXED: Final = re.compile(
    r"(?:(?P<kept>ui|skill)://mcphost\+(?P<host>[a-z0-9.-]+)(?:\+(?P<inner>[a-z][a-z0-9.+-]*))?/"
    r"|mcphost\+(?P<scheme>[a-z0-9.-]+):)"
)
_INNER: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9.+-]*(?<![+])):(?P<root>//?)(?P<rest>.*)", re.DOTALL)
_OWN_SCHEME: Final = "mcphost:"

Origin = tuple[str, str]
"""A server, and the name or URI of one of its items there."""


def aliases(servers: Mapping[str, str | None]) -> dict[str, str]:
    """The alias of each server: the one that its entry sets, else from its name.

    Of two equal ones that are set, that of the first server by name counts.
    """
    given: dict[str, str] = {}
    for server, alias in sorted(servers.items()):
        if alias is not None and alias not in given.values():
            given[server] = alias
    return given | _distinct(servers.keys() - given.keys(), given.values(), ALIAS, _alias_head)


class ExposedNames:
    """The names of the tools, or of the prompts, of servers with these ``aliases``.

    ``reserved`` are names of other things.
    """

    def __init__(
        self, aliases: Mapping[str, str], items: Iterable[Origin], reserved: Collection[str] = frozenset()
    ) -> None:
        self._aliases, self._reserved = aliases, reserved
        self._exposed: dict[Origin, str] = {}
        self._origins: dict[str, Origin] = {}
        self.doubles: list[Origin] = []
        """Items that their server lists twice; the first counts."""
        seen: set[Origin] = set()
        shortened: list[Origin] = []
        for item in items:
            if item in seen:
                self.doubles.append(item)
                continue
            seen.add(item)
            exposed = self._whole(item)
            if exposed is None:
                shortened.append(item)
            else:
                self._keep(item, exposed)
        # In this order, so that the order of the servers makes no difference.
        for item in sorted(shortened):
            self._keep(item, self._shortened(item))

    def of(self, server: str, name: str) -> str | None:
        """The exposed name of an item; None if it has none."""
        return self._exposed.get((server, name))

    def find(self, exposed: str) -> Origin | None:
        """The item of this exposed name."""
        return self._origins.get(exposed)

    def _keep(self, item: Origin, exposed: str) -> None:
        self._exposed[item], self._origins[exposed] = exposed, item

    def _whole(self, item: Origin) -> str | None:
        """The name with nothing left out; None if it has to be shortened."""
        server, name = item
        if len(self._aliases) == 1:
            return None if name in self._reserved else name
        whole = f"{self._aliases[server]}{_SEPARATOR}{name}"
        fits = len(whole) <= NAME_CHARACTERS and not _FOREIGN.search(name)
        return whole if fits and whole not in self._reserved else None

    def _shortened(self, item: Origin) -> str:
        server, name = item
        start = self._aliases[server][:_HEAD]
        tail = _FOREIGN.sub("_", name)[-(NAME_CHARACTERS - 2 * _HEAD - len(_SEPARATOR)) :]
        attempts = (f"{start}{digits}{_SEPARATOR}{tail}" for digits in _digits(f"{server}\n{name}"))
        return next(each for each in attempts if each not in self._origins and each not in self._reserved)


class ExposedUris:
    """The URIs of the resources, and the texts of the templates, of several servers.

    A URI keeps its form if a single server lists it, or has a template that starts like it. Others name their server:
    ``mcphost+SERVER:URI``, or ``ui://mcphost+SERVER/…`` where the scheme has a meaning. So do those of all files of
    skills, as `of_skill` has them, so that each skill's are in one folder.
    """

    def __init__(
        self,
        servers: Iterable[str],
        resources: Iterable[Origin] = (),
        templates: Iterable[Origin] = (),
        skill_files: Iterable[Origin] = (),
    ) -> None:
        names = set(servers)
        self._single = min(names) if len(names) == 1 else None
        self._parts = _distinct(names, (), _SCHEME_PART, _scheme_head)
        self._servers = {part: server for server, part in self._parts.items()}
        self._listed: dict[str, str | None] = {}
        """The server that lists a URI; None: several do."""
        self._heads: list[str] = []
        """Starts of templates that are one server's alone, sorted. None of them is the start of another."""
        self._owners: list[str] = []
        self._skill_files: frozenset[Origin] = frozenset()
        if self._single is None:
            self._read(list(resources), list(templates))
            self._skill_files = frozenset(skill_files)

    def of(self, server: str, uri: str) -> str:
        """The exposed form of a server's URI or template."""
        if (server, uri) in self._skill_files:
            return self.of_skill(server, uri)
        if self.find(uri) == (server, uri):
            return uri
        part = self._parts[server]
        for scheme in ("ui://", "skill://"):
            if uri.startswith(scheme):
                return f"{scheme}mcphost+{part}/{uri.removeprefix(scheme)}"
        return f"mcphost+{part}:{uri}"

    def of_skill(self, server: str, uri: str) -> str:
        """The exposed form of the URI of a skill's file: ``skill://mcphost+SERVER/…``.

        Another scheme than ``skill:`` follows the server's name, with a ``+`` behind it if there is no authority.
        """
        if self._single is not None:
            return uri
        found, part = _INNER.fullmatch(uri), self._parts[server]
        if found is None:
            return f"mcphost+{part}:{uri}"
        inner = "" if uri.startswith("skill://") else f"+{found['scheme']}{'' if found['root'] == '//' else '+'}"
        return f"skill://mcphost+{part}{inner}/{found['rest']}"

    def find(self, exposed: str) -> Origin | None:
        """The server of an exposed URI or template, with its form there."""
        if self._single is not None:
            return self._single, exposed
        prefix = _PREFIXED.match(exposed)
        server = self._servers.get(prefix["host"] or prefix["scheme"]) if prefix else None
        if prefix is not None and server is not None:
            rest, kept = exposed[prefix.end() :], prefix["kept"]
            if inner := prefix["inner"]:
                return server, f"{inner[:-1]}:/{rest}" if inner.endswith("+") else f"{inner}://{rest}"
            return server, f"{kept}://{rest}" if kept else rest
        if exposed in self._listed:
            server = self._listed[exposed]
        elif (index := bisect_right(self._heads, exposed)) and exposed.startswith(self._heads[index - 1]):
            server = self._owners[index - 1]
        return None if server is None or exposed.startswith(_OWN_SCHEME) else (server, exposed)

    def in_definition(self, server: str, definition: Mapping[str, Any]) -> Mapping[str, Any]:
        """The definition of a tool, resource or template with exposed URIs."""
        changed = {
            member: self.of(server, definition[member])
            for member in ("uri", "uriTemplate")
            if isinstance(definition.get(member), str)
        }
        return self._in_meta(server, {**definition, **changed})

    def in_skill(self, server: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of a skill with exposed URIs; the rest, and so its digests, stays as it is."""
        changed: dict[str, Any] = dict(self._as_skill(server, entry))
        if isinstance(entry.get("resources"), list):
            changed["resources"] = [self._as_skill(server, each) for each in entry["resources"]]
        return changed

    def in_folder(self, server: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of reading a folder of a skill with exposed URIs."""
        children = result.get("resources")
        if not isinstance(children, list):
            return result
        return {**result, "resources": [self._as_skill(server, each) for each in children]}

    def in_result(self, server: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a tool, prompt or resource with exposed URIs in its content; what is invalid stays as it is."""
        if self._single is not None:
            return result
        changed = dict(self._in_meta(server, result))
        for member, change in (
            ("content", self._in_block),
            ("contents", self._in_contents),
            ("messages", self._in_message),
        ):
            if isinstance(changed.get(member), list):
                changed[member] = [change(server, each) for each in changed[member]]
        return changed

    def _as_skill(self, server: str, value: Any) -> Any:
        uri = as_dict(value).get("uri")
        return {**value, "uri": self.of_skill(server, uri)} if isinstance(uri, str) else value

    def _in_message(self, server: str, message: Any) -> Any:
        content = as_dict(message).get("content")
        if isinstance(content, list):
            return {**message, "content": [self._in_block(server, each) for each in content]}
        return {**message, "content": self._in_block(server, content)} if isinstance(content, dict) else message

    def _in_block(self, server: str, block: Any) -> Any:
        match as_dict(block).get("type"):
            case "resource_link":
                return self._in_contents(server, block)
            case "resource":
                return {**block, "resource": self._in_contents(server, block.get("resource"))}
        return block

    def _in_contents(self, server: str, contents: Any) -> Any:
        uri = as_dict(contents).get("uri")
        return {**contents, "uri": self.of(server, uri)} if isinstance(uri, str) else contents

    def _in_meta(self, server: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """``value`` with the URI of its user interface, also under the older key."""
        meta = as_dict(value.get("_meta"))
        changed, ui = dict(meta), as_dict(meta.get("ui"))
        if isinstance(ui.get("resourceUri"), str):
            changed["ui"] = {**ui, "resourceUri": self.of(server, ui["resourceUri"])}
        if isinstance(meta.get("ui/resourceUri"), str):
            changed["ui/resourceUri"] = self.of(server, meta["ui/resourceUri"])
        return value if changed == meta else {**value, "_meta": changed}

    def _read(self, resources: list[Origin], templates: list[Origin]) -> None:
        for server, uri in resources:
            self._listed[uri] = server if self._listed.get(uri, server) == server else None
        heads = [(text.partition("{")[0], server, True) for server, text in templates]
        # A template without the start of a URI could be anybody's.
        heads = [each for each in heads if ":" in each[0]]
        listed = [(uri, server, False) for server, uri in resources]
        groups: list[tuple[str, set[str], bool]] = []
        for text, server, is_head in sorted([*heads, *listed], key=lambda each: (each[0], not each[2])):
            if groups and groups[-1][2] and text.startswith(groups[-1][0]):
                groups[-1][1].add(server)
            else:
                groups.append((text, {server}, is_head))
        alone = [(text, owners.pop()) for text, owners, is_head in groups if is_head and len(owners) == 1]
        self._heads, self._owners = [text for text, _ in alone], [server for _, server in alone]


def _distinct(
    names: Iterable[str], taken: Iterable[str], allowed: re.Pattern[str], head: Callable[[str], str]
) -> dict[str, str]:
    """Each name itself where it is ``allowed`` and not ``taken``, else its ``head`` with digits."""
    chosen: dict[str, str] = {}
    used = set(taken)
    for name in sorted(names, key=lambda name: (allowed.fullmatch(name) is None, name)):
        whole = (name,) if allowed.fullmatch(name) else ()
        attempts = chain(whole, (head(name) + digits for digits in _digits(name)))
        chosen[name] = next(each for each in attempts if each not in used)
        used.add(chosen[name])
    return chosen


def _digits(seed: str) -> Iterator[str]:
    """Digits that go with ``seed``, for ever; nearly always the first will do."""
    for attempt in count():
        digest = sha256(f"{seed}\n{attempt}".encode(errors="surrogatepass")).hexdigest()
        yield digest[: 4 + attempt // 99]


def _alias_head(name: str) -> str:
    return re.sub("[^A-Za-z0-9]", "", name)[:_HEAD]


def _scheme_head(name: str) -> str:
    return re.sub("[^a-z0-9.-]", "-", name.lower()) + "-"
