"""A list with a filter: what is listed, where the cursor goes, and which keys lead in and out."""

from __future__ import annotations

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.content import Content

from mcphost.tui.kit.filtered_rows import NO_MATCH, FilteredRows
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import RowList
from tests.tui.stage import NARROW, WIDE, echo, on_stage

NAMES = ["list files", "read", "read many", "files"]


class Listing(App[None]):
    """The list in a container, which records what is chosen and where the cursor is."""

    def __init__(self) -> None:
        super().__init__()
        self.list = FilteredRows[str](lambda name, width: self.list.search.mark(name), SearchText, empty="Nothing.")
        self.chosen, self.at = list[str](), list[str | None]()

    def compose(self) -> ComposeResult:
        with Container():
            yield self.list

    def on_mount(self) -> None:
        self.list.show_items(NAMES)
        self.list.rows.focus()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[str]) -> None:
        self.chosen.append(event.item)

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[str]) -> None:
        self.at.append(event.item)


def actions(app: App[None]) -> set[str]:
    """The actions of the keys that work now."""
    return {each.binding.action for each in app.screen.active_bindings.values() if each.enabled}


async def test_enter_opens_the_best_match() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        await pilot.press("slash", *"files")
        assert list(app.list.rows.items) == ["files", "list files"]
        assert app.list.item == "files"
        assert app.at[-1] == "files"
        await pilot.press("enter")
        assert app.chosen == ["files"]
        assert app.list.rows.has_focus
        await pilot.press("escape")
        assert list(app.list.rows.items) == NAMES
        assert app.list.item == "files"


async def test_an_empty_list_offers_neither_to_open_nor_to_filter() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        offered = {"open", "filter"}
        assert offered <= actions(app)
        app.list.show_items([])
        await pilot.pause()
        assert not offered & actions(app)
        await pilot.press("slash", "enter")
        assert not app.list.filter_line.is_open
        assert app.list.rows.has_focus
        app.list.expect_items(True)
        assert offered & actions(app) == {"filter"}
        app.list.show_items(NAMES)
        await pilot.pause()
        assert offered <= actions(app)


async def test_a_letter_that_changes_the_count_does_not_lay_out_the_screen() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        app.list.show_items([*NAMES, *(f"write {number}" for number in range(10))])
        await pilot.press("slash")
        layouts: list[object] = []
        app.screen.screen_layout_refresh_signal.subscribe(app.list, layouts.append)
        for key, count in (("r", "12 of 14"), ("e", "2 of 14"), ("a", "2 of 14"), ("d", "2 of 14")):
            layouts.clear()
            await pilot.press(key)
            await pilot.pause()
            assert str(app.list.filter_line.query_one(".count").render()) == count
            assert not layouts


async def test_new_items_are_filtered_and_the_cursor_keeps_its_item() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        await pilot.press("slash", *"read", "down", "down")
        assert app.list.item == "read many"
        app.list.show_items(["read first", *NAMES])
        assert list(app.list.rows.items) == ["read", "read first", "read many"]
        assert app.list.item == "read many"
        app.list.show_items(["files"])
        assert app.list.rows.empty == NO_MATCH
        await pilot.press("slash", "escape")
        assert list(app.list.rows.items) == ["files"]


async def test_letters_in_their_order_find_what_no_word_finds() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        await pilot.press("slash", *"rdmny")
        assert list(app.list.rows.items) == ["read many"]
        drawn = app.list.rows.render_line(0)
        assert "read many" in drawn.text
        assert isinstance(app.list.search.mark("read many"), Content)


@pytest.mark.slow
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_servers_and_calls_are_filtered_by_the_same_keys(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        for text in ("one", "two"):
            call = stage.call("echo", {"text": text})
            await stage.call_dialog()
            await stage.press("y")
            await stage.ended(call)
        await stage.press("h", "slash")
        await stage.write("two")
        await stage.shows("/ two", "1 of 2")
        await stage.press("enter")
        await stage.shows("Result · echo › echo", "two")
        await stage.press("s", "slash")
        await stage.write("ech")
        await stage.shows("/ ech", "1 of 2")
        assert stage.app.main.servers.chosen == "echo"
        await stage.press("escape")
        await stage.shows("all servers")
        assert stage.app.main.servers.chosen == "echo"


async def test_a_key_that_the_filter_takes_is_not_offered() -> None:
    app = Listing()
    async with app.run_test() as pilot:
        assert "slash" in app.screen.active_bindings
        await pilot.press("slash")
        assert "slash" not in app.screen.active_bindings
        await pilot.press("escape")
        assert "slash" in app.screen.active_bindings
