"""The composition root: from settings to the concrete parts a host is built with.

Knows which transport, store and keychain there are. Refuses to know commands, screens and what a call means.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from mcphost import __version__
from mcphost.config import (
    Config,
    Loaded,
    ResolvedServer,
    ServerConfig,
    Values,
    read_toml,
    resolve_server,
    update_toml,
)
from mcphost.errors import ConfigError, UnknownName, UnresolvedReference
from mcphost.host.host import Fittings
from mcphost.host.questions import Approver
from mcphost.host.traffic import TrafficBook
from mcphost.transports.base import Limits, Transport
from mcphost.transports.stdio import Command, StdioTransport
from mcphost.transports.tap import Tap
from mcphost.transports.traces import Traces
from mcphost.transports.verdicts import Verdicts

COMMAND_PREFIX: Final = "stdio:"

LOOKUP_SECONDS: Final = 60.0
"""Seconds in which the values of a server must be found: a keychain may ask its owner first."""

_T = TypeVar("_T")


def fittings(
    approver: Approver,
    values: Values,
    *,
    state: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
    refused: dict[str, ConfigError] | None = None,
    traffic_path: Path | None = None,
) -> Fittings:
    """What a host needs besides its configuration.

    ``state`` is the folder for what is learned and for the audit log (None: nothing is kept); ``report`` takes a
    sentence for the user when a file in it was damaged, or a server of a killed mcphost still runs; ``refused`` is told
    which servers could not run as they are configured. ``traffic_path`` is a file for all that passes in this run.
    """
    traffic = TrafficBook(values.mask)
    noted = {} if refused is None else refused
    store = None if state is None else StateFiles(state, report)
    verdicts = Verdicts(store, report)
    traces = None if state is None else Traces(state / "running")
    for leftover in traces.leftovers() if traces else ():
        report(str(leftover))

    async def open_transport(config: Config, name: str) -> Transport:
        noted.pop(name, None)
        try:
            opened = await _open_transport(config, values, name, traffic.tap(name), verdicts)
            return _traced(opened, traces, name)
        except ConfigError as error:
            noted[name] = error
            raise

    return Fittings(
        open_transport,
        approver,
        __version__,
        store=store,
        audit_path=None if state is None else state / "audit.jsonl",
        mask=values.mask,
        traffic=traffic,
        traffic_path=traffic_path,
    )


def values_for(config: Config, env: Mapping[str, str]) -> Values:
    """Resolves the references of ``config``; relative paths start at its file's folder."""
    return Values(env, _from_keychain, None if config.path is None else config.path.absolute().parent)


