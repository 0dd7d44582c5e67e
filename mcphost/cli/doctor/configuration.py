"""Checks the configuration, whether a project's file is trusted, and the programs that servers are started with."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mcphost.cli.doctor.environment import SET_HOME
from mcphost.cli.doctor.findings import Finding, ok, problem, warning
from mcphost.cli.settings import TRUST_COMMAND, find, settings_for_screen
from mcphost.composition import calls_file, values_for
from mcphost.config import Config, ConfigErrors, ConfigLocation, LoadedConfig, ServerConfig, users_path
from mcphost.errors import ConfigError
from mcphost.lazy_dataclass import dataclass
from mcphost.places import home_folder

LAUNCHERS: Final = ("node", "npx", "uvx", "docker")
"""Programs that most servers are started with, listed even where no server needs them."""

_PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "sudo apt-get install": {
        "gnome-keyring": "gnome-keyring", "node": "nodejs", "npx": "npm", "docker": "docker.io", "git": "git",
        "python3": "python3",
    },
    "brew install": {
        "node": "node", "npx": "node", "uvx": "uv", "docker": "docker", "git": "git", "python3": "python",
    },
    "sudo dnf install": {
        "gnome-keyring": "gnome-keyring", "node": "nodejs", "npx": "nodejs-npm", "uvx": "uv", "docker": "docker",
        "git": "git",
    },
    "sudo pacman -S": {
        "gnome-keyring": "gnome-keyring", "node": "nodejs", "npx": "npm", "uvx": "uv", "docker": "docker", "git": "git",
    },
    "sudo apk add": {
        "gnome-keyring": "gnome-keyring", "node": "nodejs", "npx": "npm", "uvx": "uv", "docker": "docker", "git": "git",
    },
}  # fmt: skip
"""By the command that installs packages: the package that contains a program."""


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """``loaded`` is None if nothing of the file can be used."""

    loaded: LoadedConfig | None
    findings: tuple[Finding, ...]
    edit: str = ""
    """The command that opens the file in the user's editor."""


def read_configuration(explicit: str | None, env: Mapping[str, str], profile: str | None = None) -> ReadConfiguration:
    """Read the configuration as every command does; never raises."""
    try:
        found = find(explicit, env, profile)
    except ConfigError as error:
        text = f"the configuration cannot be looked for: {error.message}"
        return ReadConfiguration(None, (problem("configuration", text, "cd" if home_folder() else SET_HOME),))
    if not found.found:
        text = f"none yet; it would be {users_path(env)}"
        return ReadConfiguration(LoadedConfig(Config()), (warning("configuration", text, "mcphost import"),))
    edit = edit_command((found.user if found.needs_trust else found.path) or found.added, None, env)
    try:
        settings = settings_for_screen(found, env)
    except ConfigError as error:
        return ReadConfiguration(None, tuple(_problems(error, env)), edit)
    findings = [each for one in settings.loaded.problems for each in _problems(one, env)]
    if settings.untrusted is not None:
        text = settings.untrusted.partition(f"; to see what it would run and decide: {TRUST_COMMAND}")[0]
        findings.append(warning("project", text, TRUST_COMMAND))
    elif found.needs_trust:
        findings.append(ok("project", f"{found.path} is trusted"))
    if not settings.loaded.problems:
        findings.insert(0, ok("configuration", _contents(settings.found, settings.loaded)))
    return ReadConfiguration(settings.loaded, tuple(findings), edit)


def _problems(error: ConfigError, env: Mapping[str, str], topic: str = "configuration") -> Iterator[Finding]:
    for each in error.problems if isinstance(error, ConfigErrors) else (error,):
        yield problem(topic, str(each), edit_command(each.path, each.line, env))


def saved_calls(config: Config, env: Mapping[str, str]) -> Iterator[Finding]:
    """Check the saved calls beside the configuration: each can be read, and its server is configured."""
    topic, file = "saved calls", calls_file(config, values_for(config, env))
    try:
        loaded = file.read()
    except ConfigError as error:
        yield from _problems(error, env, topic)
        return
    for each in loaded.problems:
        yield from _problems(each, env, topic)
    for call in loaded.calls:
        if call.server not in config.servers:
            text = f"{file.path}: {call.name} is for {call.server}, which is not configured"
            yield warning(topic, text, edit_command(file.path, None, env))
    if loaded.calls:
        yield ok(topic, f"{file.path}: {len(loaded.calls)} can be read")


def _contents(found: ConfigLocation, loaded: LoadedConfig) -> str:
    config = loaded.config
    files = " and ".join(str(path) for path in (found.path, found.user, found.added) if path is not None)
    return f"{files or 'none'}: {len(config.servers)} servers, {len(config.models)} models, no problems"


def missing_programs(config: Config, env: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the programs that are missing, each with the servers that need it."""
    path = _path(env)
    missing: dict[str, list[str]] = {}
    for name, server in config.servers.items():
        program = server.command if server.enabled else None
        if program and "${" not in program and _find(program, server, path) is None:
            missing.setdefault(program, []).append(name)
    return missing


def programs(
    config: Config, env: Mapping[str, str], absent: Mapping[str, Sequence[str]], edit: str
) -> Iterator[Finding]:
    """Check the programs of ``config`` and the usual launchers.

    ``absent`` comes from `missing_programs`; ``edit`` is the command to correct a file.
    """
    path = _path(env)
    for program, servers in absent.items():
        needs = "needs" if len(servers) == 1 else "need"
        text = f"{program} is missing, which {', '.join(servers)} {needs}; not started"
        yield problem("program", text, install_command(program, path) or edit)
    needed = {server.command for server in config.servers.values() if server.enabled}
    there = {name: found for name in LAUNCHERS if (found := shutil.which(name, path=path))}
    missing = [name for name in LAUNCHERS if name not in there and name not in needed]
    words = [*there.values(), *([f"no {', '.join(missing)} (no server here needs it)"] if missing else [])]
    yield ok("programs", ", ".join(words) or "none is needed")


def _path(env: Mapping[str, str]) -> str:
    return os.pathsep.join(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))


def _find(program: str, server: ServerConfig, path: str) -> str | None:
    if os.sep not in program:
        own = server.env.get("PATH", path)
        return program if "${" in own else shutil.which(program, path=own)
    if server.cwd is not None and "${" in server.cwd:
        return program  # the folder is not known before the values are
    return shutil.which(os.path.join(os.path.expanduser(server.cwd or "."), os.path.expanduser(program)))


def install_command(program: str, path: str) -> str:
    """Return the command that installs a program; empty if it is not known."""
    if program == "uvx" and shutil.which("pipx", path=path):
        return "pipx install uv"
    for command, packages in _PACKAGES.items():
        if program in packages and shutil.which(command.removeprefix("sudo ").partition(" ")[0], path=path):
            return f"{command} {packages[program]}"
    return "python3 -m pip install --user uv" if program == "uvx" else ""


def edit_command(path: Path | None, line: int | None, env: Mapping[str, str]) -> str:
    """Return the command that opens a file in the user's editor, at a line."""
    if path is None:
        return ""
    editor = env.get("VISUAL") or env.get("EDITOR") or "vi"
    return " ".join(filter(None, [editor, f"+{line}" if line else "", shlex.quote(str(path))]))
