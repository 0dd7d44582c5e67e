"""Puts mcphost before the servers in another host's file, as text, and takes it away again.

Pure: text in, text out. `mcphost.imports.wrapped_files` reads and writes the files.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import Any, Final, Literal

from mcphost.errors import ConfigError
from mcphost.imports.dialects.dialect import HostDialect
from mcphost.imports.dialects.entries import (
    COMMAND_KEYS,
    ENVIRONMENT_KEYS,
    HEADER_KEYS,
    TYPE_KEYS,
    URL_KEYS,
    WIRES,
    is_command_line,
    named_entries,
)
from mcphost.imports.documents import read_document
from mcphost.imports.found import digest_of, legal_name
from mcphost.imports.hosts import KnownHost
from mcphost.imports.secrets import find_secrets
from mcphost.imports.spans import Editable, EntryPath, EntryText, Member, Span, find_entry, items_of
from mcphost.imports.variables import taken_for_variables
from mcphost.lazy_dataclass import dataclass

WrapMode = Literal["gate", "tap"]

HARD_LIMITS: Final = frozenset({"claude-code", "codex", "codex-plugins", "gemini"})
"""Hosts that end a call at the entry's timeout, whatever progress is reported."""

MAX_ENTRY: Final = 256 * 1024
"""Characters of an entry that is edited; more than anyone writes, and few enough to be shown."""

_OWN_VARIABLES: Final = ("MCPHOST_CONFIG", "MCPHOST_STATE_DIR")
_MARGIN: Final = 10.0
"""Seconds before a hard limit at which a gate answers, at most."""


class NotWrappedError(Exception):
    """The entry is left as it is; ``str()`` is a clause that says why."""


class EntryChangedError(Exception):
    """The entry is not as it was written when it was wrapped."""


@dataclass(frozen=True, slots=True)
class WrapCommand:
    """The mcphost that wrapped entries start."""

    program: tuple[str, ...]
    """The words that start it, the first an absolute path."""
    config: str
    state: str
    mode: WrapMode

    def words(self, host: str, name: str, more: Sequence[str], target: Sequence[str]) -> list[str]:
        """The command line of an entry; ``target`` is what it ran before."""
        folders = "--config", self.config, "--state", self.state
        who = "--name", legal_name(name), "--as", host
        return [*self.program, self.mode, *folders, *who, *more, "--", *target]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A piece of text, and what replaces it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class EntryChange:
    """The change that wrapping makes in one entry."""

    path: EntryPath
    name: str
    before: str
    after: str
    digest: str
    """The SHA-256 (hex) of ``after``."""
    value: str
    """That of the entry as programs read it; see `digest_of`."""
    original: str
    """That of the text as it was before mcphost was put into it."""
    undo: tuple[Replacement, ...]
    """Makes ``before`` of ``after``."""
    notes: tuple[str, ...] = ()
    """Sentences about what no longer holds."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The secrets in the entry, which are not shown."""


def entries_in(dialect: HostDialect, document: Mapping[str, Any]) -> Iterator[tuple[EntryPath, str, object]]:
    """The entries of a document, each with the path that leads to it and its name."""
    for group in dialect.groups(document):
        path = _path_to(group.entries, document)
        as_list = isinstance(group.entries, list)
        for index, (name, raw) in enumerate(named_entries(group.entries)):
            yield (*path, index if as_list else name), name, raw


def wrap_entry(
    text: str, kind: Editable, host: KnownHost, path: EntryPath, name: str, raw: object, command: WrapCommand
) -> tuple[str, EntryChange, Mapping[str, Any]]:
    """Wrap one entry; return the new text, what changed, and the entry as programs read it then.

    Raises NotWrappedError, and ConfigError if the entry cannot be edited in place.
    """
    if not isinstance(raw, Mapping):
        raise NotWrappedError("its entry is not a table")
    found = find_entry(text, kind, path)
    if sum(end - start for start, end in found.regions) > MAX_ENTRY:
        raise NotWrappedError(f"its entry is longer than {MAX_ENTRY:,} characters")
    editor = _EntryEditor(text, kind, host, name, raw, found, command)
    editor.edit()
    after, change = _changed(text, kind, path, name, found, editor)
    return after, change, editor.entry


def unwrap_entry(text: str, kind: Editable, path: EntryPath, digest: str, undo: Sequence[Replacement]) -> str:
    """The text in which the entry is as it was. Raises EntryChangedError, EntryMissingError and ConfigError."""
    regions = find_entry(text, kind, path).regions
    if digest_of_text("".join(text[start:end] for start, end in regions)) != digest:
        raise EntryChangedError
    moved = [Replacement(_outer(each.span, regions), each.text) for each in undo]
    return _applied(text, moved)


def is_wrapper(raw: object) -> bool:
    """True if an entry starts an mcphost that taps or gates."""
    if not isinstance(raw, Mapping):
        return False
    words = [each for key in (*COMMAND_KEYS, "args") for each in _texts(raw.get(key))]
    return any(word in ("gate", "tap") for word in words[1:5]) and "--" in words and "--name" in words


