"""Traffic files: one line of JSON per message, written while a host runs or exported at once, and read again.

A line holds ``time`` (ISO 8601, UTC), ``server``, ``connection``, ``direction`` (``in``, ``out``), ``kind``, ``text``
(raw), ``size`` (bytes), and where there are such ``method``, ``id``, ``status``, ``call``, ``latency`` (seconds) and
``note`` (the kind of what is not a message). Between an agent and its server there are ``agent``, ``injected`` (true if
a gate wrote it), ``waited_for_you`` and ``waited_for_server`` (seconds). Reading ignores the fields that follow from
the text.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from mcphost.errors import NotDone
from mcphost.host.private_file import PrivateFile
from mcphost.host.recordings.first_line import META, first_line
from mcphost.host.recordings.recording import RecordingFacts
from mcphost.host.traffic.claim import ROTATE
from mcphost.host.traffic.message import MessageKind, MessagePairing, TrafficMessage, is_answer
from mcphost.host.traffic.redactions import Redactions, TrafficTarget
from mcphost.host.traffic.request_state import hide_state
from mcphost.lazy_dataclass import dataclass
from mcphost.redaction import Mask, redacted

BACKLOG: Final = 32 << 20
"""Bytes that may wait for the disk; messages beyond are counted and left out."""

BATCH: Final = 200
"""Messages written in one piece."""

CLOSE_SECONDS: Final = 2.0
"""Seconds to wait at exit for a disk that does not respond."""

IMPORT_BYTES: Final = 256 << 20
"""Bytes of a file of traffic that is read."""

_NOTES: Final = ("stderr", "stray", "malformed", "http", "cache", META)


NOTHING: Final = Redactions()


def line_of(message: TrafficMessage, mask: Mask, latency: float | None, redactions: Redactions = NOTHING) -> bytes:
    """One message as a line with its newline; ASCII only, so that no text contains a line end. Secrets are masked."""
    text = redactions.applied(hide_state(message.data.decode("utf-8", "replace")), cut=message.cut)
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(message.time, UTC).isoformat(),
        "server": message.server,
        "connection": message.connection,
        "direction": message.direction,
        "kind": message.kind.value,
        "text": redacted(text, mask),
        "size": message.size,
        "method": redacted(message.method, mask) or None,
        "id": redacted(message.id, mask) if isinstance(message.id, str) else message.id,
        # Whether a request was answered is not known yet while a run is written down.
        "status": None if message.kind is MessageKind.REQUEST else " ".join(message.status) or None,
        "call": message.call,
        "agent": redacted(message.agent, mask) or None,
        "injected": message.injected or None,
        "latency": None if latency is None else round(latency, 6),
        **_waits_of(message),
        "note": message.note or None,
        "cut": message.cut or None,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(present).encode("ascii") + b"\n"


def _waits_of(message: TrafficMessage) -> dict[str, float]:
    if message.waits is None:
        return {}
    waits = {"you": message.waits.waited_for_you, "server": message.waits.waited_for_server}
    return {f"waited_for_{name}": round(seconds, 6) for name, seconds in waits.items() if seconds is not None}


def lines_of(messages: Iterable[TrafficMessage], mask: Mask, facts: RecordingFacts) -> Iterator[bytes]:
    """The lines of a whole file."""
    yield first_line(facts)
    yield from (line_of(message, mask, message.latency) for message in messages)


# Reading.


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """The fields of a line that do not follow from its text."""

    time: float
    server: str
    connection: int
    sent: bool
    note: str
    data: bytes
    size: int
    call: int | None
    agent: str
    injected: bool
    waits: RecordedWaits | None
    line: int = 0
    """Its number in the file, from 1."""


@dataclass(frozen=True, slots=True)
class RecordedWaits:
    """The waits of a call that a gate held, as they were when its line was written."""

    waited_for_you: float | None
    waited_for_server: float | None


def read_lines(content: bytes, name: str) -> Iterator[MessageRecord]:
    """The messages of an export. Raises NotDone, naming ``name`` and the line that is none.

    A last line that was not written to its end is a malformed message that says so.
    """
    lines = content.split(b"\n")
    newest: MessageRecord | None = None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                newest = _record(json.loads(line), number)
            except (ValueError, RecursionError, KeyError, TypeError, OverflowError) as error:
                is_json = not isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
                if is_json or newest is None or number < len(lines):
                    reason = str(error) if is_json else "it is not JSON"
                    words = f"{name}, line {number}: this is not a line of exported traffic ({reason})"
                    raise NotDone(words) from None
                data = b"this line was not written to its end"
                newest = replace(newest, note="malformed", data=data, size=len(data), sent=False, line=number)
            yield newest


def _record(fields: Any, line: int) -> MessageRecord:
    if type(fields) is not dict:
        raise TypeError("it is not a JSON object")
    text, note = _typed(fields, "text", str), fields.get("note", "")
    if note not in ("", *_NOTES):
        raise ValueError(f"there is no note {note!r}")
    data = text.encode("utf-8", "replace")
    size = _typed(fields, "size", int) if fields.get("cut") is True else len(data)
    return MessageRecord(
        time=_time(_typed(fields, "time", str)),
        server=_typed(fields, "server", str),
        connection=fields["connection"] if type(fields.get("connection")) is int else 1,
        sent=_direction(fields["direction"]),
        note=note,
        data=data,
        size=max(size, len(data)),
        call=fields["call"] if type(fields.get("call")) is int else None,
        agent=fields["agent"] if type(fields.get("agent")) is str else "",
        injected=fields.get("injected") is True,
        waits=_recorded_waits(fields),
        line=line,
    )


def _recorded_waits(fields: dict[str, Any]) -> RecordedWaits | None:
    you, server = (
        value if type(value := fields.get(f"waited_for_{name}")) is float and 0 <= value < 1e10 else None
        for name in ("you", "server")
    )
    return None if you is None and server is None else RecordedWaits(you, server)


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


class MessageSource(Protocol):
    """A source of messages, such as a `TrafficBook`."""

    sink: Callable[[TrafficMessage], None] | None


class TrafficFile:
    """Appends every message of a book to a file, in a thread of its own, behind a line with the facts of the run.

    ``mask`` removes secrets; ``alarm`` is called once, in the event loop's thread, when the file cannot be written.
    """

    def __init__(self, target: TrafficTarget, facts: RecordingFacts, mask: Mask, alarm: Callable[[str], None]) -> None:
        self._target, self._mask, self._alarm = target, mask, alarm
        servers = {name: target.redactions.applied(words) for name, words in facts.servers.items()}
        self._facts = facts._replace(servers=servers)
        self._messages: SimpleQueue[TrafficMessage | None] = SimpleQueue()
        self._pairing = MessagePairing()
        # Each counter is written by one thread alone.
        self._taken = self._written = self._left_out = self._reported = 0
        self._broken = False
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, book: MessageSource) -> None:
        """Write every message that the book takes from now on. Call it in the event loop."""
        book.sink = self.take
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._write_all, args=(self._target.path,), name="traffic file", daemon=True).start()

    def take(self, message: TrafficMessage) -> None:
        """Queue a message; if `BACKLOG` is reached, count it as left out."""
        if self._broken:
            return
        if self._taken - self._written > BACKLOG:
            self._left_out += 1
            return
        self._taken += len(message.data)
        self._messages.put(message)

    async def aclose(self) -> None:
        """Write the queue, for at most `CLOSE_SECONDS`."""
        if self._loop is None:
            return
        self._messages.put(None)
        with_limit = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([with_limit], timeout=CLOSE_SECONDS)
        with_limit.cancel()

    def _write_all(self, path: Path) -> None:
        file, more, first = PrivateFile(path), True, first_line(self._facts)
        while more:
            messages, more = self._next()
            try:
                lines = b"".join(map(self._line, messages)) + self._gap()
                if lines:
                    file.append(first + lines, ROTATE)
                    first = b""
            except OSError as error:
                self._broken, more = True, False
                self._say(f"the traffic is no longer written to {path}: {error.strerror or error}")
            self._written += sum(len(message.data) for message in messages)
        self._tell(self._ended.set)

    def _next(self) -> tuple[list[TrafficMessage], bool]:
        """Wait for a message and return up to `BATCH`; False: the queue has ended."""
        found = [self._messages.get()]
        try:
            while found[-1] is not None and len(found) < BATCH:
                found.append(self._messages.get_nowait())
        except Empty:
            pass
        return [message for message in found if message is not None], found[-1] is not None

    def _line(self, message: TrafficMessage) -> bytes:
        asked = self._pairing.add(message)
        latency = message.at - asked.at if asked and is_answer(message) else None
        return line_of(message, self._mask, latency, self._target.redactions)

    def _gap(self) -> bytes:
        count = self._left_out - self._reported
        if not count:
            return b""
        self._reported += count
        words = f"mcphost left out {count} messages here: the disk was too slow"
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
