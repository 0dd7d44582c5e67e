"""The names that can be completed: entries of the configuration, and what servers offered when they last ran.

What a server calls its tools is put into a command line, so only names that no shell reads as anything else count.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from mcphost.json_values import as_text, dicts_in
from mcphost.places import CALLS_FILE, PROJECT_FILE, SERVERS_FILE, state_path, users_path
from mcphost.posix import NotRegularError, open_regular

REMEMBERED: Final = "completion.json"
"""The state file with what servers offered: by server and kind, each item with the names of its arguments."""

ITEMS: Final = 500
"""Items of one kind that are remembered of a server."""

SERVERS: Final = 100

_FILE_BYTES: Final = 4_000_000
_HARMLESS: Final = re.compile(r"[\w./@%+,][\w./@%+,:-]{0,199}")
"""Letters of all scripts, which no shell reads as anything else. A blank would have to be quoted, in each shell
differently, and bash's script would see two words."""

Offered = dict[str, dict[str, list[str]]]
"""The items of a server: kind, name, names of arguments."""


def is_harmless(name: str) -> bool:
    """True if this name may be put into a command line as it is."""
    if _HARMLESS.fullmatch(name) is None:
        return False
    # Letters that are written from right to left would turn the rest of the line around.
    return name.isascii() or not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in name)


class KnownNames:
    """Reads files when they are asked for; what cannot be read has no names."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self._env, self._cwd = env, cwd

    def servers(self, config: str | None = None) -> list[str]:
        """The servers of the file ``config``, else of the user's own files and this folder's."""
        return self._entries(config, ("servers", "mcp_servers"))

    def models(self, config: str | None = None) -> list[str]:
        return self._entries(config, ("models",))

    def identities(self, config: str | None = None) -> list[str]:
        return self._entries(config, ("identity",))

    def profiles(self, config: str | None = None) -> list[str]:
        return self._entries(config, ("profiles",))

    def items(self, server: str, kind: str) -> list[str]:
        """Return the names that a server offered of a kind: tools, prompts, resources, templates or skills."""
        return list(filter(is_harmless, self._offered(server).get(kind, {})))

    def arguments(self, server: str, kind: str, item: str) -> list[str]:
        return list(filter(is_harmless, self._offered(server).get(kind, {}).get(item, ())))

    def chats(self) -> list[str]:
        """The ids of saved conversations, newest first."""
        with suppress(OSError):
            found = list((state_path(self._env) / "chats").glob("*.jsonl"))
            return [path.stem for path in sorted(found, key=os.path.getmtime, reverse=True) if is_harmless(path.stem)]
        return []

    def saved_calls(self, config: str | None = None) -> dict[str, tuple[str, str, str]]:
        """The saved calls by name, each with its server, its kind (such as tools), and what it calls."""
        project = self._cwd / PROJECT_FILE
        beside = Path(config) if config is not None else project if project.exists() else users_path(self._env)
        found: dict[str, tuple[str, str, str]] = {}
        with suppress(OSError, ValueError, RecursionError):
            calls = tomllib.loads(_start_of(beside.with_name(CALLS_FILE)).decode("utf-8-sig")).get("call")
            for each in dicts_in(calls)[:ITEMS]:
                kind = next((kind for kind in ("tool", "prompt", "resource") if kind in each), "")
                if is_harmless(name := as_text(each.get("name"))):
                    found.setdefault(name, (as_text(each.get("server")), f"{kind}s", as_text(each.get(kind))))
        return found

    def tools_in(self, file: str, table: str) -> list[str]:
        """The tools that a state file names, as ``SERVER:TOOL``."""
        found = (f"{as_text(each.get('server'))}:{as_text(each.get('tool'))}" for each in self._state(file, table))
        return list(dict.fromkeys(name for name in found if is_harmless(name)))

    def wrapped(self, host: str) -> list[str]:
        """The servers of a host that start mcphost."""
        found = (as_text(each.get("name")) for each in self._state("wrapped", "entry") if each.get("host") == host)
        return list(dict.fromkeys(filter(is_harmless, found)))

    def _state(self, file: str, table: str) -> list[dict[str, Any]]:
        with suppress(OSError, ValueError, RecursionError):
            data = tomllib.loads(_start_of(state_path(self._env) / f"{file}.toml").decode())
            return list(dicts_in(data.get(table)))
        return []

    def _entries(self, config: str | None, sections: Iterable[str]) -> list[str]:
        names: dict[str, None] = {}
        for path in self._files(config):
            with suppress(OSError, ValueError, RecursionError):
                data = tomllib.loads(_start_of(path).decode("utf-8-sig"))
                tables = [table for name in sections if isinstance(table := data.get(name), dict)]
                names |= dict.fromkeys(filter(is_harmless, (name for table in tables for name in table)))
        return list(names)

    def _files(self, config: str | None) -> Iterator[Path]:
        if config is not None:
            yield Path(config)
            return
        users = users_path(self._env)
        yield from (users, users.with_name(SERVERS_FILE), self._cwd / PROJECT_FILE)

    def _offered(self, server: str) -> Offered:
        return self._remembered.get(server, {})

    @cached_property
    def _remembered(self) -> dict[str, Offered]:
        return read_offered(state_path(self._env))


def read_offered(state: Path) -> dict[str, Offered]:
    """Return what is remembered, by server; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        data = json.loads(_start_of(state / REMEMBERED))
        return {server: _checked(offered) for server, offered in data.items()} if isinstance(data, dict) else {}
    return {}


def _checked(offered: Any) -> Offered:
    """Only what has the right shape, whoever wrote the file."""
    kinds = offered.items() if isinstance(offered, dict) else ()
    return {
        kind: {name: [each for each in arguments if isinstance(each, str)] for name, arguments in items.items()}
        for kind, items in kinds
        if isinstance(items, dict) and all(isinstance(arguments, list) for arguments in items.values())
    }


def offered_text(remembered: Mapping[str, Offered], now: Mapping[str, Offered]) -> str:
    """The content of the file: what was remembered with what these servers offer now, bounded."""
    kept = {**{name: each for name, each in remembered.items() if name not in now}, **now}
    return json.dumps(dict(list(kept.items())[-SERVERS:]), sort_keys=True)


def harmless_items(items: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """The items that can be completed, with their arguments."""
    found = ((name, [each for each in arguments if is_harmless(each)][:ITEMS]) for name, arguments in items)
    return dict([each for each in found if is_harmless(each[0])][:ITEMS])


def _start_of(path: Path) -> bytes:
    """The content of a regular file, up to a bound: a pipe would hold the shell."""
    with suppress(NotRegularError), open(open_regular(path), "rb") as file:
        return file.read(_FILE_BYTES)
    return b""
