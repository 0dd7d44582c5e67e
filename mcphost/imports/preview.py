"""All that a user must know of a found server before agreeing to add it, as facts without markup.

The screen and the command line show the same facts. No secret's value is among them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from mcphost.config.references import MalformedReferenceError, Reference, parse
from mcphost.errors import ConfigError
from mcphost.imports.dangers import DangerSign, command_words, danger_signs, name_signs, texts_by_name
from mcphost.imports.downloads import Download, downloads_of
from mcphost.imports.found import FoundServer, Input, Origin
from mcphost.imports.hosts import BY_ID
from mcphost.imports.inputs import fill_in, placeholder
from mcphost.imports.secrets import masked
from mcphost.json_values import texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import MASK, looks_secret, safe_url

_CHUNK: Final = 50_000
"""Characters shown at a time; `show_line` processes only so many more."""

_INPUT: Final = re.compile(r"\$\{input:([^}]*)\}")

_OWN_ROWS: Final = frozenset({
    "command", "args", "cwd", "url", "env", "env_vars", "http_headers", "env_http_headers", "bearer_token_env_var",
})  # fmt: skip
"""Keys of the table that have rows of their own; all others are listed as settings."""


class ValueOrigin(Enum):
    """Where a value comes from when the server starts."""

    LITERAL = "literal"
    """Written in the entry, and probably not secret."""
    SECRET = "secret"
    """Written in the entry, and probably a secret."""
    SET = "set"
    """An environment variable that is set here."""
    UNSET = "unset"
    """An environment variable that is not set here, without a default: the server cannot start."""
    DEFAULT = "default"
    """An environment variable that is not set here; the entry has a default."""
    KEYCHAIN = "keychain"
    FILE = "file"
    ASKED = "asked"
    """The user is asked for it before the server is added."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A variable, header, argument or other text of the entry. All texts are safe to show, and hold no secret."""

    key: str
    """Its dotted key in the table: ``env.TOKEN``, ``args[2]``."""
    name: str
    """Its name for people: ``TOKEN``, ``Authorization``, ``argument 3``."""
    source: ValueOrigin
    text: str
    """The value, or where it comes from: ``stdio``, ``a secret, written in the entry``, ``variable TOKEN, not set``."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The content of a consent screen about a found server. All texts are safe to show."""

    name: str
    """The name of its entry."""
    name_there: str
    """Its name where it was found."""
    found_in: str
    """The program, file and part of it: ``Claude Code · ~/.claude.json · project /home/ada/app``."""
    description: str
    words: tuple[str, ...]
    """The program and its arguments, each in full; only secrets are masked. Empty for an address."""
    url: str
    """In full; only secrets are masked."""
    folder: str
    dangers: tuple[DangerSign, ...]
    downloads: tuple[Download, ...]
    values: tuple[ShownValue, ...]
    settings: tuple[tuple[str, str], ...]
    """Other keys that come in, with their values as TOML would write them."""
    notes: tuple[tuple[str, str], ...]
    """The keys that were left out or translated, and why."""
    asked: tuple[tuple[str, str], ...]
    """The inputs, each with its description."""
    refusal: str
    """Why it cannot be added; empty if it can."""

    @property
    def command_line(self) -> str:
        """The words as a shell would read them. mcphost starts the program without a shell."""
        return " ".join(word if _PLAIN_WORD.fullmatch(word) else shlex.quote(word) for word in self.words)

    @property
    def has_secrets(self) -> bool:
        """True if a value that is written in the entry is a secret."""
        return any(value.source is ValueOrigin.SECRET for value in self.values)

    @property
    def unset(self) -> tuple[ShownValue, ...]:
        """The environment variables without which it cannot start."""
        return tuple(value for value in self.values if value.source is ValueOrigin.UNSET)


_PLAIN_WORD: Final = re.compile(r"[\w@%+=:,./\-•]+")


