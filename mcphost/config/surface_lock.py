"""The lock of surfaces: what servers offered when it was written, in TOML to be kept with a project.

It is sorted and holds no times, so that a change of it is a change of a server. It allows nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from mcphost.config.fields import ConfigTable, Several
from mcphost.config.files import read_regular, text_of
from mcphost.config.problems import TableValidator
from mcphost.errors import ConfigError
from mcphost.json_values import canonical
from mcphost.redaction import safe_command

LOCK_FILE: Final = "mcphost.lock"

LOCK_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a lock: that of a thousand tools has half a megabyte."""

HEADER: Final = "# Written by mcphost lock; mcphost lock --check fails if a server offers something else.\n"

_Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


class LockedItem(ConfigTable):
    """A tool, prompt, template, resource or skill. Only ``definition`` decides; the rest says what changed."""

    definition: _Digest
    tokens: int | None = None
    """About what the definition costs a model in each request."""
    members: dict[str, str] = Field(default_factory=dict)
    arguments: dict[str, str] = Field(default_factory=dict)
    hints: dict[str, bool] = Field(default_factory=dict)
    files: dict[str, str] | None = None
    """The digests and sizes of a skill's files, by their paths; None if it gives none."""


class LockedServer(ConfigTable):
    """A server. ``identity`` is its command line or address, with the names of its variables and without values."""

    identity: str = ""
    name: str = ""
    server_version: str = ""
    revision: str = ""
    instructions: _Digest | Literal[""] = ""
    capabilities: Several[str] = ()
    """Paths, followed by `` = `` and JSON where the value is not ``true``."""
    tools: dict[str, LockedItem] | None = None
    """None, as of the others: not known."""
    prompts: dict[str, LockedItem] | None = None
    templates: dict[str, LockedItem] | None = None
    resources: dict[str, LockedItem] | None = None
    skills: dict[str, LockedItem] | None = None
    """Not written for a server that declares none."""


class SurfaceLock(ConfigTable):
    """The whole file."""

    version: Literal[1]
    servers: dict[str, LockedServer] = Field(default_factory=dict)


def read_lock(path: Path) -> SurfaceLock:
    """Read a lock. Raises ConfigError, which names the file, or FileNotFoundError."""
    content = read_regular(path, LOCK_BYTES)
    try:
        text = text_of(content)
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"is not a lock that mcphost wrote ({str(error)[:200]})"
        raise ConfigError(f"{why}; restore it, or remove it and write it again with mcphost lock", path=path) from None
    if data.get("version") != 1:
        sentence = "is not a lock of version 1; write it again with mcphost lock, or use the mcphost that wrote it"
        raise ConfigError(sentence, path=path)
    return TableValidator(text, path).validated(SurfaceLock, data, ())


def policy_lock(path: Path) -> SurfaceLock:
    """Read the lock of ``[policy]``. Raises ConfigError."""
    try:
        return read_lock(path)
    except FileNotFoundError:
        sentence = "policy.lock names this file, and it does not exist; write it with mcphost lock"
        raise ConfigError(sentence, path=path) from None


def writable(text: str) -> str:
    """The text as a file can hold it: halves of characters, which JSON can carry, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def steady_skill(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a skill with its files in one order, which says nothing."""
    files = entry.get("resources")
    return {**entry, "resources": sorted(files, key=canonical)} if isinstance(files, list) else dict(entry)


@lru_cache  # asked for at each call of a tool that is locked
def safe_identity(identity: str) -> str:
    """A command line or address as a lock keeps it: without the values that look secret."""
    return writable(safe_command(identity))


def lock_text(lock: SurfaceLock) -> str:
    """The lock as TOML, sorted."""
    import tomli_w  # late: not needed for reading

    servers = {name: _plain(server.model_dump(exclude_defaults=True)) for name, server in sorted(lock.servers.items())}
    return writable(HEADER + tomli_w.dumps({"version": lock.version, "servers": servers}))


def _plain(server: Mapping[str, object]) -> dict[str, object]:
    """The table of a server with sorted names; an empty kind stays, since it says that there is nothing."""
    return {key: _sorted(value) if isinstance(value, dict) else value for key, value in server.items()}


def _sorted(table: Mapping[str, object]) -> dict[str, object]:
    return {name: _sorted(each) if isinstance(each, dict) else each for name, each in _by_name(table)}


def _by_name(table: Mapping[str, object]) -> list[tuple[str, object]]:
    return sorted(table.items(), key=lambda each: (isinstance(each[1], dict), each[0]))
