from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.content import Content, Span
from textual.pilot import Pilot

from mcphost.tui.kit.rows import MARK, Cell, RowList, columns, rows_around, widths

HEIGHT = 10


class Listing(App[None]):
    """One list as the whole screen; records its messages."""

    def __init__(self, items: Sequence[Any] = (), *, tails: bool = False, render: Any = None) -> None:
        super().__init__()
        self.first, self.rendered, self.said = items, 0, list[Any]()
        self.rows = RowList[Any](render or self.draw, empty="Nothing here.\nPress a to add one.", tails=tails)

    def draw(self, item: Any, width: int) -> Content:
        self.rendered += 1
        return Content(f"row {item}")

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.set_items(self.first, keep=str)
        self.rows.focus()

    def on_row_list_highlighted(self, event: RowList.Highlighted[Any]) -> None:
        self.said.append(event.item)

    def on_row_list_selected(self, event: RowList.Selected[Any]) -> None:
        self.said.append(("opened", event.item))

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        self.said.append(event.following)

    def lines(self) -> list[str]:
        return [self.rows.render_line(y).text.rstrip() for y in range(self.rows.size.height)]


def running(app: Listing) -> Any:
    return app.run_test(size=(40, HEIGHT))


@pytest.mark.parametrize(
    ("keys", "item", "top"),
    [
        ("", 0, 0),
        ("down j k", 1, 0),
        ("up", 0, 0),
        ("pagedown", 9, 0),
        ("pagedown pagedown", 18, 9),
        ("end", 99, 90),
        ("end up", 98, 90),
        ("end pageup pageup", 81, 81),
        ("end home", 0, 0),
    ],
)
async def test_keys_move_the_cursor_and_keep_it_in_view(keys: str, item: int, top: int) -> None:
    app = Listing(range(100))
    async with running(app) as pilot:
        await pilot.press(*keys.split())
        assert (app.rows.item, app.rows.highlighted, app.rows.scroll_offset.y) == (item, item, top)
        assert app.lines()[item - top] == f"{MARK}row {item}"
        assert sum(line.startswith(MARK) for line in app.lines()) == 1
        assert app.said[-1] == item


async def test_enter_and_a_double_click_open_and_one_click_only_moves() -> None:
    app = Listing(range(100))
    async with running(app) as pilot:
        await pilot.press("down", "enter")
        await pilot.click(RowList, offset=(5, 4))
        await pilot.click(RowList, offset=(5, 6), times=2)
        await pilot.pause()
        assert app.said == [0, 1, ("opened", 1), 4, 6, ("opened", 6)]
        app.rows.scroll_to(y=50, animate=False)
        await pilot.click(RowList, offset=(5, 0))
        assert app.rows.item == 50


@pytest.mark.parametrize(
    ("before", "highlight", "after", "item", "top"),
    [
        pytest.param(range(100), 50, range(100), 50, 45, id="the same"),
        pytest.param(range(100), 50, range(20, 100), 50, 25, id="rows above are gone: the row stays on its line"),
        pytest.param(range(100), 50, range(-30, 100), 50, 75, id="rows above are new: the row stays on its line"),
        pytest.param(range(100), 3, range(-2, 100), 3, 0, id="a list at its top stays there"),
        pytest.param(range(100), 3, range(-30, 100), 3, 24, id="unless the row would leave the view"),
        pytest.param(range(100), 50, range(30), 29, 20, id="the row is gone, and the list is shorter"),
        pytest.param(range(100), 50, (), None, 0, id="nothing is left"),
        pytest.param((), None, range(5), 0, 0, id="the first items"),
    ],
)
async def test_other_items_keep_cursor_and_scroll_position(
    before: Sequence[int], highlight: int | None, after: Sequence[int], item: int | None, top: int
) -> None:
    app = Listing(before)
    async with running(app) as pilot:
        if highlight and highlight > HEIGHT:
            app.rows.scroll_to(y=highlight - 5, animate=False)
        app.rows.highlighted = highlight
        app.rows.set_items(after, keep=str)
        await pilot.pause()
        assert (app.rows.item, app.rows.scroll_offset.y) == (item, top)
        assert app.said[-1] == item


