"""Copies what passes a tap or gate to the running screen, else to a record. Loads little before a program runs."""

from __future__ import annotations

import os
import sys

from mcphost.cli.screen_socket import environment_of, hello_of
from mcphost.shim import Observer, Shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Mapping

    from mcphost.shim import CopiedLine


def observer_of(
    role: str,
    name: str,
    shim: Shim,
    options: Namespace,
    more: Mapping[str, object] = {},
    after: Callable[[], bytes] = bytes,
    headers: Collection[str] = (),
) -> Observer:
    """The observer of a shim, which reports to the screen as ``role``, with ``more`` in its first message.

    ``after`` returns the lines that follow that message; ``headers`` are values that are masked in the record.
    """
    from time import time  # late: the program starts before

    started, env = time(), environment_of(options)
    into: str | None = getattr(options, "into", None)

    def hello() -> bytes:
        own = {"name": name, "command": shim.command, "url": None, "started": started, "child": shim.child}
        return hello_of(role, options, **{**own, **more}) + after()

    said = set[str]()

    def note(text: str) -> None:
        if text not in said:
            said.add(text)
            sys.stderr.write(f"mcphost {role}: {text}\n")
            sys.stderr.flush()

    def path() -> str:
        from mcphost.errors import ConfigError  # late: the program starts before
        from mcphost.places import socket_path

        try:
            return str(socket_path(env))
        except ConfigError as error:
            note(f"no screen is looked for: {error}")
            return ""

    def record() -> Callable[[CopiedLine | None], None]:
        return _record(name, started, shim, into, env, headers, note)

    return Observer(hello, path, record, always=into is not None)


def _record(
    name: str,
    started: float,
    shim: Shim,
    into: str | None,
    env: Mapping[str, str],
    headers: Collection[str],
    note: Callable[[str], None],
) -> Callable[[CopiedLine | None], None]:
    from pathlib import Path  # late: these load only once there is something to write

    from mcphost.errors import ConfigError
    from mcphost.host.traffic.spool import Spool, mask_of, spool_path
    from mcphost.places import state_path

    def failed(error: OSError) -> None:
        note(f"what passes is not recorded: cannot write {error.filename or into!a}: {error.strerror or error}")

    try:
        path = Path(into) if into else spool_path(state_path(env), name, started, os.getpid())
    except ConfigError as error:
        note(f"what passes is not recorded: {error}")
        return lambda line: None
    except OSError as error:
        failed(error)
        return lambda line: None
    spool = Spool(path, name, mask_of(os.environ, shim.command, headers), failed)

    def write(line: CopiedLine | None) -> None:
        if line is None:
            spool.flush()
        else:
            spool.add(line.source, line.time, line.data, line.size, line.dropped)

    return write
