"""Puts mcphost between an agent and its server, to see what passes. Loads little before a program runs."""

from __future__ import annotations

import os
import signal
import sys

from mcphost.cli.observing import check_redactions, claim_record, observer_of
from mcphost.shim import Shim, StartFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


def run_tap(options: Namespace) -> int:
    """Run the program of ``options`` until it ends, or relay to the address there. Raises UsageError without either."""
    role = options.recorded_by = getattr(options, "recorded_by", "tap")
    program = getattr(options, "program", None) or ()
    if [each[:4].lower() for each in (*options.words, *program)] == ["http"]:
        from mcphost.cli.tapped_address import run_address_tap  # late: a program starts before

        return run_address_tap(options)
    if options.words or not program or options.listen:
        from mcphost.errors import UsageError  # late: the program starts before

        if program and options.listen:
            raise UsageError("--listen is for an address; a program is spoken to on its streams")
        file = "FILE " if role == "record" else ""
        raise UsageError(f"put -- before the program, as in: mcphost {role} {file}-- uvx mcp-server-git")
    check_redactions(options)
    shim = Shim(options.program)
    try:
        shim.start()
    except StartFailure as failure:
        sys.stderr.write(f"mcphost: {failure}\n")
        return failure.code
    name = name_of(options, shim)
    if role == "record":
        _begin_record(options, name, shim)
    observer = shim.observer = observer_of("tap", name, shim, options)
    observer.received = lambda line: _obey(line, shim)
    observer.open()
    code = shim.run()
    observer.close()
    return code


SUFFIX = ".mcp.jsonl"
"""Of a recording that is named without one; its home, `mcphost.host.recordings.recording`, loads slower than a tap."""


def run_record(options: Namespace) -> int:
    """As `run_tap`, for the sake of the file. Raises ConfigError where it cannot be written."""
    if not os.path.splitext(options.into)[1]:
        options.into += SUFFIX
    options.recorded_by = "record"
    return run_tap(options)


def _begin_record(options: Namespace, name: str, shim: Shim) -> None:
    # The program has started: it loads meanwhile.
    try:
        claim_record(options, name)
    except Exception:
        shim.signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        raise


LAUNCHERS = frozenset({
    "bunx", "deno", "dnx", "docker", "npm", "npx", "pipx", "pnpm", "podman", "uv", "uvx", "yarn",
})  # fmt: skip
"""Programs after which no server is named: the package that they start has a better name."""


def name_of(options: Namespace, shim: Shim) -> str:
    """The server's name in rules, approvals and the audit log."""
    name: str = options.name or os.path.basename(shim.command[0])
    if not options.name and name in LAUNCHERS:
        from mcphost.imports.downloads import server_name  # late: few need it, and it takes a MB

        name = server_name(shim.command)
    return name


def _obey(line: bytes, shim: Shim) -> None:
    """End the program if the screen says so; all else that it says is for gates."""
    import json  # late: only a screen needs it

    try:
        ends = json.loads(line)["type"] == "disconnect"
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if ends:
        shim.end()
