from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.client.paging import ListedItems, ListLimits, read_list
from mcphost.errors import ConnectionLost, InvalidResult, McphostError, RequestTimeout, ServerError
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE
from mcphost.protocol.models.tools import Tool
from tests.client.conftest import Connect, Draw, hello

Page = Mapping[str, Any] | McphostError
REFUSED = ServerError(-32602, "no such cursor")


def page(*names: str, **more: Any) -> dict[str, Any]:
    return {"tools": [{"name": name} for name in names], **more}


async def read(
    *pages: Page, now: list[float] | None = None, **limits: Any
) -> tuple[ListedItems[Tool], list[str | None]]:
    """The listing of these pages in turn, the last for ever, and the cursors that were sent."""
    cursors: list[str | None] = []

    async def fetch(cursor: str | None) -> Mapping[str, Any]:
        cursors.append(cursor)
        given = pages[min(len(cursors), len(pages)) - 1]
        if isinstance(given, McphostError):
            raise given
        return given

    clock = iter(now or [])
    listing = await read_list(fetch, "tools", Tool.read, ListLimits(**limits), lambda: next(clock, 0.0))
    return listing, cursors


ODD = "a b=/+\r\n\x1b[2J🚀"


@pytest.mark.hostile("L02")
@pytest.mark.requirement("PAGE-01", "PAGE-02", "PAGE-04", "PAGE-07", "TOOLS-01", "MSG-17")
@pytest.mark.parametrize(
    ("pages", "names", "cursors"),
    [
        ([page("a", "b")], "ab", [None]),
        ([page()], "", [None]),
        ([{}], "", [None]),
        ([page("a", nextCursor=None)], "a", [None]),
        ([page("a", nextCursor="2"), page("b", nextCursor="3"), page("c")], "abc", [None, "2", "3"]),
        ([page("a", nextCursor="2"), page(nextCursor="3"), page("c", "d")], "acd", [None, "2", "3"]),
        ([page("a", nextCursor=""), page("b")], "ab", [None, ""]),
        ([page("a", nextCursor=ODD), page("b")], "ab", [None, ODD]),
    ],
)
async def test_every_page_is_read_and_cursors_go_back_as_they_came(
    pages: list[Page], names: str, cursors: list[str | None]
) -> None:
    listing, sent = await read(*pages)
    assert "".join(tool.name for tool in listing.items) == names
    assert sent == cursors
    assert listing.notice is None


async def test_a_list_under_another_name_is_said_to_be_missing() -> None:
    listing, _ = await read({"items": [page("a")], "nextCursor": None, "ttlMs": 0})
    assert (listing.items, listing.notice) == ([], "the result has no tools, but items")


async def test_a_list_that_is_null_is_empty_with_a_remark() -> None:
    listing, _ = await read({"tools": None})
    assert (listing.items, listing.notice) == ([], None)
    assert list(listing.remarks) == ["tools is null, and counts as absent"]


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ([page("a", nextCursor=""), page("a", nextCursor="")], "a"),
        ([page("a", nextCursor=""), REFUSED], "a"),
        ([page("a", nextCursor="2"), page("b", nextCursor=""), page("a", nextCursor="2")], "ab"),
    ],
)
async def test_an_empty_cursor_without_a_page_ends_the_list(pages: list[Page], names: str) -> None:
    listing, _ = await read(*pages)
    assert "".join(tool.name for tool in listing.items) == names
    assert (listing.notice, list(listing.remarks)) == (
        None,
        ["nextCursor is an empty text where there are no more pages"],
    )


async def test_an_empty_cursor_does_not_hide_a_lost_connection() -> None:
    listing, _ = await read(page("a", nextCursor=""), ConnectionLost("gone"))
    assert (listing.notice or "").startswith("page 2 failed: ")


async def test_items_that_break_the_specification_are_remarked_on_by_name() -> None:
    listing, _ = await read({"tools": [{"name": "a", "title": None}, {"name": "b", "title": None, "annotations": []}]})
    assert listing.remarks == {
        "title is null, and counts as absent": ["a", "b"],
        "annotations is a list, and counts as absent": ["b"],
    }


@pytest.mark.hostile("L01", "L02")
@pytest.mark.requirement("PAGE-06")
@pytest.mark.parametrize(
    ("pages", "limits", "names", "notice"),
    [
        ([page("a", nextCursor="x")], {}, "aa", "same cursor twice"),
        ([page("a", nextCursor=c) for c in "abca"], {}, "aaaa", "same cursor twice"),
        ([page(nextCursor=str(n)) for n in range(99)], {}, "", "after 64 pages"),
        ([page("a", nextCursor=str(n)) for n in range(9)], {"items": 3}, "aaa", "after 3 items"),
        ([page(*"abcde")], {"items": 3}, "abc", "after 3 items"),
        ([page(*"ab", nextCursor="2"), page(*"cd")], {"items": 3}, "abc", "after 3 items"),
        ([{"tools": [None] * 9}], {"items": 3}, "", "after 3 items"),
        ([page("a", nextCursor=5)], {}, "a", "not a string"),
        ([page("a", nextCursor={})], {}, "a", "not a string"),
    ],
)
async def test_an_endless_list_is_cut_off_and_its_beginning_kept(
    pages: list[Page], limits: dict[str, Any], names: str, notice: str
) -> None:
    listing, _ = await read(*pages, **limits)
    assert "".join(tool.name for tool in listing.items) == names
    assert notice in (listing.notice or "")


