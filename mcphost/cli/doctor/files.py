"""The state folder: whether it can be used, and what was left in it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcphost.cli.doctor.findings import Finding, ok, problem, warning

FREE_BYTES: Final = 100_000_000
"""Bytes of free space below which a warning is due: an audit log grows by some megabytes in a week."""

_DAMAGED: Final = re.compile(r".+\.damaged-\d+")
_TEMPORARY: Final = re.compile(r"\..+\.toml\.[a-z0-9_]{8}")
"""What a crash leaves of a file that was being replaced."""


def state_folder_findings(folder: Path) -> Iterator[Finding]:
    """Whether the state folder, which exists, can be used: its owner, its rights and its free space."""
    topic, quoted = "state folder", shlex.quote(str(folder))
    try:
        found = folder.stat()
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield problem(topic, f"{folder} cannot be written: {error.strerror}", f"chmod 700 {quoted}")
        return
    if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
        yield problem(topic, f"{folder} can be read by others", f"chmod 700 {quoted}")
    elif free < FREE_BYTES:
        yield warning(topic, f"{folder}: {free // 1_000_000} MB are free on its disk", f"du -sh {quoted}/*")
    else:
        yield ok(topic, str(folder))


def leftovers(folder: Path, bundles_in_use: Collection[str]) -> Iterator[Finding]:
    """What nobody needs any more. ``bundles_in_use``: texts of the configuration that may name an unpacked bundle."""
    found = sorted(_entries(folder))
    yield from _leftover([each for each in found if _DAMAGED.fullmatch(each.name)], "kept of a damaged file")
    yield from _leftover(
        [each for each in found if _TEMPORARY.fullmatch(each.name)], "left of a file that was being written"
    )
    unused = [
        each for each in sorted(_entries(folder / "bundles")) if not any(each.name in text for text in bundles_in_use)
    ]
    yield from _leftover(unused, "an unpacked bundle that no server uses")


def _leftover(paths: list[Path], what: str) -> Iterator[Finding]:
    for path in paths:
        yield warning("leftover", f"{path}: {what}", f"rm -r {shlex.quote(str(path))}")


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
