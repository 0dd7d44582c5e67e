"""A stage with a server that sends sampling requests, and scripted models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcphost.composition import dependencies, values_for
from mcphost.config import Config, ModelConfig
from mcphost.host.host import Host
from mcphost.host.sampling.request import Sampling
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.host.tool_calls.call import ToolCall
from mcphost.providers.base import ModelCapabilities
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.sampling.screen import SamplingScreen
from mcphost.tui.start_info import StartInfo
from tests.host.sampling.sampling_host import MODEL, Attempt, ScriptedModels, create
from tests.tui.elicitation.questions import ask, at
from tests.tui.stage import NARROW, Stage, server

LOCAL = {"provider": "openai", "model": "qwen3", "cost": 1.0, "speed": 0.8, "intelligence": 0.3}

TIDES = {"name": "tides", "inputSchema": {"type": "object"}}
ASKED = create(
    "Which of **these**\n\n- one\n- two",
    systemPrompt="Be a harbour master",
    temperature=0.25,
    stopSequences=["END"],
    metadata={"user_id": "u-7"},
    includeContext="allServers",
    maxTokens=9000,
    modelPreferences={"hints": [{"name": "sonnet"}], "costPriority": 0.2, "intelligencePriority": 0.9},
    tools=[TIDES],
    toolChoice={"mode": "required"},
)
"""A request in which everything is set that a server can set."""


class AudioModels(ScriptedModels):
    """Models that also take audio."""

    def able(self, model: ModelConfig) -> ModelCapabilities:
        return replace(super().able(model), audio=frozenset(("audio/wav",)))

    def play(self, entry: str, attempts: Sequence[Attempt]) -> None:
        """Let this model answer so from now on."""
        self._attempts = {entry: attempts}
        self.providers.clear()


class SamplingStage(Stage):
    """A stage with scripted models."""

    port: AudioModels
    gate: asyncio.Event
    """For an attempt to wait for."""

    @property
    def sampling(self) -> Sampling:
        """The last request."""
        return self.host.sampling.all[max(self.host.sampling.all)]

    async def request_sampling(self, *requests: Mapping[str, Any]) -> tuple[ToolCall, SamplingScreen]:
        """Let the server ask this, and wait for the dialog."""
        call = ask(self, *requests)
        return call, await self.listens()

    async def listens(self) -> SamplingScreen:
        """Wait until the dialog is drawn and has a question."""
        await self.until(lambda app: isinstance(app.screen, SamplingScreen) and app.screen.waiting is not None)
        screen = await at(self, SamplingScreen)
        await self.pilot.pause()
        return screen

    @property
    def notes(self) -> list[str]:
        """The notifications."""
        return [note.message for note in self.app._notifications]


def sampling_config(
    models: Mapping[str, Any] | None = None, sampling: Mapping[str, Any] | None = None, **entry: Any
) -> Config:
    """A server, `a`, that sends the requests of a test; its tools run without approval."""
    entries = {"claude": MODEL, "local": LOCAL} if models is None else models
    table = server("asks.py", **entry).model_dump(exclude_unset=True) | {"sampling": sampling or {}}
    policy = {"default": "allow"}
    return Config.model_validate({"servers": {"a": table}, "models": entries, "policy": policy}, strict=False)


@asynccontextmanager
async def sampling_stage(
    attempts: Mapping[str, Sequence[Attempt]] | None = None,
    config: Config | None = None,
    *,
    size: tuple[int, int] = NARROW,
    guard: float = 0.0,
) -> AsyncIterator[SamplingStage]:
    """Run the app; ``attempts`` are each model's answers, followed by HELLO."""
    config, approver, port = config or sampling_config(), ScreenApprover(), AudioModels(attempts or {})
    folder = Path.cwd() / "state"
    folder.mkdir(exist_ok=True)
    parts = dependencies(approver, values_for(config, os.environ), state=folder, answers=SCREEN_KINDS)
    async with Host(config, replace(parts, models=port)) as host:
        app = McphostApp(host, approver, StartInfo(None, False, (), folder, ""))
        app.guard_seconds = app.questions.idle_seconds = guard
        async with app.run_test(size=size, notifications=True) as pilot:
            stage = SamplingStage(app, host, pilot)
            stage.port, stage.gate = port, asyncio.Event()
            await stage.ready()
            yield stage
