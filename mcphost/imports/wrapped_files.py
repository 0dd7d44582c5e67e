"""Edits the files of other hosts to put mcphost before their servers, and restores what it changed.

Everything here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from mcphost.config import read_toml, update_toml
from mcphost.config.files import read_regular
from mcphost.config.state import Report, folder_locked, replace_file
from mcphost.errors import ConfigError
from mcphost.imports.documents import kind_of, read_document
from mcphost.imports.found import digest_of
from mcphost.imports.hosts import HOSTS, KnownHost
from mcphost.imports.remembered import as_utf8
from mcphost.imports.spans import Editable, EntryMissingError, EntryPath, find_entry
from mcphost.imports.wrapping import (
    EntryChange,
    EntryChangedError,
    NotWrappedError,
    Replacement,
    WrapCommand,
    WrapMode,
    digest_of_text,
    entries_in,
    is_wrapper,
    reads_as,
    replaced,
    unwrap_entry,
    wrap_entry,
)
from mcphost.json_values import as_text, dicts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import owned_by_us

FILE: Final = "wrapped.toml"
BACKUP: Final = ".mcphost-backup"
"""Is appended to the name of a file that is edited."""


@dataclass(frozen=True, slots=True)
class WrappedEntry:
    """An entry of another host's file that starts mcphost."""

    host: str
    file: str
    """The path of the file, without links."""
    path: EntryPath
    name: str
    mode: WrapMode
    since: datetime
    digest: str
    """See `EntryChange`, as for ``value``, ``original`` and ``undo``."""
    undo: tuple[Replacement, ...] = field(repr=False)
    backup: str = ""
    """The path of the copy of the file as it was before; empty: none."""
    value: str = ""
    original: str = ""

    @property
    def place(self) -> tuple[str, EntryPath]:
        return self.file, self.path


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file to write, with what changes in it."""

    host: KnownHost
    path: Path
    """Without links."""
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    mode: WrapMode
    changes: tuple[EntryChange, ...]


@dataclass(slots=True)
class WrapPlan:
    edits: list[FileEdit] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """A sentence for each entry that is wrapped already."""
    left: list[str] = field(default_factory=list)
    """A sentence for each entry or file that cannot be edited."""
    names: list[str] = field(default_factory=list)
    """The names of all entries that were found."""


class WrapRecords:
    """The state file of wrapped entries. It holds the pieces of text that wrapping replaced."""

    def __init__(self, state: Path, report: Report) -> None:
        self._file, self._report = state / FILE, report

    def entries(self) -> list[WrappedEntry]:
        """Raises ConfigError."""
        return list(_entries(read_toml(self._file, self._report)))

    def change(self, *, add: Iterable[WrappedEntry] = (), drop: Iterable[WrappedEntry] = ()) -> None:
        """Replace what is known of the places of ``add``, and forget ``drop``. Raises ConfigError."""
        new = {each.place: each for each in add}
        gone = {each.place for each in drop}

        def changed(data: Mapping[str, Any]) -> dict[str, Any]:
            kept = {each.place: each for each in _entries(data) if each.place not in gone}
            return {"entry": [_as_table(each) for each in (kept | new).values()]}

        update_toml(self._file, changed, self._report)


def plan_wraps(
    host: KnownHost,
    files: Sequence[tuple[Path, str, int]],
    names: Sequence[str],
    command: WrapCommand,
    known: Sequence[WrappedEntry],
) -> WrapPlan:
    """Plan to wrap the entries of these names, or all, in the files of a host. Changes nothing.

    ``files`` are as of `mcphost.imports.survey.places_of`.
    """
    plan, seen = WrapPlan(), set[Path]()
    for path, scope, limit in files:
        real = Path(os.path.realpath(path))
        if real in seen:
            continue
        seen.add(real)
        try:
            edit = _FilePlan(host, path, real, command, known, plan).edit(names, scope, limit)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            plan.left.append(f"{path} {error.message}")
            continue
        if edit is not None:
            plan.edits.append(edit)
    return plan


def write_edit(edit: FileEdit, records: WrapRecords) -> Path:
    """Write a planned file, after a backup; return the path of the backup.

    Raises ConfigError where the file is no longer as it was shown; nothing is written then.
    """
    with folder_locked(edit.path):
        _still_as_planned(edit)
        mode = edit.path.stat().st_mode & 0o777
        known = [each for each in records.entries() if each.file == as_utf8(str(edit.path))]
        backup = _backup(edit, [each.backup for each in known], mode)
        now = datetime.now().astimezone()
        file = as_utf8(str(edit.path))
        add = [
            WrappedEntry(
                edit.host.id,
                file,
                each.path,
                each.name,
                edit.mode,
                now,
                each.digest,
                each.undo,
                as_utf8(str(backup)),
                each.value,
                each.original,
            )
            for each in edit.changes
        ]
        # Before the file: an entry that is wrapped and not remembered could not be unwrapped.
        records.change(add=add)
        replace_file(edit.path, edit.after, mode=mode)
    return backup


def unwrap(entries: Sequence[WrappedEntry], records: WrapRecords) -> tuple[list[str], list[str]]:
    """Restore these entries; return a sentence for each that was restored, and for each that was not."""
    done, failed = list[str](), list[str]()
    for file in dict.fromkeys(each.file for each in entries):
        _Unwrapping(file, records, done, failed).run([each for each in entries if each.file == file])
    return done, failed


def state_of(entry: WrappedEntry) -> str:
    """``wrapped``, or in a word or two why it is not, or no longer as it was written."""
    try:
        text, kind = _read(Path(entry.file))
        _restored(text, kind, entry)
    except FileNotFoundError:
        return "file gone"
    except EntryMissingError:
        return "entry gone"
    except (EntryChangedError, ConfigError):
        return "changed since"
    return "wrapped"


class _FilePlan:
    def __init__(
        self,
        host: KnownHost,
        path: Path,
        real: Path,
        command: WrapCommand,
        known: Sequence[WrappedEntry],
        plan: WrapPlan,
    ) -> None:
        self._host, self._path, self._real, self._command, self._plan = host, path, real, command, plan
        self._known = {each.path: each for each in known if each.file == as_utf8(str(real))}

    def edit(self, names: Sequence[str], scope: str, limit: int) -> FileEdit | None:
        """Raises FileNotFoundError, and ConfigError where the file cannot be edited."""
        content = read_regular(self._real, limit)
        kind = kind_of(content, self._path.name)
        document = _document(content, kind)
        wanted = [each for each in entries_in(self._host.dialect, document) if not names or each[1] in names]
        self._plan.names += [name for _, name, _ in entries_in(self._host.dialect, document)]
        if not wanted:
            return None
        if kind == "yaml":
            self._plan.left += [self._by_hand(name, raw) for _, name, raw in wanted]
            return None
        if why := self._not_ours(scope, named=bool(names)):
            raise ConfigError(why)
        return self._edited(content, kind, [(path, name) for path, name, _ in wanted])

    def _edited(self, content: bytes, kind: Editable, wanted: Sequence[tuple[EntryPath, str]]) -> FileEdit | None:
        shown = text = content.decode()
        for path, _ in wanted:  # those that are wrapped already are wrapped from what they were
            text = self._unwrapped(text, kind, path)
        document = _document(text.encode(), kind)
        raws = {path: raw for path, _, raw in entries_in(self._host.dialect, document)}
        expected, changes = copy.deepcopy(document), list[EntryChange]()
        for path, name in wanted:
            where = f"{as_utf8(name)} in {self._path}"
            try:
                if is_wrapper(raws[path]):
                    raise NotWrappedError(
                        "it already starts mcphost, but not as this one wrote it; restore the entry, then wrap it"
                    )
                text, change, entry = wrap_entry(text, kind, self._host, path, name, raws[path], self._command)
            except (NotWrappedError, ConfigError) as error:
                why = error.message if isinstance(error, ConfigError) else str(error)
                self._plan.left.append(f"{where} is left alone: {why}")
                if path in self._known:
                    text = _rewrapped(shown, text, kind, path)
                    replaced(expected, path, _entry_at(_document(content, kind), path))
                continue
            replaced(expected, path, entry)
            changes.append(change)
        if not reads_as(text, kind, expected):
            raise ConfigError("is written in a way that mcphost cannot edit in place")
        return self._file_edit(content, shown, text, kind, changes)

    def _file_edit(
        self, content: bytes, shown: str, text: str, kind: Editable, changes: Sequence[EntryChange]
    ) -> FileEdit | None:
        fresh = list[EntryChange]()
        for each in changes:
            current = _text_of_entry(shown, kind, each.path)
            if current == each.after:
                mode = self._known[each.path].mode if each.path in self._known else self._command.mode
                self._plan.same.append(f"{as_utf8(each.name)} in {self._path} is wrapped already, by {mode}")
            else:
                fresh.append(replace(each, before=current))
        if not fresh:
            return None
        return FileEdit(self._host, self._real, content, text.encode(), self._command.mode, tuple(fresh))

    def _unwrapped(self, text: str, kind: Editable, path: EntryPath) -> str:
        if (known := self._known.get(path)) is None:
            return text
        try:
            return _restored(text, kind, known)
        except (EntryChangedError, EntryMissingError, ConfigError):
            return text

    def _not_ours(self, scope: str, *, named: bool) -> str:
        """Why the file is not edited, as a clause; empty where it can be."""
        if not owned_by_us(self._real.stat()):
            return "belongs to another user, so mcphost does not edit it"
        if not self._real.stat().st_mode & 0o200:  # replacing it would work all the same
            return "is read-only, so mcphost does not edit it; make it writable, then wrap again"
        if not os.access(self._real.parent, os.W_OK):
            return "is in a folder in which you may not write"
        if scope.startswith("plugin ") and not named:
            return "belongs to a plugin, whose next update replaces it; name its servers to wrap them all the same"
        return ""

    def _by_hand(self, name: str, raw: object) -> str:
        """The sentence for a file that mcphost does not edit: what to write there."""
        keys = self._host.dialect.shape.keys
        entry = raw if isinstance(raw, Mapping) else {}
        command, args = entry.get(keys.get("command", "command")), entry.get("args") or []
        if not isinstance(command, str) or not isinstance(args, list):
            return f"{as_utf8(name)} is in {self._path}, which is YAML: mcphost does not edit it"
        first, *words = self._command.words(self._host.id, name, (), [command, *map(str, args)])
        lines = f"{keys['command']}: {_quoted(first)} and args: {_quoted(words)}"
        return f"{as_utf8(name)} is in {self._path}, which is YAML: mcphost does not edit it; write there {lines}"


class _Unwrapping:
    """Restores the wrapped entries of one file."""

    def __init__(self, file: str, records: WrapRecords, done: list[str], failed: list[str]) -> None:
        self._path, self._records, self._done, self._failed = Path(file), records, done, failed

    def run(self, entries: Sequence[WrappedEntry]) -> None:
        if not self._path.exists():
            self._records.change(drop=entries)
            self._done += [f"{each.name}: {self._path} is not there any more, so it is forgotten" for each in entries]
            return
        try:
            with folder_locked(self._path):
                self._restore(entries)
        except ConfigError as error:
            self._failed.append(f"{self._path} {error.message}")

    def _restore(self, entries: Sequence[WrappedEntry]) -> None:
        text, kind = _read(self._path)
        before, dropped = text, list[WrappedEntry]()
        for each in entries:
            try:
                text = _restored(text, kind, each)
            except EntryMissingError:
                self._done.append(f"{each.name} is not in {self._path} any more, so it is forgotten")
            except EntryChangedError:
                if self._is_still_wrapped(text, kind, each):
                    backup = f"; as it was before: {each.backup}" if os.path.lexists(each.backup) else ""
                    self._failed.append(
                        f"{each.name} in {self._path} changed since it was wrapped, so restore it yourself{backup}"
                    )
                    continue
                self._done.append(f"{each.name} in {self._path} does not start mcphost any more, so it is forgotten")
            else:
                self._done.append(f"{each.name} in {self._path} is as it was before")
            dropped.append(each)
        if text != before:
            replace_file(self._path, text.encode(), mode=self._path.stat().st_mode & 0o777)
        self._records.change(drop=dropped)
        self._discard_backup(text.encode(), dropped)

    def _is_still_wrapped(self, text: str, kind: Editable, entry: WrappedEntry) -> bool:
        try:
            return is_wrapper(_entry_at(_document(text.encode(), kind), entry.path))
        except (LookupError, TypeError):
            return False

    def _discard_backup(self, content: bytes, dropped: Sequence[WrappedEntry]) -> None:
        """Remove a backup that is not needed: the file is as it was, and nothing of it is wrapped."""
        if any(each.file == as_utf8(str(self._path)) for each in self._records.entries()):
            return
        for backup in {Path(each.backup) for each in dropped if each.backup}:
            if (kept := _content(backup)) == content:
                backup.unlink()
            elif kept is not None:
                self._done.append(
                    f"{self._path} differs from {backup} elsewhere, so that copy stays; delete it yourself"
                )


def _quoted(value: object) -> str:
    """A value on one line, as JSON, which is YAML, too."""
    return json.dumps(value, ensure_ascii=False)


def _read(path: Path) -> tuple[str, Editable]:
    """Raises FileNotFoundError and ConfigError."""
    content = read_regular(path, next(_limits(path)), trusted_owner=True)
    kind = kind_of(content, path.name)
    _document(content, kind)
    if kind == "yaml":
        raise ConfigError("is YAML, which mcphost does not edit")
    return content.decode(), kind


def _limits(path: Path) -> Iterator[int]:
    """The limit of a file of a known host of this name, the largest."""
    places = (place for host in HOSTS for place in (*host.user, *host.project))
    yield max(place.limit for place in places)


def _document(content: bytes, kind: str) -> Mapping[str, Any]:
    try:
        document = read_document(content, kind)  # type: ignore[arg-type]
    except ConfigError as error:
        place = f" (line {error.line})" if error.line else ""
        raise ConfigError(f"{error.message}{place}") from None
    if not isinstance(document, dict):
        raise ConfigError("holds no servers")
    return document


def _restored(text: str, kind: Editable, entry: WrappedEntry) -> str:
    """The text in which the entry is as it was. Raises EntryChangedError, EntryMissingError and ConfigError.

    An entry that was only formatted in another way, as editors do, is taken from the copy of the file.
    """
    try:
        return unwrap_entry(text, kind, entry.path, entry.digest, entry.undo)
    except EntryChangedError:
        if not entry.value or digest_of(_entry_at(_document(text.encode(), kind), entry.path)) != entry.value:
            raise
        content = _content(Path(entry.backup)) if entry.backup else None
        before = "" if content is None else content.decode("utf-8", "replace")
        try:
            original = _text_of_entry(before, kind, entry.path)
        except (ConfigError, LookupError):
            original = ""
        regions = find_entry(text, kind, entry.path).regions
        if digest_of_text(original) != entry.original or len(regions) != 1:
            raise
        return text[: regions[0][0]] + original + text[regions[0][1] :]


def _entry_at(document: Any, path: EntryPath) -> Any:
    for step in path:
        document = document[step]
    return document


def _text_of_entry(text: str, kind: Editable, path: EntryPath) -> str:
    return "".join(text[start:end] for start, end in find_entry(text, kind, path).regions)


def _rewrapped(shown: str, text: str, kind: Editable, path: EntryPath) -> str:
    """The text with this entry as the file has it now."""
    old, new = find_entry(shown, kind, path).regions, find_entry(text, kind, path).regions
    if len(old) != 1 or len(new) != 1:
        raise ConfigError("is written in a way that mcphost cannot edit in place")
    return text[: new[0][0]] + shown[slice(*old[0])] + text[new[0][1] :]


def _still_as_planned(edit: FileEdit) -> None:
    if _content(edit.path) != edit.before:
        raise ConfigError("changed in the meantime; nothing was written, so try again", path=edit.path)


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, next(_limits(path)))
    except (FileNotFoundError, ConfigError):
        return None


def _backup(edit: FileEdit, known: Iterable[str], mode: int) -> Path:
    """The copy of the file as it was before anything in it was wrapped; made if it does not exist."""
    for each in known:
        if each and os.path.lexists(each):
            return Path(each)
    number = 1
    while True:
        path = edit.path.with_name(f"{edit.path.name}{BACKUP}{f'-{number}' if number > 1 else ''}")
        if not os.path.lexists(path):
            replace_file(path, edit.before, mode=mode)
            return path
        if not path.is_symlink() and _content(path) == edit.before:
            return path
        number += 1


def _as_table(entry: WrappedEntry) -> dict[str, Any]:
    return {
        "host": entry.host,
        "file": entry.file,
        "path": list(entry.path),
        "name": entry.name,
        "mode": entry.mode,
        "since": entry.since,
        "digest": entry.digest,
        "value": entry.value,
        "original": entry.original,
        "backup": entry.backup,
        "undo": [{"start": start, "end": end, "text": each.text} for each in entry.undo for start, end in [each.span]],
    }


def _entries(data: Mapping[str, Any]) -> Iterator[WrappedEntry]:
    for table in dicts_in(data.get("entry")):
        match table:
            case {
                "host": str(host),
                "file": str(file),
                "path": list(path),
                "name": str(name),
                "mode": "gate" | "tap" as mode,
                "since": datetime() as since,
                "digest": str(digest),
            } if os.path.isabs(file) and all(isinstance(each, str | int) for each in path):
                undo = tuple(_undo(table.get("undo")))
                backup, value, original = (as_text(table.get(key)) for key in ("backup", "value", "original"))
                yield WrappedEntry(
                    host, file, tuple(path), name, mode, since, digest, undo, backup, value, original
                )  # fmt: skip


def _undo(value: object) -> Iterator[Replacement]:
    for table in dicts_in(value):
        match table:
            case {"start": int(start), "end": int(end), "text": str(text)} if 0 <= start <= end:
                yield Replacement((start, end), text)
