"""The audit log: one JSON object a line, appended, for every question that was decided and every call that was sent.

A log that cannot be written is an alarm, and a refusal where the policy requires it.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from pydantic_core import to_json

from mcphost.config import Config, entry_of
from mcphost.errors import Declined
from mcphost.host.private_file import PrivateFile

ROTATE: Final = 64 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

RECORD_CHARACTERS: Final = 64 << 10
"""Characters of a record; beyond it the arguments are replaced by their size, so that one call cannot fill a disk."""

FIELD_CHARACTERS: Final = 1000
"""Characters of each other field of a record that is too long."""

CLOSE_SECONDS: Final = 2.0
"""Seconds to wait at the end of mcphost for a disk that does not answer."""

SLOW_SECONDS: Final = 0.05
"""Seconds after which an append counts as slow; a healthy disk takes about 20 µs."""

SLOW_SPELL: Final = 60.0
"""Seconds after a slow append in which a thread writes: a slow disk holds the event loop once a minute at most."""

_encoder = json.JSONEncoder(default=str, separators=(",", ":"))

_Job = tuple[bytes, "asyncio.Future[None]", asyncio.AbstractEventLoop]


class AuditLog:
    """Appends records to ``path``; with None it keeps nothing. ``mask`` takes secrets out of a line."""

    def __init__(self, path: Path | None, mask: Callable[[str], str]) -> None:
        self.path = path
        self._mask = mask
        self._file = None if path is None else PrivateFile(path, keep_open=True)
        self._direct_from = 0.0
        self._unwritten = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: asyncio.Future[None] | None = None
        self._appended: asyncio.Future[None] | None = None
        """Ended well. One serves all records that were appended at once: to make one takes as long as to write."""

    def record(self, fields: Mapping[str, Any]) -> asyncio.Future[None]:
        """Append one record; the future ends when the system has it, with OSError where it could not be written."""
        if self._file is not None and self._is_handed_over:
            return self._hand_over(self._file, self._line(fields))
        # On the event loop, since the system takes a line into its cache in less time than it takes to wake a
        # thread, and what waits for a thread is lost when mcphost is killed. Nothing waits for the disk itself:
        # there is no fsync. A slow file system (a network's, a disk that is busy) is found out by the clock.
        failure = None if self._file is None else self._append(self._file, self._line(fields))
        if failure is None and self._appended is not None:
            return self._appended
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        _settle(written, failure)
        if failure is None:
            self._appended = written
        return written

    def record_at_once(self, fields: Mapping[str, Any]) -> bool:
        """Append one record here, also outside of the event loop; False where only `record` can do it.

        One thread at a time may use the log.
        """
        if self._file is None or self._is_handed_over:
            return self._file is None
        return self._append(self._file, self._line(fields)) is None

    @property
    def _is_handed_over(self) -> bool:
        return bool(self._unwritten or (self._direct_from and time.monotonic() < self._direct_from))

    async def aclose(self) -> None:
        """Write what is still to be written."""
        if self._thread is not None:
            self._jobs.put(None)
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last], timeout=CLOSE_SECONDS)
        if self._file is not None and not self._unwritten:
            self._file.close()

    def _append(self, file: PrivateFile, line: bytes) -> OSError | None:
        """Append a line; why that failed, if it did."""
        began = time.monotonic()
        try:
            file.append(line, ROTATE)
        except OSError as error:
            return error
        finally:
            if (now := time.monotonic()) - began > SLOW_SECONDS:
                self._direct_from = now + SLOW_SPELL
        return None

    def _hand_over(self, file: PrivateFile, line: bytes) -> asyncio.Future[None]:
        """Have a thread append the line."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, args=(file,), name="audit log", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        self._last = loop.create_future()
        self._unwritten += 1
        self._jobs.put((line, self._last, loop))
        return self._last

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        text = _as_json(fields)
        if len(text) > RECORD_CHARACTERS:
            short = {name: _shortened(value) for name, value in fields.items()}
            text = _as_json({**short, "arguments": f"left out: a record of {len(text)} characters"})
        masked = self._mask(text)
        return masked.encode("ascii", "backslashreplace") + b"\n"

    def _write_all(self, file: PrivateFile) -> None:
        while (job := self._jobs.get()) is not None:
            line, written, loop = job
            failure = self._append(file, line)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._was_written, written, failure)

    def _was_written(self, written: asyncio.Future[None], failure: OSError | None) -> None:
        self._unwritten -= 1
        _settle(written, failure)


