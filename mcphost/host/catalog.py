"""The items that all servers list, such as tools and skills, by configured server name and the name the server uses.

An entry is found by both names, so that no server can pass its tool off as another's. It holds only usable items; the
rejected ones are in `mcphost.host.connections.listings.Listing.rejected`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from mcphost.client.paging import ListedItems, Rejected
from mcphost.config import ServerConfig, entry_of
from mcphost.errors import InvalidResult, UnknownName
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.json_size import is_longer
from mcphost.protocol.models.base import Wire
from mcphost.protocol.models.tools import Tool
from mcphost.time_slices import TimeSlice

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import Prompt
    from mcphost.protocol.models.resources import Resource, ResourceTemplate
    from mcphost.protocol.models.skills import Skill
    from mcphost.protocol.uri_templates import UriTemplate

DEFINITION_CHARACTERS: Final = 64 << 10
"""Characters of a definition: no user reads more before agreeing, and an approval keeps all of a tool's."""

SKILL_CHARACTERS: Final = 1 << 20
"""Characters of a skill's entry, which lists up to 512 files: their URIs may be long."""

NAME_CHARACTERS: Final = 80
"""Characters of an item's name in a sentence on why it was left out."""

NAMED: Final = 12
"""Names that an error names as those there are."""

Entry = TypeVar("Entry", bound="CatalogTool | CatalogResource | CatalogTemplate | CatalogPrompt | CatalogSkill")
Item = TypeVar("Item", bound=Wire)
SplitItems = tuple[list[Item], list[Rejected]]
"""The usable items, and the rejected ones."""


class CatalogKind(Enum):
    """The kinds of items that a server lists; the value is the plural on screen."""

    TOOLS = "tools"
    RESOURCES = "resources"
    TEMPLATES = "resource templates"
    PROMPTS = "prompts"
    SKILLS = "skills"

    @property
    def capability(self) -> str:
        """The capability by whose name its changes are announced, and under which all but skills are listed."""
        return "resources" if self in (CatalogKind.TEMPLATES, CatalogKind.SKILLS) else self.value

    def words_for(self, rejected: Rejected) -> str:
        """Say that an item of this kind was left out, and why."""
        return f"left out the {self.value.removesuffix('s')} {rejected.name[:NAME_CHARACTERS]}: {rejected.reason}"


@dataclass(frozen=True, slots=True)
class CatalogTool:
    """A tool and the configured name of the server that offers it."""

    server: str
    tool: Tool

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all servers."""
        return self.server, self.tool.name


@dataclass(frozen=True, slots=True)
class CatalogResource:
    """A resource and the configured name of the server that offers it."""

    server: str
    resource: Resource

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all servers."""
        return self.server, self.resource.uri


@dataclass(frozen=True, slots=True)
class CatalogTemplate:
    """A resource template and the configured name of the server that offers it."""

    server: str
    template: ResourceTemplate

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all servers."""
        return self.server, self.template.uri_template

    @property
    def pattern(self) -> UriTemplate:
        """The parsed template. Invalid ones are not in the catalog."""
        from mcphost.protocol.uri_templates import UriTemplate  # late: few servers have any

        return UriTemplate.read(self.template.uri_template)


@dataclass(frozen=True, slots=True)
class CatalogPrompt:
    """A prompt and the configured name of the server that offers it."""

    server: str
    prompt: Prompt

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all servers."""
        return self.server, self.prompt.name


