"""The audit log: one JSON object a line, appended, for every question that was decided and every call that was sent.

Knows files and rotation. Refuses to know what a record means. Lines are written by one thread of its own, in order, so
that nobody waits for a disk; a log that cannot be written is an alarm, and a refusal where the policy requires it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from mcphost.host.private_file import PrivateFile

ROTATE: Final = 64 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

RECORD_CHARACTERS: Final = 64 << 10
"""Characters of a record; beyond it the arguments are replaced by their size, so that one call cannot fill a disk."""

FIELD_CHARACTERS: Final = 1000
"""Characters of each other field of a record that is too long."""

CLOSE_SECONDS: Final = 2.0
"""How long the end of mcphost waits for a disk that does not answer."""

_Job = tuple[bytes, "asyncio.Future[None]", asyncio.AbstractEventLoop]


class AuditLog:
    """Appends records to ``path``; with None it keeps nothing. ``mask`` takes secrets out of a line."""

    def __init__(self, path: Path | None, mask: Callable[[str], str]) -> None:
        self.path = path
        self._mask = mask
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: asyncio.Future[None] | None = None

    def record(self, fields: Mapping[str, Any]) -> asyncio.Future[None]:
        """Append one record; the future ends when the system has it, with OSError where it could not be written."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        if self.path is None:
            written.set_result(None)
            return written
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, args=(self.path,), name="audit log", daemon=True)
            self._thread.start()
        self._jobs.put((self._line(fields), written, loop))
        self._last = written
        return written

    async def aclose(self) -> None:
        """Write what is still to be written."""
        self._jobs.put(None)
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last], timeout=CLOSE_SECONDS)

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        # ASCII only: whatever a reader takes for the end of a line, or a terminal for a command, is escaped.
        text = json.dumps(fields, default=str)
        if len(text) > RECORD_CHARACTERS:
            short = {name: _shortened(value) for name, value in fields.items()}
            text = json.dumps({**short, "arguments": f"left out: a record of {len(text)} characters"}, default=str)
        masked = self._mask(text)
        return masked.encode("ascii", "backslashreplace") + b"\n"

    def _write_all(self, path: Path) -> None:
        file = PrivateFile(path)
        while (job := self._jobs.get()) is not None:
            line, written, loop = job
            failure: OSError | None = None
            try:
                file.append(line, ROTATE)
            except OSError as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, written, failure)


def _shortened(value: Any) -> Any:
    return value[:FIELD_CHARACTERS] if isinstance(value, str) else value


def _settle(written: asyncio.Future[None], error: OSError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)
