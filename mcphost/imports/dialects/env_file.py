"""Reads a file of environment variables (``NAME=value`` lines) that an entry names."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from mcphost.config.files import read_regular, text_of
from mcphost.errors import ConfigError
from mcphost.imports.inputs import literal

MAX_ENV_BYTES: Final = 64 * 1024
MAX_VARIABLES: Final = 500

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:\#.*)?""")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class EnvFileUnreadableError(Exception):
    """``str()`` is a clause that says why."""


def read_env_file(name: str, workspace: Path | None, folder: Path | None) -> dict[str, str]:
    """Return the variables of a file, as literals of the configuration. Blocks on the disk.

    Relative names start in the project, else beside the file that names it. A project's file may name only files of
    the project: its author is not the user. Raises EnvFileUnreadableError.
    """
    base = workspace or folder
    path = Path(os.path.expanduser(name.replace("${HOME}", "~", 1) if name.startswith("${HOME}") else name))
    if "${" in str(path) or (base is None and not path.is_absolute()):
        raise EnvFileUnreadableError("it is not known where that file is; its variables are left out")
    path = path if base is None else base / path
    if workspace is not None and not path.resolve().is_relative_to(workspace.resolve()):
        raise EnvFileUnreadableError("it is outside of the project, so it was not read")
    try:
        text = text_of(read_regular(path, MAX_ENV_BYTES, trusted_owner=True))
    except FileNotFoundError:
        raise EnvFileUnreadableError("there is no such file") from None
    except UnicodeDecodeError:
        raise EnvFileUnreadableError("it is not UTF-8") from None
    except (ConfigError, OSError, ValueError) as error:
        reason = error.message if isinstance(error, ConfigError) else "cannot be read"
        raise EnvFileUnreadableError(f"it {reason}") from None
    pairs = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    found = {match[1]: literal(_value(match[2])) for match in pairs if match}
    return dict(list(found.items())[:MAX_VARIABLES])


def _value(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    if quoted[1] is None:
        return quoted[2]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), quoted[1])
