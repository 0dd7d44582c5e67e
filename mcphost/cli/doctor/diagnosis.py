"""Looks at everything in order: first what mcphost runs in, then its files, then the servers."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from shutil import which
from typing import Final

from mcphost.cli.doctor.configuration import read_configuration
from mcphost.cli.doctor.environment import SET_HOME, TerminalFacts, check_environment
from mcphost.cli.doctor.files import leftovers, state_folder_findings
from mcphost.cli.doctor.findings import Finding, Severity, ok, problem, warning
from mcphost.cli.doctor.programs import install_command, missing_programs, programs
from mcphost.cli.doctor.servers import StartedServers, start_servers
from mcphost.cli.margin import size
from mcphost.cli.output import is_terminal
from mcphost.composition import select
from mcphost.composition.diagnosis import ask_keychain, leftover_servers
from mcphost.config import Config, references_within, state_folder
from mcphost.errors import ConfigError
from mcphost.host.logs import LogRecord
from mcphost.lazy_dataclass import dataclass
from mcphost.places import home_folder
from mcphost.redaction import Mask

KEYCHAIN_SECONDS: Final = 3.0
"""Seconds for the keychain to answer; a working one takes a tenth of one."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, and what the servers wrote meanwhile. ``mask`` takes the secrets that were met out of a text."""

    findings: tuple[Finding, ...]
    logs: tuple[LogRecord, ...] = field(default=(), repr=False)
    mask: Mask = str

    @property
    def has_problem(self) -> bool:
        return any(each.severity is Severity.PROBLEM for each in self.findings)


def diagnose(options: Namespace, env: Mapping[str, str]) -> Diagnosis:
    """Look at everything, and start servers unless ``options.no_start``.

    Raises UnknownName where the server that ``options`` names is not configured.
    """
    on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    terminal = TerminalFacts(*size(sys.stdout), sys.stdout.encoding) if on_terminal else None
    found = list(check_environment(env, terminal))
    settings = read_configuration(options.config, env)
    config = Config() if settings.loaded is None else settings.loaded.config
    found.append(_keychain(env, _needs_keychain(config)))
    found += settings.findings
    missing = missing_programs(config, env)
    found += programs(config, env, missing, settings.edit)
    folder, trouble = _state_folder(env)
    found += trouble if folder is None else _state(folder, config)
    started = StartedServers()
    if folder is None:
        found.append(ok("servers", "not started, since there is no state folder"))
    elif settings.loaded is None:
        found.append(ok("servers", "not started, since the configuration cannot be used"))
    elif not options.no_start:
        without = {name for servers in missing.values() for name in servers}
        started = start_servers(options, settings.loaded, settings.edit, without)
    elif options.server:
        select(settings.loaded, [options.server])  # refuses a name that is not there
    return Diagnosis((*found, *started.findings), started.logs, started.mask)


def _needs_keychain(config: Config) -> bool:
    """Does the configuration refer to the keychain?"""
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
        return problem("keychain", text, _mend_keychain(env, missing=answer.missing))
    text = f"{answer.failure}; tokens of sign-ins end with mcphost"
    return warning("keychain", text, _mend_keychain(env, missing=answer.missing))


def _mend_keychain(env: Mapping[str, str], *, missing: bool) -> str:
    """The command that installs a keychain, gives it a session to run in, or unlocks it; empty: none is known."""
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
