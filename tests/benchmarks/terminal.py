"""A program on a pseudo terminal of 120x36, and the text it paints.

Escape sequences are dropped, not obeyed, but for the questions that every terminal answers.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.benchmarks.measure import Sample

ROWS, COLUMNS = 36, 120
ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_].*?\x1b\\|[ -/]*[0-~])", re.DOTALL
)
FAREWELL = b"\x11"  # ctrl+q
ANSWERS = {b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:1010/1414/1c1c\x1b\\", b"\x1b[c": b"\x1b[?62;22c"}
"""A terminal's replies about its background and its kind."""


class NotSeenError(Exception):
    """Raised if the expected text did not appear; holds the text that did."""


class Terminal:
    """Use as ``with``; the program is told to quit at the end, and its session is killed if it stays."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._master, slave = os.openpty()
        termios.tcsetwinsize(slave, (ROWS, COLUMNS))
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=dict(env), cwd=env["HOME"], start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.write(self._master, FAREWELL)
        if not self._gone_within(10):
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    def press(self, keys: bytes) -> float:
        """Type; returns when."""
        now = time.perf_counter()
        os.write(self._master, keys)
        return now

    def wait_for(self, seen: Callable[[str], object], seconds: float = 20.0) -> float:
        """When the text painted from now on satisfied ``seen``. Raises NotSeenError."""
        painted = bytearray()
        for piece in self._pieces(seconds):
            painted += piece
            text = ESCAPES.sub("", painted.decode("utf-8", "ignore"))
            if seen(text):
                return time.perf_counter()
        raise NotSeenError(ESCAPES.sub(" ", painted.decode("utf-8", "ignore"))[-1500:])

    def answered(self, keys: bytes, seen: Callable[[str], object], seconds: float = 5.0) -> Sample:
        """Type: the time until what was painted satisfied ``seen``, and the program's processor time until then."""
        before, pressed = self._processor_time(), self.press(keys)
        return Sample(self.wait_for(seen, seconds) - pressed, self._processor_time() - before)

    def cost(self, seconds: float) -> tuple[Sample, float]:
        """The program's processor time in so many seconds, and the bytes that it writes meanwhile."""
        before = self._processor_time()
        written = sum(map(len, self._pieces(seconds)))
        taken = self._processor_time() - before
        return Sample(taken, taken), written

    def _processor_time(self) -> float:
        """In seconds; others on a busy machine do not add to it by keeping the program waiting."""
        return time.clock_gettime(~self._process.pid << 3 | 2)  # as clock_getcpuclockid(3) names the clock of a process

    def idle(self, seconds: float) -> None:
        """Read and forget what is painted for some time."""
        for _ in self._pieces(seconds):
            pass

    def settle(self) -> None:
        """Read and forget what is painted until nothing was for a second."""
        while self.cost(1.0)[1]:
            pass

    def resident(self) -> float:
        """The program's resident memory in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024 / 1e6

    def _pieces(self, seconds: float) -> Iterator[bytes]:
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    piece = os.read(self._master, 1 << 16)
                except OSError:  # the other side is closed
                    return
                for question, answer in ANSWERS.items():
                    if question in piece:
                        os.write(self._master, answer)
                yield piece

    def _gone_within(self, seconds: float) -> bool:
        end = time.perf_counter() + seconds
        while self._process.poll() is None and time.perf_counter() < end:
            self.idle(0.02)
        return self._process.poll() is not None


def all_of(*words: str) -> Callable[[str], bool]:
    """Return True if each of these is in the text."""
    return lambda text: all(word in text for word in words)


def lonely_environment(home: Path) -> dict[str, str]:
    """An environment in which ``home`` is all there is, with a terminal that has colours."""
    for name in ("config", "data", "state", "cache", "runtime"):
        (home / name).mkdir(mode=0o700, exist_ok=True)
    xdg = {f"XDG_{n.upper()}_HOME": str(home / n) for n in ("config", "data", "state", "cache")}
    return {
        **xdg,
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TEXTUAL_ANIMATIONS": "none",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