@pytest.mark.parametrize(("items", "cut"), [(3, False), (2, True)])
async def test_the_limit_itself_still_fits(items: int, cut: bool) -> None:
    listing, _ = await read(page(*"abc"), items=items)
    assert (listing.notice is not None) is cut


@pytest.mark.hostile("L01")
async def test_a_slow_list_is_cut_off() -> None:
    listing, _ = await read(page("a", nextCursor="1"), page("b", nextCursor="2"), now=[0.0, 29.0, 31.0])
    assert [tool.name for tool in listing.items] == ["a", "b"]
    assert listing.notice == "list cut off after 30 s"


@pytest.mark.hostile("L03")
@pytest.mark.requirement("TOOLS-28")
async def test_a_bad_item_is_named_beside_its_good_neighbours() -> None:
    bad = [{"name": "bad", "inputSchema": []}, {"name": 7}, "text", None]
    listing, _ = await read({"tools": [{"name": "a"}, *bad, {"name": "b"}]})
    assert [tool.name for tool in listing.items] == ["a", "b"]
    assert [rejected.name for rejected in listing.rejected] == ["bad", "unnamed", "unnamed", "unnamed"]
    assert listing.rejected[0].reason.startswith("inputSchema: ")


@pytest.mark.hostile("L03")
@pytest.mark.parametrize(
    "failure", [ConnectionLost("gone"), RequestTimeout("tools/list", 1), ServerError(-32603, "no"), {"tools": "x"}]
)
async def test_a_later_page_that_fails_leaves_what_was_read(failure: Page) -> None:
    listing, _ = await read(page("a", nextCursor="2"), page("b", nextCursor="3"), failure)
    assert [tool.name for tool in listing.items] == ["a", "b"]
    assert (listing.notice or "").startswith("page 3 failed: ")


@pytest.mark.parametrize("failure", [ConnectionLost("gone"), REFUSED, {"tools": {}}])
async def test_a_first_page_that_fails_is_the_callers(failure: Page) -> None:
    expected = InvalidResult if isinstance(failure, Mapping) else type(failure)
    with pytest.raises(expected):
        await read(failure)


@pytest.mark.requirement("PAGE-05")
async def test_a_refused_cursor_starts_the_list_over_once() -> None:
    first, second = page("a", nextCursor="2"), page("b")
    listing, cursors = await read(first, REFUSED, first, second)
    assert [tool.name for tool in listing.items] == ["a", "b"]
    assert cursors == [None, "2", None, "2"]
    assert "read again" in (listing.notice or "")
    listing, cursors = await read(first, REFUSED, first, REFUSED)
    assert [tool.name for tool in listing.items] == ["a"]
    assert cursors == [None, "2", None, "2"]
    assert (listing.notice or "").startswith("page 2 failed")


@pytest.mark.requirement("PAGE-01", "PAGE-03", "TOOLS-01", "TOOLS-27")
async def test_a_list_begins_without_a_cursor_every_time(connect: Connect) -> None:
    turns = [page("Get", nextCursor="p2"), page("get", "a b", "x" * 300)]
    line = await connect({"tools/list": [*turns, *turns]})
    for _ in range(2):
        assert [tool.name for tool in (await line.client.list_tools()).items] == ["Get", "get", "a b", "x" * 300]
    sent = [request.params for request in line.server.requests("tools/list")]
    assert sent == [None, {"cursor": "p2"}] * 2


@pytest.mark.requirement("PAGE-03")
@pytest.mark.parametrize("failure", [ConnectionLost("gone"), ServerError(-32603, "no"), page("b", nextCursor=7)])
async def test_a_cursor_does_not_outlive_a_list_that_broke_off(draw: Draw, failure: Page) -> None:
    """Neither in the same session nor in the next."""
    for _ in range(2):
        pages = [page("a", nextCursor="p2"), failure, page("c")]
        line = draw({"initialize": hello(NEWEST_HANDSHAKE), "tools/list": pages})
        await line.client.connect(5)
        broken, whole = await line.client.list_tools(), await line.client.list_tools()
        assert broken.notice
        assert ([tool.name for tool in whole.items], whole.notice) == (["c"], None)
        sent = [request.params for request in line.server.requests("tools/list")]
        assert sent == [None, {"cursor": "p2"}, None]
