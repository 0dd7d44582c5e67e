# mypy: ignore-errors
# FastMCP is installed beside the tests, not among them (tests/pypi.py), so its types are not known here.
"""A FastMCP server of the tasks extension, which keeps its tasks in memory.

fastmcp run tests/servers/fastmcp_errands.py --no-banner [--transport http --port PORT]
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

mcp = FastMCP("errands", version="1.0")
mcp.add_extension(TasksExtension(url="memory://"))
TASK = TaskConfig(poll_interval=timedelta(milliseconds=100))
released = asyncio.Event()

FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@mcp.tool(task=TASK)
async def research(topic: str) -> str:
    """Works until it is told to finish."""
    await released.wait()
    return f"all about {topic}"


@mcp.tool
def finish() -> str:
    """Lets `research` finish."""
    released.set()
    return "finished"


@mcp.tool(task=TASK)
async def travel(ctx: Context) -> str | InputRequiredResult:
    """Asks for a city while it works."""
    if ctx.input_responses is None:
        form = ElicitRequest(params=ElicitRequestFormParams(message="Which city?", requested_schema=FORM))
        return InputRequiredResult(input_requests={"city": form}, request_state="asked")
    return f"to {ctx.input_responses['city'].content['city']}"


@mcp.tool(task=TASK)
async def fail() -> str:
    """Fails."""
    raise ToolError("no luck")


@mcp.tool
def add(a: int, b: int) -> int:
    """Answers at once."""
    return a + b
