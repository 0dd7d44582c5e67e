"""Remembers what servers offer, so that a shell can complete it when they do not run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcphost.cli.completion.known_names import (
    REMEMBERED,
    Offered,
    harmless_items,
    offered_text,
    read_offered,
)
from mcphost.config import GivenServer, state_folder
from mcphost.config.state import replace_file
from mcphost.errors import ConfigError
from mcphost.json_values import as_dict

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.protocol.models.skills import Skill


def remember_offers(host: Host) -> None:
    """Write down the names of what configured servers offer, where that changed. Waits for the disk; never raises."""
    with suppress(ConfigError, OSError):
        now = {server.name: offers for server in host.servers.values() if (offers := _offers(host, server.name))}
        if now:
            _keep(state_folder(os.environ), now)


def _keep(state: Path, now: dict[str, Offered]) -> None:
    before = read_offered(state)
    if any(before.get(name) != offers for name, offers in now.items()):
        replace_file(state / REMEMBERED, offered_text(before, now).encode())


def _offers(host: Host, server: str) -> Offered:
    if isinstance(host.servers[server].config, GivenServer):
        return {}
    catalog = host.catalog
    found = {
        "tools": harmless_items(
            (each.tool.name, _properties(each.tool.input_schema)) for each in catalog.tools(server)
        ),
        "prompts": harmless_items(
            (each.prompt.name, [argument.name for argument in each.prompt.arguments or ()])
            for each in catalog.prompts(server)
        ),
        "resources": harmless_items((each.resource.uri, ()) for each in catalog.resources(server)),
        "templates": harmless_items((each.template.uri_template, ()) for each in catalog.templates(server)),
        "skills": harmless_items(_skills(each.skill for each in catalog.skills(server))),
    }
    return {kind: items for kind, items in found.items() if items}


def _skills(skills: Iterable[Skill]) -> Iterator[tuple[str, list[str]]]:
    """The names that one skill has alone, then the URIs of all, each with the paths of the skill's files."""
    known = list(skills)
    times = Counter(skill.name for skill in known)
    paths = [[skill.path_of(file.uri) for file in skill.files] for skill in known]
    yield from ((skill.name, each) for skill, each in zip(known, paths, strict=True) if times[skill.name] == 1)
    yield from ((skill.uri, each) for skill, each in zip(known, paths, strict=True))


def _properties(schema: Any) -> list[str]:
    properties = as_dict(schema).get("properties")
    return list(properties) if isinstance(properties, dict) else []
