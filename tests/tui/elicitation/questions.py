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

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
"""A schema with one field."""
EVERY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "mail": {"type": "string", "format": "email", "default": "a@b.example"},
        "site": {"type": "string", "format": "uri", "default": "https://b.example"},
        "day": {"type": "string", "format": "date", "default": "2026-11-20"},
        "at": {"type": "string", "format": "date-time", "default": "2026-11-20T10:00:00Z"},
        "age": {"type": "integer", "minimum": 18, "maximum": 99, "default": 36},
        "part": {"type": "number", "default": 0.5},
        "news": {"type": "boolean", "default": False},
        "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"], "default": "l"},
        "lens": {"type": "string", "oneOf": [{"const": "a", "title": "First order"}], "default": "a"},
        "days": {"type": "array", "items": {"enum": ["mon", "tue"]}, "minItems": 1, "default": ["tue"]},
        "pets": {"type": "array", "items": {"anyOf": [{"const": "c", "title": "Cat"}]}, "default": ["c"]},
    },
    "required": ["name"],
}
"""A schema with every kind of field."""


def asking(*names: str) -> Config:
    """Servers that send the questions of a test; their tools run without approval."""
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
