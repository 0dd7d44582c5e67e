"""Builds a server's transport from its entry of the configuration."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar

from mcphost.composition.detected_transports import DetectedTransports
from mcphost.config import Config, ResolvedServer, Values, resolve_server
from mcphost.errors import ConfigError, UnresolvedReference
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.pid_files import PidFiles
from mcphost.transports.stdio.transport import Command, StdioTransport
from mcphost.transports.tap import Tap

if TYPE_CHECKING:
    import httpx

LOOKUP_SECONDS: Final = 60.0
"""Seconds to resolve a server's values; a keychain may ask its owner first."""

_T = TypeVar("_T")

Sign = Callable[[Config, ResolvedServer], "httpx.Auth | None"]
"""Returns what authorizes a server's requests; None without sign-in."""


async def open_transport(
    config: Config,
    values: Values,
    name: str,
    *,
    tap: Tap,
    verdicts: DetectedTransports,
    traces: PidFiles | None,
    sign: Sign,
) -> Transport:
    """Build the transport of a server, its references resolved. Raises ConfigError."""

    def prepare(server: ResolvedServer) -> httpx.Auth | None:
        if server.url is None:
            return None
        import_module(
            "mcphost.transports.http.streamable"
        )  # in this thread, since the import would block the event loop
        if config.servers[name].transport == "auto":
            verdicts.load()
        return sign(config, server)

    server, auth = await looked_up(config, values, name, prepare)
    return _traced(_transport(config, server, auth, tap, verdicts), traces, name)


async def looked_up(
    config: Config, values: Values, name: str, prepare: Callable[[ResolvedServer], _T]
) -> tuple[ResolvedServer, _T]:
    """The entry with its references resolved, and what ``prepare`` returns for it. Raises ConfigError.

    Both run in one thread, since keychains and imports take time.
    """

    def work() -> tuple[ResolvedServer, _T]:
        server = _resolved(config, values, name)
        return server, prepare(server)

    return await in_time(work, f"servers.{name}")


async def in_time(work: Callable[[], _T], entry: str) -> _T:
    """Run ``work`` in a thread. Raises ConfigError after `LOOKUP_SECONDS`."""
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            return await _in_daemon_thread(work)
    except TimeoutError:
        raise ConfigError(f"{entry}: its values were not found within {LOOKUP_SECONDS:g} s") from None


def _resolved(config: Config, values: Values, name: str) -> ResolvedServer:
    try:
        return resolve_server(config, values, name)
    except UnresolvedReference as error:
        from mcphost.config.loading import placed  # late: needed only for a mistake

        raise placed(error, config, name) from None


def _traced(transport: Transport, traces: PidFiles | None, name: str) -> Transport:
    if traces is not None and isinstance(transport, StdioTransport):
        transport.started, transport.ended = partial(traces.write, name), traces.remove
    return transport


def _transport(
    config: Config, server: ResolvedServer, auth: httpx.Auth | None, tap: Tap, verdicts: DetectedTransports
) -> Transport:
    given = config.limits_for(server.name)
    limits = TransportLimits(
        message_bytes=given.message_bytes,
        message_items=given.message_items,
        json_depth=given.json_depth,
        batch_items=given.batch_items,
        exit_grace=given.exit_grace_sec,
    )
    if server.command is None:
        return _http(server, config.servers[server.name].transport, limits, auth, tap, verdicts)
    command = Command(server.command, server.args, server.env, server.cwd)
    return StdioTransport(command, limits, os.environ, tap=tap)


def _http(
    server: ResolvedServer,
    kind: str,
    limits: TransportLimits,
    auth: httpx.Auth | None,
    tap: Tap,
    verdicts: DetectedTransports,
) -> Transport:
    # Late: the HTTP library takes longer to import than a whole call over stdio; `open_transport` has imported it.
    from mcphost.transports.http.detection import DetectedTransport
    from mcphost.transports.http.sse_2024 import SseTransport
    from mcphost.transports.http.streamable import HttpTransport

    url, headers = server.url or "", server.headers

    def streamable() -> Transport:
        return HttpTransport(url, limits, headers=headers, auth=auth, tap=tap)

    def older() -> Transport:
        return SseTransport(url, limits, headers=headers, auth=auth, tap=tap)

    if kind == "auto":
        return DetectedTransport(streamable, older, remembered=verdicts.of(url), learned=partial(verdicts.learn, url))
    return older() if kind == "sse" else streamable()


async def _in_daemon_thread(work: Callable[[], _T]) -> _T:
    """Run ``work`` in a daemon thread: a keychain may never answer, and must not block the exit."""
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
        except RuntimeError:  # the loop was closed
            return

    threading.Thread(target=run, name="look up values", daemon=True).start()
    return await done
