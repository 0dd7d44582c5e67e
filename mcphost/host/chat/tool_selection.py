"""The tools a model is offered: under names it can use, in an order that stays, and none that would spoil the rest."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogTool
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.schema.validation import check_schema
from mcphost.providers.base import estimate_tokens

LONGEST: Final = 64
SEPARATOR: Final = "__"

_TAKEN: Final = re.compile(r"[A-Za-z0-9_-]*")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MARK: Final = 8
"""Digits that tell apart what looks the same once it is spelled with these characters."""
_SERVER: Final = 16
"""Characters of a server's name that a shortened one keeps."""


def alias(server: str, tool: str) -> str:
    """The name of a tool for a model.

    Where the first ``__`` separates the two names, it is just both of them; what is changed or
    shortened, and what a server could choose so as to look like another's, ends with a mark made from both.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    if len(plain) <= LONGEST and _TAKEN.fullmatch(plain) and _splits(server, tool) and not _looks_marked(tool):
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    room = LONGEST - _MARK - 1
    spelled = _OTHER.sub("_", server), _OTHER.sub("_", tool)
    first = spelled[0] if len(SEPARATOR.join(spelled)) <= room else spelled[0][:_SERVER]
    return f"{first}{SEPARATOR}{_shortened(spelled[1], room - len(first) - len(SEPARATOR))}_{mark}"


def _splits(server: str, tool: str) -> bool:
    return SEPARATOR not in server and not server.endswith("_") and not tool.startswith("_")


def _looks_marked(tool: str) -> bool:
    """True if the name could pass for one that mcphost marked."""
    return re.search(rf"_[0-9a-f]{{{_MARK}}}\Z", tool) is not None


def _shortened(text: str, room: int) -> str:
    """Keep both ends: the part that distinguishes one of many tools may be at either."""
    if len(text) <= room:
        return text
    head = (room - 1) // 2
    return f"{text[:head]}-{text[len(text) - (room - 1 - head) :]}"


MOST_TOOLS: Final = 127
"""That vendors take in one request, but for the one that reads files of skills; with more the model searches them."""

FOUND: Final = 8
"""Tools that one search brings."""

SEARCH: Final = "find_tools"
"""The name of the tool that searches the others; no other can have it, since theirs hold ``__``."""

_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COMBINED: Final = ("allOf", "anyOf", "oneOf", "not", "enum")
"""Keywords that vendors refuse at the top of a schema."""


@dataclass(frozen=True, slots=True)
class SelectedTool:
    """A tool under the name that the model knows."""

    server: str
    tool: Tool
    name: str
    definition: Tool
    """The definition that the model gets."""
    tokens: int
    """About what that costs in every request."""


@dataclass(frozen=True, slots=True)
class OmittedTool:
    """A tool that no model can be offered, and why."""

    server: str
    tool: str
    reason: str


class CheckedTools:
    """The result of checking each tool: the definition for a model, or the reason why it gets none."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[Tool, SelectedTool | OmittedTool]] = {}
        """By server and identity of the tool, which is held so that no other gets the same."""

    def check(self, offers: Sequence[CatalogTool], seconds: float) -> bool:
        """Check those that are not known yet until the time is over; are all of them known?"""
        end = time.monotonic() + seconds
        for offered in offers:
            if (key := _key(offered)) not in self._known:
                if time.monotonic() >= end:
                    return False
                self._known[key] = offered.tool, _judgement(offered)
        if len(self._known) > len(offers):
            self._known = {key: self._known[key] for key in map(_key, offers)}
        return True

    def selected(self, offered: CatalogTool) -> SelectedTool | OmittedTool | None:
        """The result for this tool; None before it was checked."""
        known = self._known.get(_key(offered))
        return None if known is None else known[1]


