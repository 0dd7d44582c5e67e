"""Serves agents at an address of this machine, through the screen or from this process."""

from __future__ import annotations

import asyncio
import signal
import socket
from argparse import Namespace

from mcphost.cli.addresses import own_port
from mcphost.cli.output import Exit, Outcome, Signalled, remark
from mcphost.cli.run import finish, run
from mcphost.cli.screen_socket import ANSWER, environment_of, serve_hello, socket_of
from mcphost.cli.serve_entries import tokens_of
from mcphost.cli.serving import in_headless_host, served_selection
from mcphost.composition.bearers import Bearers
from mcphost.composition.served_address import AddressChoice, ServedAddress
from mcphost.config import state_folder
from mcphost.config.state import StateStore
from mcphost.errors import ConnectionLost, InvalidLink, NotDone, UsageError
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.serving.link import HelloRefused, Welcome, read_from_screen
from mcphost.shim import open_socket


def serve_address(options: Namespace) -> int:
    """Serve agents at an address of this machine until a signal ends it. Raises McphostError."""
    if options.agent is not None:
        raise UsageError("--as: at an address each agent has the name that its token was made for")
    port, env = own_port(options.http), environment_of(options)
    tokens, bearers = tokens_of(env), Bearers(StateStore(state_folder(env), remark))
    try:
        run(tokens.check())
        if not bearers.agents():
            remark("no agent has a token yet; to make one: mcphost serve --print HOST --http")
        connection = None if options.into is not None else open_socket(socket_of(options))
        if connection is not None:
            return finish(run(_serve_through_screen(connection, options, port)))
        return _serve_address_alone(options, port, bearers)
    except Signalled as signalled:
        if signalled.number == signal.SIGINT:
            return Exit.DONE
        raise


async def _serve_through_screen(connection: socket.socket, options: Namespace, port: int) -> Outcome:
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(serve_hello("http", options, port=port))
        async with asyncio.timeout(ANSWER):
            answer = read_from_screen(await reader.readline())
        if isinstance(answer, HelloRefused):
            raise NotDone(answer.reason)
        if not isinstance(answer, Welcome):
            raise InvalidLink("it did not answer with a welcome")
        _remark_address(answer.address, "mcphost's screen serves agents")
        await reader.read()
    except (OSError, TimeoutError, InvalidLink):
        raise ConnectionLost("the running mcphost does not answer, or is of another version; restart it") from None
    finally:
        writer.close()
    raise ConnectionLost("mcphost's screen has ended, and the address with it")


def _serve_address_alone(options: Namespace, port: int, bearers: Bearers) -> int:
    chosen = served_selection(options)
    if chosen.config.serve.without_screen == "refuse":
        raise NotDone('no screen runs, and serve.without_screen is "refuse"; start mcphost in a terminal first')

    async def work(host: Host) -> Outcome:
        choice = AddressChoice(tuple(options.servers), options.profile, options.questions, options.approve)
        served = ServedAddress(host.endpoint, choice, bearers)
        await served.open(port)
        try:
            _remark_address(served.address, "agents are served")
            await asyncio.get_running_loop().create_future()
        finally:
            await served.aclose()
        return Outcome()

    return in_headless_host(chosen.config, options, chosen, work)


def _remark_address(address: str, who: str) -> None:
    remark(f"{who} at {show_line(address)} until ctrl+c")
