"""Runs all checks in order: first what mcphost runs in, then its files, then the servers."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from shutil import which
from typing import Final

from mcphost.cli.commands.servers import ServerCheck, check_servers
from mcphost.cli.doctor.configuration import (
    install_command,
    missing_programs,
    programs,
    read_configuration,
    saved_calls,
)
from mcphost.cli.doctor.environment import (
    SET_HOME,
    TerminalFacts,
    check_environment,
    leftovers,
    state_folder_findings,
)
from mcphost.cli.doctor.findings import Finding, Severity, ok, problem, warning
from mcphost.cli.margin import size
from mcphost.cli.output import is_terminal
from mcphost.cli.run import run, traffic_target
from mcphost.composition import Selection, dependencies, select, values_for
from mcphost.composition.diagnosis import ask_keychain, leftover_servers, workload_identity
from mcphost.config import Config, LoadedConfig, Values, references_within, state_folder
from mcphost.errors import ConfigError, McphostError
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.host import Host
from mcphost.host.logs import LogRecord
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.host.traffic.book import TrafficBook
from mcphost.lazy_dataclass import dataclass
from mcphost.places import home_folder
from mcphost.protocol.display import duration_text
from mcphost.protocol.host_names import host_in
from mcphost.redaction import Mask

KEYCHAIN_SECONDS: Final = 3.0
"""Seconds for the keychain to answer; a working one takes a tenth of one."""

CLOCK_SECONDS: Final = 60.0
"""Seconds that the clock may be off; tokens are valid for minutes, and their times are compared with it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``logs`` is what the servers wrote meanwhile; ``mask`` removes the secrets that were met from a text."""

    findings: tuple[Finding, ...] = ()
    logs: tuple[LogRecord, ...] = field(default=(), repr=False)
    mask: Mask = str

    @property
    def has_problem(self) -> bool:
        return any(each.severity is Severity.PROBLEM for each in self.findings)


def diagnose(options: Namespace, env: Mapping[str, str]) -> Diagnosis:
    """Run all checks, and start servers unless ``options.no_start``.

    Raises UnknownName where the server that ``options`` names is not configured.
    """
    on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    terminal = TerminalFacts(*size(sys.stdout), sys.stdout.encoding) if on_terminal else None
    found = list(check_environment(env, terminal))
    settings = read_configuration(options.config, env, options.profile)
    config = Config() if settings.loaded is None else settings.loaded.config
    found.append(_keychain(env, _needs_keychain(config)))
    found += settings.findings
    if settings.loaded is not None:
        found += saved_calls(config, env)
    missing = missing_programs(config, env)
    found += programs(config, env, missing, settings.edit)
    folder, trouble = _state_folder(env)
    found += trouble if folder is None else _state(folder, config)
    started = Diagnosis()
    if folder is None:
        found.append(ok("servers", "not started, since there is no state folder"))
    elif settings.loaded is None:
        found.append(ok("servers", "not started, since the configuration cannot be used"))
    elif not options.no_start:
        without = {name for servers in missing.values() for name in servers}
        started = start_servers(options, settings.loaded, settings.edit, without)
    elif options.server:
        select(settings.loaded, [options.server])  # refuses an unknown name
    return Diagnosis((*found, *started.findings), started.logs, started.mask)


def _needs_keychain(config: Config) -> bool:
    entries = [*config.servers.values(), *config.models.values()]
    return any(
        reference.kind == "keyring" for entry in entries for _, reference in references_within(entry.model_dump())
    )


def _keychain(env: Mapping[str, str], needed: bool) -> Finding:
    answer = ask_keychain(env, KEYCHAIN_SECONDS)
    if answer is None and needed:
        text = "switched off by MCPHOST_KEYCHAIN, and your configuration refers to it"
        return problem("keychain", text, "unset MCPHOST_KEYCHAIN")
    if answer is None:
        return ok("keychain", "switched off by MCPHOST_KEYCHAIN; tokens of sign-ins end with mcphost")
    if not answer.failure:
        return ok("keychain", f"{answer.name} answers after {answer.seconds:.1f} s")
    if needed:
        text = f"{answer.failure}, and your configuration refers to it"
        return problem("keychain", text, _keychain_fix(env, missing=answer.missing))
    text = f"{answer.failure}; tokens of sign-ins end with mcphost"
    return warning("keychain", text, _keychain_fix(env, missing=answer.missing))


def _keychain_fix(env: Mapping[str, str], *, missing: bool) -> str:
    """Return the command that installs a keychain, gives it a session, or unlocks it; empty if none is known."""
    path = env.get("PATH", "")
    if not missing:
        return _UNLOCK.get(sys.platform, "")
    if which("gnome-keyring-daemon", path=path) and which("dbus-run-session", path=path):
        return "dbus-run-session -- sh"  # in which it is locked at first, and its own command unlocks it
    return install_command("gnome-keyring", path)


_UNLOCK: Final = {
    "linux": "gnome-keyring-daemon --unlock",
    "darwin": "security unlock-keychain",
}
"""The command that unlocks the keychain, by platform."""


def _state_folder(env: Mapping[str, str]) -> tuple[Path | None, list[Finding]]:
    try:
        return state_folder(env), []
    except ConfigError as error:
        fix = "export MCPHOST_STATE_DIR=~/.mcphost" if home_folder() else SET_HOME
        return None, [problem("state folder", str(error), fix)]


def _state(folder: Path, config: Config) -> Iterator[Finding]:
    yield from state_folder_findings(folder)
    in_use = [text for server in config.servers.values() for text in (server.command, server.cwd, *server.args) if text]
    yield from leftovers(folder, in_use)
    for each in leftover_servers(folder):
        yield warning("leftover", each.text, each.end_command)


def start_servers(options: Namespace, loaded: LoadedConfig, edit: str, without: Set[str]) -> Diagnosis:
    """Start the named server, else all that mcphost starts by itself, except those in ``without``.

    Raises ConfigError, UnknownName.
    """
    named = [options.server] if options.server else []
    manual = [name for name, server in loaded.config.servers.items() if server.enabled and server.start == "manual"]
    left_out = () if named else tuple(_not_started(name) for name in manual)
    # What the configuration disables for a mistake is among its findings.
    names = named or [name for name, each in loaded.config.servers.items() if each.enabled and name not in manual]
    if names and without >= set(names):
        return Diagnosis(left_out)  # the missing program is among the findings
    names = [name for name in names if name not in without]
    if not names:
        configured = loaded.config.servers or loaded.disabled
        return Diagnosis(left_out or (ok("servers", "none is to be started" if configured else "none is configured"),))
    started = _start(options, select(loaded, names), edit)
    return replace(started, findings=(*started.findings, *left_out))


def _start(options: Namespace, chosen: Selection, edit: str) -> Diagnosis:
    values, nobody = values_for(chosen.config, os.environ), DeclineAll("nothing is called here")
    traffic = traffic_target(options)
    parts = dependencies(
        nobody,
        values,
        refused=chosen.broken,
        traffic_target=traffic,
        begin_sign_ins=False,
        prefetch=False,
        answers=SCREEN_KINDS,
    )

    async def opened() -> Diagnosis:
        async with Host(chosen.config, parts) as host:
            results = await check_servers(host, chosen.names, chosen.broken)
            findings = [_finding(each, edit) for each in results]
            findings += [await _workload(chosen.config, values, name) for name in _workloads(chosen)]
            findings += [await _identity(host, name) for name in _identities(chosen)]
            logs = tuple(record for name in chosen.names for record in host.logs.of_server(name))
            return Diagnosis((*findings, *_clock(host.traffic)), logs, values.mask)

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


def _workloads(chosen: Selection) -> Iterator[str]:
    """The servers that are signed in to by the JWT of this workload."""
    for name in chosen.names:
        server = chosen.config.servers.get(name)
        if server is not None and server.signs_in and server.oauth.grant == "workload":
            yield name


async def _workload(config: Config, values: Values, name: str) -> Finding:
    topic = f"JWT for {name}"
    try:
        found = await workload_identity(config, values, name)
    except McphostError as error:
        return problem(topic, str(error))
    now, expires = time.time(), found.expires_at
    claims = {"iss": found.issuer, "sub": found.subject, "aud": " ".join(found.audiences)}
    facts = [f"{claim} {value}" for claim, value in claims.items() if value]
    facts += [f"valid for {duration_text(expires - now)}"] if expires is not None and expires > now else []
    if found.problem:
        return problem(topic, f"{', '.join(facts)}: it {found.problem}" if facts else f"it {found.problem}")
    return ok(topic, ", ".join(facts))


def _identities(chosen: Selection) -> Sequence[str]:
    """The identities with which these servers are signed in to."""
    entries = [entry for name in chosen.names if (entry := chosen.config.servers.get(name)) is not None]
    return tuple(dict.fromkeys(entry.oauth.identity for entry in entries if entry.oauth.identity and entry.signs_in))


async def _identity(host: Host, name: str) -> Finding:
    """The sign-in at an identity provider, without the account, since a report may be passed on."""
    topic, login = f"identity {name}", f"mcphost login --identity {name}"
    try:
        found = await host.identities.status(name)
    except McphostError as error:
        return problem(topic, str(error))
    where = host_in(found.issuer).both
    if found.problem:
        return warning(topic, f"at {where}: {found.problem}", login)
    if found.given:
        return ok(topic, f"at {where}, {found.kept_in}")
    if not found.signed_in:
        return warning(topic, f"no one is signed in at {where}", login)
    servers = f", for {', '.join(found.servers)}" if found.servers else ""
    return ok(topic, f"signed in at {where}{servers}; tokens {found.kept_in}")


def _not_started(name: str) -> Finding:
    return ok(f"server {name}", f"starts only on request; to try it: mcphost doctor {name}")


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
    """Return by how many seconds the clock of each server that answered over HTTP is ahead of this one."""
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
