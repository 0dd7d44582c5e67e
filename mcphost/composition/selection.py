"""The servers that a command line names: entries of the configuration, URLs and ``stdio:`` commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from pydantic import ValidationError

from mcphost.config import Config, GivenServer, LoadedConfig, ServerConfig
from mcphost.errors import ConfigError, UnknownName, UsageError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import first_problem

COMMAND_PREFIX: Final = "stdio:"


def is_ad_hoc(argument: str) -> bool:
    """True if this SERVER is a URL or a ``stdio:`` command, instead of the name of an entry."""
    return argument.startswith((COMMAND_PREFIX, "http://", "https://"))


def server_from_argument(argument: str) -> ServerConfig:
    """The server of a URL or of ``stdio:COMMAND LINE``, which is split as a shell does. Raises ConfigError."""
    if not argument.startswith(COMMAND_PREFIX):
        return _at_address(argument)
    try:
        words = shlex.split(argument.removeprefix(COMMAND_PREFIX))
    except ValueError as error:
        raise ConfigError(f"the command line after stdio: cannot be split: {error}") from None
    if not words or not words[0].strip():
        raise ConfigError("stdio: needs a command line, such as 'stdio:python server.py'")
    # There is nothing to validate here, and building the validator takes longer than a call.
    return GivenServer.model_construct(command=words[0], args=tuple(words[1:]))


def _at_address(url: str) -> ServerConfig:
    try:
        return GivenServer.model_validate({"url": url})
    except ValidationError as error:
        raise ConfigError(f"the address: {first_problem(error).removeprefix('url: ')}") from None


@dataclass(frozen=True, slots=True)
class Selection:
    """The servers of a command line; ``broken`` are those of them that cannot run as configured."""

    config: Config
    """The configuration with these servers only."""
    names: tuple[str, ...]
    broken: dict[str, ConfigError] = field(default_factory=dict)
    problems: tuple[ConfigError, ...] = ()
    """All that is wrong in the files, or with the profile."""


def select(loaded: LoadedConfig, arguments: Sequence[str]) -> Selection:
    """The servers that ``arguments`` name; without any, every enabled entry. Raises ConfigError or UnknownName."""
    if not arguments:
        enabled = {name: server for name, server in loaded.config.servers.items() if server.enabled}
        return _selection(loaded, enabled, dict(loaded.disabled))
    servers: dict[str, ServerConfig] = {}
    broken: dict[str, ConfigError] = {}
    for argument in dict.fromkeys(arguments):
        if is_ad_hoc(argument):
            server = server_from_argument(argument)
            servers[_free_name(loaded, servers, "http" if server.url else "stdio")] = server
        elif argument in loaded.disabled:
            broken[argument] = loaded.disabled[argument]
        else:
            servers[argument] = _entry(loaded, argument)
    return _selection(loaded, servers, broken)


def select_entries(loaded: LoadedConfig, names: Sequence[str], *, some: bool = True) -> Selection:
    """As `select`, for entries alone; ``some`` of them must be able to run. Raises UsageError for another server."""
    if unnamed := next(filter(is_ad_hoc, names), None):
        raise UsageError(f"name an entry of the configuration; to add this server: mcphost add {unnamed!a}")
    chosen = select(loaded, names)
    for error in chosen.broken.values() if names else ():
        raise error
    if some and not chosen.names:
        raise ConfigError("no server that can run is configured; see: mcphost help servers")
    return chosen


def _selection(loaded: LoadedConfig, servers: dict[str, ServerConfig], broken: dict[str, ConfigError]) -> Selection:
    config = loaded.config.model_copy(update={"servers": servers})
    return Selection(config, tuple(servers), broken, tuple(loaded.problems))


def _free_name(loaded: LoadedConfig, taken: Mapping[str, ServerConfig], first: str) -> str:
    """A free name for a server without one; an entry's name would bring that entry's rules and approvals."""
    used = {*loaded.config.servers, *loaded.disabled, *taken}
    return next(name for name in _names(first) if name not in used)


def _names(first: str) -> Iterator[str]:
    yield first
    number = 2
    while True:
        yield f"{first}-{number}"
        number += 1


def _entry(loaded: LoadedConfig, name: str) -> ServerConfig:
    server = loaded.config.servers.get(name)
    if server is None:
        raise UnknownName(_no_such_server(name, [*loaded.config.servers, *loaded.disabled]))
    if not server.enabled:
        raise ConfigError(f"servers.{name}: is switched off; set enabled = true", path=loaded.config.path)
    return server


def _no_such_server(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # late: needed only for a mistyped name

    if near := get_close_matches(name, known, 3):
        return f"no server is called {name!r}; did you mean {' or '.join(near)}?"
    there = f"configured: {', '.join(known[:12])}" if known else "none is configured"
    return f"no server is called {name!r}; {there}; to run a program, write 'stdio:COMMAND LINE'"
