"""The servers, each started up to its opening, and the clock as servers that were asked see it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence, Set
from dataclasses import field, replace
from email.utils import parsedate_to_datetime
from typing import Final

from mcphost.cli.commands.servers import ServerCheck, check_servers
from mcphost.cli.doctor.findings import Finding, ok, problem, warning
from mcphost.cli.run import run, traffic_path
from mcphost.composition import Selection, dependencies, select, values_for
from mcphost.config import LoadedConfig
from mcphost.errors import ConfigError
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.host import Host
from mcphost.host.logs import LogRecord
from mcphost.host.server_requests.kinds import SCREEN_KINDS
from mcphost.host.traffic.book import TrafficBook
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text
from mcphost.redaction import Mask

CLOCK_SECONDS: Final = 60.0
"""How far the clock may be off; tokens are valid for minutes, and their times are compared with it."""


@dataclass(frozen=True, slots=True)
class StartedServers:
    """What came of starting the servers. ``mask`` takes the secrets that were met out of a text."""

    findings: tuple[Finding, ...] = ()
    logs: tuple[LogRecord, ...] = field(default=(), repr=False)
    mask: Mask = str


def start_servers(options: Namespace, loaded: LoadedConfig, edit: str, without: Set[str]) -> StartedServers:
    """Start the server that is named, else all that mcphost starts by itself, but none of ``without``.

    Raises ConfigError, UnknownName.
    """
    named = [options.server] if options.server else []
    manual = [name for name, server in loaded.config.servers.items() if server.enabled and server.start == "manual"]
    left_out = () if named else tuple(_not_started(name) for name in manual)
    # What the configuration disables for a mistake is among its findings.
    names = named or [name for name, each in loaded.config.servers.items() if each.enabled and name not in manual]
    if names and without >= set(names):
        return StartedServers(left_out)  # the missing program is among the findings
    names = [name for name in names if name not in without]
    if not names:
        configured = loaded.config.servers or loaded.disabled
        return StartedServers(
            left_out or (ok("servers", "none is to be started" if configured else "none is configured"),)
        )
    started = _start(options, select(loaded, names), edit)
    return replace(started, findings=(*started.findings, *left_out))


def _start(options: Namespace, chosen: Selection, edit: str) -> StartedServers:
    values, nobody = values_for(chosen.config, os.environ), DeclineAll("nothing is called here")
    traffic = traffic_path(options)
    parts = dependencies(
        nobody,
        values,
        refused=chosen.broken,
        traffic_path=traffic,
        begin_sign_ins=False,
        prefetch=False,
        answers=SCREEN_KINDS,
    )

    async def opened() -> StartedServers:
        async with Host(chosen.config, parts) as host:
            results = await check_servers(host, chosen.names, chosen.broken)
            findings = [_finding(each, edit) for each in results]
            logs = tuple(record for name in chosen.names for record in host.logs.of(name))
            return StartedServers((*findings, *_clock(host.traffic)), logs, values.mask)

    return run(opened())


def _finding(result: ServerCheck, edit: str) -> Finding:
    topic = f"server {result.name}"
    if result.needs_sign_in:
        return warning(topic, result.remark, result.sign_in)
    if result.failure is not None:
        # Editing the file helps only against configuration errors, not against faults of the server or the network.
        return problem(topic, result.remark, edit if isinstance(result.failure, ConfigError) else "")
    server = result.server or {}
    facts = [
        f"ready after {duration_text(result.seconds)}",
        f"revision {result.revision}",
        "" if result.tools is None else f"{result.tools} tools",
        f"identifies as {server.get('name', '')} {server.get('version', '')}".rstrip(),
        result.remark,
    ]
    return ok(topic, ", ".join(filter(None, facts)))


def _not_started(name: str) -> Finding:
    return ok(f"server {name}", f"starts only when told to; to try it: mcphost doctor {name}")


def _clock(traffic: TrafficBook) -> Iterator[Finding]:
    """Compare the clock with the dates in HTTP answers that came anyway."""
    differences = sorted(_differences(traffic), key=lambda each: abs(each[1]))
    if not differences:
        return
    server, seconds = differences[0]  # the one that agrees best: any other server's clock may be wrong
    if abs(seconds) <= CLOCK_SECONDS:
        yield ok("clock", f"agrees with {server}")
        return
    fix = "sudo timedatectl set-ntp true" if sys.platform == "linux" else "sudo systemsetup -setusingnetworktime on"
    text = f"is {duration_text(abs(seconds))} {'behind' if seconds > 0 else 'ahead of'} {server}; sign-ins may fail"
    yield warning("clock", text, fix)


def _differences(traffic: TrafficBook) -> Sequence[tuple[str, float]]:
    """By how many seconds the clock of each server that answered over HTTP is ahead of ours."""
    found: dict[str, float] = {}
    for message in traffic.since(0):
        if message.note == "http" and not message.sent:
            for line in traffic.raw(message).splitlines():
                name, _, value = line.partition(": ")
                if name.lower() == "date" and message.server not in found:
                    found |= _difference(message.server, value, message.time)
    return list(found.items())


def _difference(server: str, date: str, received: float) -> dict[str, float]:
    try:
        return {server: parsedate_to_datetime(date).timestamp() - received}
    except (ValueError, OverflowError, OSError):  # a server may write anything
        return {}
