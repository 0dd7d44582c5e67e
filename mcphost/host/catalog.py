"""What all servers offer together, by configured server name and the name the server uses.

A tool is the pair of both, so that no server can pass a tool off as another's. It shows what is usable; what was
rejected stays with its server's card.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mcphost.client.listing import Listing, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import UnknownName
from mcphost.protocol.types import Tool

DEFINITION_CHARACTERS: Final = 64 << 10
"""Characters of a tool's definition: nobody agrees to more, and an approval keeps all of it."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool and the configured name of the server that offers it."""

    server: str
    tool: Tool

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart from every other."""
        return self.server, self.tool.name


class Catalog:
    """The tools of all servers, in the order the servers were configured."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._tools: dict[str, tuple[OfferedTool, ...]] = dict.fromkeys(servers, ())

    def keep(self, server: str, tools: Iterable[Tool]) -> None:
        """Replace the tools of ``server``."""
        self._tools[server] = tuple(OfferedTool(server, tool) for tool in tools)

    def forget(self, server: str) -> None:
        """Drop a server that is no longer configured."""
        self._tools.pop(server, None)

    def put_in_order(self, servers: Iterable[str]) -> None:
        """Go over to this order of the servers."""
        for server in servers:
            self._tools[server] = self._tools.pop(server, ())

    def tools(self, server: str | None = None) -> Sequence[OfferedTool]:
        """The tools of one server, or of all."""
        if server is not None:
            return self._tools.get(server, ())
        return tuple(offered for tools in self._tools.values() for offered in tools)

    def tool(self, server: str, name: str) -> Tool:
        """The tool; raises UnknownName with what there is instead."""
        offered = self._tools.get(server, ())
        found = next((each.tool for each in offered if each.tool.name == name), None)
        if found is None:
            known = ", ".join(each.tool.name for each in offered[:12]) or "none"
            raise UnknownName(f"{server} has no tool {name!r}; it has: {known}{' …' if len(offered) > 12 else ''}")
        return found


def usable(listing: Listing[Tool], config: ServerConfig) -> tuple[list[Tool], list[Rejected]]:
    """What may be used of a listing, and what may not: names given twice, and what the configuration leaves out."""
    tools: dict[str, Tool] = {}
    rejected = list(listing.rejected)
    for tool in listing.items:
        reason = _reason_against(tool, tools, config)
        if reason is None:
            tools[tool.name] = tool
        else:
            rejected.append(Rejected(tool.name, reason))
    return list(tools.values()), rejected


def _reason_against(tool: Tool, earlier: Container[str], config: ServerConfig) -> str | None:
    if not config.offers(tool.name):
        return "left out by enabled_tools or disabled_tools"
    if tool.name in earlier:
        return "the server lists this name twice; the first is used"
    size = len(json.dumps(tool.definition(), ensure_ascii=False))
    if size > DEFINITION_CHARACTERS:
        return f"its definition has {size} characters, more than the {DEFINITION_CHARACTERS} that are taken"
    return None
