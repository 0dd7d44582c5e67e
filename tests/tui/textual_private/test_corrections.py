"""Timers and tabs on a busy machine; parsed CSS; scrollbars; what is behind a dialog."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual._context import visible_screen_stack
from textual.app import App, ComposeResult
from textual.color import Color
from textual.renderables.background_screen import BackgroundScreen
from textual.widget import Widget
from textual.widgets import Static, TabbedContent, TabPane

from mcphost.tui.kit.modal_screen import Modal
from mcphost.tui.kit.rows import RowList
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.textual_private.corrections import ScrolledColumn, timer_without_skips
from tests.tui.shortcuts import _parse
from tests.tui.stage import echo, on_stage

pytestmark = pytest.mark.slow
SOON = 1e-9
"""Seconds that are over before a timer is first looked at."""


async def test_a_timer_fires_though_its_time_is_over_before_it_is_looked_at() -> None:
    async with on_stage(echo()) as stage:
        fired: list[str] = []
        widget = stage.app.main.query_one("TopBar", Widget)
        timer_without_skips(widget.set_timer(SOON, lambda: fired.append("of a widget")))
        stage.app.set_timer(SOON, lambda: fired.append("of the app"))
        await stage.until(lambda _: len(fired) == 2)


async def test_the_css_of_a_hundred_kinds_of_widgets_is_parsed_once() -> None:
    async with on_stage(echo()) as stage:
        sheet = stage.app.stylesheet
        kinds = [(f"Kind{number} {{ width: {number}; }}", ("kinds.py", f"Kind{number}")) for number in range(100)]
        parsed = [_parse(sheet, *each) for each in kinds]
        assert all(_parse(sheet, *each) is rules for each, rules in zip(kinds, parsed, strict=True))


async def test_a_late_focus_event_does_not_change_the_tab() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        await stage.press("h")
        await stage.until(lambda app: app.main.calls.has_focus_within)
        tabs = stage.app.main.query_one(TabbedContent)
        tabs.get_pane("tools").post_message(TabPane.Focused(tabs.get_pane("tools")))
        await stage.press("down")
        assert tabs.active == "calls"
        stage.app.main.tools.list.rows.focus()
        await stage.until(lambda _: tabs.active == "tools")


@pytest.mark.parametrize("tint", [Color(0, 0, 0, 0.4), Color(20, 30, 40, 0.6), Color(0, 0, 0, 0)])
async def test_what_is_behind_a_dialog_is_tinted_as_textual_does(tint: Color) -> None:
    linked = Style(meta={"@click": "app.quit"}, link="https://example.org")
    styles = [None, Style.parse("bold red on #102030"), Style.parse("reverse"), linked, Style.parse("on blue") + linked]
    dialog: Modal[None] = Modal()
    async with App[None]().run_test(size=(40, 10)) as pilot:
        await pilot.app.push_screen(dialog)
        dialog.styles.background = tint
        visible_screen_stack.set([pilot.app.screen_stack[0]])
        shown = dialog.render()
        assert isinstance(shown, BackgroundScreen)
        behind = [Segment("text", style) for style in styles]
        for _ in range(2):
            assert [*shown.process_segments(behind, tint)] == [*BackgroundScreen.process_segments(behind, tint)]


@pytest.mark.parametrize("kind", [ScrolledColumn, TextView])
async def test_a_scrollbar_that_appears_again_is_where_the_text_is(kind: type[Widget]) -> None:
    lines = [str(number) for number in range(40)]

    class Scrolling(App[None]):
        def compose(self) -> ComposeResult:
            yield TextView(lines) if kind is TextView else ScrolledColumn(Static("\n".join(lines)))

    app = Scrolling()
    async with app.run_test(size=(40, 10)) as pilot:
        text = app.query_one(kind)
        text.scroll_end(animate=False)
        await pilot.pause()
        assert text.vertical_scrollbar.position == text.scroll_y == 30
        shown = []
        for height in (60, 10):
            await pilot.resize_terminal(40, height)
            await pilot.pause()
            shown.append(text.show_vertical_scrollbar)
        assert shown == [False, True]
        assert text.vertical_scrollbar.position == text.scroll_y


async def test_a_scrollbar_is_not_painted_where_a_layout_leaves_it_as_it_is() -> None:
    rows, below = RowList[str](lambda item, _: Text(item)), Static("one line", id="below")

    class Beside(App[None]):
        def compose(self) -> ComposeResult:
            yield rows
            yield below

    app, painted = Beside(), []
    async with app.run_test(size=(40, 10)) as pilot:
        rows.set_items([str(number) for number in range(40)])
        await pilot.pause()
        bar = rows.vertical_scrollbar
        paint = bar.render
        bar.render = lambda: painted.append(bar.window_size) or paint()  # type: ignore[method-assign, func-returns-value]
        below.update("another")
        below.refresh(layout=True)
        await pilot.pause()
        assert painted == []
        below.update("two\nlines")
        await pilot.pause()
        assert painted[-1] == 8
        rows.set_items(["one"])
        await pilot.pause()
        assert not rows.show_vertical_scrollbar


async def test_a_new_widget_gets_its_size_after_an_early_query() -> None:
    app, view = App[None](), TextView(["one", "two"])
    async with app.run_test(size=(40, 10)) as pilot:
        with app.batch_update():
            await app.mount(view)
            app.screen._compositor.update_widgets({view})
            assert view.region.size == (40, 10)
        await pilot.pause()
        assert view.virtual_size.height == 2
