"""Saves the traceback of an unexpected exception to a file that only the user can read.

It holds no local variable, and no text of an exception unless the interpreter wrote it about the code: anything else
may quote a secret.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from mcphost import __version__
from mcphost.errors import McphostError
from mcphost.posix import NO_FOLLOW

FOLDER: Final = "crashes"
"""The name of the folder in the state folder."""

KEPT: Final = 20
"""Files kept; older ones are deleted."""

FRAMES: Final = 60
"""Innermost lines of one traceback; an endless recursion has a thousand."""

CHAIN: Final = 20
"""Exceptions of one file, with their causes and the members of groups."""

_NAME: Final = r"'[\w.<>]{1,200}'"
_ABOUT_CODE: Final = (
    rf"{_NAME} object (?:has no attribute {_NAME}|is not \w+)"
    rf"|(?:type object|module) {_NAME} has no attribute {_NAME}"
    rf"|name {_NAME} is not defined"
    rf"|cannot access (?:local|free) variable {_NAME} where it is not associated with a value(?: in enclosing scope)?"
    rf"|No module named {_NAME}|cannot import name {_NAME} from {_NAME}"
    rf"|[\w.<>]{{1,200}}\(\) (?:missing|takes|got) [\w ]{{1,200}}(?:: {_NAME}(?:(?:,| and|, and) {_NAME})*| {_NAME})?"
    rf"|unsupported operand type\(s\) for [^ ]{{1,9}}: {_NAME} and {_NAME}"
    r"|maximum recursion depth exceeded[ a-z]*"
)
"""The interpreter's words about types and names in the code, never about a value; compiled when needed."""


class CrashFiles:
    """The files below ``folder``, which is created when it is needed."""

    def __init__(self, state_folder: Path) -> None:
        self.folder = state_folder / FOLDER
        self._numbers = count(1)

    def save(self, error: BaseException) -> Path | None:
        """Write the traceback to a new file; return its path, or None where it cannot be written. Never raises."""
        path = self._new_path()
        return path if self._write(path, error) else None

    def save_in_thread(self, error: BaseException) -> Path:
        """The same without waiting for the disk."""
        path = self._new_path()
        threading.Thread(target=self._write, args=(path, error), name="save a traceback").start()
        return path

    def newest(self) -> Path | None:
        """The file of the last crash; None if none was recorded."""
        return max(self._files(), default=None)

    def _new_path(self) -> Path:
        return self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(self._numbers):03}.txt"

    def _write(self, path: Path, error: BaseException) -> bool:
        with suppress(Exception):  # whatever goes wrong here must not hide the error itself
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.folder.is_symlink():  # what is there is not ours to delete
                return False
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
            with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(crash_text(error))
            for old in sorted(self._files())[:-KEPT]:
                old.unlink()
            return True
        return False

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return [] if self.folder.is_symlink() else list(self.folder.glob("*.txt"))
        return []


class CrashLogHandler(logging.Handler):
    """Saves the exceptions of log records: those that `mcphost.host.internal_error` turned into errors to show."""

    def __init__(self, files: Callable[[], CrashFiles]) -> None:
        super().__init__()
        self._files = files

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            with suppress(McphostError):  # there is no folder for it
                self._files().save_in_thread(record.exc_info[1])


def crash_text(error: BaseException) -> str:
    """The content of a file: versions, and the traceback without values."""
    system = f"{platform.system()} {platform.release()}"
    head = (
        f"mcphost {__version__}, Python {platform.python_version()}, {system}, {time.strftime('%Y-%m-%d %H:%M:%S %z')}"
    )
    return "\n".join([head, "Local variables, and texts that may quote a value, are left out.", *_lines(error)]) + "\n"


def _lines(error: BaseException) -> Iterator[str]:
    """Each exception of the chain, the first cause first."""
    for number, each in enumerate(reversed(list(_chain(error)))):
        frames = "".join(traceback.extract_tb(each.__traceback__, -FRAMES).format())
        kind = type(each)
        text = said if re.fullmatch(_ABOUT_CODE, said := _said(each)) else ""
        yield f"\n{'Then: ' if number else ''}Traceback (most recent call last):"
        yield f"{frames}{kind.__module__}.{kind.__qualname__}{f': {text}' if text else ''}"


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, what caused it, and the members of groups, each once."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < CHAIN:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        before = each.__cause__ if each.__suppress_context__ else each.__cause__ or each.__context__
        waiting += [before] if before is not None else []
