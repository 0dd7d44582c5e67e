"""Starts the Textual app with its configuration and a host."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.completion.remembering import remember_offers
from mcphost.cli.output import Exit, is_terminal
from mcphost.cli.run import END_SIGNALS, raise_signalled, run, traffic_target
from mcphost.cli.settings import find, settings_for_screen
from mcphost.cli.terminal_background import background_query
from mcphost.composition import demo_config, dependencies, values_for
from mcphost.config import Config, servers_path, state_folder, users_path
from mcphost.config.state import TRUSTED, StateStore
from mcphost.errors import ConfigError
from mcphost.host.desktop import open_page
from mcphost.host.host import Host
from mcphost.host.layout import kept_theme
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.places import PROJECT_FILE, socket_path, with_tilde, working_folder

if TYPE_CHECKING:
    from mcphost.host.traffic.redactions import TrafficTarget
    from mcphost.imports.importer import Importer
    from mcphost.tui.start_info import ReloadedConfig, StartInfo

FRAMES: Final = "120"
"""Frames a second at most. Textual skips one after each that took long: at its 60, what a key shows waits up to 33 ms
after the frame before it. What servers cause is drawn 30 times a second at most, whatever is set here."""

COLLECTED_AFTER: Final = (5_000, 4, 20)
"""Thresholds of Python's garbage collector. To look through all objects stops the screen for 50 ms where a server has
10,000 tools; with the usual thresholds that happened after every eighth key typed into a filter."""

HOW_TO: Final = """\
Add a server to {file},

    [servers.git]
    command = "uvx"
    args = ["mcp-server-git"]

{then}.

A project's own servers go into mcphost.toml in its folder. To try a server without a file:
mcphost check 'stdio:uvx mcp-server-git'"""


def run_screen(options: Namespace) -> int:
    """Run the app and return the exit code. Raises ConfigError if the terminal cannot show it."""
    # It reads stdin, and draws on the terminal of stdout. Anything may be done with stderr.
    others = [name for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)) if not is_terminal(stream)]
    if others:
        which = "is not one" if len(others) == 1 else "are none"
        raise ConfigError(
            f"the screen needs a terminal, and {' and '.join(others)} {which}; for commands without one see: "
            "mcphost --help"
        )
    if os.environ.get("TERM", "") in ("dumb", "unknown"):
        raise ConfigError(
            f"TERM={os.environ['TERM']} cannot show the screen; check, list, call, read, prompt and chat work without "
            "one, see: mcphost --help"
        )
    for number in END_SIGNALS:  # without its terminal a screen is of no use, even under nohup
        signal.signal(number, raise_signalled)
    os.environ.setdefault("TEXTUAL_FPS", FRAMES)
    gc.set_threshold(*COLLECTED_AFTER)
    with background_query(sys.stdin.fileno(), sys.stdout.fileno(), os.environ) as has_light_background:
        config, start = _starting_point(options)
        import mcphost.tui.app  # noqa: F401  # takes as long as the terminal needs to answer

        theme = kept_theme(StateStore(start.state_folder, lambda _: None))
        start = replace(start, light_terminal=has_light_background(), theme=theme)
    return run(_show(config, start, _config_reader(options), _importer_opener(options), traffic_target(options)))


def _starting_point(options: Namespace) -> tuple[Config, StartInfo]:
    """The configuration to start with: the demo where none exists; never an untrusted project's file."""
    from mcphost.tui.start_info import StartInfo

    state, own = state_folder(os.environ), users_path(os.environ)
    how_to = HOW_TO.format(file=with_tilde(own), then="and start mcphost again")
    if options.demo:
        config, problems = demo_config(options.era), tuple[str, ...]()
        try:
            settings = settings_for_screen(find(options.config, os.environ), os.environ)
            config = config.model_copy(update={"ui": settings.loaded.config.ui})
            problems = settings.problems if options.config is not None else ()
        except ConfigError:
            if options.config is not None:
                raise  # else the demo starts, whatever is wrong with the user's file
        return config, StartInfo(None, True, problems, state, how_to)
    read_at = time.time_ns()
    settings = settings_for_screen(find(options.config, os.environ, options.profile), os.environ)
    start = StartInfo(
        settings.path,
        False,
        settings.problems,
        state,
        how_to,
        fixed=options.config is not None,
        watched=_watched(options),
        read_at=read_at,
    )
    if settings.path is None:
        return demo_config(), replace(start, is_demo=True, missing=own)
    how_to = HOW_TO.format(file=with_tilde(settings.found.path or own), then="and press ctrl+l. y copies these lines")
    return settings.loaded.config, replace(start, how_to=how_to)


def _watched(options: Namespace) -> tuple[Path, ...]:
    """The files that make up the configuration, there or not, and that of the projects that are trusted."""
    if options.config is not None:
        return (Path(options.config),)
    trusted = state_folder(os.environ) / f"{TRUSTED}.toml"
    return users_path(os.environ), servers_path(os.environ), working_folder() / PROJECT_FILE, trusted


def _importer_opener(options: Namespace) -> Callable[[], Importer]:
    """A function that opens what adds servers to the user's configuration."""

    def opened() -> Importer:
        from mcphost.cli.importer import open_importer

        if options.config is not None:
            raise ConfigError("with --config that file is used alone, so that nothing can be added to this run")
        return open_importer(options.config, os.environ)

    return opened


def _config_reader(options: Namespace) -> Callable[[], ReloadedConfig] | None:
    """A function that reads the configuration again, as no profile changes it; None where the demo was asked for."""
    if options.demo:
        return None

    def reread() -> ReloadedConfig:
        from mcphost.tui.start_info import ReloadedConfig

        settings = settings_for_screen(find(options.config, os.environ), os.environ)
        if settings.path is None:
            raise ConfigError("there is no configuration yet")
        return ReloadedConfig(settings.loaded.config, settings.problems)

    return reread


async def _show(
    config: Config,
    start: StartInfo,
    reread: Callable[[], ReloadedConfig] | None,
    open_importer: Callable[[], Importer],
    traffic: TrafficTarget | None,
) -> int:
    from mcphost.tui.app import McphostApp
    from mcphost.tui.bridge import ScreenApprover

    approver, damages = ScreenApprover(), list[str]()
    values, state = values_for(config, os.environ), start.state_folder
    kept: dict[str, Any] = {"state": state, "report": damages.append, "traffic_target": traffic}
    parts = dependencies(approver, values, **kept, open_url=open_page, answers=SCREEN_KINDS)
    async with Host(config, parts) as host, AsyncExitStack() as listening:
        start = replace(start, problems=(*start.problems, *damages))

        def started() -> None:
            # What the panes are made of stays; looking through it each time would stop the screen for some 40 ms.
            gc.freeze()
            if state is not None:
                listening.push_async_callback(_cancelled, asyncio.create_task(_listen(host, state)))

        app = McphostApp(host, approver, start, reread, open_importer, started=started)
        await app.run_async(mouse=config.ui.mouse)
        remember_offers(host)
    return Exit.INTERNAL if app.return_code else 0


async def _listen(host: Host, state: Path) -> None:
    """Take the taps and gates of agents; a socket that cannot be is in the log."""
    from mcphost.composition.agents import listen_for_agents  # late: the first frame does without

    try:
        await listen_for_agents(host, socket_path(os.environ), state)
    except ConfigError as error:
        host.logs.warn("", str(error))


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
