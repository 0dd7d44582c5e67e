"""A stage with tasks of a server."""

from __future__ import annotations

from mcphost.config import Config
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.tasks.screen import TasksScreen
from tests.tui.stage import Stage, server, servers


def errands(*arguments: object) -> Config:
    config = servers(errands=server("errands.py", *arguments), plain=server("echo.py"))
    return config.model_copy(update={"policy": config.policy.model_copy(update={"default": "allow"})})


async def begun(stage: Stage, **arguments: object) -> ToolCall:
    call = stage.call("research", {"polls": 100_000, **arguments})
    await stage.until(lambda _: call.task)
    return call


async def listed(stage: Stage) -> TasksScreen:
    await stage.press("T")
    await stage.at(TasksScreen)
    await stage.shows(" · at ")
    assert isinstance(stage.app.screen, TasksScreen)
    return stage.app.screen
