"""Asks MCP registries for servers, by their API v0.1. Nothing is asked unless the user searches or names a server.

Whatever a registry answers is a claim: only the server that was asked for is taken, and all texts are foreign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from mcphost.config.models import OFFICIAL_REGISTRY
from mcphost.errors import ConfigError, HttpStatusError, InvalidResult, UnknownName
from mcphost.imports.web import WebLocation
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.net.guarded import ResolveHost, resolve
from mcphost.net.origins import host_of
from mcphost.protocol.display import age_text, show_line

PAGE_ITEMS: Final = 100
MOST_PAGES: Final = 5
"""Of one search: a registry that never ends its list stops costing time."""

MOST_RESULTS: Final = 200
"""Of one search; more than a person reads."""

_NAME: Final = re.compile(r"[A-Za-z0-9.-]{1,199}/[A-Za-z0-9._-]{1,199}")
_VERSION: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,255}")
_CURSOR: Final = 2000
_OFFICIAL_META: Final = "io.modelcontextprotocol.registry/official"
_WITH_PATH: Final = re.compile(r"/v[0-9][0-9.]*$")


@dataclass(frozen=True, slots=True)
class RegistryServer:
    """One version of a server in a registry. All texts but ``name`` may hold anything; ``document`` is its server.json.

    ``status`` is ``active``, ``deprecated`` or ``deleted``, or whatever the registry wrote.
    """

    registry: str
    name: str
    title: str
    description: str
    version: str
    status: str
    status_message: str
    published: datetime | None
    document: Mapping[str, Any]

    def age(self, now: datetime) -> str:
        """The age of this version in words; empty if it is not known."""
        return "" if self.published is None else age_text((now - self.published).total_seconds())

    @property
    def proof(self) -> str:
        """The owner of the name, which an honest registry checks before it allows a publication under it."""
        return namespace_proof(self.name, self.registry)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Results of a search. ``more`` is True if not all were read; ``unusable`` counts entries that are not servers."""

    servers: tuple[RegistryServer, ...]
    more: bool = False
    unusable: int = 0


def is_server_name(text: str) -> bool:
    """True if this looks like the name of a server in a registry, such as ``io.github.ada/weather``."""
    return len(text) <= 200 and _NAME.fullmatch(text) is not None and "." in text.partition("/")[0]


def namespace_proof(name: str, registry: str) -> str:
    """Say to whom the namespace of ``name`` belongs, and who checks that."""
    namespace = name.partition("/")[0]
    labels = namespace.split(".")
    if namespace.lower().startswith("io.github.") and len(labels) == 3:
        owner = f"GitHub account {labels[2]}"
    else:
        owner = f"domain {'.'.join(reversed(labels))}"
    if registry == OFFICIAL_REGISTRY:
        return f"{owner}, as checked by {host_of(registry)}"
    return f"{owner}, if {show_line(host_of(registry), 200)} checks that"


