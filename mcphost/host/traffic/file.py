"""Traffic as lines of JSON, one frame a line: written while a host runs or at the end, and read again elsewhere.

A line holds ``time`` (ISO 8601, UTC), ``server``, ``connection``, ``direction`` (``in``, ``out``), ``kind``, ``text``
(raw), ``size`` (bytes), and where there are such ``method``, ``id``, ``status``, ``call``, ``latency`` (seconds) and
``note`` (for what was no message by itself). The last four are for other programs: reading finds them out again.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from mcphost.config.files import owned_by_us
from mcphost.errors import ConfigError, NotDone
from mcphost.host.private_file import PrivateFile
from mcphost.host.traffic.frames import Frame, FrameKind, FramePairing, is_answer
from mcphost.host.traffic.redaction import Mask, redacted

ROTATE: Final = 256 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

BACKLOG: Final = 32 << 20
"""Bytes that may wait for the disk; what comes beyond is counted and left out."""

BATCH: Final = 200
"""Frames written in one piece."""

CLOSE_SECONDS: Final = 2.0
"""How long the end of mcphost waits for a disk that does not answer."""

_BEGIN: Final = b'{"time": "'
"""How every line begins: what begins otherwise is somebody's work."""

_NOTES: Final = ("stderr", "stray", "malformed", "http")


def line_of(frame: Frame, mask: Mask, latency: float | None) -> bytes:
    """One frame as a line, its newline included. ASCII only, so that nothing in it can pass for the end of a line."""
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(frame.time, UTC).isoformat(),
        "server": frame.server,
        "connection": frame.connection,
        "direction": frame.direction,
        "kind": frame.kind.value,
        "text": redacted(frame.data.decode("utf-8", "replace"), mask),
        "size": frame.size,
        "method": redacted(frame.method, mask) or None,
        "id": redacted(frame.id, mask) if isinstance(frame.id, str) else frame.id,
        # Whether a request was answered is not known yet while a run is written down.
        "status": None if frame.kind is FrameKind.REQUEST else " ".join(frame.status) or None,
        "call": frame.call,
        "latency": None if latency is None else round(latency, 6),
        "note": frame.note or None,
        "cut": frame.cut or None,
    }
    told = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(told).encode("ascii") + b"\n"


def lines_of(frames: Iterable[Frame], mask: Mask) -> Iterator[bytes]:
    """The lines of an export."""
    return (line_of(frame, mask, frame.latency) for frame in frames)


# Reading.


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """What a line says that cannot be found out from its text."""

    time: float
    server: str
    connection: int
    sent: bool
    note: str
    data: bytes
    size: int
    call: int | None


