"""A dialect as data: the place of servers in a document, and the spelling of their entries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal

from mcphost.imports.documents import Kind
from mcphost.imports.variables import Syntax
from mcphost.lazy_dataclass import dataclass

MILLISECONDS: Final = 0.001
SECONDS: Final = 1.0

COMMON_KEYS: Final[Mapping[str, str]] = {
    "command": "command", "args": "args", "env": "env", "cwd": "cwd", "url": "url", "http_headers": "headers",
}  # fmt: skip
"""The keys that most hosts use, by mcphost's own keys."""

PROGRAM_KEYS: Final = frozenset({"command", "args", "env", "cwd"})

TimeoutKey = Literal["tool_timeout_sec", "startup_timeout_sec"]
Timeouts = Mapping[str, tuple[TimeoutKey, float | None]]
Wire = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class HostDocument:
    """Where a document was read."""

    host: str
    """The host's id, for `Origin.source`."""
    place: str
    """The path of the file, or what stands for it, such as ``stdin``."""
    label: str = ""
    scope: str = ""
    folder: Path | None = None
    """The folder of the file, to which paths in it are relative; None for a paste."""
    workspace: Path | None = None
    """The folder of the project to which the file belongs; None: it is the user's own."""
    platform: str = sys.platform


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """A group of servers in a document: a mapping by name, or a list of entries that hold their names."""

    entries: object
    scope: str = ""
    inputs: object = None
    """VS Code's ``inputs``, unchecked."""
    workspace: Path | None = None
    """The folder of the project that they are for, where the document says so itself."""


@dataclass(frozen=True, slots=True)
class EntryShape:
    """The spelling of an entry that is written. Entries are read without it, by the keys of all hosts."""

    keys: Mapping[str, str] = field(default_factory=lambda: COMMON_KEYS)
    """The host's keys as dotted paths, by mcphost's own keys; a key that is missing here cannot be written."""
    types: Mapping[Wire, str] = field(default_factory=dict)
    """The value of ``type`` for each wire; none is written for a wire that is not here."""
    type_key: str = "type"
    lacks: tuple[Wire, ...] = ()
    """Transports that the host does not speak."""
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Members of every entry."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Members of an entry that says nothing else about them."""
    named: bool = False
    """Entries hold their names."""
    sse_url: str = ""
    """The key of the URL of a server with the older SSE, where it is another one."""
    command_list: bool = False
    """``command`` holds the arguments as well."""
    header_lines: bool = False
    """Headers are written as a list of ``Name: value`` lines."""
    scopes_as_text: bool = False
    """Scopes are written as one text, with spaces between."""
    oauth: Mapping[str, str] = field(default_factory=dict)
    """The host's keys as dotted paths, by mcphost's keys of ``oauth``; empty if the host has none."""
    enabled: Literal["", "enabled", "disabled"] = ""
    """The key that switches an entry off."""


@dataclass(frozen=True, slots=True)
class HostDialect:
    """The format in which a family of hosts writes servers."""

    id: str
    groups: Callable[[Mapping[str, Any]], Iterator[EntryGroup]]
    """Finds the servers in a document; yields nothing where it holds none of this dialect."""
    path: tuple[str, ...]
    """The keys under which the servers are written."""
    syntax: Syntax
    timeouts: Timeouts = field(default_factory=dict)
    """Keys of timeouts, each with ours and its unit in seconds; None: unknown, taken for milliseconds from 1000 on."""
    shape: EntryShape = EntryShape()
    kind: Kind = "json"
    as_list: bool = False
    """Entries are written as a list and hold their names."""
    inputs: bool = False
    """Secrets are written as ``inputs`` that the host asks for."""
    program_syntax: Syntax | None = None
    """The spelling of variables in command, arguments and environment, if it differs."""

    def syntax_of(self, key: str) -> Syntax:
        """Return the syntax of variables in the value of one of mcphost's keys."""
        return self.program_syntax if self.program_syntax is not None and key in PROGRAM_KEYS else self.syntax
