"""Writes the answer to stdout, remarks to stderr and a status line to a terminal; and the exit codes.

Untrusted text is made safe for a terminal; into a pipe or a file an answer goes unchanged.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from enum import IntEnum
from itertools import compress
from typing import IO, Any, ClassVar, Final

from mcphost.cli.margin import behind_margin, cell, cells, size
from mcphost.cli.stderr_format import stderr_is_json
from mcphost.errors import (
    CapabilityMissing,
    ConfigError,
    Declined,
    HttpStatusError,
    InputNotGiven,
    InvalidArguments,
    ListingFailed,
    McphostError,
    ModelError,
    PeerError,
    RequestTimeout,
    ServerError,
    SignInFailed,
    SkillRefused,
    TaskExpired,
    TaskStopped,
    UnknownName,
    UsageError,
)
from mcphost.host.internal_error import InternalError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line

STATUS_PAUSE: Final = 0.1
"""Seconds between two updates of the status line; faster ones flicker."""

NAMES: Final = 2
"""The first columns of a table, which hold names to copy, are narrowed last."""

GAP: Final = 2
"""Blanks between two columns."""

NARROWEST: Final = 4
"""The least width to which a column is narrowed."""

SPEAKER: Final = "mcphost: "
"""Begins each remark on stderr."""

MESSAGE_CHARACTERS: Final = 2000
"""Characters of a remark, which may quote a server."""


class Exit(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    NEGATIVE = 1
    """The result is negative: a tool's failure, a server's error, sides that differ, an era not spoken."""
    USAGE = 2
    """The command line, its arguments or the configuration."""
    NOT_CONNECTED = 3
    """No connection, a lost one, or a server that violates the protocol."""
    DECLINED = 4
    """The call was declined, or an input that its answer needs."""
    TIMED_OUT = 5
    INTERNAL = 70
    """An error in mcphost itself."""


class Signalled(Exception):
    """A signal ended the run after everything was closed in order."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"signal {number}")


_EXITS: Final = (
    ((Declined, InputNotGiven), Exit.DECLINED),
    ((RequestTimeout, TaskExpired), Exit.TIMED_OUT),
    ((ServerError, TaskStopped, SkillRefused), Exit.NEGATIVE),
    ((InternalError,), Exit.INTERNAL),
    ((UsageError, ConfigError, UnknownName, InvalidArguments, CapabilityMissing), Exit.USAGE),
)


def exit_for(error: McphostError) -> Exit:
    if isinstance(error, ListingFailed):
        return Exit.TIMED_OUT if error.timed_out else Exit.NOT_CONNECTED
    return next((code for kinds, code in _EXITS if isinstance(error, kinds)), Exit.NOT_CONNECTED)


KINDS: Final[tuple[tuple[type[McphostError], str], ...]] = (
    (Declined, "declined"),
    (InputNotGiven, "input_not_given"),
    (RequestTimeout, "timed_out"),
    (ServerError, "server_error"),
    (TaskStopped, "task_stopped"),
    (TaskExpired, "task_expired"),
    (UsageError, "usage"),
    (ConfigError, "configuration"),
    (UnknownName, "unknown_name"),
    (InvalidArguments, "invalid_arguments"),
    (CapabilityMissing, "capability_missing"),
    (ListingFailed, "listing_failed"),
    (ModelError, "model"),
    (SignInFailed, "sign_in"),
    (SkillRefused, "skill_refused"),
    (PeerError, "protocol_violation"),
    (InternalError, "internal"),
)
"""The ``kind`` of each error with ``--json``; all others are ``not_connected``."""


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An error for stderr: a line for people, an object with ``--json``."""

    kind: str
    message: str
    exit_code: int
    advice: str = ""
    """A sentence that says what to do; may be empty."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """More members of the object."""

    @classmethod
    def from_error(cls, error: McphostError, message: str = "", *, advice: str = "") -> ErrorReport:
        """Report an exception; ``message`` replaces its own."""
        kind = next((kind for error_type, kind in KINDS if isinstance(error, error_type)), "not_connected")
        return cls(kind, message or str(error), exit_for(error), advice, dict(_details(error)))

    def as_object(self) -> dict[str, Any]:
        advice = {"advice": self.advice} if self.advice else {}
        said = {"kind": self.kind, "message": self.message[:MESSAGE_CHARACTERS], "exit_code": int(self.exit_code)}
        return {"error": {**said, **advice, **self.details}}


def _details(error: McphostError) -> Iterator[tuple[str, Any]]:
    match error:
        case ConfigError():
            known = ("file", error.path and str(error.path)), ("line", error.line)
            yield from ((name, value) for name, value in known if value is not None)
        case InvalidArguments():
            yield "problems", [{"path": path, "message": text} for path, text in error.problems]
        case ServerError():
            yield "code", error.code
        case SkillRefused():
            yield "finding", error.finding
        case HttpStatusError():
            yield "status", error.status
        case ModelError():
            yield "model", error.entry


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output of a command: ``text`` on stdout, ``remarks`` and ``errors`` on stderr."""

    text: str = ""
    code: int = Exit.DONE
    remarks: tuple[str, ...] = ()
    errors: tuple[ErrorReport, ...] = ()


