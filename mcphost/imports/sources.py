"""Says what a word of ``mcphost add`` means, and finds the server that it names.

Only addresses are called that the user typed, those of a registry for a name, and what a document found there names.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from mcphost.config import home_folder
from mcphost.config.fields import reason_against_url, server_name
from mcphost.config.files import read_regular
from mcphost.errors import ConfigError, McphostError, UnknownName, UsageError
from mcphost.imports.bundles import Machine, copy_bundle, open_bundle, private_file, read_bundle, unpack
from mcphost.imports.cards import (
    CARD_SECONDS,
    CATALOG,
    CATALOG_PATH,
    CatalogReader,
    card_at,
    card_url,
    looks_like_card,
    looks_like_catalog,
    read_card,
    without_secrets,
)
from mcphost.imports.documents import MAX_BYTES, read_document
from mcphost.imports.found import FoundServer, Origin, digest_of, legal_name
from mcphost.imports.inputs import inputs_in
from mcphost.imports.links import is_link, read_link
from mcphost.imports.registry import find_server, is_server_name, remarks_on
from mcphost.imports.server_json import BundleLink, ServerOffer, read_server_json
from mcphost.imports.web import WebLocation
from mcphost.lazy_dataclass import dataclass
from mcphost.net.addresses import literal_address
from mcphost.net.guarded import ResolveHost, resolve
from mcphost.protocol.display import show_line
from mcphost.protocol.urls import is_loopback

_BUNDLES: Final = (".mcpb", ".dxt")
_DOCUMENTS: Final = (".json", "/server-card")
_GENERIC: Final = frozenset({"mcp", "api", "www"})
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class AddKind(Enum):
    """Kinds of things that `mcphost add` takes; the values are their names for people."""

    PROGRAM = "a command"
    LINK = "a link"
    ADDRESS = "an MCP server's address"
    SITE = "a site, which may have a catalog of servers"
    WEB_DOCUMENT = "a document on the web"
    WEB_BUNDLE = "a bundle on the web"
    FILE = "a file"
    REGISTERED = "a server in a registry"


@dataclass(frozen=True, slots=True)
class AddRequest:
    """The user's words: one that names a server, or a name and a program, and options."""

    word: str
    program: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    transport: str = ""
    package: str = ""
    """Which offer to take where there are several: ``remote``, ``npm``, …; empty: the best."""
    registries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedAdd:
    """The servers that a request names. ``remarks`` are sentences for the user, safe to show.

    ``unpacked`` are the folders of bundles that were unpacked for it; `mcphost.imports.bundles.discard` those that are
    not wanted.
    """

    servers: tuple[FoundServer, ...]
    remarks: tuple[str, ...] = ()
    unpacked: tuple[Path, ...] = ()


def kind_of_add(request: AddRequest) -> AddKind:
    """Return the kind of thing that the word names. Raises UsageError if that is not clear."""
    word = request.word
    if request.program:
        return AddKind.PROGRAM
    if is_link(word):
        return AddKind.LINK
    if word.lower().startswith(("https://", "http://")):
        return _kind_of_url(word)
    if _is_path(word):
        return AddKind.FILE
    if is_server_name(word.partition("@")[0]):
        return AddKind.REGISTERED
    if _SCHEME.match(word):
        raise UsageError("mcphost knows no such link; it takes those of VS Code and Cursor")
    what = show_line(word, 100)
    raise UsageError(
        f"{what} is not a URL, a file, a link or a name in a registry (such as io.github.ada/weather); "
        f"for a program: mcphost add NAME -- COMMAND; to look for a server: mcphost search {what}"
    )


def _kind_of_url(url: str) -> AddKind:
    if reason := _reason_against(url):
        raise UsageError(f"the URL {reason}")
    path = urlsplit(url).path.lower()
    if path.endswith(_BUNDLES):
        return AddKind.WEB_BUNDLE
    if path.endswith(_DOCUMENTS):
        return AddKind.WEB_DOCUMENT
    return AddKind.SITE if path in ("", "/") else AddKind.ADDRESS


def _reason_against(url: str) -> str | None:
    """As `reason_against_url`, but a user name is taken: it becomes a header."""
    reason = reason_against_url(url)
    return None if reason and "user name" in reason else reason


def _is_path(word: str) -> bool:
    if word.startswith(("./", "../", "/", "~")) or word.lower().endswith((*_BUNDLES, ".json")):
        return True
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


