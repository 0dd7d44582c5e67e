"""A server that asks, behind the app: what its questions look like on screen, and what it gets for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcphost.config import Config
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.kit.modal import Dialog
from tests.tui.stage import Stage, on_stage, server

Kind = TypeVar("Kind", bound=Dialog[Any])


def asking(*names: str) -> Config:
    """Servers that ask what they are told to ask, whose tools run without a question."""
    servers = {name: server("asks.py") for name in names or ("a",)}
    return Config.model_validate({"servers": servers, "policy": {"default": "allow"}}, strict=False)


class Browser:
    """Opens nothing, and keeps what it should have opened."""

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
    """The app, with servers that ask."""
    async with on_stage(asking(*names), state, open_url=browser or Browser(), **more) as stage:
        await stage.ready()
        yield stage


def ask(stage: Stage, *requests: Mapping[str, Any], server: str = "") -> ToolCall:
    """Have the server ask this, during a call."""
    return stage.call("ask", {"requests": list(requests)}, server)


async def at(stage: Stage, kind: type[Kind]) -> Kind:
    """Wait for a screen of this kind, drawn and listening."""
    await stage.until(lambda app: isinstance(app.screen, kind) and app.screen.shown_for() >= 0)
    assert isinstance(stage.app.screen, kind)
    return stage.app.screen


async def got(stage: Stage, call: ToolCall) -> Any:
    """What the server got for what it asked; one answer as it is."""
    await stage.ended(call)
    assert call.outcome is not None, call.error
    replies = [each.get("result", each) for each in json.loads(call.outcome.raw["content"][0]["text"])]
    return replies[0] if len(replies) == 1 else replies
