"""A history without a host, and calls for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcphost.config import Config
from mcphost.errors import Declined
from mcphost.host.events import Alarmed, CallFinished, EventBus
from mcphost.host.history.call_history import CallHistory
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.protocol.models.tools import CallToolResult

SECRET = "canary-s3cret"


def masked(text: str) -> str:
    return text.replace(SECRET, "•••").replace("424242", "•••")


class Run:
    """One run of mcphost that only has a history."""

    def __init__(self, path: Path | None, ui: Mapping[str, Any] | None = None) -> None:
        self.registry, self.alarms = CallRegistry(), list[str]()
        bus = EventBus()
        self.bus = bus
        self.config = Config.model_validate({"ui": ui or {}}, strict=False)
        self.history = CallHistory(path, lambda: self.config, self.registry, bus, masked)
        bus.observe(lambda event: self.alarms.append(event.text), Alarmed)

    def begin(
        self,
        arguments: Mapping[str, Any] | None = None,
        *,
        tool: str = "act",
        server: str = "s",
        task: str | None = None,
    ) -> ToolCall:
        call = self.registry.add(CallRequest(server, tool, arguments or {}, task=task))
        call.identity = f"run {server}"
        return call

    def end(self, call: ToolCall, result: Mapping[str, Any] | None = None, *, declined: bool = False) -> ToolCall:
        if declined:
            call.failed(Declined("no", by="user", rule="ask"))
        else:
            call.sent(call.arguments)
            call.answered(CallToolResult.read(result or {"content": [{"type": "text", "text": "done"}]}), None)
        self.registry.ended(call)
        self.bus.publish(CallFinished(call.number))
        return call

    def add(
        self, arguments: Mapping[str, Any] | None = None, result: Mapping[str, Any] | None = None, **more: Any
    ) -> ToolCall:
        """A call that has ended."""
        declined = more.pop("declined", False)
        return self.end(self.begin(arguments, **more), result, declined=declined)


@asynccontextmanager
async def run(path: Path | None, **ui: Any) -> AsyncIterator[Run]:
    here = Run(path, ui)
    try:
        yield here
    finally:
        await here.history.aclose()
