"""Programs that a test puts on the path."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def write_executable(path: Path, command: Sequence[str]) -> None:
    """Make ``path`` a program that runs ``command`` with its own arguments after it.

    A shell script, since the first line of a script has room neither for a long path nor for spaces.
    """
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o700)
