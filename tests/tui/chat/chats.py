"""A stage with an open chat and a scripted model."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcphost.composition import dependencies, values_for
from mcphost.config import Config
from mcphost.host.chat.chat import Chat
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.providers.base import ModelRequest
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.chat.pane import ChatPane
from mcphost.tui.start_info import StartInfo
from tests.host.chat.scripted_model import Answer, Port, ScriptedProvider
from tests.tui.stage import NARROW, Stage, demo

MODEL = {"provider": "openai", "model": "scripted", "base_url": "http://127.0.0.1:1/v1"}


@dataclass
class ChatStage(Stage):
    model: ScriptedProvider

    @property
    def pane(self) -> ChatPane:
        assert self.app.main.chat is not None
        return self.app.main.chat

    @property
    def chat(self) -> Chat:
        assert self.pane.chat is not None
        return self.pane.chat

    async def open(self) -> None:
        await self.press("f5")
        await self.until(lambda app: app.main.chat is not None and app.main.chat.chat is not None)
        await self.until(lambda app: app.main.conversing)
        await self.pilot.pause()

    async def say(self, text: str) -> None:
        self.pane.input.write(text)
        await self.press("enter")

    async def rest(self) -> None:
        """Wait until the model is idle and the screen shows it."""
        await self.until(lambda _: self.chat.turns and not self.chat.busy)
        await self.pilot.pause(0.05)


@asynccontextmanager
async def chatting(
    *script: Answer | Callable[[ModelRequest], Answer],
    servers: Mapping[str, Any] | None = None,
    chat: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    model: bool = True,
    others: Sequence[str] = (),
    size: tuple[int, int] = NARROW,
    state: Path | None = None,
) -> AsyncIterator[ChatStage]:
    """Run the app on these servers (None: the demo) with the chat open; ``others`` are further models."""
    given = demo().servers if servers is None else Config.model_validate({"servers": servers}).servers
    models = dict.fromkeys(("big", *others), MODEL) if model else {}
    more = {"models": models, "chat": chat or {}, "policy": policy or {}}
    config = Config.model_validate(more, strict=False).model_copy(update={"servers": given})
    approver, provider, folder = ScreenApprover(), ScriptedProvider(*script), state or Path.cwd() / "state"
    os.makedirs(folder, exist_ok=True)
    parts = dependencies(approver, values_for(config, os.environ), state=folder, answers=DIALOG_KINDS)
    async with Host(config, replace(parts, models=Port(provider))) as host:
        app = McphostApp(host, approver, StartInfo(None, False, (), folder, ""))
        app.guard_seconds = app.questions.idle_seconds = 0.0
        async with app.run_test(size=size, notifications=True) as pilot:
            stage = ChatStage(app, host, pilot, provider)
            await stage.until(lambda _: all(each.ready for each in host.servers.values()))
            await stage.open()
            yield stage