def _why(error: BaseException) -> str:
    """The reason in words, without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _as_json(fields: Mapping[str, Any]) -> str:
    """In ASCII: whatever a reader takes for the end of a line, or a terminal for a command, is escaped."""
    with suppress(ValueError):  # a lone surrogate, or bytes that are not text
        # Four times as fast as `json`, but it escapes neither what is not ASCII nor DEL.
        text = to_json(fields, fallback=str)
        if text.isascii() and b"\x7f" not in text:
            return text.decode()
    return _encoder.encode(fields)


def _shortened(value: Any) -> Any:
    return value[:FIELD_CHARACTERS] if isinstance(value, str) else value


def _settle(written: asyncio.Future[None], error: OSError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)


DISK_SECONDS: Final = 2.0
"""Seconds that a call waits for its record where the policy does not require one."""


class AuditWriter:
    """``alarm`` takes a sentence the user must see."""

    def __init__(self, config: Callable[[], Config], audit: AuditLog, alarm: Callable[[str], None]) -> None:
        self._config, self._audit, self._alarm = config, audit, alarm
        self._alarmed = False

    async def before(self, record: Mapping[str, Any]) -> None:
        """Write down what is about to be sent, and wait until the system has the record: then no crash loses it.

        Raises Declined where the policy wants a record that cannot be kept. Where it does not, a disk that does not
        answer is waited for `DISK_SECONDS`.
        """
        written, required = self.note(record), self._config().policy.audit == "required"
        if required and self._audit.path is None:
            raise _not_kept("policy.audit is 'required', and no audit log is kept here")
        if written is None:
            return
        if not written.done():
            await asyncio.wait([written], timeout=None if required else DISK_SECONDS)
        if required and (error := written.exception()):
            raise _not_kept(f"the audit log cannot be written: {_why(error)}")

    def note(self, record: Mapping[str, Any]) -> asyncio.Future[None] | None:
        """Write down what happened; None where the policy wants no records."""
        if self._config().policy.audit == "off":
            return None
        written = self._audit.record(_dated(record))
        if written.done():
            self._watch(written)
        else:
            written.add_done_callback(self._watch)
        return written

    def note_at_once(self, record: Mapping[str, Any]) -> bool:
        """As `before`, in any thread; False where the event loop is needed, and then nothing is written down."""
        policy = self._config().policy.audit
        if policy == "off":
            return True
        if policy == "required" and self._audit.path is None:
            return False
        written = self._audit.record_at_once(_dated(record))
        self._alarmed = self._alarmed and not written
        return written

    def _watch(self, written: asyncio.Future[None]) -> None:
        """Say once that the log cannot be written; again only after it could."""
        failure = written.exception()
        if failure is not None and not self._alarmed:
            self._alarm(f"the audit log cannot be written: {_why(failure)}")
        self._alarmed = failure is not None


def _dated(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": _local_time(time.time()), **record, **_by_entry(record)}


def _local_time(now: float) -> str:
    """``now`` in ISO 8601, to the millisecond."""
    second, microseconds = divmod(round(now * 1e6), 1_000_000)
    text, offset = _local_second(second)
    return f"{text}.{microseconds // 1000:03}{offset}"


@lru_cache(maxsize=1)  # finding the time zone takes as long as writing a record
def _local_second(second: int) -> tuple[str, str]:
    text = datetime.fromtimestamp(second, UTC).astimezone().isoformat()
    return text[:19], text[19:]


def _by_entry(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry as the server of a record, and the instance beside it."""
    server = record.get("server")
    if not isinstance(server, str) or (entry := entry_of(server)) == server:
        return {}
    return {"server": entry, "instance": server}


def _not_kept(why: str) -> Declined:
    return Declined(why, by="policy", rule="audit", reason=why)
