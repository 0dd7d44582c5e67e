"""Adds the servers of a JSON file as a command of mcphost does, with a keychain in a file beside it.

    python -m tests.cli.adding_program FILE OPTIONS…

The file holds a table of entries by name; ``inputs`` and ``notes`` in one are those of the found server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mcphost.auth.storage import keychain
from mcphost.cli.add_questions import add_found
from mcphost.cli.output import Signalled
from mcphost.cli.parser import ADDING, Parser
from mcphost.cli.run import run
from mcphost.imports.found import FoundServer, ImportNote, Input, Origin, digest_of
from tests.auth.keychains import FileShelf


def found_in(path: Path) -> list[FoundServer]:
    """The servers of the file."""
    return [_server(path, name, dict(table)) for name, table in json.loads(path.read_text()).items()]


def add(path: Path, words: Sequence[str]) -> int:
    """Add them, and return the exit code."""
    parser = Parser(prog="add")
    parser.add_argument("--config")
    parser.add_argument("--set", action="append", default=[])
    for add in ADDING:
        add(parser)
    return run(add_found(found_in(path), parser.parse_args(words), places=[str(path)]))


def _server(path: Path, name: str, table: dict[str, object]) -> FoundServer:
    inputs, notes = table.pop("inputs", {}), table.pop("notes", {})
    assert isinstance(inputs, dict)
    assert isinstance(notes, dict)
    return FoundServer(
        name,
        Origin("claude-code", str(path), name, digest_of(table)),
        table,
        tuple(Input(id, secret=secret) for id, secret in inputs.items()),
        tuple(ImportNote(key, reason) for key, reason in notes.items()),
    )


if __name__ == "__main__":
    file = Path(sys.argv[1])
    shelf = FileShelf(file.with_suffix(".keychain"))
    keychain.best_backend = lambda: shelf  # type: ignore[assignment,return-value]
    try:
        sys.exit(add(file, sys.argv[2:]))
    except Signalled as signalled:
        sys.exit(128 + signalled.number)