@dataclass(frozen=True, slots=True)
class CatalogSkill:
    """A skill and the configured name of the server that offers it."""

    server: str
    skill: Skill

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all servers."""
        return self.server, self.skill.key


class CatalogSection(Generic[Entry]):
    """The items of one kind of all servers, in the order the servers were configured."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._entries: dict[str, tuple[Entry, ...]] = dict.fromkeys(servers, ())
        self._by_name: dict[str, dict[str, Entry]] = {}

    def keep(self, server: str, entries: Iterable[Entry]) -> None:
        """Replace the entries of ``server``."""
        self._entries[server] = tuple(entries)
        self._by_name.pop(server, None)

    def forget(self, server: str) -> None:
        self._entries.pop(server, None)
        self._by_name.pop(server, None)

    def put_in_order(self, servers: Iterable[str]) -> None:
        for server in servers:
            self._entries[server] = self._entries.pop(server, ())

    def entries_of(self, server: str | None) -> Sequence[Entry]:
        """The entries of one server, or of all without instances, which offer what their server does."""
        if server is not None:
            return self._entries.get(server, ())
        own = ((name, entries) for name, entries in self._entries.items() if entry_of(name) == name)
        return tuple(entry for _, entries in own for entry in entries)

    def named(self, server: str, name: str) -> Entry | None:
        """The entry of ``server`` with this name (a resource's is its URI)."""
        if (by_name := self._by_name.get(server)) is None:
            by_name = self._by_name[server] = {entry.key[1]: entry for entry in reversed(self.entries_of(server))}
        return by_name.get(name)


_ENTRY: Final[Mapping[CatalogKind, Callable[[str, Any], Any]]] = {
    CatalogKind.TOOLS: CatalogTool,
    CatalogKind.RESOURCES: CatalogResource,
    CatalogKind.TEMPLATES: CatalogTemplate,
    CatalogKind.PROMPTS: CatalogPrompt,
    CatalogKind.SKILLS: CatalogSkill,
}


class Catalog:
    """The items of all servers, in the order the servers were configured."""

    def __init__(self, servers: Iterable[str]) -> None:
        names = tuple(servers)
        self._sections: dict[CatalogKind, CatalogSection[Any]] = {kind: CatalogSection(names) for kind in CatalogKind}

    def keep(self, server: str, tools: Iterable[Tool]) -> None:
        """Replace the tools of ``server``."""
        self.keep_kind(server, CatalogKind.TOOLS, tools)

    def keep_kind(self, server: str, kind: CatalogKind, items: Iterable[Any]) -> None:
        """Replace the items of this kind of ``server``."""
        self._sections[kind].keep(server, (_ENTRY[kind](server, item) for item in items))

    def forget(self, server: str) -> None:
        """Drop a server that is no longer configured."""
        for section in self._sections.values():
            section.forget(server)

    def put_in_order(self, servers: Iterable[str]) -> None:
        for section in self._sections.values():
            section.put_in_order(servers)

    def tools(self, server: str | None = None) -> Sequence[CatalogTool]:
        """The tools of one server, or of all."""
        return self._sections[CatalogKind.TOOLS].entries_of(server)

    def resources(self, server: str | None = None) -> Sequence[CatalogResource]:
        """The resources of one server, or of all."""
        return self._sections[CatalogKind.RESOURCES].entries_of(server)

    def templates(self, server: str | None = None) -> Sequence[CatalogTemplate]:
        """The resource templates of one server, or of all."""
        return self._sections[CatalogKind.TEMPLATES].entries_of(server)

    def prompts(self, server: str | None = None) -> Sequence[CatalogPrompt]:
        """The prompts of one server, or of all."""
        return self._sections[CatalogKind.PROMPTS].entries_of(server)

    def skills(self, server: str | None = None) -> Sequence[CatalogSkill]:
        """The skills of one server, or of all, those that must not be loaded among them."""
        return self._sections[CatalogKind.SKILLS].entries_of(server)

    def tool(self, server: str, name: str) -> Tool:
        """The tool. Raises UnknownName, which lists the known names."""
        found: CatalogTool | None = self._sections[CatalogKind.TOOLS].named(server, name)
        if found is None:
            _unknown(server, "tool", name, [each.tool.name for each in self.tools(server)])
        return found.tool

    def prompt(self, server: str, name: str) -> Prompt:
        """The prompt. Raises UnknownName, which lists the known names."""
        found: CatalogPrompt | None = self._sections[CatalogKind.PROMPTS].named(server, name)
        if found is None:
            _unknown(server, "prompt", name, [each.prompt.name for each in self.prompts(server)])
        return found.prompt

    def resource(self, server: str, uri: str) -> Resource | None:
        """The listed resource of this URI; None if it is not listed (it may be readable all the same)."""
        found: CatalogResource | None = self._sections[CatalogKind.RESOURCES].named(server, uri)
        return found.resource if found else None

    def skill(self, server: str, uri: str) -> Skill | None:
        """The listed skill whose SKILL.md has this URI, however it is spelled; None if it is not listed."""
        from mcphost.protocol.models.skills import normal_uri  # late: few servers have skills

        found: CatalogSkill | None = self._sections[CatalogKind.SKILLS].named(server, normal_uri(uri))
        return found.skill if found else None


