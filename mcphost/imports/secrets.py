"""Finds secrets in the entry of a server, by names and by the shape of values, and puts references in their places."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from mcphost.config.files import read_regular
from mcphost.errors import ConfigError
from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.redaction import MASK, MIN_SECRET, is_secret_header, looks_secret, random_spans, token_spans

MAX_SOURCE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a file in which the line of a secret is looked for; some programs keep their whole history in theirs."""

MOST_IN_TEXT: Final = 20
"""Secrets that are found in one text; a text with more counts as one secret."""

MOST_LINES: Final = 20
"""Places of a secret in a file that are looked for."""

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{[^}]*\}?")
_SCHEME: Final = re.compile(r"(?:bearer|basic|token|bot|apikey)\s+(?=\S+\s*$)", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OPTION: Final = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?P<equals>=)?")

_BEARER: Final = re.compile(r"\bBearer\s+([\w.~+/=-]{8,})", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"://[^/?#\s@:]*:([^/?#\s@]+)@")
_USER: Final = re.compile(r"://([^/?#\s@:]{12,})@")
_NAMED: Final = (
    re.compile(r"""[?&;]([\w.\[\]-]+)=([^&;#\s"']+)"""),
    re.compile(r"""["']([\w. -]{1,64})["']\s*:\s*["']([^"'\\]+)["']"""),
    re.compile(r"^(?:--?)?([A-Za-z][\w.-]*)=(.+)$", re.DOTALL),
    re.compile(r"^([A-Za-z][A-Za-z0-9-]*):[ \t]*(?!//)(.+)$", re.DOTALL),
)
"""A name and its value within a text: parameters of a URL, members of JSON, ``NAME=VALUE``, ``Header: VALUE``."""

