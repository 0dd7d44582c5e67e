"""Reads what other programs on this machine have configured. All of it blocks on the disk: call it in a thread."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.errors import ConfigError
from mcphost.imports.commands import program_name
from mcphost.imports.downloads import downloads_of
from mcphost.imports.found import FoundServer, Origin, digest_of, legal_name
from mcphost.imports.importer import ImportCandidate, Importer
from mcphost.imports.secrets import lines_of
from mcphost.imports.survey import read_any, read_file, read_host, survey
from mcphost.tui.imports.found import Row, rows_of

LONGEST_PATH: Final = 4096
"""Characters of a path."""


def found_here(importer: Importer) -> list[Row]:
    """The servers of all files of known hosts, compared with those that were added before. Raises ConfigError."""
    place = (os.environ, Path.home(), sys.platform, Path.cwd())
    files, found = survey(*place), []
    for host in dict.fromkeys(file.host.id for file in files if not file.problem):
        with suppress(ConfigError):  # the survey says which file cannot be read
            found += read_host(host, *place)
    whole = [str(file.path) for file in files if not file.problem]
    return rows_of(files, importer.compare(found, whole))


def servers_named(text: str) -> list[FoundServer]:
    """The servers that a line means: an address, a file, an entry's JSON, or a command line. Raises ConfigError."""
    if re.match(r"https?://", text, re.IGNORECASE):
        return [_server({"url": text}, urlsplit(text).hostname or "server", text)]
    if text.startswith(("{", "[")):
        return read_any(text.encode("utf-8", "replace"))
    path = Path(os.path.expanduser(text))
    if len(text) < LONGEST_PATH and path.is_file() and not os.access(path, os.X_OK):
        return read_file(path)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"is no command line: {str(error).lower()}") from None
    packages = downloads_of(words, {})
    name = packages[0].package if packages else program_name(words[0])
    return [_server({"command": words[0], "args": words[1:]}, name.rpartition("/")[2], "")]


def _server(table: dict[str, Any], name: str, place: str) -> FoundServer:
    return FoundServer(legal_name(name), Origin("command line", place, name, digest_of(table)), table)


def compared(importer: Importer, found: Sequence[FoundServer]) -> tuple[ImportCandidate, ...]:
    """What may be taken in of these servers. Raises ConfigError."""
    return importer.compare(found).candidates


def lines_with_secrets(candidate: ImportCandidate) -> tuple[int, ...]:
    """The lines (from 1) of the file there that hold the candidate's secrets."""
    place = candidate.found.origin.place
    if not os.path.isabs(place):
        return ()
    lines = {line for secret in candidate.secrets for line in lines_of(Path(place), secret.value)}
    return tuple(sorted(lines))
