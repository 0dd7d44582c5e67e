"""A server on the official Python SDK with what is special to revision 2026-07-28: rounds of input, announcements,
arguments repeated in headers.

python tests/servers/sdk_modern.py stdio|streamable-http [PORT]
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from pydantic import Field

server = MCPServer("modern", version="1.0")
board = ["empty"]

FORM = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where to?"}},
    "required": ["city"],
}


@server.tool()
async def plan_trip(days: int, ctx: Context) -> str | InputRequiredResult:
    """Plan a trip: first a form and your folders, then a model's answer."""
    given: Any = ctx.input_responses or {}
    if ctx.request_state is None:
        form = ElicitRequest(params=ElicitRequestFormParams(message="Where do you want to go?", requested_schema=FORM))
        return InputRequiredResult(input_requests={"form": form, "folders": ListRootsRequest()}, request_state="asked")
    if ctx.request_state == "asked":
        if given["form"].action != "accept":
            return "no trip"
        city, folders = given["form"].content["city"], len(given["folders"].roots)
        question = SamplingMessage(role="user", content=TextContent(text=f"What is there to see in {city}?"))
        sample = CreateMessageRequest(params=CreateMessageRequestParams(messages=[question], max_tokens=50))
        return InputRequiredResult(input_requests={"model": sample}, request_state=f"{city} {folders}")
    said = given["model"].content.text
    return f"{days} days in {' and '.join(ctx.request_state.split())} folders: {said}"


@server.tool()
async def pay(ctx: Context) -> str | InputRequiredResult:
    """Have a page visited first."""
    if ctx.input_responses is None:
        page = ElicitRequestURLParams(message="Pay here", url="http://127.0.0.1:9/pay")
        return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)}, request_state="paying")
    return "paid"


@server.tool()
async def wait_a_while(ctx: Context) -> str | InputRequiredResult:
    """Need two more attempts, and no input."""
    left = int(ctx.request_state or "3") - 1
    return "ready" if left == 0 else InputRequiredResult(request_state=str(left))


@server.resource("memo://board")
def memo() -> str:
    """The last line on the board."""
    return board[-1]


@server.tool()
async def write(text: str, ctx: Context) -> str:
    """Write on the board, and say so to who watches it."""
    board.append(text)
    await ctx.notify_resource_updated("memo://board")
    return "written"


@server.tool()
async def learn(ctx: Context) -> str:
    """Offer one more tool, and say so."""

    def learned() -> str:
        """A new tool."""
        return "new"

    server.add_tool(learned)
    await ctx.notify_tools_changed()
    return "learned"


@server.tool()
def locate(place: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Place"})]) -> str:
    """Find a place, whose name is sent in a header, too."""
    return f"{place} is there"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
