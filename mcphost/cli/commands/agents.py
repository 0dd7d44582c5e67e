"""``mcphost agents``: the agents that are connected to the running screen."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from mcphost.cli.output import Outcome, json_text, table
from mcphost.cli.run import finish
from mcphost.errors import ConnectionLost, InvalidLink
from mcphost.places import socket_path, with_tilde
from mcphost.posix import owned_by_us, unix_socket
from mcphost.serving.link import LINE_BYTES, AgentList, Hello, HelloRefused, read_from_screen

HEADING: Final = ("AGENT", "SERVER", "PROGRAM", "PID", "FOLDER", "SINCE", "CALLS", "WAITING")

SECONDS: Final = 5.0
"""For the screen's answer: a busy screen takes some tenths of a second."""


def run_agents(options: Namespace) -> int:
    """List the agents. Raises ConnectionLost without a screen."""
    agents = connected_agents(socket_path(os.environ))
    if options.json:
        return finish(Outcome("".join(map(json_text, agents))))
    if not agents:
        return finish(Outcome(remarks=("no agent is connected; see: mcphost help agents, mcphost help serve",)))
    return finish(Outcome(table([HEADING, *map(_row, agents)])))


def connected_agents(path: Path) -> Sequence[Mapping[str, Any]]:
    """Ask the screen whose socket is at ``path``. Raises ConnectionLost, or InvalidLink for a wrong answer."""
    try:
        if not owned_by_us(path.stat()):
            raise ConnectionLost(f"the socket {path} belongs to another user, so mcphost does not use it")
        with unix_socket() as connection:
            connection.settimeout(SECONDS)
            connection.connect(os.fspath(path))
            connection.sendall(Hello(role="list", pid=os.getpid()).line())
            with connection.makefile("rb") as lines:
                line = lines.readline(LINE_BYTES + 1)
    except TimeoutError:
        raise ConnectionLost(f"mcphost's screen does not answer within {SECONDS:g} s; try again") from None
    except OSError:
        line = b""
    if not line:
        raise ConnectionLost("mcphost's screen does not run; start mcphost in a terminal, and agents connect to it")
    try:
        answer = read_from_screen(line)
    except InvalidLink as error:
        raise InvalidLink(f"the answer of mcphost's screen cannot be read: {error}") from None
    if isinstance(answer, HelloRefused):
        raise ConnectionLost(f"mcphost's screen refused to list the agents: {answer.reason}")
    if not isinstance(answer, AgentList):
        raise InvalidLink("mcphost's screen did not answer with its agents")
    return answer.agents


def _row(agent: Mapping[str, Any]) -> tuple[str, ...]:
    columns = ("agent", "server", "program", "pid", "folder", "since", "calls", "waiting")
    texts = {name: "" if agent.get(name) is None else str(agent[name]) for name in columns}
    if isinstance(served := agent.get("servers"), dict) and served:
        texts["server"] = ", ".join(map(str, served))
    texts["program"] = Path(texts["program"]).name
    texts["folder"] = str(with_tilde(Path(texts["folder"]))) if texts["folder"] else ""
    with suppress(ValueError, OverflowError, OSError):
        since, today = datetime.fromtimestamp(float(texts["since"])), datetime.now().date()
        texts["since"] = f"{since:%H:%M}" if since.date() == today else f"{since:%Y-%m-%d %H:%M}"
    return tuple(texts.values())
