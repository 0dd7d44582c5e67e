"""Keeps results of a modern server for as long as it says that they stay fresh.

A cache belongs to one session, and so to one authorization context: what it holds, ``public`` or ``private``, is never
used in another, and all of it goes when the credential or the declared capabilities change. Nothing in here waits or
fetches; what went stale is fetched when it is needed next.

Specification: 2026-07-28 server/utilities/caching.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from mcphost.json_values import as_text, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.json_size import json_size
from mcphost.protocol.limits import CACHE_BYTES, CACHE_ENTRIES
from mcphost.protocol.models.freshness import Freshness, seconds_to_live

READ: Final = "resources/read"
GET_SKILL: Final = "skills/get"

_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": (
        "resources/list",
        "resources/templates/list",
        "skills/list",
        "skills/get",
        "resources/directory/read",
    ),
}
"""The methods whose results a change of each list makes stale."""

_RETRY_PARAMS: Final = frozenset({"inputResponses", "requestState"})


@dataclass(frozen=True, slots=True)
class CachedResult:
    """A result, and how fresh it is."""

    result: Mapping[str, Any]
    freshness: Freshness


@dataclass(eq=False, slots=True)
class Fetch:
    """A request under way whose result may be kept. ``outdated``: it was invalidated before the result came."""

    method: str
    params: Mapping[str, Any]
    outdated: bool = field(default=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, canonical(self.params)


@dataclass(slots=True)
class _Entry:
    method: str
    uri: str
    result: Mapping[str, Any]
    received: float
    until: float
    size: int


class ResultCache:
    """The results of one session. ``clock`` gives seconds and never goes back."""

    def __init__(
        self, clock: Callable[[], float], *, entries: int = CACHE_ENTRIES, most_bytes: int = CACHE_BYTES
    ) -> None:
        self._clock, self._most, self._most_bytes = clock, entries, most_bytes
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._fetches: set[Fetch] = set()
        self.bytes = 0
        """Approximate size of the cached results."""

    def __len__(self) -> int:
        return len(self._entries)

    def fresh(self, method: str, params: Mapping[str, Any]) -> CachedResult | None:
        """The kept result of this very request, if it is fresh."""
        found = self._entries.get((method, canonical(params)))
        if found is None or self._clock() >= found.until:
            return None
        return CachedResult(found.result, Freshness(found.received, found.until, cached=True))

    def stale(self, method: str, params: Mapping[str, Any], problem: str) -> CachedResult | None:
        """The kept result of this very request, fresh or not, for use while ``problem`` prevents fetching it."""
        found = self._entries.get((method, canonical(params)))
        if found is None:
            return None
        return CachedResult(found.result, Freshness(found.received, found.until, cached=True, problem=problem))

    def begin(self, method: str, params: Mapping[str, Any]) -> Fetch:
        """A request is about to be sent. Pass what this returns to `keep` or `drop`."""
        fetch = Fetch(method, params)
        self._fetches.add(fetch)
        return fetch

    def drop(self, fetch: Fetch) -> None:
        """The request failed, or its result may not be kept."""
        self._fetches.discard(fetch)

    def keep(self, fetch: Fetch, result: Mapping[str, Any]) -> Freshness:
        """Keep the result of a request, unless it was invalidated meanwhile; returns how fresh it is."""
        self.drop(fetch)
        received, seconds = self._clock(), seconds_to_live(result.get("ttlMs"))
        if fetch.outdated:
            return Freshness(received, received)
        self._remove(fetch.key)
        if seconds and _RETRY_PARAMS.isdisjoint(fetch.params):
            self._add(fetch, result, received, received + seconds)
        return Freshness(received, received + seconds)

    def list_changed(self, kind: str) -> None:
        """The list of ``tools``, ``prompts`` or ``resources`` changed."""
        methods = _LISTS.get(kind, ())
        self._invalidate(lambda method, uri: method in methods)

    def resource_updated(self, uri: str) -> None:
        """A resource changed, and so did those above it, and the skill whose file it is."""
        self._invalidate(
            lambda method, kept: (
                (method == READ and lies_below(uri, kept))
                or (method == GET_SKILL and lies_below(uri, kept.rpartition("/")[0]))
            )
        )

    def discard(self, method: str) -> None:
        """Forget all results of a method: pages whose cursors are no longer valid."""
        for key in [key for key, entry in self._entries.items() if entry.method == method]:
            self._remove(key)
        for fetch in self._fetches:
            fetch.outdated = fetch.outdated or fetch.method == method

    def clear(self) -> None:
        """Empty the cache: the credential or the declared capabilities changed."""
        self._entries.clear()
        self.bytes = 0
        for fetch in self._fetches:
            fetch.outdated = True

    def _invalidate(self, concerns: Callable[[str, str], bool]) -> None:
        for entry in self._entries.values():
            if concerns(entry.method, entry.uri):
                entry.until = entry.received
        for fetch in self._fetches:
            fetch.outdated = fetch.outdated or concerns(fetch.method, _uri(fetch.params))

    def _add(self, fetch: Fetch, result: Mapping[str, Any], received: float, until: float) -> None:
        size = json_size(result) + len(fetch.key[1])
        if size > self._most_bytes // 4:  # one result must not push out all the others
            return
        self._entries[fetch.key] = _Entry(fetch.method, _uri(fetch.params), result, received, until, size)
        self.bytes += size
        while len(self._entries) > self._most or self.bytes > self._most_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: tuple[str, str]) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self.bytes -= found.size


def lies_below(uri: str, ancestor: str) -> bool:
    """True if ``uri`` is this resource, or one below it."""
    return uri == ancestor or uri.startswith(ancestor.rstrip("/") + "/")


def _uri(params: Mapping[str, Any]) -> str:
    return as_text(params.get("uri"))
