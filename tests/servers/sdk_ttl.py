"""A server on the official Python SDK that says how long its lists and resources stay fresh.

python tests/servers/sdk_ttl.py TTL_MS
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.mcpserver import MCPServer

HINT = CacheHint(ttl_ms=int(sys.argv[1]), scope="private")
HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": HINT,
    "prompts/list": HINT,
    "resources/list": HINT,
    "resources/templates/list": HINT,
    "resources/read": HINT,
}

server = MCPServer("ttl", version="1.0", cache_hints=HINTS)
reads = 0


@server.tool()
def where() -> str:
    """Where the server runs."""
    return str(Path.cwd())


@server.prompt()
def hello() -> str:
    """Say hello."""
    return "hello"


@server.resource("count://reads")
def count() -> str:
    """The number of readings."""
    global reads
    reads += 1
    return str(reads)


if __name__ == "__main__":
    server.run("stdio")
