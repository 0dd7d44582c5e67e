"""What all servers offer together, by configured server name and the name the server uses.

A tool is the pair of both, so that no server can pass a tool off as another's. It shows what is usable; what was
rejected stays with its server's card.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcphost.client.listing import Listing, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import UnknownName
from mcphost.protocol.types import Tool


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
        self._tools: dict[str, tuple[OfferedTool, ...]] = {server: () for server in servers}

    def keep(self, server: str, tools: Iterable[Tool]) -> None:
        """These are the tools of ``server`` now."""
        self._tools[server] = tuple(OfferedTool(server, tool) for tool in tools)

    def forget(self, server: str) -> None:
        """This server is no longer configured."""
        self._tools.pop(server, None)

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
        if tool.name in tools:
            rejected.append(Rejected(tool.name, "the server lists this name twice; the first is used"))
        elif config.offers(tool.name):
            tools[tool.name] = tool
        else:
            rejected.append(Rejected(tool.name, "left out by enabled_tools or disabled_tools"))
    return list(tools.values()), rejected
