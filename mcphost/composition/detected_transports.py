"""Remembers, over runs, which transport each URL was found to speak."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.host.state_store import StateStore
from mcphost.transports.http.detection import Kind

FILE: Final = "transports"

KEPT: Final = 500
"""URLs in the file, the latest; more than anybody uses, and few enough to be read at every start."""


class DetectedTransports:
    """The detected transports, kept in ``store`` (None: for this run only).

    ``report`` takes a sentence for the user, in any thread: a file that cannot be used has no other effect.
    """

    def __init__(self, store: StateStore | None, report: Callable[[str], None]) -> None:
        self._store, self._report = store, report
        self._kinds: dict[str, Kind] = {}
        self._loaded = store is None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read the file if that was not done yet. Blocks on the disk: call it in a thread."""
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
        """What this URL spoke the last time; None if that is unknown or not loaded yet."""
        return self._kinds.get(_key(url))

    def learn(self, url: str, kind: Kind) -> None:
        """Keep what this URL speaks; a thread writes the file. Call it in the event loop."""
        key = _key(url)
        if self._kinds.get(key) == kind:
            return
        self._kinds[key] = kind
        if self._store is not None:
            asyncio.get_running_loop().run_in_executor(None, self._save, self._store, key)

    def forget(self, url: str) -> bool:
        """Forget what this URL speaks; return whether that was known. Call it in the event loop."""
        key = _key(url)
        if self._kinds.pop(key, None) is None:
            return False
        if self._store is not None:
            asyncio.get_running_loop().run_in_executor(None, self._drop, self._store, key)
        return True

    def _drop(self, store: StateStore, key: str) -> None:
        try:
            store.update(FILE, lambda data: {"urls": {k: kind for k, kind in _kinds(data).items() if k != key}})
        except Exception as error:
            self._report(f"which transport a URL speaks could not be forgotten: {error}")

    def _save(self, store: StateStore, key: str) -> None:
        try:
            store.update(FILE, lambda data: _with(data, key, self._kinds[key]))
        except Exception as error:
            self._report(f"which transport a URL speaks could not be saved, and is found out again: {error}")


def _key(url: str) -> str:
    """The host, readable, and a digest of the URL, whose path or query may hold a secret."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place} {sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _kinds(data: Mapping[str, Any]) -> dict[str, Kind]:
    """The detected transports in a state file; anything else in it is ignored."""
    urls = data.get("urls")
    return {} if not isinstance(urls, dict) else {key: kind for key, kind in urls.items() if kind in ("http", "sse")}


def _with(data: Mapping[str, Any], key: str, kind: Kind) -> dict[str, Any]:
    others = [(known, each) for known, each in _kinds(data).items() if known != key]
    return {"urls": dict([*others, (key, kind)][-KEPT:])}
