"""Finds the files of known hosts on this machine, counts their servers, and reads them. Changes and runs nothing.

Everything here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from mcphost.config.files import read_regular
from mcphost.errors import ConfigError, UnknownName
from mcphost.imports.dialects.dialect import HostDialect, HostDocument
from mcphost.imports.dialects.entries import named_entries, read_group
from mcphost.imports.dialects.table import dialect_of, looks_like_entry
from mcphost.imports.documents import MAX_BYTES, MAX_HISTORY_BYTES, kind_of, read_document
from mcphost.imports.found import FoundServer
from mcphost.imports.hosts import BY_ID, HOSTS, FilePlace, KnownHost
from mcphost.lazy_dataclass import dataclass

MAX_MATCHES: Final = 50
"""Files that one place with ``*`` stands for."""

MAX_FOLDERS: Final = 2000
"""Folders that are looked at for one place with ``**``."""

MAX_LEVELS: Final = 6
"""Levels of folders that ``**`` stands for."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file of a known host. ``servers`` is how many it has; ``problem`` says why it could not be read."""

    host: KnownHost
    path: Path
    scope: str
    """A label that sets it apart from the host's other files, such as ``project``; empty for the user's main file."""
    servers: int
    problem: str = ""


def survey(
    env: Mapping[str, str], home: Path | None, platform: str, project: Path | None, hosts: Iterable[KnownHost] = HOSTS
) -> list[HostFile]:
    """List the files with servers, and those that cannot be read. ``platform`` is as `sys.platform`.

    ``project`` is the folder whose project files count, such as the working directory. With ``home`` None no others
    do. A file that several hosts read is listed once.
    """
    return list(_survey(env, home, platform, project, hosts))


def read_host(
    host: str, env: Mapping[str, str], home: Path | None, platform: str, project: Path | None
) -> list[FoundServer]:
    """Read all servers of the host with this id.

    A file that cannot be read is left out where another one can; `survey` names it. Raises UnknownName, and ConfigError
    where no file can be read.
    """
    if host not in BY_ID:
        raise UnknownName(f"{host[:64]!a} is not a known host; known are {', '.join(BY_ID)}")
    found: list[FoundServer] = []
    failures: list[ConfigError] = []
    for place, path, scope in _files(BY_ID[host], env, home, platform, project):
        try:
            found += _read_file(BY_ID[host], place, path, scope, platform, project)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            failures.append(error)
    if failures and not found:
        raise failures[0]
    return found


def files_of(host: str, env: Mapping[str, str], home: Path | None, platform: str, project: Path | None) -> list[Path]:
    """The files of the host with this id that are there and can be read, with or without servers."""
    readable = []
    for place, path, _ in _files(BY_ID[host], env, home, platform, project):
        with suppress(FileNotFoundError, ConfigError):
            _count(BY_ID[host], place, path)
            readable.append(path)
    return readable


def places_of(
    host: KnownHost, env: Mapping[str, str], home: Path | None, platform: str, project: Path | None
) -> list[tuple[Path, str, int]]:
    """The files that are there of a host, readable or not: each with its scope and the limit of its size in bytes."""
    found = _files(host, env, home, platform, project)
    return [(path, scope, place.limit) for place, path, scope in found if os.path.lexists(path)]


def read_file(path: Path, platform: str = sys.platform) -> list[FoundServer]:
    """Read the servers of a file that the user names, in the dialect of the host whose file it looks like.

    Raises ConfigError.
    """
    try:
        content = read_regular(path, MAX_HISTORY_BYTES if path.name == ".claude.json" else MAX_BYTES)
    except FileNotFoundError:
        raise ConfigError("there is no such file", path=path) from None
    except ValueError:
        raise ConfigError("is not a path") from None
    try:
        return read_any(content, str(path.absolute()), platform)
    except ConfigError as error:
        raise _at(error, path) from None


