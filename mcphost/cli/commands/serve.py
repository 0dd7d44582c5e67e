"""Serves an agent: through the running screen, and without one from this process. Loads little where a screen runs."""

from __future__ import annotations

import os
import signal
import sys

from mcphost.cli.between import SERVE
from mcphost.cli.screen_socket import ANSWER, explain_to_person, serve_hello, socket_of
from mcphost.places import DEPTH_VARIABLE
from mcphost.shim import GRACE, open_socket, read, say_hello, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import BinaryIO, Final

ENDED: Final = 3
"""The exit code where the screen has ended, or does not serve this agent."""


def run_serve(options: Namespace) -> int:
    """Serve what ``options`` ask for, until the agent or a signal ends it."""
    if options.print is not None or options.revoke is not None:
        from mcphost.cli import serve_entries as entries  # late: an agent's start does without

        return entries.print_entries(options) if options.print is not None else entries.revoke(options)
    if options.http is None and (code := run_through_screen(options)) is not None:
        return code
    if options.http is not None:
        from mcphost.cli.serving_address import serve_address  # late: the HTTP library takes long to import

        return serve_address(options)
    from mcphost.cli.serving import serve_agent  # late: a screen serves without

    return serve_agent(options)


def run_early(words: Sequence[str]) -> int | None:
    """Serve through the running screen; None without one, and for a command line that the parser has to read."""
    options = fast_options(words)
    return None if options is None else run_through_screen(options)


def fast_options(words: Sequence[str]) -> Namespace | None:
    """The options of an agent's start; None for all else. The parser takes as long to load as the interpreter."""
    from types import SimpleNamespace  # late: other commands have a parser

    valued = {"--config": "config", "--profile": "profile"}
    valued |= {option: destination for option, (destination, metavar, _) in SERVE.items() if metavar is not None}
    found = SimpleNamespace(**dict.fromkeys(valued.values()) | {"questions": "agent", "approve": False, "servers": []})
    waiting = iter(words)
    for word in waiting:
        name, assigned, value = word.partition("=")
        if not word.isprintable() or word in ("", "-", "--"):
            return None
        if word == "--approve":
            found.approve = True
        elif name in valued:
            value = value if assigned else next(waiting, "-")
            if not value.isprintable() or value.startswith("-") or not value:
                return None
            setattr(found, valued[name], value)
        elif word.startswith("-"):
            return None
        else:
            found.servers.append(word)
    return found if found.questions in ("agent", "here") else None  # type: ignore[return-value]


def run_through_screen(options: Namespace) -> int | None:
    """Pass an agent's messages to the running screen until one of them ends, and return the exit code.

    None where no screen runs, below an mcphost that serves agents, and for a recording: only the process that serves
    knows the secrets that are to be masked.
    """
    if DEPTH_VARIABLE in os.environ or options.into is not None:
        return None
    connection = open_socket(socket_of(options))
    if connection is None:
        return None
    greeted = say_hello(connection, serve_hello("serve", options), ANSWER)
    if greeted is None:
        connection.close()
        return _failed("the running mcphost does not answer, or is of another version; restart it")
    lines, answer = greeted
    if answer["type"] != "welcome":
        return _failed(str(answer.get("reason", "the running mcphost refused it")))
    explain_to_person()
    for name in ("SIGINT", "SIGTERM"):  # the end of the connection says it all
        signal.signal(signal.Signals[name], signal.SIG_DFL)
    return _pump(connection, lines)


def _pump(connection: socket.socket, lines: BinaryIO) -> int:
    from threading import Event, Thread

    agent_ended, screen_ended = Event(), Event()

    def from_agent() -> None:
        while data := read(0):
            try:
                connection.sendall(data)
            except OSError:
                return
        agent_ended.set()
        _shut(connection, 1)
        if not screen_ended.wait(GRACE):
            _shut(connection, 2)

    Thread(target=from_agent, name="agent", daemon=True).start()
    while data := _read_some(lines):
        if not write_all(1, data):  # the agent is gone
            return 0
    screen_ended.set()
    if agent_ended.is_set():
        return 0
    return _failed("this session is over: mcphost's screen has ended, or you disconnected the agent there")


def _read_some(lines: BinaryIO) -> bytes:
    try:
        return lines.read1(1 << 16)  # type: ignore[attr-defined,no-any-return]
    except OSError:
        return b""


def _shut(connection: socket.socket, how: int) -> None:
    try:
        connection.shutdown(how)
    except OSError:
        return


def _failed(words: str) -> int:
    from mcphost.protocol.display import show_line  # late: few need it

    sys.stderr.write(f"mcphost serve: {show_line(words, 2000)}\n")
    sys.stderr.flush()
    return ENDED
