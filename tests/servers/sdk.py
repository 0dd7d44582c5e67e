"""A server on the official Python SDK, over each transport it has.

python tests/servers/sdk.py stdio|sse|streamable-http [PORT]
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk", instructions="A server on the official SDK.", version="1.0")


@server.tool()
async def count(steps: int, ctx: Context) -> dict[str, int]:
    """Counts up, with progress and a log message for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info(f"step {step}")
    return {"steps": steps}


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.resource("memo://today", mime_type="text/markdown")
def today() -> str:
    """A memo."""
    return "# Today"


@server.resource("memo://{day}/notes")
def notes(day: str) -> str:
    """The notes of a day."""
    return f"notes of {day}"


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Say hello to {name}."


def main() -> None:
    transport = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if transport == "stdio":
        server.run("stdio")
    elif transport == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("streamable-http", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
