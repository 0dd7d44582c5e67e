"""A stage with a server that asks questions, and the answers that it gets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcphost.config import Config
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.kit.modal_screen import Dialog
from tests.tui.stage import Stage, on_stage, server

Kind = TypeVar("Kind", bound=Dialog[Any])


def asking(*names: str) -> Config:
    """Servers that ask what a test tells them to; their tools run without approval."""
    servers = {name: server("asks.py") for name in names or ("a",)}
    return Config.model_validate({"servers": servers, "policy": {"default": "allow"}}, strict=False)


class Browser:
    """Records the URLs instead of opening them."""

    def __init__(self, problem: str = "") -> None:
        self.opened: list[str] = []
        self.problem = problem

    async def __call__(self, url: str) -> str:
        self.opened.append(url)
        return self.problem


@asynccontextmanager
async def question_stage(
    *names: str, browser: Browser | None = None, state: Path | None = None, **more: Any
) -> AsyncIterator[Stage]:
    """Run the app with servers that ask."""
    async with on_stage(asking(*names), state, open_url=browser or Browser(), **more) as stage:
        await stage.ready()
        yield stage


def ask(stage: Stage, *requests: Mapping[str, Any], server: str = "") -> ToolCall:
    """Let the server ask this during a call."""
    return stage.call("ask", {"requests": list(requests)}, server)


async def at(stage: Stage, kind: type[Kind]) -> Kind:
    """Wait until this kind of dialog is drawn and takes keys."""
    await stage.until(lambda app: isinstance(app.screen, kind) and app.screen.shown_for() >= 0)
    assert isinstance(stage.app.screen, kind)
    return stage.app.screen


async def got(stage: Stage, call: ToolCall) -> Any:
    """The server's answers; a single one as it is."""
    await stage.ended(call)
    assert call.outcome is not None, call.error
    replies = [each.get("result", each) for each in json.loads(call.outcome.raw["content"][0]["text"])]
    return replies[0] if len(replies) == 1 else replies