def digest_of_text(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def replaced(document: Mapping[str, Any], path: EntryPath, entry: Mapping[str, Any]) -> None:
    """Put the entry into the document in place of the one at its path."""
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = entry


def _texts(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _path_to(wanted: object, document: object) -> EntryPath:
    """The keys that lead to this very object. Groups are a few levels deep."""
    level: list[tuple[EntryPath, object]] = [((), document)]
    for _ in range(5):
        for path, value in level:
            if value is wanted:
                return path
        level = [((*p, key), each) for p, value in level if isinstance(value, dict) for key, each in value.items()]
    raise ConfigError("is written in a way that mcphost cannot edit in place")


@dataclass(slots=True)
class _EntryEditor:
    """Collects the edits of one entry, and makes the entry that programs read then."""

    text: str
    kind: Editable
    host: KnownHost
    name: str
    raw: Mapping[str, Any]
    found: EntryText
    command: WrapCommand
    entry: dict[str, Any] = field(default_factory=dict)
    edits: list[Replacement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def edit(self) -> None:
        """Raises NotWrappedError."""
        self.entry = copy.deepcopy(dict(self.raw))
        if self.raw.get("source") == "extension":
            raise NotWrappedError("it comes with an extension, and the file does not say how to run it")
        program = next((key for key in COMMAND_KEYS if self.raw.get(key) is not None), None)
        address = next((key for key in URL_KEYS if self.raw.get(key) is not None), None)
        wire = next((self.raw[key] for key in TYPE_KEYS if isinstance(self.raw.get(key), str)), "stdio")
        if wire.lower() not in WIRES:
            raise NotWrappedError(f"its type is {wire[:32]!a}, which mcphost does not know")
        if program is not None and address is not None:
            raise NotWrappedError("it has both a command and an address")
        if program is not None:
            self._program(program)
        elif address is not None:
            raise NotWrappedError("it is an address, and tap and gate take programs only")
        else:
            raise NotWrappedError("it has neither a command nor an address")
        self._note_own_variables()

    # A program

    def _program(self, key: str) -> None:
        value = self.raw[key]
        if isinstance(value, list):
            if not value or not isinstance(value[0], str):
                raise NotWrappedError("its command is empty")
            words = self._words([])
            self._prepend((key,), words)
            self.entry[key] = [*words, *value]
            return
        holder, inner, outer = self.entry, key, tuple[str, ...]()
        if isinstance(value, Mapping):
            holder, inner, outer = self.entry[key], "path", (key,)
            value = value.get("path")
        if not isinstance(value, str):
            raise NotWrappedError("its command is not a text")
        args = holder.get("args")
        if args is not None and not isinstance(args, list):
            raise NotWrappedError("its args are not a list")
        split = not args and " " in value.strip() and is_command_line(value.strip())
        try:
            target = shlex.split(value) if split else [value]
        except ValueError:
            raise NotWrappedError("its command has a quote without end") from None
        first, *words = self._words(target)
        self._replace((*outer, inner), self._quoted(first))
        if args:
            self._prepend((*outer, "args"), words)
        elif "args" in holder:
            self._replace((*outer, "args"), self._array(words, (*outer, inner)))
        else:
            self._insert((*outer, inner), [("args", self._array(words, (*outer, inner)))])
        holder[inner], holder["args"] = first, [*words, *(args or [])]

    def _words(self, target: Sequence[str]) -> list[str]:
        within = self._answer_within() if self.command.mode == "gate" else None
        limits = [] if within is None else ["--answer-within", f"{within:g}"]
        words = self.command.words(self.host.id, self.name, limits, target)
        syntax = self.host.dialect.syntax_of("args")
        for word in words[: len(words) - len(target)]:
            if taken_for_variables(word, syntax):
                raise NotWrappedError(f"{self.host.label} would take part of {word[:64]!a} for a variable")
        return words

    def _answer_within(self) -> float | None:
        if self.host.id not in HARD_LIMITS:
            return None
        for key, (ours, unit) in self.host.dialect.timeouts.items():
            limit = self.raw.get(key)
            if ours != "tool_timeout_sec" or unit is None or isinstance(limit, bool):
                continue
            if isinstance(limit, int | float) and (seconds := limit * unit) >= 1:
                return round(seconds - min(_MARGIN, seconds / 4), 1)
        return None

    def _note_own_variables(self) -> None:
        given = [self.raw.get(key) for key in ENVIRONMENT_KEYS]
        names = [name for env in given if isinstance(env, Mapping) for name in _OWN_VARIABLES if name in env]
        if names:
            holds = "no longer counts" if len(names) == 1 else "no longer count"
            self.notes.append(f"its {' and '.join(names)} {holds} for mcphost: the command line names the files")

    # The text

    def _member(self, *path: str) -> Member:
        member = self.found.member(*path)
        if member is None:
            raise NotWrappedError("it is written in a way that mcphost cannot edit in place")
        return member

    def _replace(self, path: tuple[str, ...], text: str) -> None:
        self.edits.append(Replacement(self._member(*path).value, text))

    def _insert(self, path: tuple[str, ...], members: Sequence[tuple[str, str]]) -> None:
        behind = self._member(*path)
        comma, gives = ("," if behind.in_list else ""), (": " if self.kind == "json" else " = ")
        table, end = self.text[behind.keys[0][0] : behind.keys[-1][0]], behind.value[1]
        for name, text in members:
            key = self._quoted(name) if self.kind == "json" else f"{table}{name}"
            self.edits.append(Replacement((end, end), f"{comma}{behind.separator}{key}{gives}{text}"))

    def _prepend(self, path: tuple[str, ...], words: Sequence[str]) -> None:
        array = self._member(*path).value
        items = items_of(self.text, self.kind, array)
        start = items[0][0] if items else array[0] + 1
        gap = self.text[array[0] + 1 : start]
        between = f",{gap}" if items and "\n" in gap and not gap.strip() else ", "
        written = between.join(map(self._quoted, words))
        self.edits.append(Replacement((start, start), written + (between if items else "")))

    def _array(self, words: Sequence[str], beside: tuple[str, ...]) -> str:
        """A list of words, one a line if the members of the entry have lines of their own."""
        separator = self._member(*beside).separator
        if self.kind == "toml" or "\n" not in separator:
            return f"[{', '.join(map(self._quoted, words))}]"
        indent = separator.rpartition("\n")[2]
        start, end = self.found.regions[0]
        outer = self.text[start:end].rpartition("\n")[2].partition("}")[0]
        unit = indent.removeprefix(outer) if indent.startswith(outer) and not outer.strip() else "  "
        lines = f",{separator}{unit}".join(map(self._quoted, words))
        return f"[{separator}{unit}{lines}{separator}]"

    def _quoted(self, text: str) -> str:
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise NotWrappedError(f"{text.encode('utf-8', 'backslashreplace').decode()} is not UTF-8")
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _changed(
    text: str, kind: Editable, path: EntryPath, name: str, found: EntryText, editor: _EntryEditor
) -> tuple[str, EntryChange]:
    """Apply the edits, and prove that they can be taken back. Raises ConfigError where they cannot."""
    edits = sorted(editor.edits, key=lambda each: each.span)
    after = _applied(text, edits)
    regions = find_entry(after, kind, path).regions
    undo, moved = list[Replacement](), 0
    for each in edits:
        (start, end), size = each.span, len(each.text)
        undo.append(Replacement(_inner((start + moved, start + moved + size), regions), text[start:end]))
        moved += size - (end - start)
    before = "".join(text[start:end] for start, end in found.regions)
    now = "".join(after[start:end] for start, end in regions)
    notes, secrets = tuple(editor.notes), tuple(_secrets_of(editor.raw))
    digests = digest_of_text(now), digest_of(editor.entry), digest_of_text(before)
    change = EntryChange(path, name, before, now, *digests, tuple(undo), notes, secrets)
    if unwrap_entry(after, kind, path, change.digest, change.undo) != text:
        raise ConfigError("is written in a way that mcphost cannot edit in place")
    return after, change


def _secrets_of(raw: Mapping[str, Any]) -> Iterator[str]:
    keys = {"args": ("args", *COMMAND_KEYS), "env": ENVIRONMENT_KEYS, "http_headers": HEADER_KEYS}
    for ours, theirs in keys.items():
        for key in theirs:
            found = find_secrets({ours: raw[key]}) if isinstance(raw.get(key), list | Mapping) else ()
            yield from (each.value for each in found if each.value)


def _applied(text: str, edits: Sequence[Replacement]) -> str:
    """The text with these pieces replaced; they are in order, and none overlaps another."""
    pieces, position = list[str](), 0
    for each in edits:
        if each.span[0] < position:
            raise ConfigError("is written in a way that mcphost cannot edit in place")
        pieces += text[position : each.span[0]], each.text
        position = each.span[1]
    return "".join((*pieces, text[position:]))


def _inner(span: Span, regions: Sequence[Span]) -> Span:
    """A span of the file as one of the regions' joined text."""
    before = 0
    for start, end in regions:
        if start <= span[0] and span[1] <= end:
            return span[0] - start + before, span[1] - start + before
        before += end - start
    raise ConfigError("is written in a way that mcphost cannot edit in place")


def _outer(span: Span, regions: Sequence[Span]) -> Span:
    """The reverse of `_inner`."""
    before = 0
    for start, end in regions:
        if before <= span[0] and span[1] <= before + end - start:
            return span[0] - before + start, span[1] - before + start
        before += end - start
    raise EntryChangedError


def reads_as(text: str, kind: Editable, expected: object) -> bool:
    """True if programs read this from the text."""
    try:
        return read_document(text.encode("utf-8", "surrogatepass"), kind) == expected
    except ConfigError:
        return False
