"""Remembers, over runs, which transport each URL was found to speak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.config.state import StateStore
from mcphost.host.remembered import RememberedByServer, server_digest
from mcphost.transports.http.detection import Kind

FILE: Final = "transports"


class DetectedTransports:
    """The detected transports, kept in ``store`` (None: for this run only).

    ``report`` takes a sentence for the user.
    """

    def __init__(self, store: StateStore | None, report: Callable[[str], None]) -> None:
        kind: Any = Kind  # a type form, but not a type
        self._remembered: RememberedByServer[Kind] = RememberedByServer(
            store, FILE, "urls", kind, report, "which transport a URL speaks"
        )

    async def load(self) -> None:
        """Read the file if that was not done yet."""
        await self._remembered.load()

    def get(self, url: str) -> Kind | None:
        """Return what this URL spoke the last time; None if that is unknown or not loaded yet."""
        return self._remembered.get(_key(url))

    def learn(self, url: str, kind: Kind) -> None:
        """Keep what this URL speaks; a thread writes the file."""
        if self._remembered.get(_key(url)) != kind:
            self._remembered.learn(_key(url), kind)

    def forget(self, url: str) -> bool:
        """Forget what this URL speaks; return whether that was known."""
        return self._remembered.forget(_key(url)) is not None


def _key(url: str) -> str:
    """The host, readable, and a digest of the URL, whose path or query may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]} {server_digest(url)}"