def _unknown(server: str, kind: str, name: str, names: Sequence[str]) -> NoReturn:
    known = ", ".join(names[:NAMED]) or "none"
    raise UnknownName(f"{server} has no {kind} {name!r}; it has: {known}{' …' if len(names) > NAMED else ''}")


async def usable(listing: ListedItems[Tool], config: ServerConfig) -> SplitItems[Tool]:
    """Split a listing into usable and rejected tools: duplicates, and those that the configuration leaves out."""

    def left_out(tool: Tool) -> Rejected | None:
        if config.enables(tool.name):
            return None
        return Rejected(tool.name, "left out by enabled_tools or disabled_tools", by_configuration=True)

    return await _sift(listing, lambda tool: tool.name, "name", left_out)


async def usable_resources(listing: ListedItems[Resource], _: ServerConfig) -> SplitItems[Resource]:
    """Split a listing into usable and rejected resources (duplicate URIs)."""
    return await _sift(listing, lambda resource: resource.uri, "URI")


async def usable_templates(listing: ListedItems[ResourceTemplate], _: ServerConfig) -> SplitItems[ResourceTemplate]:
    """Split a listing into usable and rejected templates (duplicates, invalid ones)."""
    return await _sift(listing, lambda template: template.uri_template, "template", _no_template)


async def usable_prompts(listing: ListedItems[Prompt], _: ServerConfig) -> SplitItems[Prompt]:
    """Split a listing into usable and rejected prompts (duplicate names)."""
    return await _sift(listing, lambda prompt: prompt.name, "name")


async def usable_skills(listing: ListedItems[Skill], _: ServerConfig) -> SplitItems[Skill]:
    """Split a listing into skills and rejected items (duplicate URIs). One that must not be loaded is shown, too."""
    return await _sift(listing, lambda skill: skill.key, "URI", _judge, most=SKILL_CHARACTERS)


def _judge(skill: Skill) -> None:
    """Find the faults of an entry, which takes up to 50 ms, while the listing pauses between two; none rejects it."""
    _ = skill.findings


def _no_template(template: ResourceTemplate) -> Rejected | None:
    from mcphost.protocol.uri_templates import UriTemplate  # late: few servers have any

    try:
        UriTemplate.read(template.uri_template)
    except InvalidResult as error:
        return Rejected(template.uri_template, str(error))
    return None


async def _sift(
    listing: ListedItems[Item],
    key: Callable[[Item], str],
    word: str,
    against: Callable[[Item], Rejected | None] = lambda _: None,
    *,
    most: int = DEFINITION_CHARACTERS,
) -> SplitItems[Item]:
    items: dict[str, Item] = {}
    rejected, time_slice = list(listing.rejected), TimeSlice()
    for item in listing.items:
        name = key(item)
        problem = against(item) or _problem_of(item, name, word, items, most)
        if problem is None:
            items[name] = item
        else:
            rejected.append(problem)
        await time_slice.pause_if_over()
    return list(items.values()), rejected


def _problem_of(item: Wire, name: str, word: str, earlier: Container[str], most: int) -> Rejected | None:
    if name in earlier:
        return Rejected(name, f"the server lists this {word} twice; the first is used")
    if is_longer(item.definition(), most):
        return Rejected(name, f"its definition has more than the {most} characters that are taken")
    return None