class StateFiles:
    """The host's `mcphost.host.host.Store` over one folder of TOML files."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._folder, self._report = folder, report

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none. Raises ConfigError."""
        return read_toml(self._path(name), self._report)

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file by what ``change`` makes of it, unless that is the same. Raises ConfigError."""
        update_toml(self._path(name), change, self._report)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.toml"


# Servers that no file names.


def demo_config() -> Config:
    """A configuration with the built-in demo server alone."""
    # -P keeps the working directory, which may be anybody's project, off the import path.
    demo = ServerConfig.model_construct(command=sys.executable, args=("-P", "-m", "mcphost.demo"))
    return Config.model_construct(servers={"demo": demo})


def is_ad_hoc(argument: str) -> bool:
    """Does this SERVER say what to run, instead of naming an entry of the configuration?"""
    return argument.startswith((COMMAND_PREFIX, "http://", "https://"))


def server_from_argument(argument: str) -> ServerConfig:
    """The server of an address, or of ``stdio:COMMAND LINE``, split as a shell would. Raises ConfigError."""
    if not argument.startswith(COMMAND_PREFIX):
        return _at_address(argument)
    try:
        words = shlex.split(argument.removeprefix(COMMAND_PREFIX))
    except ValueError as error:
        raise ConfigError(f"the command line after stdio: cannot be split: {error}") from None
    if not words or not words[0].strip():
        raise ConfigError("stdio: needs a command line, such as 'stdio:python server.py'")
    # There is nothing to validate in words, and a validator takes longer to build than many a call.
    return ServerConfig.model_construct(command=words[0], args=tuple(words[1:]))


def _at_address(url: str) -> ServerConfig:
    from pydantic import ValidationError  # late, as above

    from mcphost.protocol.types import first_problem

    try:
        return ServerConfig.model_validate({"url": url})
    except ValidationError as error:
        raise ConfigError(f"the address: {first_problem(error)}") from None


@dataclass(frozen=True, slots=True)
class Selection:
    """The servers a command line means. ``broken`` are others that it means and that cannot run as they stand."""

    config: Config
    """The settings with these servers only."""
    names: tuple[str, ...]
    broken: dict[str, ConfigError] = field(default_factory=dict)


def select(loaded: Loaded, arguments: Sequence[str]) -> Selection:
    """The servers that ``arguments`` name; without any, every enabled entry. Raises ConfigError or UnknownName."""
    if not arguments:
        enabled = {name: server for name, server in loaded.config.servers.items() if server.enabled}
        return _selection(loaded, enabled, dict(loaded.disabled))
    servers: dict[str, ServerConfig] = {}
    broken: dict[str, ConfigError] = {}
    for argument in dict.fromkeys(arguments):
        if is_ad_hoc(argument):
            server = server_from_argument(argument)
            servers[_free_name(loaded, servers, "http" if server.url else "stdio")] = server
        elif argument in loaded.disabled:
            broken[argument] = loaded.disabled[argument]
        else:
            servers[argument] = _entry(loaded, argument)
    return _selection(loaded, servers, broken)


def _selection(loaded: Loaded, servers: dict[str, ServerConfig], broken: dict[str, ConfigError]) -> Selection:
    return Selection(loaded.config.model_copy(update={"servers": servers}), tuple(servers), broken)


def _free_name(loaded: Loaded, taken: Mapping[str, ServerConfig], first: str) -> str:
    """A name for a server without one; never that of an entry, whose rules and approvals are not meant for it."""
    used = {*loaded.config.servers, *loaded.disabled, *taken}
    return next(name for name in _names(first) if name not in used)


def _names(first: str) -> Iterator[str]:
    yield first
    number = 2
    while True:
        yield f"{first}-{number}"
        number += 1


def _entry(loaded: Loaded, name: str) -> ServerConfig:
    server = loaded.config.servers.get(name)
    if server is None:
        raise UnknownName(_no_such_server(name, [*loaded.config.servers, *loaded.disabled]))
    if not server.enabled:
        raise ConfigError(f"servers.{name}: is switched off; set enabled = true", path=loaded.config.path)
    return server


def _no_such_server(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # late: only who mistypes pays for it

    if near := get_close_matches(name, known, 3):
        return f"no server is called {name!r}; did you mean {' or '.join(near)}?"
    there = f"configured: {', '.join(known[:12])}" if known else "none is configured"
    return f"no server is called {name!r}; {there}; a program is named as 'stdio:COMMAND LINE'"


# From an entry to a transport.


async def _open_transport(config: Config, values: Values, name: str, tap: Tap, verdicts: Verdicts) -> Transport:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            server = await _in_daemon_thread(lambda: _resolved(config, values, name, verdicts))
    except TimeoutError:
        raise ConfigError(f"servers.{name}: its values were not found within {LOOKUP_SECONDS:g} s") from None
    return _transport(config, server, tap, verdicts)


def _resolved(config: Config, values: Values, name: str, verdicts: Verdicts) -> ResolvedServer:
    try:
        server = resolve_server(config, values, name)
        if server.url is not None:
            import_module("mcphost.transports.http")  # in this thread: it takes longer than the loop may pause
            if config.servers[name].transport == "auto":
                verdicts.load()
        return server
    except UnresolvedReference as error:
        from mcphost.config.places import placed  # late: only a mistake pays for it

        raise placed(error, config, name) from None


def _traced(transport: Transport, traces: Traces | None, name: str) -> Transport:
    if traces is not None and isinstance(transport, StdioTransport):
        transport.started, transport.ended = partial(traces.leave, name), traces.remove
    return transport


def _transport(config: Config, server: ResolvedServer, tap: Tap, verdicts: Verdicts) -> Transport:
    given = config.limits_for(server.name)
    limits = Limits(
        message_bytes=given.message_bytes,
        message_items=given.message_items,
        json_depth=given.json_depth,
        batch_items=given.batch_items,
        exit_grace=given.exit_grace_sec,
    )
    if server.command is None:
        return _http(server, config.servers[server.name].transport, limits, tap, verdicts)
    command = Command(server.command, server.args, server.env, server.cwd)
    return StdioTransport(command, limits, os.environ, tap=tap)


def _http(server: ResolvedServer, kind: str, limits: Limits, tap: Tap, verdicts: Verdicts) -> Transport:
    # Late: the HTTP library takes longer to import than a whole call over stdio; `_resolved` has imported it.
    from mcphost.transports.detection import DetectedTransport
    from mcphost.transports.http import HttpTransport
    from mcphost.transports.sse import SseTransport

    url, headers = server.url or "", server.headers

    def streamable() -> Transport:
        return HttpTransport(url, limits, headers=headers, tap=tap)

    def older() -> Transport:
        return SseTransport(url, limits, headers=headers, tap=tap)

    if kind == "auto":
        return DetectedTransport(streamable, older, remembered=verdicts.of(url), learned=partial(verdicts.learn, url))
    return older() if kind == "sse" else streamable()


def _from_keychain(name: str) -> str | None:
    import keyring  # late: few configurations need it, and it looks for backends
    from keyring.errors import KeyringError

    try:
        return keyring.get_password("mcphost", name)
    except KeyringError as error:
        reason = str(error).strip() or type(error).__name__
        raise ConfigError(f"the keychain could not be asked for {name}: {reason}") from None


async def _in_daemon_thread(work: Callable[[], _T]) -> _T:
    """Run ``work`` in a thread that nobody waits for at the end: a keychain may never answer."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop has ended, and with it everybody who wanted to know
            return

    threading.Thread(target=run, name="look up values", daemon=True).start()
    return await done
