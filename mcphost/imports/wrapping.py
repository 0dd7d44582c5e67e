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

from mcphost.config.fields import HEADER_NAME, reason_against_url
from mcphost.config.servers import is_protocol_header
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
    starts_mcphost,
)
from mcphost.imports.documents import read_document
from mcphost.imports.found import digest_of, legal_name
from mcphost.imports.hosts import KnownHost
from mcphost.imports.secrets import find_secrets
from mcphost.imports.spans import Editable, EntryPath, EntryText, Member, Span, find_entry, items_of
from mcphost.imports.variables import taken_for_variables
from mcphost.lazy_dataclass import dataclass

WrapMode = Literal["gate", "tap"]

HEADER_VARIABLE: Final = "MCPHOST_HEADER_{}"
"""The variable of an entry's environment that holds its nth header."""

HARD_LIMITS: Final = frozenset({"claude-code", "codex", "codex-plugins", "gemini"})
"""Hosts that end a call at the entry's timeout, whatever progress is reported."""

MAX_ENTRY: Final = 256 * 1024
"""Characters of an entry that is edited; more than anyone writes, and few enough to be shown."""

_SIGN_IN_KEYS: Final = (
    "oauth",
    "auth",
    "oauthClientId",
    "oauth_resource",
    "scopes",
    "headersHelper",
    "authProviderType",
)
_NESTED_HEADERS: Final = "requestInit", "requestOptions"
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
        """The command line of an entry; ``target`` is what it ran before, or its address."""
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
    return starts_mcphost(words)


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
            self._address(address)
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

    def _words(self, target: Sequence[str], more: Sequence[str] = ()) -> list[str]:
        within = self._answer_within() if self.command.mode == "gate" else None
        limits = [] if within is None else ["--answer-within", f"{within:g}"]
        words = self.command.words(self.host.id, self.name, [*limits, *more], target)
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

    # An address

    def _address(self, key: str) -> None:
        url, label, keys = self.raw[key], self.host.label, self.host.dialect.shape.keys
        if self.command.mode == "tap":
            raise NotWrappedError("tap takes programs, and this is an address; gate takes those with headers")
        if "url" not in keys or "command" not in keys or "env" not in keys:
            raise NotWrappedError(f"{label} takes only programs here")
        if not isinstance(url, str):
            raise NotWrappedError("its address is not a text")
        if any(self.raw.get(each) is not None for each in _SIGN_IN_KEYS):
            raise NotWrappedError(f"{label} signs in to it by itself, which a gate cannot do for it")
        if any(self.raw.get(each) for each in (*ENVIRONMENT_KEYS, "env_vars", "args", *COMMAND_KEYS)):
            raise NotWrappedError("its address has the settings of a program, too")
        if any(self.raw.get(each) is not None for each in _NESTED_HEADERS):
            raise NotWrappedError("its headers are in a table of their own kind, which mcphost does not move")
        self._check_url(url)
        options = self._headers(keys["env"])
        first, *words = self._words([url], options)
        new = keys["command"]
        self.entry.pop(key)
        self._rename((key,), new)
        if self.host.dialect.shape.command_list:
            self._replace((key,), self._array([first, *words], (key,)))
            self.entry[new] = [first, *words]
        else:
            self._replace((key,), self._quoted(first))
            self._insert((key,), [("args", self._array(words, (key,)))])
            self.entry[new], self.entry["args"] = first, words
        self._type()

    def _check_url(self, url: str) -> None:
        if find_secrets({"url": url}):
            raise NotWrappedError("its address holds a secret, which every user could read in a command line")
        if taken_for_variables(url, self.host.dialect.syntax_of("url")):
            raise NotWrappedError("its address holds a variable, whose value every user could read in a command line")
        if reason := reason_against_url(url):
            raise NotWrappedError(f"its address {reason}")

    def _headers(self, environment: str) -> list[str]:
        """Turn the headers into variables of the environment; return the options that name them."""
        options = list[str]()
        key = next((each for each in HEADER_KEYS if self.raw.get(each) is not None), None)
        headers = self.raw[key] if key is not None else {}
        if not isinstance(headers, Mapping) or not all(isinstance(each, str) for each in headers.values()):
            raise NotWrappedError("its headers are not a table of texts")
        for header, value in headers.items():
            self._check_header(header, value)
        for number, header in enumerate(headers, 1):
            options += ["--header-env", f"{header}={HEADER_VARIABLE.format(number)}"]
        if key is not None and headers:
            values = {HEADER_VARIABLE.format(number): each for number, each in enumerate(headers.values(), 1)}
            for header, variable in zip(headers, values, strict=True):
                self._rename((key, header), variable)
            self._rename((key,), environment)
            self.entry.pop(key)
            self.entry[environment] = values
        passed = self._passed(options)
        if passed and "env_vars" not in self.host.dialect.shape.keys:
            raise NotWrappedError("its headers come from variables, which cannot be passed on here")
        if not options:
            raise NotWrappedError(
                f"it has no headers of its own, so {self.host.label} may sign in to it, which a gate cannot do for it"
            )
        if passed:
            self._insert(
                tuple(next([each] for each in URL_KEYS if self.raw.get(each) is not None)),
                [("env_vars", f"[{', '.join(map(self._quoted, passed))}]")],
            )
            self.entry["env_vars"] = passed
        return options

    def _check_header(self, header: str, value: str) -> None:
        """Raise NotWrappedError for a header that a gate refuses, or whose value would change."""
        shown = header[:64]
        if not HEADER_NAME.fullmatch(header) or is_protocol_header(header):
            raise NotWrappedError(f"its header {shown!a} cannot be given to a gate")
        if not value.strip() or not value.isascii() or not value.isprintable():
            raise NotWrappedError(f"the value of its header {shown!a} is empty, or is not plain text")
        theirs, ours = (self.host.dialect.syntax_of(key) for key in ("http_headers", "env"))
        if theirs != ours and (taken_for_variables(value, theirs) or taken_for_variables(value, ours)):
            raise NotWrappedError(f"its header {shown!a} holds a variable, which its environment would not")

    def _passed(self, options: list[str]) -> list[str]:
        """The variables of the host's own environment that hold headers; they are removed from the entry."""
        passed = dict[str, None]()
        if isinstance(named := self.raw.get("env_http_headers"), Mapping):
            for header, variable in named.items():
                options += ["--header-env", f"{header}={variable}"]
                passed[str(variable)] = None
            self._remove("env_http_headers")
        for key in ("bearer_token_env_var", "bearerTokenEnv", "bearer_token_env"):
            if isinstance(variable := self.raw.get(key), str):
                options += ["--bearer-env", variable]
                passed[variable] = None
                self._remove(key)
        return list(passed)

    def _type(self) -> None:
        """Say that the entry is a program now."""
        types = self.host.dialect.shape.types
        for key in TYPE_KEYS:
            if self.raw.get(key) is None:
                continue
            if "stdio" in types:
                self._replace((key,), self._quoted(types["stdio"]))
                self.entry[key] = types["stdio"]
            else:
                self._remove(key)

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

    def _rename(self, path: tuple[str, ...], name: str) -> None:
        """Write another key wherever this one is written."""
        level = len(path) - 1
        for each in self.found.at(*path):
            if (place := level - len(each.path) + len(each.keys)) >= 0:
                self.edits.append(Replacement(each.keys[place], self._quoted(name) if self.kind == "json" else name))

    def _remove(self, key: str) -> None:
        self.entry.pop(key)
        kept = list[Span]()
        for each in self.found.at(key):
            if not any(start <= each.cut[0] and each.cut[1] <= end for start, end in kept):
                kept.append(each.cut)
        self.edits += [Replacement(span, "") for span in kept]

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
