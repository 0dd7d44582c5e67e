"""In which file and on which line a setting stands that turned out wrong only when it was used.

Reads the file once more, which only a failure pays for. Where the setting is not found there, nothing is claimed.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcphost.config.files import read_regular
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.locator import KeyLines
from mcphost.config.models import Config
from mcphost.errors import ConfigError, UnresolvedReference

_STEPS = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\.(.+))?", re.DOTALL)
_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")


def placed(error: UnresolvedReference, config: Config, server: str) -> UnresolvedReference:
    """The same error, with the place of its field in the file of ``config``. Waits for the disk."""
    line = None if config.path is None else _line(config.path, server, error.field)
    if config.path is not None and line is not None:
        error.path, error.line = config.path, line
        error.args = (f"{config.path}:{line}: {error}",)
    return error


def _line(path: Path, server: str, field: str) -> int | None:
    try:
        lines = KeyLines(read_regular(path, MAX_FILE_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, ConfigError):
        return None
    steps = _steps(field.removeprefix(f"servers.{server}."))
    sections = (section for section in ("servers", "mcp_servers") if lines.holds((section, server)))
    return next((lines.line_of((section, server, *steps)) for section in sections), None)


def _steps(field: str) -> tuple[str | int, ...]:
    """Keys and positions: a key inside a table, such as a variable's name, may itself hold dots."""
    match = _STEPS.fullmatch(field)
    if match is None:
        return ()
    position = () if match[2] is None else (int(match[2]),)
    return (match[1], *position, *_within(match[3]))


def _within(rest: str | None) -> tuple[str | int, ...]:
    element = _ELEMENT.fullmatch(rest or "")
    return tuple(filter(None, [rest])) if element is None else (element[1], int(element[2]))
