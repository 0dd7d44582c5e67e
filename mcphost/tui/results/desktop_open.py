"""Opens content from a server with the desktop's program: as a private copy, of types that cannot run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mcphost.errors import NotDone
from mcphost.host.desktop import find_opener, launch
from mcphost.tui.kit.export import file_name, save
from mcphost.tui.results.media import Probe

KINDS: Final = frozenset(
    (
        *("image/png", "image/jpeg", "image/gif", "image/webp"),
        *("audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"),
        "application/pdf",
    )
)
"""Types that are opened if the first bytes confirm them; plain text besides."""

_SAID: Final = ("image/", "audio/", "application/pdf", "application/octet-stream")
"""Starts of the types that a server may declare."""

_PAGE: Final = re.compile(
    r"<(?:!doctype|\?xml|html|head|title|meta|body|script|style|svg|iframe|h1|a\s)", re.IGNORECASE
)
_RUNS: Final = ("#!", "%!", "[Desktop Entry", "{\\rtf", "<")
_SNIFFED: Final = 65_536
"""Characters of a text in which a desktop may recognise something else: a web page, a script."""


def opened_as(said: str, found: Probe | None, text: str | None = None) -> str:
    """The MIME type under which content opens; "" if it does not. The server ``said`` a type, the bytes were ``found``
    to be one.
    """
    kind = said.partition(";")[0].strip().lower()
    if text is not None:
        return kind if kind == "text/plain" and not _more_than_text(text) else ""
    return found.type if found is not None and found.type in KINDS and kind.startswith(_SAID) else ""


def _more_than_text(text: str) -> bool:
    start = text[:_SNIFFED].lstrip("\ufeff \t\r\n")
    return start.startswith(_RUNS) or "\0" in start or _PAGE.search(start) is not None


def opener(
    environment: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> str:
    """The desktop's command that opens files. Raises NotDone without such a command, or without a display."""
    try:
        return find_opener(environment, platform, which)
    except NotDone as problem:
        raise NotDone(f"Not opened: {problem}. w saves it as a file.") from None


class Desktop:
    """Keeps the opened copies in a private folder until `close`."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None

    async def open(self, program: str, content: bytes, mime_type: str) -> None:
        """Write a copy, and open it with ``program``. Raises NotDone with a sentence."""
        await asyncio.to_thread(self._open, program, content, mime_type)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _open(self, program: str, content: bytes, mime_type: str) -> None:
        try:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="mcphost-", ignore_cleanup_errors=True)
            path = save(Path(self._folder.name), file_name("mcphost", "copy", datetime.now(), mime_type), content)
            code = launch(program, str(path))
        except OSError as error:
            raise NotDone(f"Not opened: {program}: {error.strerror}. w saves it as a file.") from None
        if code:
            raise NotDone(f"Not opened: {program} ended with {code}, so no program may be set for {mime_type}.")
