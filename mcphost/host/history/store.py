"""The file of the history: an SQLite database in the state folder, which several mcphosts may write at once.

Everything here waits for the disk, and a `HistoryStore` belongs to one thread. Errors are ConfigError, in words.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic_core import to_json

from mcphost.config.state import locked, set_aside
from mcphost.errors import ConfigError
from mcphost.host.history.past_call import (
    SEARCHED_CHARACTERS,
    PastCall,
    PastCallQuery,
    json_of,
    kept_text,
    search_text_of,
)
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, owned_by_us
from mcphost.redaction import MASK, Mask, masked_value

RESULT_BYTES: Final = 64 << 10
"""Bytes of the JSON of a result, or of arguments, that are kept; of a larger result only the size and SHA-256 are."""

READ_CHARACTERS: Final = 4 * RESULT_BYTES
"""Characters of JSON that are read, since its blanks and escapes do not count for the limit; mcphost writes no more."""

PATTERN_CHARACTERS: Final = 5_000
"""Characters of a sought word; more than any searched text has."""

PAGE_CHARACTERS: Final = 2_000_000
"""Characters of arguments that one page reads; its other calls are on the next one."""

BUSY_SECONDS: Final = 5.0
"""Seconds to wait for another mcphost that writes; one transaction takes milliseconds."""

CHECK_SECONDS: Final = 3600.0
"""Seconds between two searches for calls that are too old; the size is checked after each batch."""

PRUNED_SHARE: Final = 0.9
"""The share of the budget that remains after calls were deleted for it, so that this is seldom needed."""

PRUNED_CALLS: Final = 500
"""The most calls deleted in one transaction, so that no other mcphost waits long."""

PRUNED_PART: Final = 20
"""The part of all calls that is deleted at once where the file is too large: a twentieth."""

ITEMS: Final = 1000
"""Items of an array that are written at once: other threads run between two pieces."""

APPLICATION: Final = 0x6D637068
"""``mcph``, the application id of the file."""

VERSION: Final = 1

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_WORDS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_BUSY: f"another mcphost has locked it for {BUSY_SECONDS:g} s",
    sqlite3.SQLITE_PERM: "it may not be opened",
}

_TABLES: Final = (
    "CREATE TABLE calls (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, number INTEGER NOT NULL, "
    "time REAL NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL, state TEXT NOT NULL, "
    "duration REAL NOT NULL, sent INTEGER NOT NULL, result_size INTEGER, result_digest TEXT NOT NULL, "
    "origin TEXT NOT NULL, identity TEXT NOT NULL, error TEXT NOT NULL, argument_text TEXT)",
    # Tables of their own: a search reads all of the one, and nothing of the other.
    "CREATE TABLE searched (call INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE TABLE results (call INTEGER PRIMARY KEY, json TEXT NOT NULL)",
    "CREATE INDEX calls_of_tool ON calls (server, tool)",
)

_FIELDS: Final = {
    "id": int, "run": str, "number": int, "time": float, "server": str, "identity": str, "tool": str, "origin": str,
    "state": str, "duration": float, "sent": int, "error": str, "argument_text": str | None,
    "result_size": int | None, "result_digest": str,
}  # fmt: skip
"""The fields of a call, with their types in the file."""

_INSERT: Final = (
    "INSERT INTO calls (run, number, time, server, tool, state, duration, sent, result_size, result_digest, "
    "origin, identity, error, argument_text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class HistoryBudget:
    """The limits of the history; beyond them the oldest calls are deleted."""

    size: int
    """Bytes of the file."""
    days: int


class HistoryStore:
    """``report`` takes a sentence for the user, such as that the file was damaged."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path, self._report = path, report
        self._database: sqlite3.Connection | None = None
        self._file: object = None
        self._next_check = 0.0

    def add(self, run: str, calls: Sequence[ToolCall], mask: Mask, budget: HistoryBudget) -> None:
        """Keep calls that ended, in one transaction; then delete the oldest beyond the budget."""
        rows = [_row(run, call, mask) for call in calls]
        self._use(lambda database: _insert(database, rows))
        self._use(lambda database: self._prune(database, budget))

    def find(self, query: PastCallQuery) -> list[PastCall]:
        """The newest calls that fit; a missing file has none."""
        return self._use(lambda database: _find(database, query)) if self._exists() else []

    def count(self, server: str | None = None) -> int:
        """The number of calls to this server (None: to all) that are kept."""
        return self._use(lambda database: _count(database, server)) if self._exists() else 0

    def last_tools(self, most: int) -> list[tuple[str, str]]:
        """The servers and tools called last, the newest first."""
        return self._use(lambda database: _last_tools(database, most)) if self._exists() else []

    def result(self, call: int) -> str | None:
        """The JSON of a call's result; None if it was not kept."""
        return self._use(lambda database: _result(database, call)) if self._exists() else None

    def close(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _exists(self) -> bool:
        return os.path.lexists(self._path)

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do the work; if the file is damaged, set it aside and do it in a new one."""
        try:
            return self._try(work)
        except sqlite3.DatabaseError as error:
            if not _is_damaged(error):
                raise self._failure(error) from None
            self._set_aside()
        try:
            return self._try(work)
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from None

    def _try(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._database is None or _identity_of(self._path) != self._file:  # the user may have deleted the file
            self.close()
            self._database = self._open()
            self._file = _identity_of(self._path)
        try:
            return work(self._database)
        except BaseException:
            if self._database.in_transaction:
                self._database.rollback()
            raise

    def _failure(self, error: sqlite3.DatabaseError) -> ConfigError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return ConfigError(_WORDS.get(code, str(error)), path=self._path)

    def _open(self) -> sqlite3.Connection:
        new = self._make_private()
        database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        database.text_factory = _decoded
        try:
            if new:
                database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            database.execute("PRAGMA trusted_schema = OFF")
            # A killed mcphost loses nothing that was committed; only a system that breaks down may lose the last calls.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _make_private(self) -> bool:
        """Refuse what is not a file of this user, and close it to others; create it if necessary, and return True."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            name = f"{self._path}{suffix}"
            with suppress(FileNotFoundError):
                found = os.lstat(name)
                if why := _why_not_ours(found):
                    raise ConfigError(f"{why}; move it away", path=Path(name))
                if found.st_mode & 0o077:
                    os.chmod(name, 0o600)
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC, 0o600))
        except FileExistsError:
            return os.lstat(self._path).st_size == 0
        except OSError as error:
            raise ConfigError(f"cannot be created: {error.strerror}", path=self._path) from None
        return True

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make the tables, or check that they are those of this mcphost, without views and triggers beside them."""
        if _stamp(database) == (APPLICATION, VERSION):
            made = database.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
            if {sql for (sql,) in made} != set(_TABLES):
                raise _foreign()
            return
        with _transaction(database):  # another mcphost may be making them
            application, version = _stamp(database)
            if application == APPLICATION and version > VERSION:
                raise ConfigError("was written by a newer mcphost, and is left as it is", path=self._path)
            if (application, version) == (APPLICATION, VERSION):
                return
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                raise _foreign()
            for table in _TABLES:
                database.execute(table)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {VERSION}")

    def _set_aside(self) -> None:
        """Rename the damaged file, unless another mcphost has done so."""
        self.close()
        with locked(self._path):
            if self._file is not None and _identity_of(self._path) != self._file:
                return
            kept = set_aside(self._path)
            for suffix in ("-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    os.rename(f"{self._path}{suffix}", f"{kept}{suffix}")
        self._report(f"{self._path} was damaged; it is kept as {kept.name}, and mcphost starts a new one")

    def _prune(self, database: sqlite3.Connection, budget: HistoryBudget) -> None:
        """Delete calls that are too old, and the oldest while the file is too large."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            oldest = time.time() - budget.days * 86_400
            while _delete_oldest(database, PRUNED_CALLS, oldest) == PRUNED_CALLS:
                pass
        if _used(database) > budget.size:
            part = min(PRUNED_CALLS, 1 + _count(database) // PRUNED_PART)
            while _used(database) > budget.size * PRUNED_SHARE and _delete_oldest(database, part):
                pass
            database.execute("PRAGMA incremental_vacuum").fetchall()


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Changes when the file is replaced; None if it does not exist."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _why_not_ours(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "is a link, which mcphost does not follow to its own files"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    return "" if owned_by_us(found) else "belongs to another user"


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _foreign() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("it is a database of another program")
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


def _stamp(database: sqlite3.Connection) -> tuple[int, int]:
    (application,), (version,) = (
        database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return application, version


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")  # the lock that waits; one that is taken later would fail at once
    yield
    database.execute("COMMIT")


# Writing.

_Row = tuple[tuple[Any, ...], str, str | None]
"""The fields of a call, the text for searches, and the JSON of its result."""


def _row(run: str, call: ToolCall, mask: Mask) -> _Row:
    request = call.request
    arguments = masked_json(dict(call.arguments), _with_references(call, mask))
    if arguments is not None and len(arguments.encode()) > RESULT_BYTES:
        arguments = None
    size, digest, result = _kept_result(call, mask)
    server, tool, state = (kept_text(each, mask) for each in (request.server, request.tool, call.state.name.lower()))
    searched = search_text_of(tool, server, call.number, call.state, (arguments or "")[:SEARCHED_CHARACTERS])
    error = "" if call.error is None else kept_text(str(call.error), mask)
    more = kept_text(request.origin, mask), kept_text(call.identity, mask), error, arguments
    sent = int(call.sent_at is not None)
    fields = run, call.number, call.time, server, tool, state, call.elapsed, sent, size, digest, *more
    return fields, searched, result


def _with_references(call: ToolCall, mask: Mask) -> Mask:
    """Masks the references of a saved call, too: in another run they would be plain text."""

    def masked(text: str) -> str:
        for reference in references:
            text = text.replace(reference, MASK)
        return mask(text)

    references = call.request.references.texts if call.request.references is not None else ()
    return masked if references else mask


def masked_json(value: Any, mask: Mask) -> str | None:
    """A value as JSON without known secrets; None if it cannot be written, or not without them."""
    masked = masked_value(value, mask)
    text = json_of(masked)
    if text is None or mask(text) == text:
        return text
    text = json_of(_without_numbers(masked, mask))
    return text if text is not None and mask(text) == text else None


def _without_numbers(value: Any, mask: Mask) -> Any:
    """The value with each number masked that holds a secret."""
    if isinstance(value, dict):
        return {name: _without_numbers(part, mask) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_numbers(part, mask) for part in value]
    text = str(value)
    return MASK if isinstance(value, int | float) and mask(text) != text else value


def _kept_result(call: ToolCall, mask: Mask) -> tuple[int | None, str, str | None]:
    """The size of a result, with its digest if it is large, else with its JSON."""
    if call.outcome is None:
        return None, "", None
    raw = dict(call.outcome.raw)
    size, digest = 0, sha256()
    try:
        for piece in _pieces(raw):
            size += len(piece)
            digest.update(piece)
    except (ValueError, RecursionError):
        return size, "unreadable", None
    if size <= RESULT_BYTES:
        text = masked_json(raw, mask)
        if text is not None:
            return len(text.encode()), "", text
    return size, digest.hexdigest(), None


def _pieces(value: Any, depth: int = 3) -> Iterator[bytes]:
    """The value as JSON in pieces: to write all of a large one would hold the interpreter, and with it the screen."""
    if depth and type(value) is dict and value:
        for number, (name, part) in enumerate(value.items()):
            yield (b"," if number else b"{") + _json(name) + b":"
            yield from _pieces(part, depth - 1)
        yield b"}"
    elif depth and type(value) is list and len(value) > ITEMS:
        for start in range(0, len(value), ITEMS):
            yield (b"," if start else b"[") + _json(value[start : start + ITEMS])[1:-1]
        yield b"]"
    else:
        yield _json(value)


def _json(value: Any) -> bytes:
    with suppress(ValueError):  # a lone surrogate
        return to_json(value)
    return (json_of(value) or "null").encode()


def _insert(database: sqlite3.Connection, rows: Sequence[_Row]) -> None:
    with _transaction(database):
        for fields, searched, result in rows:
            added = database.execute(_INSERT, fields)
            database.execute("INSERT OR REPLACE INTO searched VALUES (?, ?)", (added.lastrowid, searched))
            if result is not None:
                database.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (added.lastrowid, result))


def _used(database: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete_oldest(database: sqlite3.Connection, most: int, before: float | None = None) -> int:
    """Delete the oldest calls, with ``before`` only those from before that time; return how many."""
    with _transaction(database):
        oldest = database.execute("SELECT id, time FROM calls ORDER BY id LIMIT ?", (most,)).fetchall()
        gone = [(number,) for number, moment in oldest if before is None or moment < before]
        for table, number in (("results", "call"), ("searched", "call"), ("calls", "id")):
            database.executemany(f"DELETE FROM {table} WHERE {number} = ?", gone)
    return len(gone)


# Reading.


def _find(database: sqlite3.Connection, query: PastCallQuery) -> list[PastCall]:
    # Not instr(), which takes twice the time.
    conditions: list[tuple[str, Any]] = [("text LIKE ? ESCAPE '!'", _pattern(word)) for word in query.words]
    for field, value in (("server", query.server), ("tool", query.tool), ("identity", query.identity)):
        if value is not None:
            conditions.append((f"{field} = ?", value))
    # The order of a CROSS JOIN is kept: the texts are searched one after the other, before another table is read.
    tables, number = ("searched CROSS JOIN calls ON id = call", "call") if query.words else ("calls", "id")
    if query.before is not None:
        conditions.append((f"{number} < ?", query.before))
    if query.without_run:
        conditions.append(("run <> ?", query.without_run))
    where = f"WHERE {' AND '.join(each for each, _ in conditions)}" if conditions else ""
    values = [_sendable(value) for _, value in conditions]
    select = f"SELECT {', '.join(_FIELDS)} FROM {tables} {where} ORDER BY {number} DESC LIMIT ?"
    rows = database.execute(select, (*values, query.most))
    found: list[PastCall] = []
    characters = 0
    for row in rows:
        if (call := _read(row)) is not None:
            found.append(call)
            characters += len(call.argument_text or "")
        if characters > PAGE_CHARACTERS:
            break
    rows.close()
    return found


def _pattern(word: str) -> str:
    escaped = word[:PATTERN_CHARACTERS].replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def _sendable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _decoded(content: bytes) -> str | bytes:
    """A text of the file; bytes, which no field is, where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _read(row: Sequence[Any]) -> PastCall | None:
    """A row as a call; None if something else than mcphost wrote it."""
    if not all(map(isinstance, row, _FIELDS.values())):
        return None
    fields = dict(zip(_FIELDS, row, strict=True))
    state = CallState.__members__.get(fields["state"].upper())
    finite, small = isfinite(fields["time"]) and isfinite(fields["duration"]), _is_small(fields["argument_text"])
    usable = state is not None and finite and small
    return PastCall(**{**fields, "state": state, "sent": bool(fields["sent"])}) if usable else None


def _is_small(text: str | None) -> bool:
    return text is None or len(text) <= READ_CHARACTERS


def _count(database: sqlite3.Connection, server: str | None = None) -> int:
    where, values = ("", ()) if server is None else (" WHERE server = ?", (_sendable(server),))
    (count,) = database.execute(f"SELECT count(*) FROM calls{where}", values).fetchone()
    return int(count)


def _last_tools(database: sqlite3.Connection, most: int) -> list[tuple[str, str]]:
    found = database.execute(
        "SELECT server, tool FROM calls GROUP BY server, tool ORDER BY max(id) DESC LIMIT ?", (most,)
    )
    return [(server, tool) for server, tool in found if isinstance(server, str) and isinstance(tool, str)]


def _result(database: sqlite3.Connection, call: int) -> str | None:
    found = database.execute("SELECT json FROM results WHERE call = ?", (call,)).fetchone()
    return found[0] if found is not None and isinstance(found[0], str) and _is_small(found[0]) else None
