"""Reads server cards, in which a server on the web describes itself, and AI catalogs, which list them.

What a card says is a hint: what counts is what the server says once it is connected.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from mcphost.errors import ConfigError, InvalidResult, McphostError
from mcphost.imports.found import FoundServer, Origin, digest_of, legal_name
from mcphost.imports.server_json import ServerOffer, read_server_json
from mcphost.imports.web import WebLocation
from mcphost.json_values import as_text
from mcphost.lazy_dataclass import dataclass
from mcphost.net.guarded import ResolveHost, resolve
from mcphost.net.origins import origin_of
from mcphost.protocol.display import show_line

CARD: Final = "application/mcp-server-card+json"
CATALOG: Final = "application/ai-catalog+json"
CATALOG_PATH: Final = "/.well-known/ai-catalog.json"

MOST_SERVERS: Final = 50
"""Of one catalog; more are not asked about at once."""

CARD_BYTES: Final = 1_000_000
CARD_SECONDS: Final = 5.0
"""For a card beside an address, which few servers have yet."""

_DIGEST: Final = re.compile(r"(?:sha-?256[:-])?([0-9a-f]{64})", re.IGNORECASE)


def card_url(url: str) -> str:
    """Where the server at ``url`` has its card, if it has one."""
    return f"{without_secrets(url).rstrip('/')}/server-card"


def without_secrets(url: str) -> str:
    """An address without its user name, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def looks_like_card(document: object) -> bool:
    """True if this is a server card, and not a ``server.json`` with packages."""
    if not isinstance(document, Mapping):
        return False
    schema = document.get("$schema")
    named = isinstance(schema, str) and "server-card" in schema
    return named or ("remotes" in document and "packages" not in document and isinstance(document.get("name"), str))


def looks_like_catalog(document: object) -> bool:
    return isinstance(document, Mapping) and isinstance(document.get("entries"), list) and "specVersion" in document


def read_card(document: object, place: str) -> tuple[ServerOffer, ...]:
    """The addresses of a card, best first. Raises ConfigError if it is none."""
    return read_server_json(document, Origin("card", place, "", ""))


async def card_at(url: str, resolve: ResolveHost = resolve) -> tuple[ServerOffer, ...]:
    """Return what the card of the server at ``url`` says about that address; empty without a card. Never raises.

    A card that names another origin says nothing about this one.
    """
    place = card_url(url)
    try:
        document, _ = await WebLocation(url, resolve).document(
            place, f"{CARD}, application/json", seconds=CARD_SECONDS, most_bytes=CARD_BYTES
        )
        offers = read_card(document, place)
    except McphostError:
        return ()
    return tuple(offer for offer in offers if not offer.server.refusal and _same_origin(offer, url))


def _same_origin(offer: ServerOffer, url: str) -> bool:
    address = str(offer.server.table.get("url", ""))
    if "${" in address.partition("/")[0] or "${" in urlsplit(address).netloc:
        return False
    return origin_of(address) == origin_of(url)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a catalog: ``document`` where it holds the card itself, else the address of the card."""

    name: str
    kind: str
    url: str
    document: object
    digest: str


class CatalogReader:
    """Reads the servers of a catalog: cards that it holds or names, and one level of catalogs in it."""

    def __init__(self, place: str, resolve: ResolveHost = resolve) -> None:
        self._place, self._web = place, WebLocation(place, resolve)
        self._left = MOST_SERVERS

    async def read(self, document: object) -> tuple[FoundServer, ...]:
        """Return the servers; one that cannot be read has a refusal. Raises ConfigError if it is not a catalog."""
        return tuple(await self._servers(document, self._place, nested=False))

    async def _servers(self, document: object, base: str, *, nested: bool) -> list[FoundServer]:
        servers: list[FoundServer] = []
        for entry in _entries(document):
            if self._left <= 0:
                break
            if entry.kind == CATALOG and not nested:
                servers += await self._of_catalog(entry, base)
            elif entry.kind == CARD:
                self._left -= 1
                servers.append(await self._of_card(entry, base))
        return servers

    async def _of_catalog(self, entry: _Entry, base: str) -> list[FoundServer]:
        self._left -= 1
        try:
            document, place = await self._fetched(entry, base, CATALOG)
            return await self._servers(document, place, nested=True)
        except McphostError as error:
            return [self._refused(entry, str(error))]

    async def _of_card(self, entry: _Entry, base: str) -> FoundServer:
        try:
            document, place = await self._fetched(entry, base, CARD)
            offers = read_card(document, place)
        except McphostError as error:
            return self._refused(entry, str(error))
        return offers[0].server if offers else self._refused(entry, "its card names no address")

    async def _fetched(self, entry: _Entry, base: str, kind: str) -> tuple[object, str]:
        """The document of an entry, and where it was found."""
        if entry.document is not None:
            return entry.document, base
        url = urljoin(base, entry.url)
        if not url.startswith(("https://", "http://")):
            raise InvalidResult("its address is none of the web")
        document, content = await self._web.document(url, f"{kind}, application/json", most_bytes=CARD_BYTES)
        match = _DIGEST.fullmatch(entry.digest)
        if entry.digest and (match is None or hashlib.sha256(content).hexdigest() != match[1].lower()):
            raise InvalidResult("its card has another digest than the catalog says")
        return document, url

    def _refused(self, entry: _Entry, reason: str) -> FoundServer:
        origin = Origin("card", self._place, entry.name, digest_of([entry.name, entry.url]))
        return FoundServer(legal_name(entry.name), origin, {}, refusal=reason)


def _entries(document: object) -> list[_Entry]:
    if not looks_like_catalog(document):
        raise ConfigError("is not an AI catalog")
    assert isinstance(document, Mapping)
    tables = [each for each in document["entries"][: 10 * MOST_SERVERS] if isinstance(each, Mapping)]
    return [
        _Entry(
            name=_text(each, "displayName") or _text(each, "identifier").rpartition(":")[2] or "server",
            kind=_text(each, "type").partition(";")[0].strip().lower(),
            url=as_text(each.get("url")),
            document=each.get("data"),
            digest=_text(each, "digest"),
        )
        for each in tables
    ]


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    return show_line(value, 2000) if isinstance(value, str) else ""
