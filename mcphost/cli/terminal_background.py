"""Finds out whether the terminal's background is light, by its answer to OSC 11, or by COLORFGBG."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from mcphost.cli.terminal_modes import answering

QUERY: Final = b"\x1b]11;?\x1b\\\x1b[c"
"""Asks for the background colour, and then for the terminal's name, which every terminal answers, in order."""

LOCAL_SECONDS: Final = 0.3
REMOTE_SECONDS: Final = 1.0
"""Seconds to wait for an answer, which from a local terminal takes a few milliseconds."""

REST_SECONDS: Final = 2.0
"""Seconds that an answer may pause once it has begun. The screen drops answers, but not the last half of one."""

_COLOR: Final = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_ATTRIBUTES: Final = re.compile(rb"\x1b\[\?[\d;]*c")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\][^\x07\x1b]*\x1b?|\[[ -?]*)?\Z")
_LIGHT_COLORS: Final = {"7", *map(str, range(9, 16))}


@contextmanager
def background_query(keyboard: int, screen: int, environ: Mapping[str, str]) -> Iterator[Callable[[], bool]]:
    """Send the query, and yield a function that waits for the answer and says whether the background is light.

    The function returns False where the terminal has not answered in time. What is typed meanwhile is dropped.
    """
    known = environ.get("COLORFGBG", "").rpartition(";")[2]
    if known.isdigit():
        yield lambda: known in _LIGHT_COLORS
        return
    deadline = time.monotonic() + (REMOTE_SECONDS if "SSH_CONNECTION" in environ else LOCAL_SECONDS)
    with answering(keyboard) as answers:
        if answers:
            os.write(screen, QUERY)
        yield lambda: answers and is_light(_answer(keyboard, deadline))


def is_light(answer: bytes) -> bool:
    """True if an answer to the query names a background that is closer to white than to black."""
    if not (found := _COLOR.search(answer)):
        return False
    red, green, blue = (int(part, 16) / float(16 ** len(part) - 1) for part in found.groups())
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


def _answer(keyboard: int, deadline: float) -> bytes:
    read = b""
    while not _ATTRIBUTES.search(read):
        # After the deadline, what has come is still read: left there, the screen would take it for keys.
        left = max(deadline - time.monotonic(), REST_SECONDS if _UNFINISHED.search(read) else 0)
        if not select.select([keyboard], [], [], left)[0] or not (more := os.read(keyboard, 1024)):
            break
        read += more
    return read
