"""The app under a pilot, over a real host and real servers: what the stories of these tests share."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from mcphost.config import Config
from mcphost.host.host import Host
from mcphost.host.start import StartInfo
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.wiring import fittings, values_for
from tests.screenshots import until


@dataclass
class Stage:
    """The app, the host behind it, and the fingers before it."""

    app: McphostApp
    host: Host
    pilot: Pilot[None]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.pilot.press(*("underscore" if letter == "_" else "space" if letter == " " else letter for letter in text))
        await self.pilot.pause()

    async def until(self, condition: Callable[[McphostApp], object], seconds: float = 10.0) -> None:
        await until(self.pilot, condition, seconds)

    @property
    def text(self) -> str:
        """What is on screen, as plain text."""
        width, height = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip)[:width] for strip in lines[:height])


@asynccontextmanager
async def on_stage(
    config: Config, state: Path, *, size: tuple[int, int] = (140, 44), guard: float = 0.0
) -> AsyncIterator[Stage]:
    """Run the app on these servers until the block ends."""
    approver = ScreenApprover()
    async with Host(config, fittings(approver, values_for(config, os.environ), state=state)) as host:
        app = McphostApp(host, approver, StartInfo(None, False, (), state, ""))
        app.guard_seconds = guard
        async with app.run_test(size=size) as pilot:
            yield Stage(app, host, pilot)
