"""The user's editor and pager: their commands, the file that one edits, and a run with the terminal to itself."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from mcphost.errors import NotDone
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, open_regular

Which = Callable[[str], str | None]

EDITORS: Final = ("vi", "nano")
"""Tried in this order where neither VISUAL nor EDITOR is set."""

PAGERS: Final = ("less -R", "more")

END_SECONDS: Final = 2.0
"""Seconds that an editor has to end when mcphost ends."""


def editor_command(environment: Mapping[str, str] = os.environ, which: Which = shutil.which) -> list[str]:
    """The words of $VISUAL, else of $EDITOR, else an editor that is installed. Raises NotDone."""
    return _command(("VISUAL", "EDITOR"), EDITORS, "editor", environment, which)


def pager_command(environment: Mapping[str, str] = os.environ, which: Which = shutil.which) -> list[str]:
    """The words of $PAGER, else a pager that is installed. Raises NotDone."""
    return _command(("PAGER",), PAGERS, "pager", environment, which)


def _command(
    variables: Sequence[str], usual: Sequence[str], kind: str, environment: Mapping[str, str], which: Which
) -> list[str]:
    for name in variables:
        if not (text := environment.get(name, "").strip()):
            continue
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise NotDone(f"${name} cannot be read: {error}; its quotes must be in pairs") from None
        if not words or which(words[0]) is None:
            raise NotDone(f"${name} is {text}, which is not installed here; set it to your {kind}")
        return words
    for text in usual:
        if which((words := shlex.split(text))[0]) is not None:
            return words
    raise NotDone(f"there is no {kind} here; set ${variables[-1]} to yours")


async def run_on_terminal(command: Sequence[str], given: IO[bytes] | None = None) -> int:
    """Run a program that has the terminal to itself, and return its exit code; ``given`` is its stdin.

    The keys of the terminal that interrupt a program then mean that one alone. Raises OSError.
    """
    process = await asyncio.create_subprocess_exec(*command, stdin=given)
    with interrupts_ignored():
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_SECONDS)
            raise


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl+C and Ctrl+\\ to the program on the terminal. Start it before: it would inherit this."""
    before: dict[int, Any] = {}
    for name in ("SIGINT", "SIGQUIT"):
        with suppress(AttributeError, ValueError):  # Windows has no SIGQUIT, and only the main thread sets handlers
            number = getattr(signal, name)
            before[number] = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class EditedFile:
    """A text in a file of its own, in a folder that only the user can read. Everything here waits for the disk."""

    def __init__(self, text: str, suffix: str) -> None:
        """``suffix`` lets the editor highlight what it holds. Raises OSError, or NotDone for a text of no file."""
        self._text, self._is_kept = text, False
        self._folder = Path(tempfile.mkdtemp(prefix="mcphost-"))
        self.path = self._folder / f"mcphost{suffix}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
            with open(os.open(self.path, flags, 0o600), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError:
            self.remove()
            raise
        except UnicodeEncodeError:  # from the default of a server
            self.remove()
            raise NotDone("the text holds half a character, which no file can hold; take it out first") from None

    def read(self, most_characters: int) -> str | None:
        """The edited text without the line end that editors add; None if it was left as it was.

        Raises NotDone with a sentence.
        """
        most_bytes = 4 * most_characters
        try:
            with open(open_regular(self.path, follow_links=False), "rb") as file:
                data = file.read(most_bytes + 1)
        except OSError as error:
            raise NotDone(f"the edited file cannot be read: {error.strerror}") from None
        try:
            text = data.decode() if len(data) <= most_bytes else ""
        except UnicodeDecodeError:
            raise NotDone(f"what you wrote is not UTF-8; {self.keep()}") from None
        text = text.replace("\r\n", "\n")
        if not self._text.endswith("\n"):
            text = text.removesuffix("\n")
        if len(data) > most_bytes or len(text) > most_characters:
            raise NotDone(f"what you wrote is longer than {most_characters:,} characters; {self.keep()}")
        return None if text == self._text else text

    def keep(self) -> str:
        """Let `remove` leave what the user wrote; where it is, as a clause."""
        self._is_kept = True
        return f"it is in {self.path}"

    def remove(self) -> None:
        if not self._is_kept:
            shutil.rmtree(self._folder, ignore_errors=True)
