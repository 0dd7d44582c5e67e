# mypy: ignore-errors
# FastMCP is installed beside the tests, not among them (tests/pypi.py), so its types are not known here.
"""A FastMCP server with every feature FastMCP has, under the names that tests/servers/sdk.py uses.

fastmcp run tests/servers/fastmcp_offers.py --no-banner [--transport http|sse --port PORT]
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.prompts import Message
from fastmcp_tasks import TasksExtension
from mcp_types import EmbeddedResource, Icon, ResourceLink, TextResourceContents

ICON = Icon(src="data:image/svg+xml;base64,PHN2Zy8+", mime_type="image/svg+xml", sizes=["any"])
HARMLESS = {"readOnlyHint": True, "openWorldHint": False}
FOR_USER = {"audience": ["user"], "priority": 0.8}
PARTS = {"monday": ["morning", "noon"], "sunday": ["noon", "night"]}

mcp = FastMCP("fastmcp", instructions="Ask for the weather first.", version="1.0", list_page_size=2)
mcp.add_extension(TasksExtension(url="memory://"))
stopped: list[str] = []


@dataclass
class Weather:
    city: str
    degrees: float


@mcp.tool(title="The weather", annotations=HARMLESS, icons=[ICON])
def weather(city: str) -> Weather:
    """The weather of a city."""
    return Weather(city, 21.5)


@mcp.tool
async def count(steps: int, ctx: Context) -> dict[str, int]:
    """Counts up, with progress for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return {"steps": steps}


@mcp.tool
async def wait(name: str, ctx: Context) -> None:
    """Never ends by itself, and says that it has begun."""
    await ctx.report_progress(0, 1, "waiting")
    try:
        await asyncio.Event().wait()
    finally:
        stopped.append(name)


@mcp.tool(task=True)
async def ponder() -> str:
    """Runs as a task for those who can have one."""
    return "pondered"


@mcp.tool
def ended() -> list[str]:
    """The waits that were stopped."""
    return stopped


@mcp.tool
async def say(text: str, ctx: Context) -> None:
    """Says a text at three levels."""
    for level in ("debug", "warning", "error"):
        await ctx.log(f"{text}: {level}", level=level, logger_name="speaker")


@mcp.tool
def show() -> list[ResourceLink | EmbeddedResource]:
    """A link to a memo, and a memo."""
    memo = TextResourceContents(uri="memo://today", mime_type="text/markdown", text="# Today")
    link = ResourceLink(type="resource_link", uri="memo://seal", name="seal", title="The seal", mime_type="image/png")
    return [link, EmbeddedResource(type="resource", resource=memo)]


@mcp.tool
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@mcp.tool
async def learn(ctx: Context) -> None:
    """From now on one more of each kind is offered."""
    await ctx.enable_components(tags={"later"})


@mcp.tool(tags={"later"})
def later() -> str:
    """Comes later."""
    return "later"


@mcp.resource("memo://later", tags={"later"})
def later_memo() -> str:
    """Comes later."""
    return "later"


@mcp.prompt(tags={"later"})
def later_prompt() -> str:
    """Comes later."""
    return "later"


mcp.disable(tags={"later"})


@mcp.resource("memo://today", title="Today", mime_type="text/markdown", icons=[ICON], annotations=FOR_USER)
def today() -> str:
    """A memo."""
    return "# Today"


@mcp.resource("memo://seal", mime_type="image/png")
def seal() -> bytes:
    """Bytes that are not text."""
    return bytes(range(256))


@mcp.resource("memo://{day}/{part}", title="A part of a day")
def notes(day: str, part: str) -> str:
    """The notes of a part of a day."""
    return f"notes of {day} {part}"


@mcp.prompt(title="Plan a day", icons=[ICON])
def plan(day: str, part: str) -> list[Message]:
    """A plan for a part of a day."""
    memo = TextResourceContents(uri="memo://today", mime_type="text/markdown", text="# Today")
    return [Message(f"Plan {day} {part}."), Message(EmbeddedResource(type="resource", resource=memo), role="assistant")]


@mcp.completion
def complete(_, argument, context):
    """The days, and the parts of the day that was chosen."""
    chosen = ((context and context.arguments) or {}).get("day", "")
    choices = list(PARTS) if argument.name == "day" else PARTS.get(chosen, [])
    return [choice for choice in choices if choice.startswith(argument.value)]
