"""A look at what a server's program takes of the machine, for its card."""

from __future__ import annotations

from mcphost.host.host import Host
from mcphost.tui.showing import Showing


async def look(host: Host, showing: Showing, server: str) -> None:
    """Read it, and show it where that server's card is shown."""
    if (connection := host.servers.get(server)) is not None:
        await host.gauges.read(connection)
        showing.usage()
