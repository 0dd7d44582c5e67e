"""Where conversations are kept: one private file of JSON lines for each, appended to as it goes on.

Knows files, ids and secrets. Refuses to know what a record means. Lines are written by one thread of its own, in order,
so that nobody waits for a disk; a file that cannot be written is an alarm, once.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from mcphost.errors import ConfigError, UnknownName
from mcphost.host.private_file import PrivateFile
from mcphost.host.traffic.redaction import masked_value

MOST_BYTES: Final = 256 << 20
"""Of a transcript that is read again."""

LISTED: Final = 500
"""Conversations that a list holds, the newest first."""

START: Final = 256 << 10
"""Bytes of a transcript that are read for a list."""

CLOSE_SECONDS: Final = 2.0

_SAID: Final = re.compile(
    rb'^\{"event": "turn", "turn": \d+, "message": \{"text": "((?:[^"\\\n]|\\u[0-9a-f]{4}|\\[^u]){,400})', re.MULTILINE
)
"""How a message's record begins, as `mcphost.host.chat.records` has it written."""

_ID: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class SavedChat:
    """A conversation in the state folder."""

    id: str
    title: str
    """What the user said first; may quote anything."""
    changed: datetime
    size: int
    """Bytes."""


class TranscriptStore:
    """The transcripts in ``folder`` (None: none is kept). ``mask`` takes secrets out, ``alarm`` takes a sentence."""

    def __init__(self, folder: Path | None, mask: Callable[[str], str], alarm: Callable[[str], None]) -> None:
        self._folder, self._mask, self._alarm = folder, mask, alarm
        self._jobs: SimpleQueue[tuple[Path, bytes] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarmed = False

    def keep(self, chat_id: str, record: Mapping[str, Any]) -> None:
        """Append a record."""
        if self._folder is None:
            return
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write_all, name="transcripts", daemon=True)
            self._thread.start()
        # ASCII only: whatever a reader takes for the end of a line, or a terminal for a command, is escaped.
        line = json.dumps(masked_value(dict(record), self._mask), default=str)
        self._jobs.put((self._path(chat_id), line.encode("ascii") + b"\n"))

    async def aclose(self) -> None:
        """Write what is still to be written, if the disk answers."""
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    def saved(self) -> list[SavedChat]:
        """What there is, the newest first. Waits for the disk."""
        if self._folder is None:
            return []
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".jsonl" and _ID.fullmatch(path.stem)]
        except OSError:
            return []
        paths.sort(key=lambda path: path.stem, reverse=True)
        return [found for path in paths[:LISTED] if (found := _looked_at(path)) is not None]

    def records(self, chat_id: str) -> list[dict[str, Any]]:
        """All records of a conversation; lines that are none are left out. Waits for the disk.

        ``chat_id`` may be the beginning of one, or ``last``. Raises UnknownName, ConfigError.
        """
        path = self._path(self.full_id(chat_id))
        try:
            return [record for line in _read(path, MOST_BYTES).splitlines() if (record := _record(line)) is not None]
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from None

    def full_id(self, chat_id: str) -> str:
        """The one id that is meant. Raises UnknownName."""
        known = [each.id for each in self.saved()]
        found = known[:1] if chat_id == "last" else [each for each in known if chat_id and each.startswith(chat_id)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(known[:5]) or "none"
        raise UnknownName(f"{'several conversations begin' if found else 'no conversation begins'} with {chat_id!r}; "
                          f"the last are: {there}")  # fmt: skip

    def _path(self, chat_id: str) -> Path:
        assert self._folder is not None
        assert _ID.fullmatch(chat_id)
        return self._folder / f"{chat_id}.jsonl"

    def _write_all(self) -> None:
        files: dict[Path, PrivateFile] = {}  # each knows whether its last line was torn
        while (job := self._jobs.get()) is not None:
            path, line = job
            try:
                files.setdefault(path, PrivateFile(path)).append(line, MOST_BYTES)
            except OSError as error:
                self._tell(f"the conversation cannot be kept: {path}: {error.strerror or error}")

    def _tell(self, text: str) -> None:
        if not self._alarmed and self._loop is not None and not self._loop.is_closed():
            self._alarmed = True
            self._loop.call_soon_threadsafe(self._alarm, text)


def _looked_at(path: Path) -> SavedChat | None:
    try:
        start, found = _read(path, START), path.stat()
    except OSError:
        return None
    changed = datetime.fromtimestamp(found.st_mtime).astimezone()
    return SavedChat(path.stem, next(filter(None, _titles(start)), ""), changed, found.st_size)


def _titles(start: bytes) -> Iterator[str]:
    """How each message begins; its record may be far longer than what was read."""
    for said in _SAID.finditer(start):
        with suppress(ValueError):
            yield json.loads(b'"' + said[1] + b'"')[:200]


def _read(path: Path, limit: int) -> bytes:
    """The first bytes of a regular file of our own."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(limit)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