def read_any(content: bytes, place: str = "stdin", platform: str = sys.platform) -> list[FoundServer]:
    """Read the servers of a document of any known shape. ``place`` is the path of its file, or what stands for it.

    Raises ConfigError if it is not a document, or holds no servers.
    """
    path = Path(place) if os.path.isabs(place) else None
    if path is None and content.lstrip().startswith(b'"'):  # members without the braces around them
        content = b"{%b}" % content
    document = _whole(read_document(content, kind_of(content, place)))
    host, project = host_of(path) if path else (None, None)
    dialect = host.dialect if host is not None and any(host.dialect.groups(document)) else dialect_of(document)
    if dialect is None:
        raise _unknown_shape()
    source = HostDocument(
        host.id if host else "file" if path else "paste",
        place,
        host.label if host else "",
        folder=path.parent if path else None,
        workspace=project,
        platform=platform,
    )
    found = _servers(dialect, document, source)
    if host is None:
        rest = {key: value for key, value in document.items() if key != dialect.path[0]}
        found += [server for server in _servers_beside(rest, source) if server not in found]
    return found


def _servers_beside(document: Mapping[str, object], source: HostDocument) -> list[FoundServer]:
    """The servers that the document has under another host's key as well."""
    try:
        dialect = dialect_of(document)
        return _servers(dialect, document, source) if dialect else []
    except ConfigError:  # a key of the same name that is about something else
        return []


def host_of(path: Path) -> tuple[KnownHost | None, Path | None]:
    """The host whose file this looks like, by the end of its path; and the project's folder, for a project's file."""
    parts = path.parts
    for host in HOSTS:
        for place in host.project:
            if _ends_like(parts, place.path):
                return host, Path(*parts[: -len(place.path.split("/"))])
    for host in HOSTS:
        places = (_VARIABLE.sub(r"\2", place.path) for place in host.user if "**" not in place.path)
        if any(_ends_like(parts, place.partition("/")[2]) for place in places):
            return host, None
    return None, None


def _ends_like(parts: tuple[str, ...], pattern: str) -> bool:
    wanted = pattern.split("/")
    end = parts[-len(wanted) :]
    return pattern != "" and len(parts) > len(wanted) and all(map(fnmatchcase, end, wanted))


def _whole(document: object) -> Mapping[str, object]:
    """The document as a mapping: a lone entry gets the name of its program, a list of entries that of Continue."""
    if isinstance(document, list):
        return {"mcpServers": document}
    if not isinstance(document, Mapping):
        raise _unknown_shape()
    if looks_like_entry(document):
        name = document.get("name")
        return {"mcpServers": {name if isinstance(name, str) and name else "server": document}}
    return document


def _unknown_shape() -> ConfigError:
    return ConfigError("holds no servers as any known host writes them; a server.json or a bundle: mcphost add FILE")


def _survey(
    env: Mapping[str, str], home: Path | None, platform: str, project: Path | None, hosts: Iterable[KnownHost]
) -> Iterator[HostFile]:
    seen: set[str] = set()
    for host in hosts:
        for place, path, scope in _files(host, env, home, platform, project):
            if (real := os.path.realpath(path)) in seen:
                continue
            try:
                count = _count(host, place, path)
            except FileNotFoundError:
                continue
            except ConfigError as error:
                seen.add(real)
                place_in_file = f", line {error.line}" if error.line else ""
                yield HostFile(host, path, scope, 0, f"{error.message}{place_in_file}")
                continue
            if count:
                seen.add(real)
                yield HostFile(host, path, scope, count)


def _count(host: KnownHost, place: FilePlace, path: Path) -> int:
    document = _document(host, place, path)
    return sum(1 for group in host.dialect.groups(document) for _ in named_entries(group.entries))


def _document(host: KnownHost, place: FilePlace, path: Path) -> Mapping[str, object]:
    """Raises FileNotFoundError, and ConfigError without a path."""
    try:
        content = read_regular(path, place.limit, trusted_owner=True)
        document = read_document(content, kind_of(content, path.name))
    except (NotADirectoryError, ValueError):
        raise FileNotFoundError from None
    except ConfigError as error:
        raise ConfigError(error.message, line=error.line) from None
    if document is None:  # an empty YAML file
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError(f"is not a file of {host.label}")
    return document


