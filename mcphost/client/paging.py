"""Reads paginated lists, within limits whatever the server does. Cursors are opaque.

Specification: server/utilities/pagination.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from types import NoneType
from typing import Any, Generic, TypeVar

from mcphost.errors import InvalidResult, McphostError, ServerError
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.limits import LIST_ITEMS, LIST_PAGES, LIST_SECONDS
from mcphost.protocol.models.base import Wire, unread_words
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.time_slices import TimeSlice

Item = TypeVar("Item")
FetchPage = Callable[[str | None], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ListLimits:
    """When to stop reading a list: at whichever limit is reached first."""

    pages: int = LIST_PAGES
    items: int = LIST_ITEMS
    seconds: float = LIST_SECONDS


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item that cannot be used: the name it gives itself, and why."""

    name: str
    reason: str
    by_configuration: bool = False
    """True if the user's configuration excludes it."""


@dataclass(slots=True)
class ListedItems(Generic[Item]):
    """The items of a list, usable in any case. ``notice`` says what was wrong with the list, if anything."""

    items: list[Item] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    notice: str | None = None
    pages: int = 0
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """Violations of the specification in items that could be read, each with the names of those items."""
    freshness: Freshness | None = None
    """Of its stalest page, if whoever fetched them says."""


async def read_list(
    fetch: FetchPage,
    key: str,
    read: Callable[[object], Item],
    limits: ListLimits,
    now: Callable[[], float],
    restart: Callable[[], None] = lambda: None,
) -> ListedItems[Item]:
    """Read all pages of a list with its items under ``key``. Raises what ``fetch`` raises for the first page.

    If the server refuses its own cursor (-32602), ``restart`` is called and the list is read again, once. A later page
    that fails ends the list with a notice.
    """
    try:
        return await _read_once(fetch, key, read, limits, now)
    except _CursorRefused:
        restart()
        listed = await _read_once(fetch, key, read, limits, now, strict=False)
        listed.notice = listed.notice or "the server refused its own cursor once; the list was read again"
        return listed


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
    listed: ListedItems[Item] = ListedItems()
    seen: set[str] = set()
    cursor: str | None = None
    first: Mapping[str, Any] = {}
    until = now() + limits.seconds
    while True:
        page = await _page(fetch, cursor, key, listed, strict)
        if page is None:
            return listed
        first = first or page
        if cursor == "" and page.get(key) in (None, first.get(key)):
            # A cursor may be any text, but servers that cannot leave a member out write this one on their last page,
            # and take it for none, or refuse it.
            listed.remarks["nextCursor is an empty text where there are no more pages"] = []
            return listed
        await _take(page.get(key) or [], read, listed, limits.items)
        if page.get(key) is None:
            listed.notice = listed.notice or unread_words(page, (key, "nextCursor"), f"has no {key}") or None
        if page.get(key, []) is None:
            listed.remarks.setdefault(f"{key} is null, and counts as absent", [])
        if listed.notice or page.get("nextCursor") is None:
            return listed
        cursor = page["nextCursor"]
        listed.notice = _why_stop(cursor, seen, listed, limits, now() > until)
        if listed.notice:
            return listed
        seen.add(cursor)


async def _page(
    fetch: FetchPage, cursor: str | None, key: str, listed: ListedItems[Item], strict: bool
) -> Mapping[str, Any] | None:
    try:
        page = await fetch(cursor)
        if type(page.get(key, [])) not in (list, NoneType):
            raise InvalidResult(f"{key} is not an array")
    except McphostError as error:
        if cursor is None:
            raise
        refused = isinstance(error, ServerError) and error.code == ErrorCode.INVALID_PARAMS
        if refused and cursor == "":
            return {}
        if strict and refused:
            raise _CursorRefused from None
        listed.notice = f"page {listed.pages + 1} failed: {error}"
        return None
    listed.pages += 1
    return page


async def _take(items: list[object], read: Callable[[object], Item], listed: ListedItems[Item], most: int) -> None:
    left, time_slice = most - _count(listed), TimeSlice()
    for item in items[:left]:
        await time_slice.pause_if_over()
        names = (as_dict(item).get(member) for member in ("name", "uri"))
        named = next((name for name in names if isinstance(name, str)), "unnamed")
        try:
            found = read(item)
        except McphostError as error:
            listed.rejected.append(Rejected(named, str(error)))
            continue
        listed.items.append(found)
        for remark in found.remarks if isinstance(found, Wire) else ():
            listed.remarks.setdefault(remark, []).append(named)
    if len(items) > left:
        listed.notice = f"list cut off after {most} items"


def _count(listed: ListedItems[Item]) -> int:
    return len(listed.items) + len(listed.rejected)


def _why_stop(cursor: object, seen: set[str], listed: ListedItems[Item], limits: ListLimits, late: bool) -> str | None:
    if not isinstance(cursor, str):
        return "list cut off: the next cursor is not a string"
    if cursor in seen:
        return "list cut off: the server gave the same cursor twice"
    if listed.pages >= limits.pages:
        return f"list cut off after {limits.pages} pages"
    if _count(listed) >= limits.items:
        return f"list cut off after {limits.items} items"
    return f"list cut off after {limits.seconds:g} s" if late else None
