"""Serves a recording as a server, on stdin and stdout or at an address of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import Namespace
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from mcphost.cli.output import Exit, Outcome, Signalled, remark
from mcphost.cli.parser import LIVE, parse
from mcphost.cli.run import run
from mcphost.errors import NotDone, UsageError
from mcphost.host.recordings.reading import read_recording
from mcphost.host.recordings.replay import ReplayedContent
from mcphost.host.recordings.replayed_server import ReplayedServer, ReplayOptions, server_in
from mcphost.places import DEPTH_VARIABLE
from mcphost.protocol.display import show_line
from mcphost.protocol.json_paths import JsonPath
from mcphost.serving.session import ServerSession, Write
from mcphost.serving.stream_pump import own_streams, serve_stream


def run_replay(options: Namespace) -> int:
    """Serve until the client ends it, or a signal. Raises UsageError, UnknownName or NotDone."""
    port = None
    if options.http is not None:
        from mcphost.cli.addresses import own_port  # late: a program's start does without

        port = own_port(options.http)
    server = _recorded_server(options)

    def serve() -> Coroutine[Any, Any, None]:
        return _serve_streams(server) if port is None else _serve_address(server, port)

    try:
        if options.on_miss.startswith(LIVE):
            _run_beside(options.on_miss.removeprefix(LIVE), options, server, serve)
        else:
            run(serve())
    except Signalled as signalled:
        if port is None or signalled.number not in (signal.SIGINT, signal.SIGTERM):
            raise
    finally:
        remark(server.summary())
    return Exit.NEGATIVE if options.strict and not server.faithful else Exit.DONE


def _recorded_server(options: Namespace) -> ReplayedServer:
    try:
        ignored = tuple(map(JsonPath.parse, options.ignore))
    except ValueError as error:
        raise UsageError(f"--ignore: {error}") from None
    try:
        recording = read_recording(Path(options.file))
        name = server_in(recording, options.server)
    except NotDone as error:  # nothing was connected that could be lost
        raise UsageError(str(error)) from None
    for problem in recording.problems:
        remark(f"{options.file}: {problem}")
    replay = ReplayOptions(options.match, ignored, options.speed, options.on_miss != "error", options.loop)
    return ReplayedServer([each for each in recording.sessions if each.server == name], replay, remark)


def _run_beside(
    name: str, options: Namespace, server: ReplayedServer, serve: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Serve while this server of the configuration, in a host, answers what the recording does not hold."""
    # late: only this needs a host
    from mcphost.cli.serving import NESTED, endpoint_options, in_headless_host, served_selection, started_by_the_agent
    from mcphost.host.agents.kernel_facts import agent_of, caller_of
    from mcphost.host.host import Host

    if DEPTH_VARIABLE in os.environ:
        raise UsageError(NESTED)
    served = parse(["serve", name])
    served.config = options.config
    chosen = served_selection(served)

    async def work(host: Host) -> Outcome:
        agent = agent_of(caller_of(os.getpid()), "")
        server.open_live = lambda: host.endpoint.open(endpoint_options(served, agent))
        await serve()
        return Outcome()

    in_headless_host(started_by_the_agent(chosen.config), served, chosen, work)


async def _serve_streams(server: ReplayedServer) -> None:
    def open_session(write: Write) -> ServerSession:
        content = ReplayedContent(server, loop)
        session = ServerSession(content, write, timers=loop)
        content.attach(session)
        return session

    loop = asyncio.get_running_loop()
    async with own_streams() as streams:
        if why := await serve_stream(*streams, open_session):
            remark(why)


async def _serve_address(server: ReplayedServer, port: int) -> None:
    from mcphost.serving.http_listener import PATH, HttpListener  # late: the HTTP library takes long to import

    loop = asyncio.get_running_loop()
    listener = HttpListener(lambda token, path: None if path else ReplayedContent(server, loop))
    try:
        bound = await listener.open(port)
        remark(f"the recording of {show_line(server.name)} is served at http://127.0.0.1:{bound}{PATH} until ctrl+c")
        await loop.create_future()
    except OSError as error:
        raise NotDone(f"mcphost cannot listen at 127.0.0.1:{port}: {error.strerror or error}") from None
    finally:
        await listener.aclose()
