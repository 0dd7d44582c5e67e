"""Saves content under a generated name in a folder of the user's choice."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.widgets import Input

from mcphost.errors import NotDone
from mcphost.protocol.display import size_text
from mcphost.tui.kit.framed import LineScreen


def save_as(app: App[Any], name: str, content: bytes) -> None:
    """Let the user save ``content`` under ``name``, which must be ours; see `save`."""

    def saved(path: Path | None) -> None:
        if path is not None:
            app.notify(f"Saved {path}", markup=False)

    app.push_screen(SaveScreen(name, content, Path.cwd()), saved)


MODE: Final = 0o600
"""Readable by the user alone, and not executable."""

_TRIES: Final = 999
_LONGEST_PART: Final = 40
_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

_EXTENSIONS: Final[Mapping[str, str]] = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/xml": ".xml",
    "application/zip": ".zip",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/markdown": ".md",
    "text/xml": ".xml",
}


def extension(mime_type: str) -> str:
    """Return the file extension for a MIME type: one from our table, ``.txt`` for other text, else ``.bin``.

    HTML counts as other text: a page from a server must not open in a browser by a double click.
    """
    kind = mime_type.partition(";")[0].strip().lower()
    return _EXTENSIONS.get(kind, ".txt" if kind.startswith("text/") else ".bin")


def file_name(server: str, tool: str, when: datetime, mime_type: str) -> str:
    """``files-read_file-20261103-140211.png``: the names are reduced to plain letters, digits, ``_`` and ``-``."""
    return f"{_plain(server, 'server')}-{_plain(tool, 'result')}-{when:%Y%m%d-%H%M%S}{extension(mime_type)}"


def recording_name(server: str, stamp: str) -> str:
    """``git-20261103-140211.mcp.jsonl``, with a plain name as in `file_name`."""
    from mcphost.host.recordings.recording import SUFFIX  # late: the first frame does without

    return f"{_plain(server, 'server')}-{stamp}{SUFFIX}"


def save(folder: Path, name: str, content: bytes) -> Path:
    """Write ``content`` to a new file in ``folder`` and return its path; if the name is taken it gets ``-2``, ``-3`` ….

    Blocks on the disk: call it in a thread. Raises NotDone with a sentence.
    """
    if Path(name).name != name or "\0" in name or name in ("", ".", ".."):
        raise NotDone(f"{name!r} is not a plain file name")
    try:
        path, handle = _create(folder, name)
    except OSError as error:
        raise NotDone(f"nothing was saved: {folder}: {_reason(error)}; choose another folder") from None
    try:
        with open(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise NotDone(f"nothing was saved: {path}: {_reason(error)}") from None
    return path


def _create(folder: Path, name: str) -> tuple[Path, int]:
    for candidate in _names(name):
        path = folder / candidate
        try:
            return path, os.open(path, _FLAGS, MODE)
        except FileExistsError:
            continue
    raise FileExistsError(0, f"{_TRIES} files are called {name} already")


def _names(name: str) -> Iterator[str]:
    yield name
    stem, dot, ending = name.partition(".")
    yield from (f"{stem}-{number}{dot}{ending}" for number in range(2, _TRIES + 1))


def _plain(text: str, instead: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text[:200]).strip("-")[:_LONGEST_PART] or instead


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class SaveScreen(LineScreen[Path | None]):
    """Saves ``content`` as ``name`` in the folder that the user types; dismissed with the path, or None."""

    HELP = "Where to save it. An existing file is never replaced. enter saves."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not save", id="save.back", tooltip="Close without saving"),
    ]

    def __init__(self, name: str, content: bytes, folder: Path) -> None:
        title = f"Save {name} · {size_text(len(content))} · in which folder?"
        super().__init__(title, "enter save · esc back", Input(str(folder), select_on_focus=False, compact=True))
        self._file_name, self._content = name, content

    async def submit(self, text: str) -> None:
        try:
            path = await asyncio.to_thread(self._write, text)
        except NotDone as problem:
            self.show_problem(str(problem))
        else:
            self.dismiss(path)

    def _write(self, folder: str) -> Path:
        return save(Path(folder).expanduser(), self._file_name, self._content)
