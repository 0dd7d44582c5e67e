"""``servers.toml``, mcphost's own file of servers beside the user's ``config.toml``, which it never writes.

Everything here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mcphost.config.files import read_regular, text_of
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.problems import TableValidator
from mcphost.config.servers import ServerConfig
from mcphost.config.state import locked, replace_file
from mcphost.errors import ConfigError

HEADER: Final = """\
# Made by `mcphost add` and `mcphost import`, which rewrite this file: comments in it do not last.
# What config.toml says of a server of the same name comes first, key by key; where it has `command` or `url`, the
# whole entry here is left aside. To take a server out: mcphost remove NAME

"""

Servers = dict[str, dict[str, Any]]
"""Entries by name, as in the file."""


def read_servers(path: Path) -> Servers:
    """The entries of the file; empty without a file. Raises ConfigError."""
    try:
        content = read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return {}
    try:
        data = tomllib.loads(text_of(content))
    except (ValueError, RecursionError):
        advice = "is not valid TOML, so nothing can be added to it; fix it, or move it away; see: mcphost config check"
        raise ConfigError(advice, path=path) from None
    servers = data.get("servers", {})
    if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
        raise ConfigError("[servers] must hold tables; see: mcphost config check", path=path)
    return servers


def update_servers(path: Path, change: Callable[[Servers], Mapping[str, Mapping[str, Any]]]) -> None:
    """Replace the file by what ``change`` makes of its entries, unless that is equal. Creates its folder.

    The file is written atomically, readable by this user alone, under a lock against all other writers. A symbolic link
    stays one. Raises ConfigError; the old content is then untouched.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = path.resolve()
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path) from None
    with locked(target):
        before = read_servers(target)
        after = change({name: dict(entry) for name, entry in before.items()})
        if after != before:
            replace_file(target, servers_toml(after, header=HEADER).encode())


def servers_toml(servers: Mapping[str, Mapping[str, Any]], *, header: str = "") -> str:
    """The entries as TOML, for the file or to be pasted."""
    import tomli_w  # late: not needed for reading

    return header + tomli_w.dumps({"servers": dict(servers)})


def validated_server(name: str, table: Mapping[str, Any]) -> ServerConfig:
    """The entry as a configuration file would give it. Raises ConfigError, which names the key and never its value."""
    server = TableValidator("", None).validated(ServerConfig, dict(table), ("servers", name))
    try:
        servers_toml({name: table}).encode()
    except (ValueError, TypeError):
        raise ConfigError(f"servers.{name}: holds characters that no file can hold") from None
    return server


def remove_server(path: Path, name: str) -> bool:
    """Take an entry out of the file; False where it is not in it. Raises ConfigError."""
    found = False

    def without(servers: Servers) -> Servers:
        nonlocal found
        found = servers.pop(name, None) is not None
        return servers

    if os.path.lexists(path):
        update_servers(path, without)
    return found
