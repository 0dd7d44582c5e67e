"""Copies what passes a tap or gate to the running screen, else to a record. Loads little before a program runs."""

from __future__ import annotations

import os
import sys

from mcphost.cli.screen_socket import environment_of, hello_of
from mcphost.shim import Observer, Shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mcphost.redaction import Mask
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
    own_role = options.recorded_by = getattr(options, "recorded_by", role)

    def hello() -> bytes:
        own = {"name": name, "command": shim.command, "url": None, "started": started, "child": shim.child}
        return hello_of(role, options, **{**own, **more}) + after()

    said = set[str]()

    def note(text: str) -> None:
        if text not in said:
            said.add(text)
            sys.stderr.write(f"mcphost {own_role}: {text}\n")
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
        return _record(name, started, shim.command, options, headers, note)

    return Observer(hello, path, record, always=getattr(options, "into", None) is not None)


def claim_record(options: Namespace, name: str) -> None:
    """Claim the file of a record, and say what it will hold. Raises ConfigError where it cannot be written."""
    from pathlib import Path

    from mcphost.host.traffic.claim import claim
    from mcphost.protocol.display import show_line

    claim(Path(options.into))
    words = f"all messages of {show_line(name)} go to {show_line(options.into, 400)}, with arguments and results"
    sys.stderr.write(f"mcphost {options.recorded_by}: {words}; known secrets are masked, and --redact masks more\n")
    sys.stderr.flush()


def check_redactions(options: Namespace) -> None:
    """Raise UsageError for a mistake in ``--redact``."""
    _redaction(options)


def _redaction(options: Namespace) -> Callable[[str, bool], str] | None:
    given: Sequence[str] = getattr(options, "redact", None) or ()
    if not given:
        return None
    from mcphost.host.traffic.redactions import Redactions

    redactions = Redactions(given)
    return lambda text, cut: redactions.applied(text, cut=cut)


def _record(
    name: str,
    started: float,
    command: Sequence[str],
    options: Namespace,
    headers: Collection[str],
    note: Callable[[str], None],
) -> Callable[[CopiedLine | None], None]:
    from pathlib import Path  # late: these load only once there is something to write

    from mcphost.errors import ConfigError
    from mcphost.host.traffic.spool import Spool, mask_of, spool_path
    from mcphost.places import state_path

    into: str | None = getattr(options, "into", None)

    def failed(error: OSError) -> None:
        note(f"what passes is not recorded: cannot write {error.filename or into!a}: {error.strerror or error}")

    try:
        if into is not None:
            from mcphost.host.traffic.claim import claim

            claim(Path(into))
        path = Path(into) if into else spool_path(state_path(environment_of(options)), name, started, os.getpid())
    except ConfigError as error:
        note(f"what passes is not recorded: {error}")
        return lambda line: None
    except OSError as error:
        failed(error)
        return lambda line: None
    mask = mask_of(os.environ, command, headers)
    redact = _redaction(options) or (lambda text, cut: text)
    run = 1 if into is None else os.getpid()  # an agent may start its server twice at a time, for one file
    first = _first_line(name, command, lambda text: redact(mask(text), False), options.recorded_by, run)
    spool = Spool(path, name, mask, failed, first=first, whole=into is not None, redact=redact, connection=run)

    def write(line: CopiedLine | None) -> None:
        if line is None:
            spool.flush()
        else:
            spool.add(line.source, line.time, line.data, line.size, line.dropped)

    return write


def _first_line(name: str, command: Sequence[str], mask: Mask, recorded_by: str, run: int) -> bytes:
    import shlex

    from mcphost import __version__
    from mcphost.host.recordings.first_line import first_line
    from mcphost.host.recordings.recording import RecordingFacts
    from mcphost.redaction import safe_command

    words = safe_command(command[0] if len(command) == 1 else shlex.join(command))
    servers = {name: mask(words)}
    facts = RecordingFacts(mcphost=__version__, recorded_by=recorded_by, seen="agent", servers=servers)
    return first_line(facts, run)