class ServerSources:
    """Finds servers for `AddRequest`. Unpacks bundles into ``bundles`` if it ``unpacks``."""

    def __init__(
        self, machine: Machine, bundles: Path, resolve: ResolveHost = resolve, *, unpacks: bool = True
    ) -> None:
        self._machine, self._bundles, self._resolve, self._unpacks = machine, bundles, resolve, unpacks

    async def find(self, request: AddRequest) -> ResolvedAdd:
        """Find what the request names. Raises UsageError, and the errors of files and addresses."""
        match kind_of_add(request):
            case AddKind.PROGRAM:
                found = ResolvedAdd((_program(request),))
            case AddKind.LINK:
                found = ResolvedAdd(tuple(read_link(request.word)))
            case AddKind.ADDRESS:
                found = await self._address(request.word)
            case AddKind.SITE:
                found = await self._site(request.word)
            case AddKind.WEB_DOCUMENT:
                found = await self._web_document(request)
            case AddKind.WEB_BUNDLE:
                found = await self._download(request.word, request.word)
            case AddKind.FILE:
                found = await self._file(request)
            case AddKind.REGISTERED:
                found = await self._registered(request)
        return replace(found, servers=tuple(with_request(server, request) for server in found.servers))

    async def _address(self, url: str) -> ResolvedAdd:
        """The address as typed, with what its card says of headers to send."""
        server = _remote(url)
        offers = await card_at(url, self._resolve)
        if not offers:
            return ResolvedAdd((server,))
        card = offers[0].server
        headers = card.table.get("http_headers", {})
        table = {**server.table, **({"http_headers": headers} if headers else {})}
        used = set(inputs_in(table))
        inputs = tuple(each for each in card.inputs if each.id in used)
        described = replace(server, table=table, inputs=inputs, description=card.description)
        said = f"it has a card at {show_line(card_url(url), 300)}; what counts is what it says once it is opened"
        return ResolvedAdd((described,), (said,))

    async def _site(self, url: str) -> ResolvedAdd:
        """The servers of the site's catalog; without one, the address itself."""
        place = without_secrets(url).rstrip("/") + CATALOG_PATH
        try:
            web = WebLocation(url, self._resolve)
            document, _ = await web.document(place, f"{CATALOG}, application/json", seconds=CARD_SECONDS)
            servers = await CatalogReader(place, self._resolve).read(document)
        except McphostError:
            servers = ()
        if servers:
            return ResolvedAdd(servers, (f"from the catalog at {show_line(place, 300)}",))
        return await self._address(url)

    async def _web_document(self, request: AddRequest) -> ResolvedAdd:
        document, _ = await WebLocation(request.word, self._resolve).document(request.word)
        return await self._document(document, without_secrets(request.word), request, home=request.word)

    async def _file(self, request: AddRequest) -> ResolvedAdd:
        path = await asyncio.to_thread(lambda: Path(os.path.expanduser(request.word)).absolute())
        if await asyncio.to_thread(_is_archive, path):
            archive = await asyncio.to_thread(copy_bundle, path, self._bundles)
            return await self._bundle(archive, str(path))
        document = await asyncio.to_thread(_read_json, path)
        return await self._document(document, str(path), request, home="")

    async def _document(self, document: object, place: str, request: AddRequest, *, home: str) -> ResolvedAdd:
        """A catalog, a card, a ``server.json``, or a registry's answer that holds one."""
        if looks_like_catalog(document):
            if not home:
                raise ConfigError("is a catalog; give its address instead of a file")
            return ResolvedAdd(await CatalogReader(place, self._resolve).read(document))
        inner = document.get("server", document) if isinstance(document, Mapping) else document
        if looks_like_card(inner):
            return _chosen(read_card(inner, place), request.package)
        offers = read_server_json(inner, Origin("server.json", place, "", ""), self._machine.has_program)
        return await self._offered(offers, request, home)

    async def _registered(self, request: AddRequest) -> ResolvedAdd:
        name, _, version = request.word.partition("@")
        server = await find_server(request.registries, name, version, self._resolve)
        remarks = tuple(remarks_on(server, datetime.now(UTC)))
        if server.status.lower() == "deleted":
            raise UnknownName(f"{name} was taken out of the registry{_said(server.status_message)}")
        origin = Origin("registry", server.registry, "", "")
        offers = read_server_json(server.document, origin, self._machine.has_program)
        found = await self._offered(offers, request, server.registry)
        return replace(found, remarks=(*remarks, *found.remarks))

    async def _offered(self, offers: Sequence[ServerOffer], request: AddRequest, home: str) -> ResolvedAdd:
        """The offer that the user wants, or the best; downloaded, if it is a bundle."""
        chosen = _chosen(offers, request.package)
        taken = next(offer for offer in offers if offer.server is chosen.servers[0])
        if taken.bundle is None or taken.server.refusal:
            return chosen
        found = await self._download(taken.bundle.url, home or taken.bundle.url, taken.bundle)
        servers = tuple(_as_offered(server, taken.server) for server in found.servers)
        return replace(found, servers=servers, remarks=(*chosen.remarks, *found.remarks))

    async def _download(self, url: str, home: str, link: BundleLink | None = None) -> ResolvedAdd:
        archive = await asyncio.to_thread(private_file, self._bundles)
        try:
            came_from = await WebLocation(home, self._resolve).download(url, archive.write)
        except BaseException:
            archive.close()
            raise
        found = await self._bundle(archive, without_secrets(url), link.sha256 if link else "")
        remark = f"downloaded from {show_line(without_secrets(came_from), 300)}"
        checked = "; its SHA-256 is the announced one" if link else "; no SHA-256 was announced for it"
        return replace(found, remarks=(*found.remarks, remark + checked))

    async def _bundle(self, archive: IO[bytes], place: str, sha256: str = "") -> ResolvedAdd:
        with archive:
            try:
                bundle = await asyncio.to_thread(open_bundle, archive, sha256)
            except ConfigError as error:
                raise ConfigError(f"{show_line(place, 300)}: {error.message}") from None
            server = read_bundle(bundle, self._bundles, place, self._machine)
            if server.refusal or not self._unpacks:
                return ResolvedAdd((server,))
            fresh = not bundle.folder(self._bundles).exists()
            folder = await asyncio.to_thread(unpack, bundle, self._bundles)
        return ResolvedAdd((server,), (), (folder,) if fresh else ())


