"""Reading a list page by page, with an end whatever the server does.

Knows cursors and bounds; the client fetches a page when asked. A cursor is opaque: sent back as it came, compared,
never read.

Specification: server/utilities/pagination.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mcphost.errors import InvalidResult, McphostError, ServerError
from mcphost.protocol.limits import LIST_ITEMS, LIST_PAGES, LIST_SECONDS
from mcphost.protocol.wire.jsonrpc import ErrorCode

Item = TypeVar("Item")
FetchPage = Callable[[str | None], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ListLimits:
    """When to stop reading a list: whichever comes first."""

    pages: int = LIST_PAGES
    items: int = LIST_ITEMS
    seconds: float = LIST_SECONDS


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item that could not be used, by the name it gives itself, and why."""

    name: str
    reason: str
    by_configuration: bool = False
    """The user's own configuration excludes it."""


@dataclass(slots=True)
class ListedItems(Generic[Item]):
    """What a list held. ``notice`` says what was odd about it; what was read stays usable."""

    items: list[Item] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    notice: str | None = None
    pages: int = 0


async def read_list(
    fetch: FetchPage, key: str, read: Callable[[object], Item], limits: ListLimits, now: Callable[[], float]
) -> ListedItems[Item]:
    """All pages of a list whose items stand under ``key``.

    A cursor that the server refuses (-32602) starts the list over, once. A later page that fails ends the list with a
    notice; the first page's failure is the caller's. Raises what ``fetch`` raises for the first page.
    """
    try:
        return await _read_once(fetch, key, read, limits, now)
    except _CursorRefused:
        listing = await _read_once(fetch, key, read, limits, now, strict=False)
        listing.notice = listing.notice or "the server refused its own cursor once; the list was read again"
        return listing


class _CursorRefused(Exception):
    pass


async def _read_once(
    fetch: FetchPage,
    key: str,
    read: Callable[[object], Item],
    limits: ListLimits,
    now: Callable[[], float],
    *,
    strict: bool = True,
) -> ListedItems[Item]:
    listing: ListedItems[Item] = ListedItems()
    seen: set[str] = set()
    cursor: str | None = None
    until = now() + limits.seconds
    while True:
        page = await _page(fetch, cursor, key, listing, strict)
        if page is None:
            return listing
        _take(page.get(key, []), read, listing, limits.items)
        if listing.notice or page.get("nextCursor") is None:
            return listing
        cursor = page["nextCursor"]
        listing.notice = _why_stop(cursor, seen, listing, limits, now() > until)
        if listing.notice:
            return listing
        seen.add(cursor)


async def _page(
    fetch: FetchPage, cursor: str | None, key: str, listing: ListedItems[Item], strict: bool
) -> Mapping[str, Any] | None:
    try:
        page = await fetch(cursor)
        if type(page.get(key, [])) is not list:
            raise InvalidResult(f"{key} is not an array")
    except McphostError as error:
        if cursor is None:
            raise
        if strict and isinstance(error, ServerError) and error.code == ErrorCode.INVALID_PARAMS:
            raise _CursorRefused from None
        listing.notice = f"page {listing.pages + 1} failed: {error}"
        return None
    listing.pages += 1
    return page


def _take(items: list[object], read: Callable[[object], Item], listing: ListedItems[Item], most: int) -> None:
    room = most - _count(listing)
    for item in items[:room]:
        try:
            listing.items.append(read(item))
        except McphostError as error:
            name = item.get("name") if isinstance(item, dict) else None
            listing.rejected.append(Rejected(name if isinstance(name, str) else "unnamed", str(error)))
    if len(items) > room:
        listing.notice = f"list cut off after {most} items"


def _count(listing: ListedItems[Item]) -> int:
    return len(listing.items) + len(listing.rejected)


def _why_stop(cursor: object, seen: set[str], listing: ListedItems[Item], limits: ListLimits, late: bool) -> str | None:
    if not isinstance(cursor, str):
        return "list cut off: the next cursor is not a string"
    if cursor in seen:
        return "list cut off: the server gave the same cursor twice"
    if listing.pages >= limits.pages:
        return f"list cut off after {limits.pages} pages"
    if _count(listing) >= limits.items:
        return f"list cut off after {limits.items} items"
    return f"list cut off after {limits.seconds:g} s" if late else None
