"""The programs that servers are started with."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mcphost.cli.doctor.findings import Finding, ok, problem
from mcphost.config import Config, ServerConfig

LAUNCHERS: Final = ("node", "npx", "uvx", "docker")
"""What most servers are started with, named whether a server needs it or not."""

_PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "apt-get": {
        "gnome-keyring": "gnome-keyring",
        "node": "nodejs",
        "npx": "npm",
        "docker": "docker.io",
        "git": "git",
        "python3": "python3",
    },
    "brew": {"node": "node", "npx": "node", "uvx": "uv", "docker": "docker", "git": "git", "python3": "python"},
    "dnf": {
        "gnome-keyring": "gnome-keyring",
        "node": "nodejs",
        "npx": "nodejs-npm",
        "uvx": "uv",
        "docker": "docker",
        "git": "git",
    },
    "pacman": {
        "gnome-keyring": "gnome-keyring",
        "node": "nodejs",
        "npx": "npm",
        "uvx": "uv",
        "docker": "docker",
        "git": "git",
    },
    "apk": {
        "gnome-keyring": "gnome-keyring",
        "node": "nodejs",
        "npx": "npm",
        "uvx": "uv",
        "docker": "docker",
        "git": "git",
    },
}
"""The package that brings a program, by the program that installs it."""

_INSTALL: Final = {
    "apt-get": "sudo apt-get install",
    "brew": "brew install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "apk": "sudo apk add",
}


def missing_programs(config: Config, env: Mapping[str, str]) -> dict[str, list[str]]:
    """The programs that are not there, each with the servers that need it."""
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
    """Findings about the programs of ``config`` and the usual launchers.

    ``absent`` is as from `missing_programs`; ``edit`` is the command to correct a file.
    """
    path = _path(env)
    for program, servers in absent.items():
        needs = "needs" if len(servers) == 1 else "need"
        text = f"{program} is not there, which {', '.join(servers)} {needs}; not started"
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
        return program  # where it starts is not known before its values are
    return shutil.which(os.path.join(os.path.expanduser(server.cwd or "."), os.path.expanduser(program)))


def install_command(program: str, path: str) -> str:
    """The command that installs a program; empty where it is not known."""
    if program == "uvx" and shutil.which("pipx", path=path):
        return "pipx install uv"
    for installer, packages in _PACKAGES.items():
        if program in packages and shutil.which(installer, path=path):
            return f"{_INSTALL[installer]} {packages[program]}"
    return "python3 -m pip install --user uv" if program == "uvx" else ""


def edit_command(path: Path | None, line: int | None, env: Mapping[str, str]) -> str:
    """The command that opens a file in the user's editor, at a line."""
    if path is None:
        return ""
    editor = env.get("VISUAL") or env.get("EDITOR") or "vi"
    return " ".join(filter(None, [editor, f"+{line}" if line else "", shlex.quote(str(path))]))