_MODES: Final = frozenset({
    "", "true", "false", "yes", "no", "on", "off", "none", "null", "auto", "default", "basic", "bearer", "oauth",
    "oauth2", "token", "env", "keyring", "keychain", "prompt", "disabled", "enabled", "required", "optional",
})  # fmt: skip
"""Values under a secret's name that only say how it is used."""
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]*>|\[[^\[\]]*\]|x{3,}|\*+|\.{3,}|…|(?:your|insert|replace)[-_ ].*|change[-_ ]?me", re.IGNORECASE
)
_PLAIN_PATH: Final = re.compile(
    r"(?:~|\.{0,2}|[A-Za-z]:)(?:[/\\](?:[^a-z0-9/\\]*(?:[a-z]+|[0-9]{1,4})(?![a-z0-9]))*[^a-z0-9/\\]*)+", re.I
)
_PATH_WITH_BLANKS: Final = re.compile(r"(?:~|\.{0,2}|[A-Za-z]:)[/\\][^=:?&]*[ ][^=:?&]*")
"""A path, of which the part after a blank is not a word of its own."""
_PASSWORDS: Final = re.compile(r"passw|passphrase|pwd|secret", re.IGNORECASE)
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A secret in an entry. It is the part ``start`` to ``end`` of the text at ``place``."""

    place: KeyPath
    start: int
    end: int
    item: str
    """The second half of the name of its keychain item, ``SERVER.ITEM``; unique in the entry."""
    reason: str
    """The sign by which it was recognized: a clause such as ``the name GITHUB_TOKEN``."""
    value: str = field(repr=False)
    """The value for the program, without escapes of the configuration."""

    @property
    def key(self) -> str:
        """Its place as a dotted key: ``env.TOKEN``, ``args[2]``. Unsafe to show: a name may hold anything."""
        first, *others = self.place
        return str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in others)

    @property
    def in_arguments(self) -> bool:
        """True if every user of this machine sees it in the list of processes, wherever it is kept."""
        return self.place[0] == "args"

    @property
    def variable(self) -> str | None:
        """The environment variable whose whole value it is; None if there is no such variable."""
        return str(self.place[1]) if self.place[0] == "env" else None


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    reason: str
    name: str = ""
    """Its name there, if it has one."""


def find_secrets(table: Mapping[str, Any]) -> tuple[FoundSecret, ...]:
    """The secrets of an entry in its variables, headers, arguments, address and sign-in.

    References are none. Texts of the wrong type are skipped: validation reports them.
    """
    found: list[FoundSecret] = []
    taken: Counter[str] = Counter()
    for place, text, name in _texts(table):
        spans = _header_spans(text, name) if place[0] == "http_headers" else _spans(text, name)
        for span in sorted(spans, key=lambda span: span.start):
            label = _UNFIT.sub("_", _label(place, span, name)).strip("_.-")[:64] or "value"
            item = label
            while item in taken:
                taken[label] += 1
                item = f"{label}-{taken[label]}"
            taken[item] = 1
            value = text[span.start : span.end].replace("$${", "${")
            found.append(FoundSecret(place, span.start, span.end, item, span.reason, value))
    return tuple(found)


def with_references(
    table: Mapping[str, Any], secrets: Iterable[FoundSecret], reference: Callable[[FoundSecret], str]
) -> dict[str, Any]:
    """A copy of the entry with ``reference(secret)`` in the place of each secret."""
    # From the end of each text, so that the places before it stay where they are.
    ordered = sorted(secrets, key=lambda secret: secret.start, reverse=True)
    made: Any = _copied(table)
    for secret in ordered:
        *way, last = secret.place
        inner = made
        for step in way:
            inner = inner[step]
        text = inner[last]
        inner[last] = text[: secret.start] + reference(secret) + text[secret.end :]
    assert isinstance(made, dict)
    return made


def with_texts(table: Mapping[str, Any], texts: Mapping[KeyPath, str]) -> dict[str, Any]:
    """A copy of the entry with other texts at these places, which it has."""
    made: Any = _copied(table)
    for place, text in texts.items():
        *way, last = place
        inner = made
        for step in way:
            inner = inner[step]
        inner[last] = text
    assert isinstance(made, dict)
    return made


def masked(table: Mapping[str, Any], secrets: Iterable[FoundSecret] | None = None) -> dict[str, Any]:
    """A copy of the entry that may be shown: `MASK` in the place of each secret."""
    return with_references(table, find_secrets(table) if secrets is None else secrets, lambda secret: MASK)


def lines_of(path: Path, value: str) -> tuple[int, ...]:
    """Return the lines (from 1) of a file that hold a secret; none if the file cannot be read.

    A secret shorter than `MIN_SECRET` may be anywhere by chance, and is not searched for. Blocks on the disk.
    """
    try:
        text = read_regular(path, MAX_SOURCE_BYTES).decode("utf-8", "replace")
    except (OSError, ConfigError):
        return ()
    longest = max(value.splitlines(), key=len, default="")
    parts = {value, longest, *_passwords(value)}
    forms = {form for part in parts for form in (part, *_as_json(part)) if len(part) >= MIN_SECRET}
    starts = {match.start() for form in forms for match in islice(re.finditer(re.escape(form), text), MOST_LINES)}
    return tuple(sorted({text.count("\n", 0, start) + 1 for start in starts}))


def _passwords(value: str) -> Iterator[str]:
    """Return the password of a Basic authorization, as addresses have it."""
    with suppress(ValueError):
        _, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        if colon:
            yield from {password, quote(password, safe="")}


def _as_json(text: str) -> tuple[str, ...]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def _texts(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    """The texts that may hold secrets, each with the name that says what it is; empty where nothing does."""
    for key in ("env", "http_headers"):
        for name, text in _members(table.get(key)):
            if isinstance(text, str):
                yield (key, name), text, name
    yield from _arguments(table.get("args"))
    for key in ("command", "url"):
        if isinstance(text := table.get(key), str):
            yield (key,), text, ""
    oauth = table.get("oauth")
    for key in ("client_secret", "private_key"):
        if isinstance(oauth, Mapping) and isinstance(text := oauth.get(key), str):
            yield ("oauth", key), text, key


def _arguments(args: object) -> Iterator[tuple[KeyPath, str, str]]:
    before = ""
    for index, text in enumerate(args if isinstance(args, Sequence) and not isinstance(args, str) else ()):
        if not isinstance(text, str):
            before = ""
            continue
        option = _OPTION.fullmatch(before)
        named = option is not None and looks_secret(option["name"]) and not text.startswith("-")
        yield ("args", index), text, option["name"] if named and option is not None else ""
        before = text


def _members(value: object) -> Iterable[tuple[str, Any]]:
    return ((str(name), each) for name, each in value.items()) if isinstance(value, Mapping) else ()


def _label(place: KeyPath, span: _Span, name: str) -> str:
    if place[0] in ("env", "http_headers", "oauth"):
        return str(place[1])
    return span.name or name or (f"arg{int(place[1]) + 1}" if place[0] == "args" else str(place[0]))


def _header_spans(text: str, name: str) -> list[_Span]:
    if is_secret_header(name) and not _REFERENCE.search(text):
        return _whole(text, name)
    return _spans(text, "")


def _whole(text: str, name: str) -> list[_Span]:
    """The text without the scheme before it, if it can be a secret."""
    scheme = _SCHEME.match(text)
    start = scheme.end() if scheme else 0
    end = len(text.rstrip()) if scheme else len(text)
    return [_Span(start, end, f"the name {name}", name)] if _is_plausible(name, text[start:end]) else []


def _spans(text: str, name: str) -> list[_Span]:
    literal = _REFERENCE.sub(lambda match: match[0] if match[0] == "$${" else "\0" * len(match[0]), text)
    by_name = name and looks_secret(name) and "\0" not in literal and not _ADDRESS.match(text)
    if by_name and (whole := _whole(text, name)):
        return whole
    kept: list[_Span] = []
    for span in _shapes(literal):
        clear = "\0" not in literal[span.start : span.end]
        if clear and all(span.end <= other.start or span.start >= other.end for other in kept):
            kept.append(span)
        if len(kept) > MOST_IN_TEXT:
            return [_Span(0, len(text), f"more than {MOST_IN_TEXT} secrets in it")]
    return kept


def _shapes(text: str) -> Iterator[_Span]:
    """Yield parts that are secrets by their context or their shape; they may overlap, and the first counts."""
    for match in _PASSWORD.finditer(text):
        yield _Span(*match.span(1), "a password in an address", "password")
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            yield from _named(match)
    for match in _BEARER.finditer(text):
        yield _Span(*match.span(1), "the word Bearer before it")
    for start, end in token_spans(text):
        yield _Span(start, end, "the shape of a token")
    for match in _USER.finditer(text):
        yield _Span(*match.span(1), "a user name like a token in an address", "user")
    if not (_PLAIN_PATH.fullmatch(text) or _PATH_WITH_BLANKS.fullmatch(text)):
        for start, end in _random(text):
            yield _Span(start, end, "random characters")


def _random(text: str) -> Iterator[tuple[int, int]]:
    if not _ADDRESS.match(text):
        yield from random_spans(text)
        return
    # Each part of an address is a text of its own; a slash in it ends a word.
    position = 0
    for part in re.split(r"([/?#&=@:])", text):
        for start, end in random_spans(part):
            yield position + start, position + end
        position += len(part)


def _named(match: re.Match[str]) -> Iterator[_Span]:
    name, value = match[1], match[2]
    header = match.re is _NAMED[-1] or match.re is _NAMED[1]
    if not (is_secret_header(name) if header else looks_secret(name)) or _ADDRESS.match(value):
        return
    for span in _whole(value, name):
        yield replace(span, start=match.start(2) + span.start, end=match.start(2) + span.end)


def _is_plausible(name: str, value: str) -> bool:
    """True if this may be the secret of that name, and not a mode, a number, a path or a placeholder."""
    word = value.strip()
    if word.lower() in _MODES or _PLACEHOLDER.fullmatch(word) or "\0" in word:
        return False
    if word.isdigit():
        return _PASSWORDS.search(name) is not None
    return not _PLAIN_PATH.fullmatch(word)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value
