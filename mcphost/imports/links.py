"""Reads the links with which web pages offer servers to VS Code and Cursor.

A link is parsed as the user pasted it; no address in it is called, and mcphost never registers itself for links.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from mcphost.errors import ConfigError
from mcphost.imports.dialects.dialect import EntryGroup, HostDialect, HostDocument
from mcphost.imports.dialects.entries import read_group
from mcphost.imports.dialects.table import CURSOR, VSCODE, looks_like_entry
from mcphost.imports.documents import read_document
from mcphost.imports.found import FoundServer
from mcphost.lazy_dataclass import dataclass

MOST_BYTES: Final = 64_000
"""Of a link; browsers take less."""

MOST_PARAMETERS: Final = 100

_CONTROLS: Final = re.compile(r"[\x00-\x20\x7f]")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_VSCODE_HOSTS: Final = ("vscode.dev", "insiders.vscode.dev")
_CURSOR_PATH: Final = re.compile(r"(?:/[a-z]{2}(?:-[a-z]+)?)?/install-mcp/?", re.IGNORECASE)


def is_link(text: str) -> bool:
    """True if this is a link that VS Code or Cursor would take."""
    return _kind_of(_split(text)) is not None


def read_link(text: str) -> list[FoundServer]:
    """Read the server that a link offers; one that cannot be imported has a ``refusal``. Raises ConfigError."""
    text = text.strip()
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ConfigError(f"the link is longer than {MOST_BYTES:,} bytes")
    if _CONTROLS.search(text):
        raise ConfigError("the link holds a blank or a control character, which no link does")
    parts = _split(text)
    kind = _kind_of(parts)
    if parts is None or kind is None:
        raise ConfigError("is not a link of VS Code or Cursor")
    return list(kind.read(parts, _place(parts)))


@dataclass(frozen=True, slots=True)
class _LinkKind:
    matches: Callable[[SplitResult], bool]
    read: Callable[[SplitResult, str], Iterator[FoundServer]]


def _split(text: str) -> SplitResult | None:
    try:
        return urlsplit(text.strip())
    except ValueError:
        return None


def _kind_of(parts: SplitResult | None) -> _LinkKind | None:
    return None if parts is None else next((kind for kind in _KINDS if kind.matches(parts)), None)


def _place(parts: SplitResult) -> str:
    """The link without what it carries, which may be secret."""
    return parts._replace(query="", fragment="").geturl()


def _path(parts: SplitResult) -> str:
    return f"{parts.netloc}{parts.path}".strip("/").lower()


def _web(parts: SplitResult, *hosts: str) -> bool:
    return parts.scheme == "https" and parts.netloc.lower() in (*hosts, *(f"www.{host}" for host in hosts))


def _from_vscode(parts: SplitResult, place: str) -> Iterator[FoundServer]:
    """The whole query is the entry, with its name and inputs."""
    entry = dict(_object(_json(unquote(parts.query, errors="replace"))))
    yield from _servers(entry.pop("name", None), entry, place, VSCODE, entry.pop("inputs", None))


def _from_vscode_page(parts: SplitResult, place: str) -> Iterator[FoundServer]:
    given = _parameters(parts)
    inputs = _json(given["inputs"]) if given.get("inputs") else None
    yield from _servers(given.get("name"), _object(_json(given.get("config", ""))), place, VSCODE, inputs)


def _from_cursor(parts: SplitResult, place: str) -> Iterator[FoundServer]:
    """``name`` and ``config``, which is JSON, mostly as base64."""
    given = _parameters(parts)
    config = given.get("config", "")
    text = config if config.lstrip().startswith("{") else _decoded(config)
    yield from _servers(given.get("name"), _object(_json(text)), place, CURSOR)


def _servers(
    name: object, entry: Mapping[str, Any], place: str, dialect: HostDialect, inputs: object = None
) -> Iterator[FoundServer]:
    """Read the entry, or what some pages put in its place: a table of one, or of several under ``mcpServers``."""
    named = name if isinstance(name, str) and name else "server"
    inner = entry.get("mcpServers", entry)
    if (
        not looks_like_entry(entry)
        and isinstance(inner, Mapping)
        and inner
        and all(map(looks_like_entry, inner.values()))
    ):
        entries: Mapping[str, Any] = inner
    else:
        entries = {named: entry}
    yield from read_group(EntryGroup(entries, inputs=inputs), dialect, HostDocument("link", place))


def _parameters(parts: SplitResult) -> dict[str, str]:
    try:
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="replace")
    except ValueError:
        raise ConfigError("the link has too many parameters") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise ConfigError("the link has a parameter twice")
    return given


def _decoded(text: str) -> str:
    """Decode base64 of either alphabet, with or without its padding. Raises ConfigError."""
    text = text.replace(" ", "+")  # what a plus becomes in a query
    if not text or not _BASE64.fullmatch(text):
        raise ConfigError("the link's config is neither JSON nor base64")
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise ConfigError("the link's config is damaged base64") from None


def _json(text: str) -> object:
    try:
        return read_document(text.encode("utf-8", "replace"), "json")
    except ConfigError as error:
        raise ConfigError(f"the link's content {error.message}") from None


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError("the link holds no server")
    return value


_KINDS: Final = (
    _LinkKind(
        lambda parts: parts.scheme in ("vscode", "vscode-insiders") and _path(parts) == "mcp/install", _from_vscode
    ),
    _LinkKind(
        lambda parts: _web(parts, *_VSCODE_HOSTS) and parts.path.rstrip("/") == "/redirect/mcp/install",
        _from_vscode_page,
    ),
    _LinkKind(
        lambda parts: (
            (parts.scheme == "cursor" and _path(parts) == "anysphere.cursor-deeplink/mcp/install")
            or (_web(parts, "cursor.com") and _CURSOR_PATH.fullmatch(parts.path) is not None)
        ),
        _from_cursor,
    ),
)
