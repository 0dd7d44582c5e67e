"""``mcphost report``: gathers what a bug report needs, shows it, and writes it to a file after a yes."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcphost.cli.approver import confirmed
from mcphost.cli.doctor.diagnosis import diagnose
from mcphost.cli.output import Exit, Outcome, foreign
from mcphost.cli.report.report import report_text
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find
from mcphost.cli.terminal import has_terminal
from mcphost.config import state_folder
from mcphost.errors import ConfigError

STDOUT: Final = "-"


def run_report(options: Namespace) -> int:
    """Show the report, and write it where the user says; nothing is sent anywhere."""
    if options.file != STDOUT and os.path.lexists(options.file):
        raise ConfigError("is there already; name another file", path=Path(options.file))
    text = report_text(diagnose(options, os.environ), _files(options, os.environ), _state(os.environ))
    code = finish(Outcome(foreign(text)))
    if options.file == STDOUT:
        return code
    if not options.yes and not _agreed(options.file):
        return finish(Outcome(code=Exit.DECLINED, remarks=("nothing was written",)))
    _write(Path(options.file), text)
    return finish(Outcome(remarks=(f"written to {options.file}; look through it before you pass it on",)))


def _files(options: Namespace, env: Mapping[str, str]) -> list[Path]:
    try:
        found = find(options.config, env)
    except ConfigError:
        return []
    return [path for path in dict.fromkeys((found.path, found.user, found.added)) if path is not None]


def _state(env: Mapping[str, str]) -> Path | None:
    try:
        return state_folder(env)
    except ConfigError:
        return None


def _agreed(file: str) -> bool:
    if not has_terminal():
        raise ConfigError("there is no terminal to ask on; add --yes once you have looked at it (FILE - prints it)")
    return run(confirmed(f"Write this to {file}? [y/N] "))


def _write(path: Path, text: str) -> None:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path) from None
