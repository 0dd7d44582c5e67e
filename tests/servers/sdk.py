"""A server on the official Python SDK with every feature it has, over each transport.

python tests/servers/sdk.py stdio|sse|streamable-http [PORT]
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any, Literal

from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp.types import (
    Annotations,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    EmptyResult,
    Icon,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextResourceContents,
    ToolAnnotations,
    UnsubscribeRequestParams,
)

Level = Literal["debug", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "warning", "error")
ICON = Icon(src="data:image/svg+xml;base64,PHN2Zy8+", mime_type="image/svg+xml", sizes=["any"])
HARMLESS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
FOR_USER = Annotations(audience=["user"], priority=0.8)
PARTS = {"monday": ["morning", "noon"], "sunday": ["noon", "night"]}

server = MCPServer("sdk", instructions="Ask for the weather first.", version="1.0")
stopped: list[str] = []
board = ["empty"]
subscribed: set[str] = set()
least: list[Level] = ["debug"]


@dataclass
class Weather:
    city: str
    degrees: float


@server.tool(title="The weather", annotations=HARMLESS, icons=[ICON])
def weather(city: str) -> Weather:
    """The weather of a city."""
    return Weather(city, 21.5)


@server.tool()
async def count(steps: int, ctx: Context) -> dict[str, int]:
    """Counts up, with progress for each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return {"steps": steps}


@server.tool()
async def wait(name: str, ctx: Context) -> None:
    """Never ends by itself, and says that it has begun."""
    await ctx.report_progress(0, 1, "waiting")
    try:
        await asyncio.Event().wait()
    finally:
        stopped.append(name)


@server.tool()
def ended() -> list[str]:
    """The waits that were stopped."""
    return stopped


@server.tool()
async def say(text: str, ctx: Context) -> None:
    """Says a text at three levels."""
    for level in LEVELS[LEVELS.index(least[-1]) :]:
        await ctx.log(level, f"{text}: {level}", logger_name="speaker")


@server.tool()
def show() -> list[ResourceLink | EmbeddedResource]:
    """A link to a memo, and a memo."""
    return [ResourceLink(uri="memo://seal", name="seal", title="The seal", mime_type="image/png"), memo()]


def memo() -> EmbeddedResource:
    text = TextResourceContents(uri="memo://today", mime_type="text/markdown", text="# Today")
    return EmbeddedResource(resource=text)


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.tool()
async def learn(ctx: Context) -> None:
    """From now on one more of each kind is offered."""
    server.tool()(later)
    server.resource("memo://later")(later)
    server.prompt("later_prompt")(later)
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_resource_list_changed()
    await ctx.session.send_prompt_list_changed()


def later() -> str:
    """Comes later."""
    return "later"


@server.tool()
async def write(text: str, ctx: Context) -> None:
    """Writes on the board, and says so to those who subscribed."""
    board.append(text)
    if "memo://board" in subscribed:
        await ctx.session.send_resource_updated("memo://board")


@server.resource("memo://today", title="Today", mime_type="text/markdown", icons=[ICON], annotations=FOR_USER)
def today() -> str:
    """A memo."""
    return "# Today"


@server.resource("memo://seal", mime_type="image/png")
def seal() -> bytes:
    """Bytes that are not text."""
    return bytes(range(256))


@server.resource("memo://board")
def read_board() -> str:
    """The last line on the board."""
    return board[-1]


@server.resource("memo://{day}/{part}", title="A part of a day")
def notes(day: str, part: str) -> str:
    """The notes of a part of a day."""
    return f"notes of {day} {part}"


@server.prompt(title="Plan a day", icons=[ICON])
def plan(day: str, part: str) -> list[Message]:
    """A plan for a part of a day."""
    return [UserMessage(f"Plan {day} {part}."), AssistantMessage(memo())]


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(
    _: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    """The days, and the parts of the day that was chosen."""
    chosen = ((context and context.arguments) or {}).get("day", "")
    choices = list(PARTS) if argument.name == "day" else PARTS.get(chosen, [])
    return Completion(values=[choice for choice in choices if choice.startswith(argument.value)])


# MCPServer itself has neither subscriptions nor log levels; the server below it does.


async def set_level(_: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
    least.extend(level for level in LEVELS if level == params.level)
    return EmptyResult()


async def subscribe(_: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
    subscribed.add(params.uri)
    return EmptyResult()


async def unsubscribe(_: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
    subscribed.discard(params.uri)
    return EmptyResult()


below = server._lowlevel_server
below.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
below.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
below.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)


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
