"""The app in a home where other programs have servers configured."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcphost.cli.settings import find, settings_for_screen, users_settings
from mcphost.composition import demo_config, dependencies
from mcphost.config import Config, Values, servers_path
from mcphost.config.servers_file import read_servers
from mcphost.errors import ConfigError
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.imports.importer import Importer
from mcphost.imports.remembered import ImportRecords
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.imports.added import AddedScreen
from mcphost.tui.imports.candidate_list import FoundServersScreen
from mcphost.tui.imports.consent import AddServerScreen
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from tests.tui.stage import Stage, server

SECRET = "ghp_0123456789abcdefABCDEF0123456789abcd"


@dataclass
class SecretItems:
    """A keychain in memory; ``problem`` says why it cannot be used."""

    items: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    async def read(self, name: str) -> str | None:
        self._check()
        return self.items.get(name)

    async def write(self, name: str, secret: str) -> None:
        self._check()
        self.items[name] = secret

    async def delete(self, name: str) -> None:
        self._check()
        self.items.pop(name, None)

    def _check(self) -> None:
        if self.problem:
            raise ConfigError(self.problem)


def entry(script: str = "echo.py", *arguments: object, **more: Any) -> dict[str, Any]:
    """An entry, as most programs write it, for a server of tests/servers."""
    config = server(script, *arguments)
    return {"command": config.command, "args": list(config.args), **more}


def claude_code(**entries: Mapping[str, Any]) -> Path:
    """Write the file of Claude Code."""
    return _written(".claude.json", {"numStartups": 3, "mcpServers": entries})


def cursor(**entries: Mapping[str, Any]) -> Path:
    return _written(".cursor/mcp.json", {"mcpServers": entries})


def vscode(inputs: Sequence[Mapping[str, Any]] = (), **entries: Mapping[str, Any]) -> Path:
    folder = os.environ["XDG_CONFIG_HOME"]
    return _written(f"{folder}/Code/User/mcp.json", {"inputs": list(inputs), "servers": entries})


def _written(place: str, document: object) -> Path:
    path = Path.home() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
    return path


@dataclass
class ImportStage(Stage):
    keychain: SecretItems

    async def open_found_servers(self) -> FoundServersScreen:
        """Open the list of found servers."""
        await self.press("s", "i")
        await self.at(FoundServersScreen)
        assert isinstance(self.app.screen, FoundServersScreen)
        return self.app.screen

    async def asked(self) -> AddServerScreen:
        """Wait until the consent screen is drawn and takes keys, and knows whether all of it was seen."""

        def is_ready(app: McphostApp) -> bool:
            screen = app.screen
            if not isinstance(screen, AddServerScreen) or screen.shown_for() < 0:
                return False
            return screen.what.reached or screen.what.more(1)

        await self.until(is_ready)
        assert isinstance(self.app.screen, AddServerScreen)
        return self.app.screen

    async def agree(self) -> None:
        """Read the consent screen to its end, and add the server."""
        screen = await self.asked()
        while not screen.what.reached:
            await self.press("space")
        await self.press("y")

    async def added(self) -> str:
        """Close the screen that says what was added; return its text."""
        await self.at(AddedScreen)
        text = self.flat
        await self.press("enter")
        await self.gone()
        return text

    async def running(self, *names: str) -> None:
        """Wait until these servers run."""
        servers = self.host.servers
        await self.until(lambda _: all(name in servers and servers[name].ready for name in names))

    @property
    def stored(self) -> dict[str, dict[str, Any]]:
        """The entries of servers.toml."""
        return read_servers(servers_path(os.environ))


@asynccontextmanager
async def importing_stage(
    config: Config | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    keychain: SecretItems | None = None,
    watched: tuple[Path, ...] = (),
) -> AsyncIterator[ImportStage]:
    """Run the app on this configuration, or on the demo as a start without one does."""
    items, folder = keychain or SecretItems(), Path.cwd() / "state"
    folder.mkdir(exist_ok=True)
    missing = servers_path(os.environ).with_name("config.toml")
    start = StartInfo(
        None, config is None, (), folder, "", missing=missing if config is None else None, watched=watched
    )
    config = config or demo_config()
    values = Values(os.environ, items.items.get)

    def reread() -> ReloadedConfig:
        return ReloadedConfig(settings_for_screen(find(None, os.environ), os.environ).loaded.config)

    def open_importer() -> Importer:
        loaded = users_settings(find(None, os.environ)).loaded
        return Importer(servers_path(os.environ), loaded, ImportRecords(folder, print), items)

    approver = ScreenApprover()
    async with Host(config, dependencies(approver, values, state=folder, answers=DIALOG_KINDS)) as host:
        app = McphostApp(host, approver, start, reread, open_importer)
        app.guard_seconds = app.questions.idle_seconds = 0.0
        async with app.run_test(size=size, notifications=True) as pilot:
            yield ImportStage(app, host, pilot, items)
