"""The audit log: one JSON object a line, appended, for every question that was decided and every call that was sent.

Knows files and rotation. Refuses to know what a record means. Lines are written by one thread of its own, in order, so
that nobody waits for a disk; a log that cannot be written is an alarm, and a refusal where the policy requires it.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

ROTATE: Final = 64 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

ARGUMENT_CHARACTERS: Final = 64 << 10
"""Characters of a record; beyond it the arguments are replaced by their size, so that one call cannot fill a disk."""

_Job = tuple[bytes, "asyncio.Future[None]", asyncio.AbstractEventLoop]


class AuditLog:
    """Appends records to ``path``; with None it keeps nothing. ``mask`` takes secrets out of a line."""

    def __init__(self, path: Path | None, mask: Callable[[str], str]) -> None:
        self.path = path
        self._mask = mask
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def record(self, fields: Mapping[str, Any]) -> asyncio.Future[None]:
        """Append one record; the future ends when it is on the disk's side, with OSError where it could not be."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        if self.path is None:
            written.set_result(None)
            return written
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)
            self._thread.start()
        self._jobs.put((self._line(fields), written, loop))
        return written

    async def aclose(self) -> None:
        """Write what is still to be written."""
        if self._thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        text = json.dumps(fields, ensure_ascii=False, default=str)
        if len(text) > ARGUMENT_CHARACTERS:
            text = json.dumps({**fields, "arguments": f"{len(text)} characters"}, ensure_ascii=False, default=str)
        return self._mask(text).encode("utf-8", "replace") + b"\n"

    def _write_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            line, written, loop = job
            try:
                self._append(line)
            except OSError as error:
                loop.call_soon_threadsafe(_settle, written, error)
            else:
                loop.call_soon_threadsafe(_settle, written, None)

    def _append(self, line: bytes) -> None:
        assert self.path is not None
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if size > ROTATE:
            self.path.replace(self.path.with_name(self.path.name + ".1"))


def _settle(written: asyncio.Future[None], error: OSError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)