def is_terminal(stream: IO[str] | None) -> bool:
    with suppress(ValueError):  # a closed one
        return stream is not None and stream.isatty()
    return False


def answer(text: str) -> None:
    """Write all of ``text`` to stdout.

    Raises BrokenPipeError where its reader is gone, ConfigError where it is closed or the disk is full.
    """
    if not text:
        return
    if sys.stdout is None:
        raise ConfigError("the answer could not be written to stdout: it is closed")
    encoding = sys.stdout.encoding if is_terminal(sys.stdout) else "utf-8"
    try:
        _write(memoryview(text.encode(encoding, "replace")))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConfigError(f"the answer could not be written to stdout: {error.strerror}") from None


def _write(data: memoryview) -> None:
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file: a test or a library captures what is printed
        sys.stdout.buffer.write(data)
        return
    sys.stdout.flush()
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # another process made the pipe non-blocking, and it is full
            select.select([], [descriptor], [])


def remark(text: str) -> None:
    """Write a remark to stderr: one line."""
    if stderr_is_json():
        _to_stderr(json.dumps({"remark": text[:MESSAGE_CHARACTERS]}))
    else:
        line = show_line(text, MESSAGE_CHARACTERS)
        if is_terminal(sys.stderr):  # it may quote others, whose words must not stand at the start of a line
            line = _wrapped(line, size(sys.stderr)[0])
        _to_stderr(f"{SPEAKER}{line}")


def _wrapped(line: str, width: int) -> str:
    """A line, broken before words where possible, with its further lines as far in as its first."""
    indent = " " * len(SPEAKER)
    if line.isascii():
        return textwrap.fill(line, width - len(SPEAKER), break_on_hyphens=False).replace("\n", f"\n{indent}")
    return behind_margin(line, width, indent).strip()


def report(error: ErrorReport) -> None:
    if stderr_is_json():
        _to_stderr(json.dumps(error.as_object()))
        return
    for sentence in filter(None, (error.message, error.advice)):
        remark(sentence)


def _to_stderr(line: str) -> None:
    StatusLine.take_away()
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


def reports_on(error: McphostError) -> tuple[ErrorReport, ...]:
    """The reports on an error: one for each problem in a configuration, else one."""
    several: Sequence[McphostError] = getattr(error, "problems", ()) if isinstance(error, ConfigError) else ()
    return tuple(map(ErrorReport.from_error, several)) or (ErrorReport.from_error(error),)


def foreign(text: str) -> str:
    """Untrusted text for stdout: on a terminal made safe and put behind a margin, else unchanged."""
    return behind_margin(show(text, joiners=True), size(sys.stdout)[0]) if is_terminal(sys.stdout) else text


def json_text(value: Any, *, colours: bool = True) -> str:
    """``value`` as JSON: on one line for programs, indented on a terminal, with unsafe characters as escapes."""
    if not is_terminal(sys.stdout):
        text = json.dumps(value, ensure_ascii=False)
        return f"{text if _encodable(text) else json.dumps(value)}\n"
    text = json.dumps(value, ensure_ascii=False, indent=2)
    text = text if show(text) == text else json.dumps(value, indent=2)
    if colours and _shows_colours(sys.stdout):
        text = _JSON_KEY.sub(lambda found: f"{found[1]}{_KEY}{found[2]}{_PLAIN}", text)
    return f"{text}\n"


_HEAD: Final = "\x1b[1m"
_KEY: Final = "\x1b[36m"
_PLAIN: Final = "\x1b[0m"
_STATES: Final = {"●": "\x1b[32m", "✓": "\x1b[32m", "▲": "\x1b[33m", "✖": "\x1b[31m", "✗": "\x1b[31m"}
"""Colours of cells that begin with these marks, of the terminal's own sixteen."""
_JSON_KEY: Final = re.compile(r'^( *)("(?:[^"\\]|\\.)*")(?=: )', re.MULTILINE)