def with_request(server: FoundServer, request: AddRequest) -> FoundServer:
    """The server with the variables, headers and transport that the user gave. Raises UsageError."""
    if server.refusal:
        return server
    table = dict(server.table)
    for given, key, flag in ((request.env, "env", "--env"), (request.headers, "http_headers", "--header")):
        if given and (key == "env") != ("command" in table):
            other = "an address" if key == "env" else "a program"
            raise UsageError(f"{flag}: {server.name} is {other}")
        if given:
            table[key] = {**table.get(key, {}), **given}
    if server.origin.scope == "oci" and request.env:
        table["args"] = list(_passed_into_container(table["args"], request.env))
    if request.transport:
        table["transport"] = request.transport
    used = set(inputs_in(table))
    return replace(server, table=table, inputs=tuple(each for each in server.inputs if each.id in used))


def _passed_into_container(args: Sequence[str], names: Iterable[str]) -> Iterator[str]:
    start = ["run", "--rm", "-i"]
    yield from start
    there = {word for flag, word in pairwise(args) if flag == "-e"}
    for name in names:
        if name not in there:
            yield from ("-e", name)
    yield from args[len(start) :]


def _program(request: AddRequest) -> FoundServer:
    try:
        name = server_name(request.word)
    except ValueError as error:
        raise UsageError(f"{show_line(request.word, 100)} cannot be its name: {error}") from None
    table: dict[str, Any] = {"command": request.program[0], "args": list(request.program[1:])}
    table = {key: value for key, value in table.items() if value}
    return FoundServer(name, Origin("command line", "", name, digest_of(table)), table)


def _remote(url: str) -> FoundServer:
    name = _name_of(url)
    return FoundServer(name, Origin("command line", without_secrets(url), name, digest_of(url)), {"url": url})


def _name_of(url: str) -> str:
    """``stripe`` for ``https://mcp.stripe.com/v1``, ``local-8000`` for ``http://127.0.0.1:8000/mcp``."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removesuffix(".")
    if is_loopback(host) and not host.endswith(".localhost"):
        return f"local-{parts.port}" if parts.port else "local"
    labels = host.split(".")
    if literal_address(host) is None:
        while len(labels) > 2 and labels[0] in _GENERIC:
            labels.pop(0)
        return legal_name(labels[0] if labels[0] not in _GENERIC else ".".join(labels))
    return legal_name(host)


def _chosen(offers: Sequence[ServerOffer], wanted: str) -> ResolvedAdd:
    """Return the best offer, or the best of the wanted kind, and remarks about the others.

    Raises ConfigError, UsageError.
    """
    if not offers:
        raise ConfigError("it offers no package and no address")
    fitting = [offer for offer in offers if wanted in ("", offer.kind)]
    if not fitting:
        kinds = ", ".join(dict.fromkeys(show_line(offer.kind, 20) for offer in offers))
        raise UsageError(f"--package {show_line(wanted, 20)}: it is offered as {kinds}")
    taken, *_ = fitting
    others = [offer for offer in offers if offer is not taken and not offer.server.refusal]
    if wanted or not others or taken.server.refusal:
        return ResolvedAdd((taken.server,))
    named = ", ".join(f"{offer.kind} ({show_line(offer.label, 80)})" for offer in others[:8])
    said = f"it is also offered as {named}; to choose: --package {others[0].kind}"
    return ResolvedAdd((taken.server,), (said,))


def _as_offered(server: FoundServer, offered: FoundServer) -> FoundServer:
    """A bundle's server under the name, origin and notes of the offer that led to it."""
    origin = replace(offered.origin, digest=server.origin.digest)
    return replace(server, name=offered.name, origin=origin, notes=(*offered.notes, *server.notes))


def _said(text: str) -> str:
    return f": {show_line(text, 300)}" if text else ""


def _is_archive(path: Path) -> bool:
    if path.name.lower().endswith(_BUNDLES):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def _read_json(path: Path) -> object:
    try:
        content = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        raise ConfigError("there is no such file", path=path) from None
    try:
        document = read_document(content, "json")
    except ConfigError as error:
        raise ConfigError(error.message, path=path) from None
    if isinstance(document, Mapping) and not {"name", "server", "entries"} & document.keys():
        raise ConfigError("is not a server.json; for another host's configuration: mcphost import FILE", path=path)
    return document


def this_machine() -> Machine:
    """Those of this process."""
    return Machine(home_folder() or Path("/"), sys.platform)
