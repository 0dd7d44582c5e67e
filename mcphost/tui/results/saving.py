"""Saves something a server sent as a file whose name is ours and whose folder is the user's choice."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcphost.errors import NotDone
from mcphost.protocol.display import size_text

MODE: Final = 0o600
"""For the user alone, and never to be run."""

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
    """The extension of a MIME type: one from our own table, ``.txt`` for other text, ``.bin`` for all else.

    HTML is other text here: a page from a server must not open in a browser by a double click.
    """
    kind = mime_type.partition(";")[0].strip().lower()
    return _EXTENSIONS.get(kind, ".txt" if kind.startswith("text/") else ".bin")


def file_name(server: str, tool: str, when: datetime, mime_type: str) -> str:
    """``files-read_file-20261103-140211.png``: the names reduced to plain letters, digits, ``_`` and ``-``."""
    return f"{_plain(server, 'server')}-{_plain(tool, 'result')}-{when:%Y%m%d-%H%M%S}{extension(mime_type)}"


def save(folder: Path, name: str, content: bytes) -> Path:
    """Write ``content`` into a new file in ``folder`` and return its path; a name that is taken gets ``-2``, ``-3`` ….

    Waits for the disk: call it in a thread. Raises NotDone with a sentence.
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
    stem, ending = os.path.splitext(name)
    yield from (f"{stem}-{number}{ending}" for number in range(2, _TRIES + 1))


def _plain(text: str, instead: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text[:200]).strip("-")[:_LONGEST_PART] or instead


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class SaveScreen(ModalScreen[Path | None]):
    """Saves ``content`` as ``name`` in the folder the user types; dismissed with the path, or None."""

    HELP = "Where to save it. An existing file is never replaced. enter saves, esc does not."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not save", id="save.back", tooltip="Close without saving"),
    ]

    DEFAULT_CSS = """
    SaveScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 100; height: auto; border: round $border; background: $surface; padding: 0 1;
        }
        Input { background: $panel; }
        #problem { color: $text-error; height: auto; }
    }
    """

    def __init__(self, name: str, content: bytes, folder: Path) -> None:
        super().__init__()
        self._file_name, self._content, self._folder = name, content, folder

    def compose(self) -> ComposeResult:
        """A field in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Save {self._file_name} · {size_text(len(self._content))} · in which folder?")
            frame.border_subtitle = "enter save · esc back"
            yield Input(str(self._folder), select_on_focus=False, compact=True)
            yield Static(id="problem", markup=False)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            path = await asyncio.to_thread(self._write, event.value)
        except NotDone as problem:
            self.query_one("#problem", Static).update(str(problem))
        else:
            self.dismiss(path)

    def _write(self, folder: str) -> Path:
        return save(Path(folder).expanduser(), self._file_name, self._content)

    def action_back(self) -> None:
        self.dismiss(None)
