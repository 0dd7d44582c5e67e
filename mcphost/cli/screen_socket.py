"""The way to the running screen for programs that agents start. Loads little before one runs."""

from __future__ import annotations

import os

from mcphost import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Final

ANSWER: Final = 15.0
"""Seconds for the screen's welcome: it asks the kernel who the agent is, and may have much else to do."""


def environment_of(options: Namespace) -> Mapping[str, str]:
    """The environment in which mcphost finds its own files; the program's stays as it is."""
    named = {"MCPHOST_CONFIG": options.config, "MCPHOST_STATE_DIR": options.state}
    return {**os.environ, **{name: value for name, value in named.items() if value}}


def explain_to_person() -> None:
    """Say on a terminal why nothing happens there."""
    if os.isatty(0) and os.isatty(2):
        os.write(2, b"mcphost serve: an agent starts this, and speaks MCP here; see: mcphost help serve\n")


def socket_of(options: Namespace) -> str:
    """The path of the screen's socket; empty where there can be none."""
    from mcphost.errors import ConfigError
    from mcphost.places import socket_path

    try:
        return str(socket_path(environment_of(options)))
    except ConfigError:
        return ""


def hello_of(role: str, options: Namespace, **more: object) -> bytes:
    """The first message to the screen."""
    import json  # late: only a screen needs it
    from time import time

    fields = {
        "type": "hello", "mcphost": 1, "role": role, "as": options.agent, "pid": os.getpid(), "ppid": os.getppid(),
        "cwd": os.getcwd(), "started": time(), "version": __version__, **more,
    }  # fmt: skip
    return json.dumps(fields).encode() + b"\n"


def serve_hello(role: str, options: Namespace, **more: object) -> bytes:
    """The first message of what serves agents."""
    chosen = {name: getattr(options, name) for name in ("profile", "questions", "approve")}
    return hello_of(role, options, servers=list(options.servers), **chosen, **more)
