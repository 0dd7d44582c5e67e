"""All that one session offers, under the names that its agent sees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from mcphost.config import Config
from mcphost.host.catalog import CatalogKind
from mcphost.host.endpoint.known_servers import KnownServers
from mcphost.host.endpoint.names import ExposedNames, ExposedUris, aliases
from mcphost.host.endpoint.skill_files import JudgedSkillFiles
from mcphost.json_values import as_dict
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import DIRECTORY_READ, missing_capability
from mcphost.protocol.models.prompts import Prompt
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.models.tools import Tool

Json = dict[str, Any]

INSTRUCTIONS: Final = 32_000
"""Characters of the instructions of all servers: they are in the agent's context all the time."""

_LISTED: Final = ("tools", "prompts", "resources")
_NAMED: Final = (CatalogKind.TOOLS, CatalogKind.PROMPTS)


class Exposure:
    """The items of these entries, each with its running server, as they are known now.

    ``shows`` says which tools are among them, and ``withheld`` why a skill is not, as a clause, or None for one
    that must not be known; ``reserved`` are names that none of them gets.
    """

    def __init__(
        self,
        config: Config,
        servers: Mapping[str, str],
        known: KnownServers,
        shows: Callable[[str, Tool], bool],
        withheld: Callable[[str, Skill], str | None],
        reserved: Collection[str] = frozenset(),
    ) -> None:
        self._servers, self._known, self._shows, self._reserved = servers, known, shows, reserved
        self._config, self._withheld = config, withheld
        self._aliases = aliases({entry: config.servers[entry].alias for entry in servers})

    def tool(self, exposed: str) -> tuple[str, Tool] | None:
        """The tool of this name, with its entry."""
        return self._item(CatalogKind.TOOLS, exposed)

    def prompt(self, exposed: str) -> tuple[str, Prompt] | None:
        """The prompt of this name, with its entry."""
        return self._item(CatalogKind.PROMPTS, exposed)

    def definitions(self, kind: CatalogKind) -> Sequence[tuple[str, Json]]:
        """The definitions of a kind, each with its entry; as the servers wrote them but for names."""
        return self._definitions[kind]

    def serves(self, entry: str, method: str) -> bool:
        """True if the server of this entry has a method of skills."""
        known = self._known.get(self._servers.get(entry, entry))
        if SKILLS_EXTENSION not in self._config.servers[entry].capabilities.extensions:
            return False
        return known is not None and missing_capability(method, known.capabilities, known.revision) is None

    def skill_files(self, entry: str) -> JudgedSkillFiles:
        """The files of this entry's skills, with those that the agent does not get."""
        return self._skill_files.get(entry) or JudgedSkillFiles()

    def lists_skills(self, entry: str) -> bool:
        """False as long as the skills of this entry are not known."""
        known = self._known.get(self._servers.get(entry, entry))
        return known is not None and CatalogKind.SKILLS in known.items

    @cached_property
    def withheld_skills(self) -> Sequence[tuple[str, Skill, str]]:
        """The skills that the agent does not get, each with its entry and the reason, as a clause."""
        return [(entry, skill, why) for entry, skill, why in self._judged_skills if why]

    @cached_property
    def capabilities(self) -> Json:
        """The capabilities that are kept: those of the servers. One that was never ready may have all lists."""
        known = map(self._known.get, self._servers.values())
        declared = [{kind: {} for kind in _LISTED} if each is None else each.capabilities for each in known]
        offered: Json = {kind: {"listChanged": True} for kind in _LISTED if any(kind in each for each in declared)}
        if any(as_dict(each.get("resources")).get("subscribe") for each in declared):
            offered["resources"]["subscribe"] = True
        offered |= {name: {} for name in ("logging", "completions") if any(name in each for each in declared)}
        extensions: Json = {TASKS_EXTENSION: {}} if "tools" in offered else {}
        if any(self.serves(entry, "skills/list") for entry in self._servers):
            folders = any(self.serves(entry, "resources/directory/read") for entry in self._servers)
            extensions[SKILLS_EXTENSION] = {DIRECTORY_READ: True} if folders else {}
            offered.setdefault("resources", {"listChanged": True})  # by which their files are read
        if extensions:
            offered["extensions"] = extensions
        if any("tasks" in each for each in declared):
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        return offered

    @cached_property
    def instructions(self) -> str:
        """The instructions of all servers; those of several are headed by their names."""
        known = [(entry, self._known.get(server)) for entry, server in self._servers.items()]
        texts = [(entry, each.introduction.instructions) for entry, each in known if each is not None]
        if len(self._servers) == 1:
            return "".join(text or "" for _, text in texts)[:INSTRUCTIONS]
        return "\n\n".join(f"# {entry}\n\n{text}" for entry, text in texts if text)[:INSTRUCTIONS]

    @cached_property
    def uris(self) -> ExposedUris:
        resources = [(entry, item.uri) for entry, item in self._all(CatalogKind.RESOURCES)]
        templates = [(entry, item.uri_template) for entry, item in self._all(CatalogKind.TEMPLATES)]
        skill_files = [
            (entry, uri)
            for entry, skill in self._all(CatalogKind.SKILLS)
            for uri in (skill.uri, *(file.uri for file in skill.files))
        ]
        return ExposedUris(self._servers, resources, templates, skill_files)

    @cached_property
    def _names(self) -> Mapping[CatalogKind, ExposedNames]:
        return {
            kind: ExposedNames(self._aliases, [(entry, item.name) for entry, item in self._all(kind)], self._reserved)
            for kind in _NAMED
        }

    @cached_property
    def _found(self) -> Mapping[CatalogKind, Mapping[str, tuple[str, Any]]]:
        return {kind: dict(self._exposed(kind)) for kind in _NAMED}

    @cached_property
    def _definitions(self) -> Mapping[CatalogKind, Sequence[tuple[str, Json]]]:
        named: dict[CatalogKind, Sequence[tuple[str, Json]]] = {
            kind: [
                (entry, {**self.uris.in_definition(entry, item.definition()), "name": exposed})
                for exposed, (entry, item) in self._found[kind].items()
            ]
            for kind in _NAMED
        }
        others: dict[CatalogKind, Sequence[tuple[str, Json]]] = {
            kind: [
                (entry, dict(self.uris.in_definition(entry, item.definition())))
                for entry, item in self._all(kind)
                if kind is not CatalogKind.RESOURCES or self.skill_files(entry).why(item.uri) == ""
            ]
            for kind in CatalogKind
            if kind not in (*_NAMED, CatalogKind.SKILLS)
        }
        skills = [
            (entry, self.uris.in_skill(entry, skill.definition()))
            for entry, skill, why in self._judged_skills
            if why == ""
        ]
        return {**named, **others, CatalogKind.SKILLS: skills}

    @cached_property
    def _judged_skills(self) -> Sequence[tuple[str, Skill, str | None]]:
        return [(entry, skill, self._withheld(entry, skill)) for entry, skill in self._all(CatalogKind.SKILLS)]

    @cached_property
    def _skill_files(self) -> Mapping[str, JudgedSkillFiles]:
        judged: dict[str, list[tuple[Skill, str | None]]] = {}
        for entry, skill, why in self._judged_skills:
            judged.setdefault(entry, []).append((skill, why))
        return {entry: JudgedSkillFiles(each) for entry, each in judged.items()}

    def _exposed(self, kind: CatalogKind) -> Iterable[tuple[str, tuple[str, Any]]]:
        for entry, item in self._all(kind):
            hidden = kind is CatalogKind.TOOLS and not self._shows(entry, item)
            if not hidden and (exposed := self._names[kind].of(entry, item.name)) is not None:
                yield exposed, (entry, item)

    def _item(self, kind: CatalogKind, exposed: str) -> tuple[str, Any] | None:
        return self._found[kind].get(exposed)

    def _all(self, kind: CatalogKind) -> Iterable[tuple[str, Any]]:
        return ((entry, item) for entry, server in self._servers.items() for item in self._known.items(server, kind))
