"""``mcphost report``: gathers what a bug report needs, shows it, and writes it to a file if the user agrees.

The report holds names, versions and findings, and no value of the configuration.
"""

from __future__ import annotations

import json
import os
import re
import time
import tomllib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

from mcphost import __version__
from mcphost.cli.approver import confirmed
from mcphost.cli.doctor.configuration import LAUNCHERS
from mcphost.cli.doctor.diagnosis import Diagnosis, diagnose
from mcphost.cli.doctor.findings import as_text
from mcphost.cli.output import Exit, Outcome, foreign
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find
from mcphost.cli.terminal import has_terminal
from mcphost.config import Reference, Values, state_folder
from mcphost.config.files import read_regular, text_of
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.problems import shown_path
from mcphost.config.references import MalformedReferenceError, parse
from mcphost.config.schema import config_schema
from mcphost.errors import ConfigError
from mcphost.host.crash_files import CrashFiles
from mcphost.host.logs import LogRecord
from mcphost.json_values import KeyPath, as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import open_regular
from mcphost.protocol.display import show, show_line
from mcphost.redaction import MASK, MIN_SECRET, looks_secret, redacted

STDOUT: Final = "-"

LOG_LINES: Final = 100
"""The last log lines of all servers together."""

LINE_CHARACTERS: Final = 400

AUDIT_RECORDS: Final = 50

AUDIT_BYTES: Final = 65_536
"""Bytes read from the end of the audit log."""

AUDIT_FIELDS: Final = ("time", "event", "kind", "server", "tool", "asked_by", "allowed", "by", "lifetime", "seconds")
"""Fields of a record that hold no arguments, answers or addresses."""

CRASH_BYTES: Final = 100_000

SHOWN_COMMANDS: Final = frozenset({*LAUNCHERS, "bun", "bunx", "deno", "npm", "pipx", "pnpm", "python", "python3", "uv"})
"""Programs whose names say nothing of their user."""

_PATH: Final = re.compile(r"(?:~|\.{0,2})/")

_PLAIN_WORD: Final = re.compile(r"[A-Za-z]+")

_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")


def run_report(options: Namespace) -> int:
    """Show the report, and write it to the file; nothing is sent anywhere."""
    if options.file != STDOUT and os.path.lexists(options.file):
        raise ConfigError("already exists; name another file", path=Path(options.file))
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


def report_text(diagnosis: Diagnosis, files: Iterable[Path], state: Path | None) -> str:
    """Return the whole report. ``files`` are those of the configuration; ``state`` is the state folder."""
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


# The configuration as names


@dataclass(frozen=True, slots=True)
class MaskedFile:
    """A file as ``key = value`` lines, and the ``values`` that must not appear anywhere else in the report."""

    path: Path
    lines: tuple[str, ...]
    values: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Paths that must not appear either, except within longer words, where they are other paths."""


def masked_files(paths: Iterable[Path]) -> list[MaskedFile]:
    schema = config_schema()
    return [_masked_file(path, schema) for path in paths]


def _masked_file(path: Path, schema: Mapping[str, Any]) -> MaskedFile:
    try:
        data = tomllib.loads(text_of(read_regular(path, MAX_FILE_BYTES)))
    except (ConfigError, OSError, ValueError, RecursionError):
        return MaskedFile(path, ("(cannot be read as TOML; nothing of it is shown)",))
    leaves = list(_leaves(data, schema, schema["$defs"], ()))
    lines = [f"{shown_path(keys)} = {_shown(keys, value, known)}" for keys, value, known in leaves]
    texts = [each for keys, value, known in leaves for each in _secret_texts(keys, value, known)]
    values = tuple(text for text, is_path in texts if not is_path)
    return MaskedFile(path, tuple(lines), values, tuple(text for text, is_path in texts if is_path))


def _leaves(
    value: Any, known: Mapping[str, Any], tables: Mapping[str, Any], keys: KeyPath
) -> Iterator[tuple[KeyPath, Any, Mapping[str, Any]]]:
    """Each value with its keys, and what the JSON Schema says of it; empty where the key is unknown."""
    if isinstance(value, dict):
        for name, each in value.items():
            further = known.get("additionalProperties")
            schema = known.get("properties", {}).get(name) or as_dict(further)
            yield from _leaves(each, _resolved(schema, tables), tables, (*keys, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, _resolved(known.get("items", {}), tables), tables, (*keys, index))
    else:
        yield keys, value, known


def _resolved(schema: Mapping[str, Any], tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table that a schema refers to, or may; else the schema."""
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            found: Mapping[str, Any] = tables[each["$ref"].rpartition("/")[2]]
            return found
    return schema


def _shown(keys: KeyPath, value: Any, known: Mapping[str, Any]) -> str:
    if isinstance(value, bool) or (isinstance(value, int | float) and known.get("type") in ("integer", "number")):
        return str(value).lower()
    if isinstance(value, str) and _is_ours(keys, value, known):
        return f'"{value}"'
    return f'"{_masked(value)}"' if isinstance(value, str) else MASK


def _is_ours(keys: KeyPath, value: str, known: Mapping[str, Any]) -> bool:
    return value in known.get("enum", (known.get("const"),)) or (keys[-1] == "command" and value in SHOWN_COMMANDS)


def _masked(text: str) -> str:
    """A text with its references, which are names, and nothing else of it."""
    try:
        pieces = parse(text)
    except MalformedReferenceError:
        return MASK
    return "".join(_reference(piece) if isinstance(piece, Reference) else MASK for piece in pieces)


def _reference(reference: Reference) -> str:
    if reference.kind == "file":
        return f"${{file:{MASK}}}"
    if reference.kind == "keyring":
        return f"${{keyring:{reference.name}}}"
    return f"${{{reference.name}{'' if reference.default is None else f':-{MASK}'}}}"


def _secret_texts(keys: KeyPath, value: Any, known: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The parts of a value that must not appear in a report, each with True if it is a path.

    These are the text beside references and its words; a path is not split at blanks.
    """
    if not isinstance(value, str) or _is_ours(keys, value, known):
        return
    is_secret = any(looks_secret(str(key)) for key in keys)
    for part in _REFERENCE.split(value):
        for text in dict.fromkeys((part, *(word for each in part.split("=") for word in _words(each)))):
            is_path = not is_secret and _PATH.match(text) is not None
            text = text.rstrip("/") if is_path else text
            if len(text) >= MIN_SECRET and (is_secret or not _PLAIN_WORD.fullmatch(text)):
                yield text, is_path


def _words(text: str) -> Sequence[str]:
    return [text] if _PATH.match(text) else text.split()
