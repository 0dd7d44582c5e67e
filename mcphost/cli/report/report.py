"""Puts a report together as text, and takes out of it what a bug report must not hold."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

from mcphost import __version__
from mcphost.cli.doctor.diagnosis import Diagnosis
from mcphost.cli.doctor.findings import as_text
from mcphost.cli.report.masked_config import masked_files
from mcphost.config import Values
from mcphost.config.files import read_regular
from mcphost.errors import ConfigError
from mcphost.host.crash_files import CrashFiles
from mcphost.host.logs import LogRecord
from mcphost.json_values import as_dict
from mcphost.posix import open_regular
from mcphost.protocol.display import show, show_line
from mcphost.redaction import MASK, redacted

LOG_LINES: Final = 100
"""The last log lines of all servers together."""

LINE_CHARACTERS: Final = 400

AUDIT_RECORDS: Final = 50

AUDIT_BYTES: Final = 65_536
"""Bytes read from the end of the audit log."""

AUDIT_FIELDS: Final = ("time", "event", "kind", "server", "tool", "asked_by", "allowed", "by", "lifetime", "seconds")
"""What of a record says nothing of arguments, answers and addresses."""

CRASH_BYTES: Final = 100_000


def report_text(diagnosis: Diagnosis, files: Iterable[Path], state: Path | None) -> str:
    """The whole report. ``files`` are those of the configuration; ``state`` is the state folder."""
    configured = masked_files(files)
    sections = {
        "Versions": [f"mcphost {__version__}", *_libraries()],
        "Diagnosis": as_text(diagnosis.findings).splitlines(),
        **{f"Configuration, {each.path.name}": each.lines for each in configured},
        "Last log lines": _log_lines(diagnosis.logs),
        "Last entries of the audit log": [] if state is None else _audit(state / "audit.jsonl"),
        "Last crash": [] if state is None else _crash(state),
    }
    text = "\n".join(line for title, lines in sections.items() for line in _section(title, lines))
    swept = Values({})
    for value in (each for file in configured for each in file.values):
        swept.remember(value)
    head = f"# Report of mcphost, {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n\nConfigured texts are masked (•••).\n"
    text = swept.mask(redacted(text, diagnosis.mask))
    return head + _without_home(_without_paths(text, [each for file in configured for each in file.folders])) + "\n"


def _without_paths(text: str, paths: Sequence[str]) -> str:
    """Return the text with these paths masked, alone or as the beginning of longer paths."""
    longest_first = sorted(set(paths), key=len, reverse=True)
    if not longest_first:
        return text
    return re.sub(rf"(?<![\w/.~-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w.-])", MASK, text)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield from (f"    {show(line, limit=LINE_CHARACTERS)}" for line in lines or ["none"])


def _libraries() -> Iterator[str]:
    try:
        names = requires("mcphost") or []
    except PackageNotFoundError:  # run from its source
        return
    for line in sorted(name for name in names if "extra ==" not in name):
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} is missing"


def _log_lines(logs: Sequence[LogRecord]) -> list[str]:
    return [
        f"{each.server} {each.source.value} {each.level.name.lower()}: {show_line(each.text)}"
        for each in logs[-LOG_LINES:]
    ]


def _audit(path: Path) -> list[str]:
    """The last records, without what was sent or answered."""
    try:
        with open(open_regular(path, follow_links=False), "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - AUDIT_BYTES, 0))
            lines = file.read(AUDIT_BYTES).splitlines()
    except OSError:
        return []
    records = [record for line in lines[-AUDIT_RECORDS:] if (record := _record(line))]
    return [
        show_line(", ".join(f"{name} {record[name]}" for name in AUDIT_FIELDS if name in record)) for record in records
    ]


def _record(line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # the first line may begin in the middle of a record
        return {}
    return as_dict(record)


def _crash(state: Path) -> list[str]:
    newest = CrashFiles(state).newest()
    if newest is None:
        return []
    try:
        return [newest.name, *read_regular(newest, CRASH_BYTES, ours=True).decode("utf-8", "replace").splitlines()]
    except (ConfigError, OSError):
        return [newest.name]


def _without_home(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text