def preview_of(found: FoundServer, env: Mapping[str, str]) -> Preview:
    """Return what the user is to see of ``found``. References are looked up in ``env``, mcphost's own environment."""
    table, safe = found.table, masked(found.table)
    words = command_words(table)
    url, cwd = safe.get("url"), safe.get("cwd")
    notes = [(shown(note.key), shown(note.reason)) for note in found.notes]
    if found.disabled_there and not found.refusal:
        notes.append(("enabled", "it is disabled there, and is added as a disabled server"))
    return Preview(
        name=shown(found.name),
        name_there=shown(found.origin.name),
        found_in=place_of(found.origin),
        description=shown(found.description),
        words=tuple(map(shown, command_words(safe))),
        url=shown(url) if isinstance(url, str) else "",
        folder=shown(cwd) if isinstance(cwd, str) else "",
        dangers=(*danger_signs(_with_defaults(found)), *name_signs(found.origin.name)),
        downloads=downloads_of(words, texts_by_name(table, "env")),
        values=tuple(_ValueReader(table, safe, env, found.inputs).all()),
        settings=tuple(_settings(safe)),
        notes=tuple(notes),
        asked=tuple((shown(each.id), shown(each.description)) for each in found.inputs),
        refusal=shown(found.refusal),
    )


def _with_defaults(found: FoundServer) -> Mapping[str, Any]:
    """The table as it is when the user leaves each input as it is proposed."""
    open_inputs = {each.id: placeholder(each.id).text for each in found.inputs if each.default is None}
    try:
        return fill_in(found.table, found.inputs, open_inputs)
    except ConfigError:  # a default that is not among the choices: the user is asked again
        return found.table


def shown(text: str) -> str:
    """All of ``text`` on one line, safe to show."""
    return "".join(show_line(text[at : at + _CHUNK], 32 * _CHUNK) for at in range(0, len(text), _CHUNK))


def place_of(origin: Origin) -> str:
    """The program, file and part of it, for people: ``Claude Code · ~/.claude.json``. Safe to show."""
    place = origin.place
    if origin.source == "link":
        place = place.partition("?")[0]  # the rest is the entry, secrets included
    host = BY_ID.get(origin.source)
    if origin.source == "command line":  # of this program, or its screen
        return "what you typed"
    parts = (host.label if host else origin.source, safe_url(short_path(place)), origin.scope)
    return " · ".join(shown(part) for part in parts if part)


def short_path(path: str) -> str:
    """A path with ``~`` for the home folder."""
    home = os.path.join(os.path.expanduser("~"), "")
    return f"~/{path.removeprefix(home)}" if path.startswith(home) else path


