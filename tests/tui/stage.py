"""The app under a pilot, over a real host and real servers."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from mcphost.composition import demo_config, dependencies, values_for
from mcphost.config import Config, ServerConfig
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.main.top_bar import TopBar
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from mcphost.tui.tools.workbench import Workbench
from tests.executables import write_executable
from tests.screen_text import says
from tests.screenshots import until
from tests.tui import settling  # noqa: F401  (every pilot of these tests waits as it says)

SERVERS = Path(__file__).resolve().parents[1] / "servers"

NARROW, WIDE = (80, 24), (200, 60)


@cache
def short_folder() -> Path:
    """Holds Python and the test servers under short names, so that dialogs have the same height in every checkout."""
    folder = Path(tempfile.mkdtemp(prefix="mcphost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_executable(folder / "python", [sys.executable])
    (folder / "servers").symlink_to(SERVERS)
    return folder


def server(script: str, *arguments: object, **more: Any) -> ServerConfig:
    """A server of tests/servers."""
    python, path = short_folder() / "python", short_folder() / "servers" / script
    return ServerConfig(command=str(python), args=("-S", "-E", str(path), *map(str, arguments)), **more)


def demo() -> Config:
    """The built-in demo server alone."""
    config = demo_config()
    short = config.servers["demo"].model_copy(update={"command": str(short_folder() / "python")})
    return config.model_copy(update={"servers": {"demo": short}})


def servers(**entries: ServerConfig) -> Config:
    return Config(servers=entries)


def echo(*arguments: object, **more: Any) -> Config:
    return servers(echo=server("echo.py", *arguments, **more))


def hostile(*arguments: object, **more: Any) -> Config:
    return servers(hostile=server("hostile.py", *arguments, **more))


def calls_in(record: Path) -> list[dict[str, Any]]:
    """The tool calls that a server with ``--record`` has received."""
    lines = record.read_text().splitlines() if record.exists() else []
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    return [each["params"] for each in messages if each.get("method") == "tools/call"]


@dataclass
class Stage:
    """The app, its host, and a pilot that presses keys."""

    app: McphostApp
    host: Host
    pilot: Pilot[None]
    notified: list[str] = field(default_factory=list, init=False)
    """The texts of all notifications."""

    def record_notifications(self) -> None:
        notify = self.app.notify

        def recorded(message: str, **more: Any) -> None:
            self.notified.append(message)
            notify(message, **more)

        self.app.notify = recorded  # type: ignore[method-assign]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self._keys_done()

    async def write(self, text: str) -> None:
        names = {"_": "underscore", " ": "space", "-": "minus", "/": "slash", "?": "question_mark"}
        await self.pilot.press(*(names.get(letter, letter) for letter in text))
        await self._keys_done()

    async def _keys_done(self) -> None:
        """Wait until every key has taken full effect."""
        if self.app.is_running:
            await self.until(lambda app: not app.is_running or not app.keys.busy)

    async def until(self, condition: Callable[[McphostApp], object], seconds: float = 30.0) -> None:
        try:
            await until(self.pilot, condition, seconds)
        except TimeoutError:
            failures = f"after {self.app.failure_count} failures the screen is"
            raise AssertionError(f"still not so after {seconds:g} s; {failures}\n{self.text}") from None

    async def shows(self, *words: str, seconds: float = 30.0) -> None:
        """Wait until all the words are on screen."""
        await self.until(lambda _: all(says(self.text, word) for word in words), seconds)

    async def ready(self) -> None:
        """Wait until every server is ready and its tools are listed."""
        await self.until(lambda app: all(each.ready for each in app.host.servers.values()))
        await self.until(lambda app: app.main.query_one("ToolList RowList").items)  # type: ignore[attr-defined]

    async def at(self, screen: type[Screen[Any]]) -> None:
        """Wait until this kind of screen is in front."""
        await self.until(lambda app: isinstance(app.screen, screen))

    async def call_dialog(self) -> ToolCallScreen:
        """Wait until the dialog of a tool call is drawn and takes keys."""
        await self.until(lambda app: isinstance(app.screen, ToolCallScreen) and app.screen.shown_for() >= 0)
        assert isinstance(self.app.screen, ToolCallScreen)
        return self.app.screen

    async def gone(self) -> None:
        """Wait until nothing is above the main screen."""
        await self.until(lambda app: len(app.screen_stack) == 1)

    async def open_tool(self, words: str) -> None:
        """Filter the tools by these words and open the best match."""
        await self.press("t", "slash")
        await self.write(words)
        await self.press("enter")

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, server: str = "") -> ToolCall:
        """Start a call as a model would, without the form."""
        return self.host.tool_calls.call(server or next(iter(self.host.servers)), tool, arguments or {})

    async def needs_consent(self, arguments: Mapping[str, Any], tool: str = "echo") -> bool:
        """Decline this call if it needs approval; return True if it does."""
        call = self.call(tool, arguments)
        await self.until(lambda app: app.approver.open or call.state.ended)
        if call.state.ended:
            return False
        await self.call_dialog()
        await self.press("n")
        await self.ended(call)
        return True

    async def ended(self, call: ToolCall | None = None) -> ToolCall:
        """Wait until a call (the last one) has ended."""
        await self.until(lambda app: not app.host.tool_calls.running() if call is None else call.state.ended)
        await self.pilot.pause(0.05)
        return call or list(self.host.tool_calls.calls.values())[-1]

    @property
    def top(self) -> str:
        """The top line."""
        return self.app.main.query_one(TopBar).render().plain

    @property
    def text(self) -> str:
        """The screen as plain text."""
        width, height = self.app.size
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip)[:width] for strip in lines[:height])

    @property
    def flat(self) -> str:
        """The screen without frames and line ends, for words that may be wrapped."""
        return " ".join(self.text.replace("│", " ").replace("▏", " ").split())


@asynccontextmanager
async def on_stage(
    config: Config | None = None,
    state: Path | None = None,
    *,
    size: tuple[int, int] = (100, 32),
    guard: float | None = 0.0,
    start: StartInfo | None = None,
    reread: Callable[[], ReloadedConfig] | None = None,
    started: Callable[[], object] = lambda: None,
    all_panes: bool = False,
    **parts: Any,
) -> AsyncIterator[Stage]:
    """Run the app on these servers (the demo) until the block ends; the host stops afterwards. ``parts`` are further
    dependencies. With ``guard`` None, dialogs ignore early keys, and servers' questions wait, as for a user. With
    ``all_panes``, hidden ones are made after the start, as for a user, else when they are opened: a start takes half.
    """
    config, approver = config or demo(), ScreenApprover()
    folder = state or Path.cwd() / "state"
    os.makedirs(folder, exist_ok=True)
    values = values_for(config, os.environ)
    async with Host(config, dependencies(approver, values, state=folder, answers=DIALOG_KINDS, **parts)) as host:
        app = McphostApp(host, approver, start or StartInfo(None, False, (), folder, ""), reread, started=started)
        app.main.makes_panes_ahead = all_panes
        if guard is not None:
            app.guard_seconds = app.questions.idle_seconds = guard
        async with app.run_test(size=size, notifications=True) as pilot:
            stage = Stage(app, host, pilot)
            stage.record_notifications()
            yield stage


async def after_a_call(stage: Stage) -> Workbench:
    """Run a tool that asks first; return its form and result."""
    await stage.ready()
    await stage.open_tool("ships_in_sight")
    await stage.press("ctrl+r")
    await stage.call_dialog()
    await stage.press("y")
    await stage.ended()
    return await stage.app.main.tools.bench()