def _read_file(
    host: KnownHost, place: FilePlace, path: Path, scope: str, platform: str, project: Path | None
) -> list[FoundServer]:
    source = HostDocument(
        host.id,
        str(path),
        host.label,
        scope,
        path.parent,
        project if place in host.project else None,
        platform,
    )
    try:
        return _servers(host.dialect, _document(host, place, path), source)
    except ConfigError as error:
        raise _at(error, path) from None


def _servers(dialect: HostDialect, document: Mapping[str, object], source: HostDocument) -> list[FoundServer]:
    return [server for group in dialect.groups(document) for server in read_group(group, dialect, source)]


def _at(error: ConfigError, path: Path) -> ConfigError:
    return ConfigError(error.message, path=path, line=error.line)


def _files(
    host: KnownHost, env: Mapping[str, str], home: Path | None, platform: str, project: Path | None
) -> Iterator[tuple[FilePlace, Path, str]]:
    """The files that a host may have here, with their scopes; each once. One without ``*`` need not exist."""
    seen: set[Path] = set()
    for found in _all_files(host, env, home, platform, project):
        if found[1] not in seen:
            seen.add(found[1])
            yield found


def _all_files(
    host: KnownHost, env: Mapping[str, str], home: Path | None, platform: str, project: Path | None
) -> Iterator[tuple[FilePlace, Path, str]]:
    if home is not None:
        for place in host.user:
            if place.platform in ("", platform) and (start := _expanded(place.path, env, home, platform)) is not None:
                for path, name in _matches(start):
                    yield place, path, place.scope.replace("*", name)
    for place in host.project if project is not None else ():
        for path, _ in _matches(f"{project}/{place.path}"):
            yield place, path, "project"


def _expanded(template: str, env: Mapping[str, str], home: Path, platform: str) -> str | None:
    """Fill a place's template; None where its variable is not set, or holds no absolute path."""
    xdg = env.get("XDG_CONFIG_HOME", "")
    xdg = xdg if os.path.isabs(xdg) else f"{home}/.config"
    config = {"darwin": f"{home}/Library/Application Support", "win32": env.get("APPDATA") or f"{home}/AppData/Roaming"}

    def value(match: re.Match[str]) -> str:
        given = env.get(match[1], "")
        return given if os.path.isabs(given) else match[2] or "\0"

    text = _VARIABLE.sub(value, template)
    text = text.replace("$CONFIG", config.get(platform, xdg)).replace("$XDG", xdg)
    if text == "~" or text.startswith("~/"):
        text = f"{home}{text[1:]}"
    return None if "\0" in text else text


def _matches(pattern: str) -> Iterator[tuple[Path, str]]:
    """The paths that a pattern stands for, each with the name that its ``*`` met."""
    if "*" not in pattern:
        yield Path(pattern), ""
    elif "/**/" in pattern:
        start, _, name = pattern.partition("/**/")
        for folder in _folders(start):
            if (path := Path(folder, name)).is_file():
                yield path, folder.removeprefix(f"{start}/")
    else:
        parts = pattern.split("/")
        index = next(index for index, part in enumerate(parts) if "*" in part)
        above = Path("/".join(parts[:index]) or "/")
        before, _, after = parts[index].partition("*")
        for path in islice(_listed(above, parts[index]), MAX_MATCHES):
            yield path.joinpath(*parts[index + 1 :]), path.name[len(before) : len(path.name) - len(after)]


def _listed(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if fnmatchcase(path.name, pattern))
    except OSError:
        return []


def _folders(start: str) -> Iterator[str]:
    """A folder and those in it, a few levels down."""
    walk = os.walk(start)
    for folder, below, _ in islice(walk, MAX_FOLDERS):
        level = folder.removeprefix(start).count(os.sep)
        below[:] = sorted(set(below) - {"node_modules", ".git"}) if level < MAX_LEVELS else []
        yield folder
