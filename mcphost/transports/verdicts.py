"""Which of the two HTTP transports each URL was found to speak, in this run and in earlier ones.

Knows verdicts by URL, and the state file that holds them. Refuses to know how a verdict is found and where the file
lies. Deleting the file forgets all of them: each URL is then found out once more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from mcphost.transports.detection import Kind

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