class Registry:
    """One registry. ``base`` is its address, with or without the path of the API."""

    def __init__(self, base: str, resolve: ResolveHost = resolve) -> None:
        self.base = base.rstrip("/")
        self._servers = _servers_url(self.base)
        self._web = WebLocation(base, resolve)

    async def search(self, words: str) -> SearchResult:
        """Return the newest versions of the servers whose names hold one of the words, and whose texts hold all.

        Raises ConnectionLost, HttpStatusError, InvalidResult.
        """
        wanted = words.lower().split()
        found: dict[str, RegistryServer] = {}
        unusable, cursor, seen = 0, "", {""}
        for _ in range(MOST_PAGES):
            page = await self._page(max(wanted, key=len, default=""), cursor)
            for server in page.servers:
                if all(word in _texts(server) for word in wanted):
                    found.setdefault(server.name, server)
            unusable += page.unusable
            cursor = page.cursor
            if cursor in seen or len(found) >= MOST_RESULTS:
                break
            seen.add(cursor)
        servers = tuple(found.values())
        return SearchResult(servers[:MOST_RESULTS], cursor != "" or len(servers) > MOST_RESULTS, unusable)

    async def server(self, name: str, version: str = "") -> RegistryServer:
        """Return one version of a server; without a version the newest.

        Raises UnknownName, ConnectionLost, HttpStatusError, and InvalidResult where the answer is about another one.
        """
        if version and not _VERSION.fullmatch(version):
            raise UnknownName(f"{show_line(version, 80)} is not a version")
        url = f"{self._servers}/{quote(name, safe='')}/versions/{quote(version or 'latest', safe='')}"
        try:
            answer, _ = await self._web.document(url)
        except HttpStatusError as error:
            if error.status != 404:
                raise
            which = f"{name}@{version}" if version else name
            raise UnknownName(f"{self._host} knows no {show_line(which, 300)}") from None
        server = self._read(answer)
        if server is None:
            raise InvalidResult(f"{self._host} answered with something that is not a server")
        if server.name != name or (version not in ("", "latest") and server.version != version):
            other = show_line(f"{server.name}@{server.version}", 300)
            raise InvalidResult(f"{self._host} was asked for {name}@{version or 'latest'}, and answered with {other}")
        return server

    @property
    def _host(self) -> str:
        return show_line(host_of(self.base), 200)

    async def _page(self, word: str, cursor: str) -> _Page:
        query = {"limit": str(PAGE_ITEMS), "version": "latest", "search": word, "cursor": cursor}
        url = f"{self._servers}?{urlencode({key: value for key, value in query.items() if value})}"
        answer, _ = await self._web.document(url)
        if not isinstance(answer, dict) or not isinstance(answer.get("servers"), list):
            raise InvalidResult(f"{self._host} answered with something that is not a list of servers")
        entries = answer["servers"][: 2 * PAGE_ITEMS]
        servers = [server for entry in entries if (server := self._read(entry)) is not None]
        return _Page(tuple(servers), len(entries) - len(servers), _next_cursor(answer.get("metadata")))

    def _read(self, entry: object) -> RegistryServer | None:
        """Read an entry; None if it is not a server."""
        if not isinstance(entry, dict):
            return None
        document = entry.get("server", entry)  # in the oldest API the server itself is the entry
        if not isinstance(document, dict) or not isinstance(name := document.get("name"), str):
            return None
        if not is_server_name(name):
            return None
        state = _official_state(entry, document)
        return RegistryServer(
            registry=self.base,
            name=name,
            title=_text(document.get("title")),
            description=_text(document.get("description")),
            version=_version_of(document),
            status=_text(state.get("status") or document.get("status")) or "active",
            status_message=_text(state.get("statusMessage")),
            published=_date(state.get("publishedAt") or state.get("published_at")),
            document=document,
        )


@dataclass(frozen=True, slots=True)
class _Page:
    servers: tuple[RegistryServer, ...]
    unusable: int
    cursor: str


def _servers_url(base: str) -> str:
    if base.endswith("/servers"):
        return base
    return f"{base}/servers" if _WITH_PATH.search(urlsplit(base).path) else f"{base}/v0.1/servers"


def _next_cursor(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return ""
    cursor = metadata.get("nextCursor") or metadata.get("next_cursor")
    return cursor if isinstance(cursor, str) and len(cursor) <= _CURSOR else ""


def _official_state(entry: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    metas = (entry.get("_meta"), document.get("_meta"))
    states = (meta.get(_OFFICIAL_META) for meta in metas if isinstance(meta, dict))
    return next((state for state in states if isinstance(state, dict)), {})


def _version_of(document: Mapping[str, Any]) -> str:
    detail = document.get("version_detail")
    return _text(document.get("version") or as_dict(detail).get("version"))


def _text(value: object, limit: int = 1000) -> str:
    return value[:limit] if isinstance(value, str) else ""


def _date(value: object) -> datetime | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        date = datetime.fromisoformat(value)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _texts(server: RegistryServer) -> str:
    return "\n".join((server.name, server.title, server.description)).lower()


async def find_server(
    urls: tuple[str, ...], name: str, version: str = "", resolve: ResolveHost = resolve
) -> RegistryServer:
    """Return a server of the first registry that knows it. Raises as `Registry.server`, and ConfigError without any."""
    if not urls:
        raise ConfigError("no registry is configured ([registry] urls is empty); name one with --registry URL")
    unknown: UnknownName | None = None
    for url in urls:
        try:
            return await Registry(url, resolve).server(name, version)
        except UnknownName as error:
            unknown = unknown or error
    assert unknown is not None
    raise unknown


def remarks_on(server: RegistryServer, now: datetime) -> Iterator[str]:
    """Sentences that a person should read before adding the server; safe to show."""
    yield f"the name's owner: {server.proof}"
    if age := server.age(now):
        yield f"version {show_line(server.version, 80)} was published {age}"
    if server.status != "active":
        said = f": {show_line(server.status_message, 300)}" if server.status_message else ""
        yield f"it is {show_line(server.status, 40)}{said}"
