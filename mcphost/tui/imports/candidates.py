"""Reads the servers of other programs on this machine. All functions block on the disk: call them in a thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from mcphost.config import home_folder, working_folder
from mcphost.config.servers_file import read_servers
from mcphost.errors import ConfigError
from mcphost.imports.bundles import discard
from mcphost.imports.found import FoundServer
from mcphost.imports.importer import ImportCandidate, Importer
from mcphost.imports.secrets import lines_of
from mcphost.imports.survey import read_host, survey
from mcphost.tui.imports.candidate_list import Row, rows_of


def found_here(importer: Importer) -> list[Row]:
    """The servers of all files of known hosts, compared with those that were added before. Raises ConfigError."""
    place = (os.environ, home_folder(), sys.platform, working_folder())
    files, found = survey(*place), []
    for host in dict.fromkeys(file.host.id for file in files if not file.problem):
        with suppress(ConfigError):  # the survey says which file cannot be read
            found += read_host(host, *place)
    whole = [str(file.path) for file in files if not file.problem]
    return rows_of(files, importer.compare(found, whole))


def compared(importer: Importer, found: Sequence[FoundServer]) -> tuple[ImportCandidate, ...]:
    """Return those of the servers that can be added. Raises ConfigError."""
    return importer.compare(found).candidates


def discard_unused(folders: Iterable[Path], importer: Importer) -> None:
    """Remove the unpacked bundles that did not become a server."""
    entries = repr(read_servers(importer.path))
    for folder in folders:
        if folder.name not in entries:
            discard(folder)


def lines_with_secrets(candidate: ImportCandidate) -> tuple[int, ...]:
    """The lines (from 1) of the file there that hold the candidate's secrets."""
    place = candidate.found.origin.place
    if not os.path.isabs(place):
        return ()
    lines = {line for secret in candidate.secrets for line in lines_of(Path(place), secret.value)}
    return tuple(sorted(lines))
