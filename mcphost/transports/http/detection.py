"""Finds out which of the two HTTP transports a URL speaks, by its first answer.

Knows the order in which to try, and when a remembered outcome no longer holds. Refuses to remember it beyond one
connection: that is `mcphost.transports.http.detection`.

Specification: basic/transports, backwards compatibility.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from mcphost.errors import ConnectionLost, HttpStatusError, TransportError
from mcphost.protocol.eras.revisions import Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request, Response
from mcphost.transports.base import Inbound, ProcessReport, Transport

Kind = Literal["http", "sse"]

OLD_SERVER: Final = (400, 404, 405)
"""What a server of 2024-11-05 answers to a POST where it only knows GET. Any other status says something else."""

NO_VERDICT: Final = (403, 408, 425, 429)
"""Refusals of a GET that say nothing about which transport there is: who may come, and when."""


class DetectedTransport:
    """A `Transport` that speaks Streamable HTTP, or what came before it where the first answer shows that.

    ``found`` tells which; None until the first answer. ``learned`` is told too, each time. What is ``remembered`` of
    an earlier connection is tried first, and found out anew where the server denies it; a failure of the network
    denies nothing.
    """

    def __init__(
        self,
        streamable: Callable[[], Transport],
        older: Callable[[], Transport],
        *,
        remembered: Kind | None = None,
        learned: Callable[[Kind], None] = lambda kind: None,
    ) -> None:
        self.found: Kind | None = None
        self._streamable, self._older = streamable, older
        self._learned = learned
        # Streamable HTTP is tried first anyway, so that remembering it changes nothing.
        self._remembered_older = remembered == "sse"
        self._use(older() if self._remembered_older else streamable())
        self._inbound: Inbound | None = None

    async def open(self, inbound: Inbound) -> None:
        """See `Transport.open`."""
        self._inbound = inbound
        if self._remembered_older:
            await self._open_as_remembered(inbound)
        else:
            await self._transport.open(inbound)

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """See `Transport.request`; the first one decides. Where neither works, the error is that of the newer one."""
        if self.found is not None:
            return await self._transport.request(request, headers)
        try:
            response = await self._transport.request(request, headers)
        except HttpStatusError as error:
            if error.status not in OLD_SERVER:
                raise
            return await self._request_the_old_way(request, headers, error)
        self._decide("http")
        return response

    def agreed(self, revision: Revision) -> None:
        """See `Transport.agreed`."""
        self._transport.agreed(revision)

    async def send(self, message: Notification | Response) -> None:
        """See `Transport.send`."""
        await self._transport.send(message)

    async def listen(self) -> None:
        """See `Transport.listen`."""
        await self._transport.listen()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        await self._transport.aclose()

    def report(self) -> ProcessReport:
        """See `Transport.report`."""
        return self._transport.report()

    async def _open_as_remembered(self, inbound: Inbound) -> None:
        try:
            await self._transport.open(inbound)
        except HttpStatusError as error:
            if not _denies_older(error):
                raise
            await self._transport.aclose()
            self._use(self._streamable())
            await self._transport.open(inbound)
        else:
            self._decide("sse")

    async def _request_the_old_way(
        self, request: Request, headers: Mapping[str, str], first: HttpStatusError
    ) -> Response:
        if self._inbound is None:
            raise ConnectionLost("the connection is not open")
        await self._transport.aclose()
        self._use(self._older())
        try:
            await self._transport.open(self._inbound)
        except TransportError as second:
            # One that opened its stream is of that kind, whatever is wrong with it.
            raise (second if isinstance(second, ConnectionLost) and second.lasting else first) from None
        self._decide("sse")
        return await self._transport.request(request, headers)

    def _use(self, transport: Transport) -> None:
        self._transport = transport
        self.own_stream = transport.own_stream

    def _decide(self, kind: Kind) -> None:
        self.found = kind
        self._learned(kind)


def _denies_older(error: HttpStatusError) -> bool:
    """Does this answer to a GET say that there is no server of 2024-11-05? A success without its event does, too."""
    return 200 <= error.status < 300 or (400 <= error.status < 500 and error.status not in NO_VERDICT)


FILE: Final = "transports"

KEPT: Final = 500
"""URLs in the file, the latest; more than anybody uses, and few enough to be read at every start."""


class DetectionStore(Protocol):
    """State files. Every call may take as long as a disk does."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none."""

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file by what ``change`` makes of it; nobody else writes meanwhile."""


class DetectedTransports:
    """What was found out, kept in ``store`` (None: for this run only).

    ``report`` takes a sentence for the user, in whatever thread: nothing else comes of a file that cannot be used.
    """

    def __init__(self, store: DetectionStore | None, report: Callable[[str], None]) -> None:
        self._store, self._report = store, report
        self._kinds: dict[str, Kind] = {}
        self._loaded = store is None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read the file, the first time. Waits for the disk: call it in a thread."""
        with self._lock:
            if self._loaded or self._store is None:
                return
            self._loaded = True
            try:
                known = _kinds(self._store.read(FILE))
            except Exception as error:
                self._report(f"which transport each URL speaks could not be read, and is found out anew: {error}")
                return
            self._kinds = {**known, **self._kinds}

    def of(self, url: str) -> Kind | None:
        """What this URL spoke the last time, as far as is loaded."""
        return self._kinds.get(_key(url))

    def learn(self, url: str, kind: Kind) -> None:
        """Keep what this URL speaks; the file follows in a thread. Call it in the event loop."""
        key = _key(url)
        if self._kinds.get(key) == kind:
            return
        self._kinds[key] = kind
        if self._store is not None:
            asyncio.get_running_loop().run_in_executor(None, self._save, self._store, key)

    def forget(self, url: str) -> bool:
        """Forget what this URL speaks, as far as is loaded; whether anything was known. Call it in the event loop."""
        key = _key(url)
        if self._kinds.pop(key, None) is None:
            return False
        if self._store is not None:
            asyncio.get_running_loop().run_in_executor(None, self._drop, self._store, key)
        return True

    def _drop(self, store: DetectionStore, key: str) -> None:
        try:
            store.update(FILE, lambda data: {"urls": {k: kind for k, kind in _kinds(data).items() if k != key}})
        except Exception as error:
            self._report(f"which transport a URL speaks could not be forgotten: {error}")

    def _save(self, store: DetectionStore, key: str) -> None:
        try:
            store.update(FILE, lambda data: _with(data, key, self._kinds[key]))
        except Exception as error:
            self._report(f"which transport a URL speaks could not be saved, and is found out again: {error}")


def _key(url: str) -> str:
    """The place for people and a digest for the rest: a path or a query may hold a secret."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place} {sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _kinds(data: Mapping[str, Any]) -> dict[str, Kind]:
    """The verdicts of a state file; whatever else stands in it counts for nothing."""
    urls = data.get("urls")
    return {} if not isinstance(urls, dict) else {key: kind for key, kind in urls.items() if kind in ("http", "sse")}


def _with(data: Mapping[str, Any], key: str, kind: Kind) -> dict[str, Any]:
    others = [(known, each) for known, each in _kinds(data).items() if known != key]
    return {"urls": dict([*others, (key, kind)][-KEPT:])}