async def test_the_same_item_again_is_not_announced() -> None:
    app = Listing(range(5))
    async with running(app) as pilot:
        app.rows.set_items(range(-3, 5))
        await pilot.pause()
        assert (app.said, app.rows.highlighted) == ([0], 3)


async def test_an_empty_list_says_in_its_middle_what_it_is_for() -> None:
    app = Listing()
    async with running(app):
        assert [line.strip() for line in app.lines()[4:6]] == ["Nothing here.", "Press a to add one."]
        assert app.lines()[4].index("Nothing") == 10
        app.rows.empty = "No match."
        assert app.lines()[4].strip() == "No match."


async def test_only_rows_in_view_are_drawn_however_long_the_list() -> None:
    app = Listing(range(10_000))
    async with running(app) as pilot:
        await pilot.press("end", "home")
        app.rendered = 0
        app.rows.set_items(range(10_000), keep=str)
        await pilot.pause()
        assert 0 < app.rendered <= 2 * HEIGHT


async def test_a_step_draws_the_row_it_leaves_and_the_row_it_reaches() -> None:
    app = Listing(range(100))
    async with running(app) as pilot:
        for key in ("down", "up", "down"):
            app.rendered = 0
            await pilot.press(key)
            assert app.rendered == 2
        app.rendered = 0
        await pilot.press("pagedown")
        assert app.rendered == HEIGHT


async def test_the_screen_is_laid_out_only_if_the_scroll_bar_comes_or_goes() -> None:
    app = Listing(range(3))
    async with running(app) as pilot:
        layouts: list[object] = []
        app.screen.screen_layout_refresh_signal.subscribe(app.rows, layouts.append)
        for count, again in ((2, False), (HEIGHT, False), (100, True), (200, False), (5, True), (0, False)):
            layouts.clear()
            app.rows.set_items(range(count))
            await pilot.pause()
            assert (app.rows.show_vertical_scrollbar, bool(layouts)) == (count > HEIGHT, again)
            assert app.rows.max_scroll_y == max(0, count - HEIGHT)


async def follow(app: Listing, pilot: Pilot[None], count: int = 50) -> None:
    last = app.rows.items[-1] if app.rows.items else -1
    app.rows.append(range(last + 1, last + 1 + count), limit=200)
    await pilot.pause()


async def test_a_list_that_tails_follows_until_the_user_looks_back() -> None:
    app = Listing(range(100), tails=True)
    async with running(app) as pilot:
        await follow(app, pilot)
        assert (app.rows.item, app.lines()[-1]) == (149, f"{MARK}row 149")
        await pilot.press("up")
        await follow(app, pilot)
        assert (app.rows.item, app.lines()[-1], app.rows.following) == (148, "  row 149", False)
        await follow(app, pilot)  # drops 50 at the top
        assert (app.rows.item, app.lines()[-1], len(app.rows.items)) == (148, "  row 149", 200)
        await pilot.press("end")
        await follow(app, pilot)
        assert (app.rows.item, app.rows.following) == (299, True)
        assert [said for said in app.said if isinstance(said, bool)] == [False, True]


@pytest.mark.parametrize("again", ["down", "end", "wheel"])
async def test_the_wheel_looks_back_and_going_past_the_end_follows_again(again: str) -> None:
    app = Listing(range(100), tails=True)
    async with running(app) as pilot:
        app.rows._scroll_up_for_pointer(animate=False)
        assert not app.rows.following
        app.rows.scroll_to(y=app.rows.max_scroll_y, animate=False)
        assert not app.rows.following
        if again == "wheel":
            app.rows.on_mouse_scroll_down()
        else:
            await pilot.press(again)
        assert app.rows.following