class ToolSelection:
    """The tools of one request: the offers that are ``on`` (server, tool), as far as they were ``checked``.

    ``limit`` is about the most tokens for all definitions; beyond it they are searched. ``refused`` are offers that no
    model gets, and why.
    """

    def __init__(
        self,
        offers: Sequence[CatalogTool],
        on: Callable[[str, str], bool],
        limit: int,
        checked: CheckedTools,
        refused: Mapping[tuple[str, str], str] = {},
    ) -> None:
        self.dropped: list[OmittedTool] = []
        self._refused = refused
        self._checked = checked
        self._entries = {entry.name: entry for entry in self._usable(offers, on)}
        self.tokens = sum(entry.tokens for entry in self._entries.values())
        """About what all definitions together cost in every request."""
        self.searching = self.tokens > limit or len(self._entries) > MOST_TOOLS
        """True if the model gets a tool that searches the others, in place of all of them."""

    @property
    def entries(self) -> Sequence[SelectedTool]:
        """All of them, by server as configured and then by name."""
        return tuple(self._entries.values())

    def costs(self) -> Mapping[str, int]:
        """About the tokens of each server's definitions."""
        found: dict[str, int] = {}
        for entry in self._entries.values():
            found[entry.server] = found.get(entry.server, 0) + entry.tokens
        return found

    def find(self, name: str) -> SelectedTool | None:
        return self._entries.get(name)

    def offered(self, found: Iterable[str]) -> tuple[Tool, ...]:
        """The definitions for a request; ``found`` are the names that the model searched out before, in that order."""
        if not self.searching:
            return tuple(entry.definition for entry in self._entries.values())
        known = (self._entries[name].definition for name in found if name in self._entries)
        return (self._search_tool(), *known)

    def search(self, query: str) -> list[SelectedTool]:
        """The tools that fit these words best, at most `FOUND`."""
        words = re.findall(r"\w+", query.lower())[:20]
        scored = [(_score(entry, words), entry) for entry in self._entries.values()]
        best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
        return [entry for _, entry in best[:FOUND]]

    def _search_tool(self) -> Tool:
        counts = ", ".join(f"{server} ({number})" for server, number in self._counts().items())
        about = (
            f"Find tools by words of their names and descriptions; what is found can be used next. Servers: {counts}"
        )
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return Tool.read({"name": SEARCH, "description": about, "inputSchema": schema})

    def _counts(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for entry in self._entries.values():
            found[entry.server] = found.get(entry.server, 0) + 1
        return found

    def _usable(self, offers: Iterable[CatalogTool], on: Callable[[str, str], bool]) -> Iterator[SelectedTool]:
        wanted: dict[str, list[CatalogTool]] = {}
        for offered in offers:
            if on(*offered.key):
                wanted.setdefault(offered.server, []).append(offered)
        entries: dict[str, list[SelectedTool]] = {}
        for offered in chain.from_iterable(sorted(each, key=_tool_name) for each in wanted.values()):
            known = self._checked.selected(offered)
            if offered.key in self._refused:
                known = OmittedTool(*offered.key, self._refused[offered.key])
            if isinstance(known, OmittedTool):
                self.dropped.append(known)
            elif known is not None:
                entries.setdefault(known.name, []).append(known)
        for name, alike in entries.items():
            if len(alike) == 1:
                yield alike[0]
            else:
                self.dropped.extend(OmittedTool(each.server, each.tool.name, f"two tools are {name}") for each in alike)


class _Unfit(McphostError):
    """No vendor takes it."""


def _key(offered: CatalogTool) -> tuple[str, int]:
    return offered.server, id(offered.tool)


def _tool_name(offered: CatalogTool) -> str:
    return offered.tool.name


def _judgement(offered: CatalogTool) -> SelectedTool | OmittedTool:
    try:
        return _entry(offered)
    except McphostError as error:
        return OmittedTool(offered.server, offered.tool.name, str(error))


def _entry(offered: CatalogTool) -> SelectedTool:
    """Raises McphostError where no vendor would take it."""
    server, tool = offered.server, offered.tool
    if tool.refusal:
        raise _Unfit(tool.refusal)
    if tool.app_only:
        raise _Unfit("the server says that it is for an app's user interface, and not for models")
    schema, more = _schema(tool.input_schema)
    name, about = alias(server, tool.name), f"[{server}] {show(tool.description or tool.label)}{more}"
    definition = Tool.read({"name": name, "description": about, "inputSchema": schema})
    cost = estimate_tokens(json.dumps([name, about, schema], ensure_ascii=False))
    return SelectedTool(server, tool, name, definition, cost)


def _schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema for a model, and what of it is said in words instead."""
    check_schema(dict(schema))
    if schema.get("type", "object") != "object":
        raise _Unfit("its arguments are not an object")
    properties = as_dict(schema.get("properties"))
    for key in properties:
        if not _PROPERTY.fullmatch(key):
            raise _Unfit(f"models take no argument of the name {show_line(key, 40)!r}")
    combined = {key: schema[key] for key in _COMBINED if key in schema}
    rest = {key: value for key, value in schema.items() if key not in combined}
    more = f"\nThe arguments must also fit {json.dumps(combined, ensure_ascii=False)}" if combined else ""
    return {**rest, "type": "object", "properties": properties}, more


def _score(entry: SelectedTool, words: Iterable[str]) -> int:
    name, about = f"{entry.server} {entry.tool.name}".lower(), (entry.tool.description or "").lower()
    return sum(3 * (word in name) + (word in about) for word in words)