class _ValueReader:
    """Says where each text of ``table`` comes from; ``safe`` is the same table with its secrets masked."""

    def __init__(
        self,
        table: Mapping[str, Any],
        safe: Mapping[str, Any],
        env: Mapping[str, str],
        inputs: Iterable[Input],
    ) -> None:
        self._table, self._safe, self._env = table, safe, env
        self._inputs = {each.id: each for each in inputs}

    def all(self) -> Iterator[ShownValue]:
        """Every variable and header; of the other texts those that are not simply written there."""
        yield from self._named("env")
        yield from (self._passed_on("env_vars", name, name) for name in texts_in(self._table.get("env_vars")))
        yield from self._named("http_headers")
        for name, variable in texts_by_name(self._table, "env_http_headers").items():
            yield self._passed_on(f"env_http_headers.{name}", name, variable)
        if isinstance(bearer := self._table.get("bearer_token_env_var"), str):
            yield self._passed_on("bearer_token_env_var", "Authorization", bearer, before="Bearer, then ")
        words = zip(command_words(self._table), command_words(self._safe), strict=True)
        for index, (word, safe) in enumerate(words):
            key, name = ("command", "the program") if index == 0 else (f"args[{index - 1}]", f"argument {index}")
            if word != safe or "${" in word:
                yield self._read(key, name, word, safe)
        for key, name in (("url", "the address"), ("cwd", "the folder")):
            text, hidden = self._table.get(key), self._safe.get(key)
            if isinstance(text, str) and isinstance(hidden, str) and (text != hidden or "${" in text):
                yield self._read(key, name, text, hidden)
        yield from (each for each in self._named("oauth") if each.name in _CREDENTIALS)

    def _named(self, key: str) -> Iterator[ShownValue]:
        safe = texts_by_name(self._safe, key)
        for name, value in texts_by_name(self._table, key).items():
            yield self._read(f"{key}.{name}", name, value, safe[name])

    def _passed_on(self, key: str, name: str, variable: str, before: str = "") -> ShownValue:
        """A variable of mcphost's environment that is named without ``${…}``."""
        there = bool(self._env.get(variable))
        source = ValueOrigin.SET if there else ValueOrigin.UNSET
        if key == "env_vars" and not there:
            source = ValueOrigin.DEFAULT  # it is passed on where it is set, and the server starts without it
        words = "set" if there else "not set"
        return ShownValue(shown(key), shown(name), source, f"{before}variable {shown(variable)}, {words}")

    def _read(self, key: str, name: str, value: str, safe: str) -> ShownValue:
        source, words = self._source(name, value, safe)
        return ShownValue(shown(key), shown(name), source, shown(words) or "empty")

    def _source(self, name: str, value: str, safe: str) -> tuple[ValueOrigin, str]:
        if match := _INPUT.search(value):
            asked = self._inputs.get(match[1])
            return ValueOrigin.ASKED, f"you are asked: {(asked and asked.description) or match[1]}"
        if value != safe:
            return ValueOrigin.SECRET, "a secret, written there" if safe == MASK else f"a secret, written there: {safe}"
        try:
            pieces = parse(value)
        except MalformedReferenceError as error:
            return ValueOrigin.UNSET, f"cannot be read: {error}"
        references = [piece for piece in pieces if isinstance(piece, Reference)]
        if not references:
            return ValueOrigin.LITERAL, "".join(piece for piece in pieces if isinstance(piece, str))
        words = "; ".join(dict.fromkeys(self._reference_words(each, name) for each in references))
        source = max((self._reference_source(each) for each in references), key=_ORDER.index)
        around = "".join(piece if isinstance(piece, str) else f"${{{piece.name}}}" for piece in pieces)
        return source, words if len(pieces) == 1 else f"{around}: {words}"

    def _reference_source(self, reference: Reference) -> ValueOrigin:
        if reference.kind != "env":
            return ValueOrigin.KEYCHAIN if reference.kind == "keyring" else ValueOrigin.FILE
        if self._env.get(reference.name):
            return ValueOrigin.SET
        return ValueOrigin.UNSET if reference.default is None else ValueOrigin.DEFAULT

    def _reference_words(self, reference: Reference, name: str) -> str:
        if reference.kind != "env":
            return f"{'keychain entry' if reference.kind == 'keyring' else 'file'} {reference.name}"
        source = self._reference_source(reference)
        if source is not ValueOrigin.DEFAULT:
            return f"variable {reference.name}, {'set' if source is ValueOrigin.SET else 'not set'}"
        default = reference.default or "empty"
        hidden = looks_secret(name) or looks_secret(reference.name)
        return f"variable {reference.name}, not set: {MASK if hidden else default} instead"


_CREDENTIALS: Final = frozenset({"client_id", "client_secret", "private_key"})
"""Yield the keys of ``oauth`` that are listed among the values."""

_ORDER: Final = (
    ValueOrigin.LITERAL, ValueOrigin.SET, ValueOrigin.FILE, ValueOrigin.KEYCHAIN, ValueOrigin.DEFAULT,
    ValueOrigin.UNSET,
)  # fmt: skip
"""Of several references in one value, the last of these is what the user should see."""


def _settings(safe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in safe.items():
        if key == "oauth" and isinstance(value, Mapping):
            others = ((str(name), each) for name, each in value.items() if name not in _CREDENTIALS)
            yield from ((f"oauth.{shown(name)}", _toml(each)) for name, each in others)
        elif key not in _OWN_ROWS:
            yield shown(str(key)), _toml(value)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{shown(str(name))} = {_toml(each)}" for name, each in value.items()) + " }"
    return shown(f'"{value}"' if isinstance(value, str) else str(value))