async def test_items_given_before_there_is_a_screen_are_shown_when_there_is() -> None:
    app = Listing(range(30), tails=True)
    app.rows.append(range(10))
    app.rows.drop_first(3)
    async with running(app) as pilot:
        await pilot.resize_terminal(40, 6)
        await pilot.pause()
        assert (app.lines()[-1], app.rows.following) == (f"{MARK}row 29", True)
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        assert (app.lines()[-1], app.rows.following) == (f"{MARK}row 29", True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("[b]no markup[/b]", "[b]no markup[/b]"),
        ("two\nlines", "two"),
        ("x" * 50, "x" * 38),
        ("漢" * 30, "漢" * 19),
        ("a" + "漢" * 30, "a" + "漢" * 18 + " "),
    ],
)
async def test_a_row_is_one_line_of_exactly_the_width(text: str, shown: str) -> None:
    app = Listing([text], render=lambda item, width: Text(item))
    async with running(app):
        strip = app.rows.render_line(0)
        assert (strip.text.rstrip("\n"), cell_len(strip.text)) == (
            MARK + shown.ljust(38 - cell_len(shown) + len(shown)),
            40,
        )


async def test_the_cursor_looks_different_in_a_list_without_focus() -> None:
    app = Listing(range(3))
    async with running(app) as pilot:
        focused = app.rows.render_line(0)
        app.rows.blur()
        await pilot.pause()
        blurred, other = app.rows.render_line(0), app.rows.render_line(1)
        assert focused.text == blurred.text
        looks = {strip._segments[0].style for strip in (focused, blurred, other)}
        assert len(looks) == 3


@pytest.mark.parametrize(
    ("width", "cells", "line"),
    [
        (
            20,
            [Cell("name", min=6, max=6), Cell("text"), Cell("12", min=4, max=4, align="right")],
            "name   text       12",
        ),
        (20, [Cell("a long name", min=6, max=6), Cell("and a long text")], "a lon… and a long t…"),
        (20, [Cell("ab", min=4, max=8), Cell("cd", min=4, max=8), Cell("rest")], "ab       cd       r…"),
        (20, [Cell("x", min=1), Cell("y", min=1), Cell("z", min=1)], "x      y      z     "),
        (12, [Cell("keep", min=8, max=9), Cell("goes", min=5, max=5), Cell("goes too", min=2)], "keep        "),
        (3, [Cell("too wide", min=8)], "to…"),
        (8, [Cell("", max=0), Cell("text")], "text    "),
        (10, [Cell("漢字漢字漢字")], "漢字漢字… "),
        (10, [Cell("漢字漢字漢字", align="right")], " 漢字漢字…"),
        (6, [Cell("e\u0301" * 9)], "e\u0301" * 5 + "…"),
        (5, [], "     "),
    ],
)
def test_columns_line_up_and_show_what_was_cut(width: int, cells: list[Cell], line: str) -> None:
    shown = columns(width, cells)
    assert shown.plain == line
    assert cell_len(shown.plain) == shown.cell_length == width


def test_columns_carry_styles_to_where_their_text_is() -> None:
    inner = Content("found it here", [Span(6, 8, "bold"), Span(9, 13, "italic")])
    line = columns(22, [Cell("漢", "red", 4, 4), Cell(inner, min=9, max=9, align="right"), Cell("3", "blue", 4, 4)])
    assert line.plain == "漢   found it… 3      "
    assert [(line.plain[start:end], style) for start, end, style in line.spans] == [
        ("漢  ", "red"),
        ("it", "bold"),
        ("3   ", "blue"),
    ]


def test_columns_never_take_more_than_there_is() -> None:
    for width in range(1, 60):
        sizes = [size for size in widths(width, ((8, 8), (6, 12), (0, None), (0, 3), (5, 5))) if size]
        assert min(width, 8) <= sum(sizes) + len(sizes) - 1 <= width


@pytest.mark.parametrize(
    ("cursor", "count", "shown"),
    [(0, 0, []), (0, 3, [0, 1, 2]), (2, 9, [0, 1, 2, 3]), (5, 9, [3, 4, 5, 6]), (8, 9, [5, 6, 7, 8])],
)
def test_the_cursor_is_in_the_middle_of_the_rows_around_it(cursor: int, count: int, shown: list[int]) -> None:
    assert list(rows_around(cursor, count, 4)) == shown