def _shows_colours(stream: IO[str], environment: Mapping[str, str] = os.environ) -> bool:
    """True for a terminal whose user did not switch colours off, and for all else where they are forced."""
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal(stream) and environment.get("TERM") not in (None, "", "dumb")


def table(rows: Sequence[Sequence[str]], *, narrow: bool = False) -> str:
    """Rows in aligned columns; the first row is the heading. With ``narrow``, columns without any value are left out.

    On a terminal the widest columns, mostly the last, are cut until no line wraps; a pipe gets everything. Written by
    hand because importing Rich's tables takes a third of the time of ``mcphost list``.
    """
    safe: Sequence[Sequence[str]] = [[show_line(cell) for cell in row] for row in rows]
    safe = _without_empty(safe) if narrow else safe
    widths = [max(map(cells, column)) for column in zip(*safe, strict=True)]
    gaps = GAP * (len(widths) - 1)
    width = size(sys.stdout)[0] - 1 if is_terminal(sys.stdout) else sum(widths) + gaps
    widths = _narrowed(widths, width - gaps)
    lines = [fitted((" " * GAP).join(map(_padded, map(fitted, row, widths), widths)).rstrip(), width) for row in safe]
    if _shows_colours(sys.stdout):
        lines = [f"{_HEAD}{lines[0]}{_PLAIN}", *map(_coloured, lines[1:])]
    return "".join(f"{line}\n" for line in lines)


def _without_empty(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """The rows without the columns, but for names, in which no row has anything."""
    columns = list(zip(*rows, strict=True))
    kept = [n < NAMES or any(cell not in ("", "-") for cell in column[1:]) for n, column in enumerate(columns)]
    return [list(compress(row, kept)) for row in rows] if len(rows) > 1 else rows


def with_coloured_states(text: str) -> str:
    """Lines that begin with a mark and a state, in colour where stdout shows colours."""
    return "".join(map(_coloured, text.splitlines(keepends=True))) if _shows_colours(sys.stdout) else text


def _coloured(line: str) -> str:
    """A line of a table with its state, a mark and words up to the next column, in colour."""
    state, gap, rest = line.partition(" " * GAP)
    return f"{_STATES[line[0]]}{state}{_PLAIN}{gap}{rest}" if line[:1] in _STATES else line


def _narrowed(widths: list[int], room: int) -> list[int]:
    """``widths`` with the widest narrowed until all fit: names last, none below `NARROWEST`."""
    narrowed = list(widths)
    for columns in (range(NAMES, len(widths)), range(len(widths))):
        while sum(narrowed) > room and (widest := max(columns, key=narrowed.__getitem__, default=None)) is not None:
            if narrowed[widest] <= NARROWEST:
                break
            narrowed[widest] -= 1
    return narrowed


class StatusLine:
    """A line on stderr that is overwritten; absent if stderr is not a terminal, and while a question is open.

    Other output calls `take_away` first.
    """

    _shown: ClassVar[StatusLine | None] = None
    _held: ClassVar[int] = 0

    def __init__(self) -> None:
        self._next = 0.0
        self.active = is_terminal(sys.stderr)

    @classmethod
    def take_away(cls) -> None:
        """Clear the line that is shown, if any."""
        if cls._shown is not None:
            cls._shown.clear()

    @classmethod
    @contextmanager
    def held(cls) -> Iterator[None]:
        """Show no status line until the end of the block."""
        cls.take_away()
        cls._held += 1
        try:
            yield
        finally:
            cls._held -= 1

    def show(self, text: str, *, last: bool = False) -> None:
        """Replace the line, at most every `STATUS_PAUSE` seconds; ``last``: at once."""
        now = time.monotonic()
        if not self.active or self._held or (now < self._next and not last):
            return
        self._next, StatusLine._shown = now + STATUS_PAUSE, self
        width = size(sys.stderr)[0]
        self._write(f"\r{fitted(show_line(text, width), width - 1)}\x1b[K")

    def clear(self) -> None:
        if StatusLine._shown is self:
            StatusLine._shown = None
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _encodable(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode())
    return False


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def fitted(line: str, width: int) -> str:
    """A line cut to this many cells."""
    if cells(line) <= width:
        return line
    room, end = width - 1, 0
    while end < len(line) and (room := room - cell(line[end])) >= 0:
        end += 1
    return f"{line[:end]}…"