def read_lines(content: bytes, name: str) -> Iterator[FrameRecord]:
    """The frames of an export. Raises NotDone, naming ``name`` and the line that is none."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                yield _told(json.loads(line))
            except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
                raise NotDone(f"{name}, line {number}: this is no line of exported traffic ({error})") from None


def _told(fields: Any) -> FrameRecord:
    if type(fields) is not dict:
        raise TypeError("it is no JSON object")
    text, note = _typed(fields, "text", str), fields.get("note", "")
    if note not in ("", *_NOTES):
        raise ValueError(f"there is no note {note!r}")
    data = text.encode("utf-8", "replace")
    size = _typed(fields, "size", int) if fields.get("cut") is True else len(data)
    return FrameRecord(
        time=_time(_typed(fields, "time", str)),
        server=_typed(fields, "server", str),
        connection=fields["connection"] if type(fields.get("connection")) is int else 1,
        sent=_direction(fields["direction"]),
        note=note,
        data=data,
        size=max(size, len(data)),
        call=fields["call"] if type(fields.get("call")) is int else None,
    )


def _typed(fields: dict[str, Any], name: str, kind: type[Any]) -> Any:
    if type(fields[name]) is not kind:
        raise TypeError(f"{name} is not of its kind")
    return fields[name]


def _direction(value: Any) -> bool:
    if value not in ("in", "out"):
        raise ValueError("direction is neither in nor out")
    return bool(value == "out")


def _time(text: str) -> float:
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


# Writing while a host runs.


def claim(path: Path) -> None:
    """Make the file of a run, private to this user; one that holds traffic goes on. Waits for the disk.

    Raises ConfigError for what is no regular file of this user's or holds something else, and leaves that as it is.
    """
    try:
        with suppress(FileNotFoundError):
            _refuse_others(path)
        PrivateFile(path).append(b"", ROTATE)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise ConfigError(f"cannot take the traffic: {reason}; name another file", path=path) from None


def _refuse_others(path: Path) -> None:
    # Not blocking: a pipe planted under this name would hold us for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) and owned_by_us(found)):
            raise OSError(errno.EPERM, "it is not a regular file of yours")
        if not _BEGIN.startswith(os.read(descriptor, len(_BEGIN))):
            raise OSError(errno.EEXIST, "it holds something else")
    finally:
        os.close(descriptor)


class FrameSource(Protocol):
    """What tells of frames as they come."""

    sink: Callable[[Frame], None] | None


class TrafficFile:
    """Appends every frame of a book to ``path``, in a thread of its own; with None it writes nothing.

    ``mask`` takes secrets out; ``alarm`` is told once, in the event loop's thread, when the file cannot be written.
    """

    def __init__(self, path: Path | None, mask: Mask, alarm: Callable[[str], None]) -> None:
        self._path, self._mask, self._alarm = path, mask, alarm
        self._frames: SimpleQueue[Frame | None] = SimpleQueue()
        self._pairing = FramePairing()
        # Each counter is written by one thread alone.
        self._taken = self._written = self._left_out = self._confessed = 0
        self._broken = False
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, book: FrameSource) -> None:
        """Begin to write what this book takes. Call it in the event loop."""
        if self._path is None:
            return
        book.sink = self.take
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._write_all, args=(self._path,), name="traffic file", daemon=True).start()

    def take(self, frame: Frame) -> None:
        """Write this frame soon; where the disk is too slow it is counted instead."""
        if self._broken:
            return
        if self._taken - self._written > BACKLOG:
            self._left_out += 1
            return
        self._taken += len(frame.data)
        self._frames.put(frame)

    async def aclose(self) -> None:
        """Write what is still to be written."""
        if self._loop is None:
            return
        self._frames.put(None)
        with_limit = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([with_limit], timeout=CLOSE_SECONDS)
        with_limit.cancel()

    def _write_all(self, path: Path) -> None:
        file, more = PrivateFile(path), True
        while more:
            frames, more = self._next()
            try:
                file.append(b"".join(map(self._line, frames)) + self._gap(), ROTATE)
            except OSError as error:
                self._broken, more = True, False
                self._say(f"the traffic is no longer written to {path}: {error.strerror or error}")
            self._written += sum(len(frame.data) for frame in frames)
        self._tell(self._ended.set)

    def _next(self) -> tuple[list[Frame], bool]:
        """What waits, at least one frame; False at the end."""
        found = [self._frames.get()]
        try:
            while found[-1] is not None and len(found) < BATCH:
                found.append(self._frames.get_nowait())
        except Empty:
            pass
        return [frame for frame in found if frame is not None], found[-1] is not None

    def _line(self, frame: Frame) -> bytes:
        asked = self._pairing.add(frame)
        return line_of(frame, self._mask, frame.at - asked.at if asked and is_answer(frame) else None)

    def _gap(self) -> bytes:
        count = self._left_out - self._confessed
        if not count:
            return b""
        self._confessed += count
        words = f"mcphost left out {count} frames here: the disk was too slow"
        now = datetime.now(UTC).isoformat()
        line = {"time": now, "server": "", "direction": "in", "kind": "malformed", "note": "malformed", "text": words}
        return json.dumps({**line, "size": len(words)}).encode("ascii") + b"\n"

    def _say(self, text: str) -> None:
        self._tell(lambda: self._alarm(text))

    def _tell(self, what: Callable[[], None]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop has ended, and with it everybody who wanted to know
            return
