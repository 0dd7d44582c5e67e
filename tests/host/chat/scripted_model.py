"""A language model that answers by a script, and the host that talks to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from mcphost.config import Config, ModelConfig
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.turns import Turn
from mcphost.protocol.models.content import TextContent
from mcphost.providers.base import (
    IMAGES,
    AnswerFinished,
    ModelCapabilities,
    ModelRequest,
    Provider,
    ProviderEvent,
    TextDelta,
    ToolUseBegun,
    ToolUseReady,
)
from tests.host.conftest import RecordingHost, ScriptedApprover, Step
from tests.host.conftest import script as script_entry

ABLE = ModelCapabilities(images=IMAGES, tools=True)
Answer = list[Any]
"""Events of an answer; an exception among them is raised, a `Wait` waits."""


class Wait:
    """The model says nothing until it is released or its stream is closed."""

    def __init__(self) -> None:
        self.reached, self.release = asyncio.Event(), asyncio.Event()
        self.closed = False


def use(name: str, use_id: str = "u1", problem: str = "", raw: str = "", **arguments: Any) -> ToolUseReady:
    return ToolUseReady(use_id, name, arguments, not problem, problem, raw)


def text(said: str, stop: str = "endTurn") -> Answer:
    return [*(TextDelta(part) for part in said.split("|")), AnswerFinished(stop, "scripted-1")]


def uses(*wanted: ToolUseReady, say: str = "") -> Answer:
    """An answer that wants these tools."""
    begun: list[ProviderEvent] = [each for use in wanted for each in (ToolUseBegun(use.id, use.name, use.offered), use)]
    return [*([TextDelta(say)] if say else []), *begun, AnswerFinished("toolUse", "scripted-1")]


class ScriptedProvider:
    """See `mcphost.providers.base.Provider`. Without a script left it says “done”."""

    def __init__(self, *script: Answer | Callable[[ModelRequest], Answer], able: ModelCapabilities = ABLE) -> None:
        self.entry, self.capabilities = "big", able
        self.script, self.requests = list(script), list[ModelRequest]()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        step = self.script.pop(0) if self.script else text("done")
        for event in step(request) if callable(step) else step:
            if isinstance(event, Exception):
                raise event
            if isinstance(event, Wait):
                event.reached.set()
                try:
                    await event.release.wait()
                finally:
                    event.closed = not event.release.is_set()
                continue
            yield event

    async def aclose(self) -> None:
        return None

    @property
    def offered(self) -> list[str]:
        """The tools of the last request."""
        return [tool.name for tool in self.requests[-1].tools]

    def results(self) -> list[tuple[str, bool]]:
        """The results of the last uses as the model got them: the texts, and whether each is an error."""
        found = self.requests[-1].messages[-1].results
        return [
            ("\n".join(b.text for b in each.blocks if isinstance(b, TextContent)), bool(each.is_error))
            for each in found
        ]


class Port:
    """See `mcphost.host.models.ModelPort`."""

    def __init__(self, *providers: ScriptedProvider) -> None:
        self.providers = {each.entry: each for each in providers}

    def able(self, model: ModelConfig) -> ModelCapabilities:
        return next(iter(self.providers.values())).capabilities

    async def provider(self, config: Config, name: str) -> Provider:
        return self.providers[name]


class ChatHost(RecordingHost):
    """A host with one model, `big`, and one conversation."""

    model: ScriptedProvider

    @property
    def chat(self) -> Chat:
        return self.chats.all[1] if self.chats.all else self.chats.begin()

    async def say(self, said: str, **more: Any) -> Turn:
        """Say something and wait for the end of the turn."""
        turn = self.chat.send(said, **more)
        async with asyncio.timeout(20):
            await self.chat.ended()
        return turn


def chat_host(
    *script: Answer | Callable[[ModelRequest], Answer],
    servers: Mapping[str, Any],
    answers: tuple[Step, ...] = (),
    policy: Mapping[str, Any] | None = None,
    chat: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    able: ModelCapabilities = ABLE,
    approver: ScriptedApprover | None = None,
    **dependencies: Any,
) -> ChatHost:
    """`async with chat_host(uses(use("a__echo", text="x")), servers={"a": echo()}, answers=(YES,)) as host:`"""
    provider = ScriptedProvider(*script, able=able)
    entry = {"provider": "openai", "model": "scripted", "base_url": "http://127.0.0.1:1/v1", **(model or {})}
    config = Config.model_validate(
        {"servers": servers, "models": {"big": entry}, "policy": policy or {}, "chat": chat or {},
         "limits": {"exit_grace_sec": 0.15}},
        strict=False,
    )  # fmt: skip
    host = ChatHost(config, approver or ScriptedApprover(*answers), models=Port(provider), **dependencies)
    host.model = provider
    return host


def given(*tools: Mapping[str, Any], **entry: Any) -> dict[str, Any]:
    """The entry of a server with these tools, each with its ``answer``; see tests/servers/given.py."""
    return script_entry("given.py", "--given", json.dumps(tools), **entry)


def tool_result(*texts: str, **more: Any) -> dict[str, Any]:
    """The result of a tool."""
    return {"content": [{"type": "text", "text": each} for each in texts], **more}
