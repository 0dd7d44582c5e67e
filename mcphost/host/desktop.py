"""Opens pages in the browser and files in their programs, through the desktop's opener and never through a shell."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from mcphost.errors import NotDone

Open = Callable[[str], Awaitable[str]]
"""Opens a URL in a browser; why it could not, or an empty text."""

PATIENCE: Final = 2.0
"""Seconds in which an opener that cannot open says so; one that has not ended by then is showing it."""

_ABSENT: Final = {
    True: "this is a session over ssh, and a program would open on the other machine's screen, if it has one",
    False: "there is no desktop here that a program could open on",
}


def find_opener(
    environment: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> str:
    """The program that knows which program opens what. Raises NotDone where there is no screen for one, or none."""
    remote = bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"))
    if platform == "darwin":
        seen, name = not remote, "open"
    else:
        seen, name = bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")), "xdg-open"
    if not seen:
        raise NotDone(_ABSENT[remote])
    program = which(name)
    if program is None:
        raise NotDone(f"{name} is not installed here")
    return program


_showing: list[subprocess.Popen[bytes]] = []
"""Openers that go on. Python warns of a process that is dropped before it has ended."""


def launch(program: str, what: str) -> int | None:
    """Have ``program`` open ``what``; its exit code, None while it goes on. Takes up to `PATIENCE`. Raises OSError.

    It outlives us: what it opened is the user's.
    """
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        [program, what], stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
    )
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _showing[:] = [each for each in (*_showing, process) if each.poll() is None]
        return None


async def open_page(url: str) -> str:
    """Open a page in the user's browser. Returns why it could not be, or an empty text."""
    if not url.startswith(("https://", "http://")) or not url.isascii() or not url.isprintable() or " " in url:
        return "its address is not one that a browser should be given"
    try:
        program = find_opener()
        code = await asyncio.to_thread(launch, program, url)
    except NotDone as error:
        return str(error)
    except OSError as error:
        return f"the opener cannot be started: {error.strerror}"
    return f"{program} ended with {code}, so no browser may be set" if code else ""


async def no_browser(url: str) -> str:
    """For a run that opens none."""
    return "this run opens no browser"
