"""Finds the servers that one line describes: a command line, a URL, a link, a file, JSON, or a registry name."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcphost.errors import ConfigError, UsageError
from mcphost.imports.downloads import server_name
from mcphost.imports.found import FoundServer
from mcphost.imports.sources import (
    AddKind,
    AddRequest,
    ResolvedAdd,
    ServerSources,
    kind_of_add,
    this_machine,
)
from mcphost.imports.survey import read_any, read_file

LONGEST_PATH: Final = 4096  # characters; PATH_MAX of Linux

LOCAL: Final = frozenset({AddKind.PROGRAM, AddKind.LINK, AddKind.FILE})
"""Kinds that are read without calling an address."""

_ONE_WORD: Final = re.compile(r"\S+")


class ServerLineReader:
    """Unpacks bundles into ``bundles``; ``registries`` are asked for names."""

    def __init__(self, bundles: Path, registries: Sequence[str]) -> None:
        self._bundles, self._registries = bundles, tuple(registries)

    def is_local(self, line: str) -> bool:
        """True if reading the line calls no address. Raises ConfigError or UsageError for a line without meaning."""
        return _is_json(line) or kind_of_add(self._request(line)) in LOCAL

    async def find(self, line: str) -> ResolvedAdd:
        """Return the servers that the line describes. Raises McphostError."""
        if _is_json(line):
            return ResolvedAdd(tuple(await asyncio.to_thread(read_any, line.encode("utf-8", "replace"))))
        request = self._request(line)
        if kind_of_add(request) is AddKind.FILE:
            try:
                return ResolvedAdd(tuple(await asyncio.to_thread(_read_file, request.word)))
            except ConfigError:
                pass  # not another program's configuration; perhaps a bundle or a server.json
        return await ServerSources(this_machine(), self._bundles).find(request)

    def _request(self, line: str) -> AddRequest:
        if _ONE_WORD.fullmatch(line) or _is_file(line):
            try:
                request = AddRequest(line, registries=self._registries)
                kind_of_add(request)
            except UsageError:
                if shutil.which(line) is None:
                    raise ConfigError(
                        "is not an address, file, link, registry name, or program on this machine"
                    ) from None
            else:
                return request
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ConfigError(f"is not a command line: {str(error).lower()}") from None
        return AddRequest(server_name(words), tuple(words))


def _is_json(line: str) -> bool:
    return line.startswith(("{", "["))


def _is_file(line: str) -> bool:
    try:
        return len(line) <= LONGEST_PATH and os.path.isfile(os.path.expanduser(line))
    except ValueError:
        return False


def _read_file(path: str) -> list[FoundServer]:
    return read_file(Path(os.path.expanduser(path)))
