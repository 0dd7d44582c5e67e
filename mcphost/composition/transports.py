"""Builds a server's transport from its entry of the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from mcphost.composition.detected_transports import DetectedTransports
from mcphost.composition.lookup import resolve_in_thread
from mcphost.config import Config, ResolvedServer, Values
from mcphost.transports.base import MessageObserver, Transport, TransportLimits
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.stdio.pid_files import PidFiles
from mcphost.transports.stdio.transport import Command, StdioTransport

if TYPE_CHECKING:
    import httpx

AuthFor = Callable[[Config, ResolvedServer], "httpx.Auth | None"]
"""Returns what authorizes a server's requests; None without sign-in."""


async def open_transport(
    config: Config,
    values: Values,
    name: str,
    *,
    observer: MessageObserver,
    detected: DetectedTransports,
    pid_files: PidFiles | None,
    sign: AuthFor,
) -> Transport:
    """Build the transport of a server, its references resolved. Raises ConfigError."""

    def prepare(server: ResolvedServer) -> httpx.Auth | None:
        if server.url is None:
            return None
        import_module("mcphost.transports.http.streamable")  # in this thread: the import would block the event loop
        return sign(config, server)

    server, auth = await resolve_in_thread(config, values, name, prepare)
    if server.url is not None and config.servers[name].transport == "auto":
        await detected.load()
    return _with_pid_file(_transport(config, server, auth, observer, detected), pid_files, name)


def _with_pid_file(transport: Transport, pid_files: PidFiles | None, name: str) -> Transport:
    if pid_files is not None and isinstance(transport, StdioTransport):
        transport.started, transport.ended = partial(pid_files.write, name), pid_files.remove
    return transport


def _transport(
    config: Config,
    server: ResolvedServer,
    auth: httpx.Auth | None,
    observer: MessageObserver,
    detected: DetectedTransports,
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
        return _http(server, config.servers[server.name].transport, limits, auth, observer, detected)
    command = Command(server.command, server.args, server.env, server.cwd)
    return StdioTransport(command, limits, os.environ, observer=observer)


def _http(
    server: ResolvedServer,
    kind: str,
    limits: TransportLimits,
    auth: httpx.Auth | None,
    observer: MessageObserver,
    detected: DetectedTransports,
) -> Transport:
    # Late: the HTTP library takes longer to import than a whole call over stdio; `open_transport` has imported it.
    from mcphost.transports.http.sse_2024 import SseTransport
    from mcphost.transports.http.streamable import HttpTransport

    url, headers = server.url or "", server.headers

    def streamable() -> Transport:
        return HttpTransport(url, limits, headers=headers, auth=auth, observer=observer)

    def older() -> Transport:
        return SseTransport(url, limits, headers=headers, auth=auth, observer=observer)

    if kind == "auto":
        return DetectedTransport(streamable, older, remembered=detected.get(url), learned=partial(detected.learn, url))
    return older() if kind == "sse" else streamable()
