"""Explains why a program could not be started, and what to correct."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcphost.posix import open_regular

FIRST_LINE_BYTES: Final = 512
"""Bytes of a script's first line that are read; the system reads no more than 256."""

_SHELL_VARIABLE: Final = re.compile(r"(?:\$(?:env:)?|%(?=\w+%))([A-Za-z_]\w*)%?")
"""A variable in the syntax of a shell, including those of Windows."""


def not_found(program: str, path: str) -> str:
    """Explain why the program was not found; ``path`` is the PATH that was searched."""
    if variable := _SHELL_VARIABLE.search(program):
        return f"{program} does not exist: write ${{{variable[1]}}} for the variable {variable[1]}"
    first, _, rest = program.partition(" ")
    if rest and shutil.which(os.path.expanduser(first), path=path):
        return f"{program} does not exist, but {first} does: what follows the program belongs in args"
    if os.sep in program:
        return f"{program} does not exist or is not executable"
    searched = f"{len(path.split(os.pathsep))} folders searched"
    return f"{program} was not found in PATH ({searched}); install it, or give its full path"


def not_started(program: str, error: OSError | ValueError) -> str:
    """Explain why the system did not start an existing program."""
    return f"{program} could not be started: {_reason(program, error)}"


def unexpanded(args: Sequence[str], stderr: Sequence[str]) -> str:
    """A hint for a program that did not find a file whose path a shell would expand; else empty."""
    for arg in args:
        path = arg.partition("=")[2] if arg.startswith("-") and "=" in arg else arg
        if not path or not any(path in line for line in stderr):
            continue
        if path.startswith("~/"):
            return f"~ is not expanded in args: write ${{HOME}}{path[1:]}"
        if variable := _SHELL_VARIABLE.search(path):
            return f"{variable[0]} is not expanded in args: write ${{{variable[1]}}}"
    return ""


def _reason(program: str, error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        zero = "null byte" in str(error)
        return "an argument or a variable holds a NUL character, which no program can be given" if zero else str(error)
    if error.errno == errno.ENOENT and (reason := _wrong_interpreter(program)):
        return reason
    if error.errno == errno.ENOEXEC:
        return (
            "it has no first line such as #!/bin/sh that names what runs it; add one, or set command to that program "
            "and put the file into args"
        )
    if error.errno == errno.E2BIG:
        return "its arguments and variables are too long together for the system"
    return error.strerror or type(error).__name__


def _wrong_interpreter(program: str) -> str:
    line = _first_line(program)
    interpreter = line.removeprefix(b"#!").strip().split(b" ")[0].decode("utf-8", "replace")
    if not line.startswith(b"#!") or not interpreter:
        return ""
    if line.endswith(b"\r"):
        return "its first line ends as on Windows (CRLF); save it with the line ends of this system (LF)"
    return f"its first line names {interpreter}, which is not there"


def _first_line(program: str) -> bytes:
    with suppress(OSError), open(open_regular(Path(program)), "rb") as file:
        return file.read(FIRST_LINE_BYTES).partition(b"\n")[0]
    return b""
