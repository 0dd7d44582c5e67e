"""Writes the files of a result: the first where ``--output`` says, further ones beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcphost.errors import ConfigError
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.models.content import Content, EmbeddedResource, MediaContent, ResourceContents

Saved = MediaContent | ResourceContents


def claim(output: str | None) -> None:
    """Raise ConfigError where the file of ``--output`` cannot be written, before anything is done for it."""
    if output is None:
        return
    path = Path(output)
    reason = ""
    if not path.parent.is_dir():
        reason = f"the folder {path.parent} does not exist; create it, or name another"
    elif path.is_dir():
        reason = "it is a folder; name a file in it"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "you may not write there; name another file"
    if reason:
        raise ConfigError(f"--output {show_line(output, 400)}: {reason}")


def files_in(blocks: Sequence[Content]) -> list[Saved]:
    """The pictures, sounds and embedded resources of a result."""
    found: list[Saved] = []
    for block in blocks:
        if isinstance(block, MediaContent):
            found.append(block)
        elif isinstance(block, EmbeddedResource):
            found.append(block.resource)
    return found


def write(output: str, contents: Sequence[Saved]) -> list[str]:
    """Write each content to its own file, and return a sentence for each. Raises ConfigError."""
    return [write_bytes(path, each.content()) for path, each in zip(_paths(Path(output)), contents, strict=False)]


def write_bytes(path: str | Path, data: bytes) -> str:
    """Write a file, and return a sentence about it. Raises ConfigError."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{path} could not be written: {error.strerror}") from None
    return f"{size_text(len(data))} in {path}"


def _paths(first: Path) -> Iterator[Path]:
    """The named file, then ``name-2``, ``name-3`` … beside it."""
    yield first
    number = 2
    while True:
        yield first.with_name(f"{first.stem}-{number}{first.suffix}")
        number += 1
