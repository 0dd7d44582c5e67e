"""A program on a terminal of its own: keys in, the screen as a person sees it out.

The pseudo-terminal is real; what it shows is kept by a terminal emulator of another project. Nothing sleeps: every
wait reads until a condition holds, with a bound that only a failure meets.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyte

from tests.screen_text import says
from tests.warm_start import Fork, may_fork

KEYS: Mapping[str, str] = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "end": "\x1b[F",
    "home": "\x1b[H",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f5": "\x1b[15~",
    "ctrl+q": "\x11",
    "ctrl+r": "\x12",
    "ctrl+p": "\x10",
    "ctrl+u": "\x15",
    "space": " ",
}

SECONDS = 40.0
"""Seconds that any step may take on a busy machine."""

HEARD = 5.0
"""Seconds after which keys that showed nothing were not heard."""

AFTER_ESCAPE = 0.4
"""Seconds after which the next key is not a part of an escape."""

MOST_READS = 1000
"""That find out what there is to read."""

HELD = 1.0
"""Seconds for which a program that has ended is read on, if another one keeps its terminal open."""

FRAME_READS = 50
"""That take what was written at once: no condition is tried on every part of a frame."""

COLORS = re.compile(rb"\x1b\[[\d;]*m")

TAKE_CONTROL = ("sh", "-c", 'tty=$1; shift; exec "$@" <> "$tty" >&0 2>&0', "sh")
"""The controlling terminal of a session is the first that its leader opens. A ``preexec_fn`` would fork the whole test
process, which takes 0.1 s.
"""

BEGUN = re.compile(rb"\x1b(?:\[[\d;]*)?")
"""A sequence that may set colors and has not come to its end."""


class Terminal:
    """Runs ``command`` on a terminal of ``columns`` by ``rows``. Use as ``with``.

    Without ``controls`` it is not the command's controlling terminal, and closing it sends no signal. With ``fresh``
    mcphost is started by the system and imports all it needs, else by a fork where that shows the same.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 36,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        controls: bool = True,
        fresh: bool = False,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        self._text = ""
        self._shown = -1
        """Bytes that the text is of."""
        self._fed = 0
        """Bytes that the emulator got, or that were left out."""
        self._closed = False
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        settings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "TEXTUAL_ANIMATIONS": "none"}
        settings |= {"COLORFGBG": "15;0"}  # the emulator does not answer when it is asked for its background
        self._path = os.ttyname(slave)
        whole = {**os.environ, **settings, **(env or {})}
        more: dict[str, Any] = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True, "cwd": cwd}
        self.process: subprocess.Popen[bytes]
        if not fresh and may_fork(command, whole):
            self.process = Fork(command, terminal=self._path if controls else None, env=whole, **more)
        else:
            command = (*TAKE_CONTROL, self._path, *command) if controls else command
            self.process = subprocess.Popen(command, env=whole, **more)
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    @property
    def controls(self) -> bool:
        """True if it is the controlling terminal of the program."""
        return os.tcgetpgrp(self._master) == self.process.pid

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as the user does with its window."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def freeze(self) -> None:
        """Take no more output, as a terminal whose connection is stuck."""
        with open(self._path) as terminal:
            termios.tcflow(terminal, termios.TCOOFF)

    def thaw(self) -> None:
        """Take output again."""
        with open(self._path) as terminal:
            termios.tcflow(terminal, termios.TCOON)

    def blank(self) -> None:
        """Forget what is shown, as if another program had used the terminal."""
        self.rest(0)
        self._feed()
        self._screen.reset()
        self._shown = -1

    @property
    def is_cooked(self) -> bool:
        """True if the terminal is in the modes that a shell expects."""
        modes = termios.tcgetattr(self._master)[3]
        return bool(modes & termios.ECHO and modes & termios.ICANON and modes & termios.ISIG)

    def cook(self) -> None:
        """Set the modes that a shell expects."""
        modes = termios.tcgetattr(self._master)
        modes[3] |= termios.ECHO | termios.ICANON | termios.ISIG
        termios.tcsetattr(self._master, termios.TCSANOW, modes)

    def hang_up(self) -> None:
        """Close the terminal, as a window or an ssh connection does."""
        os.close(self._master)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(8)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """The present screen, one line for each row."""
        if self._shown != len(self.raw):  # the emulator needs 10 ms to write it out
            self._feed()
            self._text, self._shown = "\n".join(line.rstrip() for line in self._screen.display), len(self.raw)
        return self._text

    def _feed(self) -> None:
        """Give the emulator what came, but for colors: they are most of it, and no part of the text."""
        end, last = len(self.raw), self.raw.rfind(b"\x1b", self._fed)
        if last >= 0 and BEGUN.fullmatch(self.raw, last):
            end = last
        self._stream.feed(COLORS.sub(b"", self.raw[self._fed : end]))
        self._fed = end

    def press(self, *keys: str) -> None:
        """Type keys by name, or text as it is; bytes that are not UTF-8 as surrogates."""
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode("utf-8", "surrogateescape"))
            if key == "escape":
                self.rest(AFTER_ESCAPE)

    def send(self, data: bytes) -> None:
        """Write bytes as they are, as a terminal that reports something."""
        os.write(self._master, data)

    def press_until(self, keys: Sequence[str], *words: str, but: str = "", again: Sequence[str] = ()) -> str:
        """Press keys until the words are on the screen and ``but`` is not; where that takes long they come again.

        What had no focus yet, or was not yet listening, did not hear them. They come again only while all of ``again``
        is on the screen: where they were heard, they might mean something else by then.
        """
        end = time.monotonic() + SECONDS

        def so(text: str) -> bool:
            return all(says(text, word) for word in words) and not (but and but in text)

        self.press(*keys)
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):
                return self.wait_until(so, "", HEARD)
            if all(word in self.text for word in again):
                self.press(*keys)
        return self.wait_until(so, f"{words} after {keys}", 0)

    def wait_for(self, *words: str, seconds: float = SECONDS) -> str:
        """Read until all the words are on the screen, wrapped or not."""
        return self.wait_until(lambda text: all(says(text, word) for word in words), f"{words}", seconds)

    def wait_gone(self, word: str, seconds: float = SECONDS) -> str:
        """Read until the word is not on the screen."""
        return self.wait_until(lambda text: word not in text, f"no {word!r}", seconds)

    def wait_until(self, condition: Callable[[str], bool], what: str, seconds: float = SECONDS) -> str:
        """Read until the condition holds of the screen; fails with the screen as it is."""
        for _ in self._reads(seconds):
            if condition(self.text):
                return self.text
        raise AssertionError(f"waited {seconds:g} s for {what}; the screen is\n{self.text}")

    def wait_exit(self, seconds: float = SECONDS) -> int:
        """Read until the program has ended, and all it has written; its exit code."""
        for _ in self._reads(seconds):
            if self.process.poll() is not None:
                end = time.monotonic() + HELD
                while not self._closed and time.monotonic() < end:  # what was written may come a little later
                    self._take(0.1)
                return self.process.returncode
        raise AssertionError(f"still running after {seconds:g} s; the screen is\n{self.text}")

    def rest(self, seconds: float) -> None:
        """Read what comes for so long, where the program itself counts time."""
        for _ in self._reads(seconds):
            pass

    def _reads(self, seconds: float) -> Iterator[None]:
        """Whenever something came, and now and then; once more with all there is when the time is over."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            yield
            if self._take(min(left, 0.1)):
                self._take_all(FRAME_READS)
        self._take_all()
        yield

    def _take_all(self, most: int = MOST_READS) -> None:
        for _ in range(most):  # a program may write without end
            if not self._take(0):
                return

    def _take(self, seconds: float) -> bool:
        """Read once, what comes within so many seconds; was there anything?"""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is gone
            self._closed = True
            time.sleep(min(seconds, 0.01))
            return False
        self.raw += data
        return True


def mcphost(*arguments: str, **options: object) -> Terminal:
    """`python -m mcphost` with these arguments, on a terminal."""
    return Terminal([sys.executable, "-m", "mcphost", *arguments], **options)  # type: ignore[arg-type]
