"""Structured content as a table: its columns, their types and widths, and its order."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult

from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.results.tables import ColumnWidth, TableHead, TableView, as_table, badge_of, fitted, sorted_rows
from tests.loop_watchdog import LoopWatchdog

ROWS = [{"name": "Great Auk", "miles": 7.8}, {"name": "Kittiwake"}]


@pytest.mark.parametrize(
    ("value", "summary", "beside"),
    [
        (ROWS, "2 rows", ""),
        ({"ships": ROWS}, "ships · 2 rows", ""),
        ({"ships": ROWS, "lookout": "north", "fog": None}, "ships · 2 rows", "lookout: north · fog: null"),
        ({"ships": ROWS, "at": "\x1b[2J"}, "ships · 2 rows", "at: ␛[2J"),
        (ROWS * 15_000, "first 20,000 of 30,000 rows", ""),
    ],
    ids=["list", "member", "neighbours", "hostile", "long"],
)
def test_a_list_of_objects_is_a_table_with_its_plain_neighbours_named(value: Any, summary: str, beside: str) -> None:
    table = as_table(value)
    assert table is not None
    assert (table.summary, table.beside_text) == (summary, beside)
    assert table.columns == ("name", "miles")


@pytest.mark.parametrize(
    "value", [None, 3, [], [1, 2], {"a": ROWS, "b": ROWS}, {"a": ROWS, "b": {}}, {"a": ROWS, **dict.fromkeys("bcdefg")}]
)
def test_what_is_about_more_than_one_list_stays_json(value: Any) -> None:
    assert as_table(value) is None


NAME, MILES, NOTE = ColumnWidth(4, 17), ColumnWidth(14, 4, whole=True), ColumnWidth(4, 40)


@pytest.mark.parametrize(
    ("columns", "room", "widths"),
    [
        ([NAME, MILES], 40, (17, 14)),
        ([NAME, MILES], 25, (17, 8)),
        ([NAME, MILES, NOTE], 60, (17, 14, 29)),
        ([NAME, MILES, NOTE], 40, (17, 6, 17)),
        ([NAME, MILES, NOTE], 20, (17, 14, 40)),
    ],
    ids=["as needed", "headings", "the widest text first", "and the next", "or it scrolls"],
)
def test_columns_share_the_room_and_no_number_is_cut(
    columns: list[ColumnWidth], room: int, widths: tuple[int, ...]
) -> None:
    assert fitted(columns, room) == widths


@pytest.mark.parametrize(
    ("values", "badge"),
    [
        ([1, None, 2], "#"),
        ([1, 2.5], "##"),
        (["a"], "s"),
        ([True], "t/f"),
        ([True, 1], "*"),
        ([[], {}], "*"),
        ([{}], "{}"),
        ([None], ""),
    ],
)
def test_a_column_has_the_badge_of_its_values(values: list[Any], badge: str) -> None:
    assert badge_of(values) == badge


def test_numbers_sort_as_numbers_and_rows_without_a_value_come_last() -> None:
    values: list[Any] = ["b", 10, 9.5, None, True, "A", [1, 2], {}, 1e400, float("nan"), 10**400]
    rows: list[dict[str, Any]] = [*({"v": value} for value in values), {"other": 1}]
    ordered = [row.get("v", "-") for row in sorted_rows(rows, "v")]
    assert str(ordered) == str([9.5, 10, 10**400, 1e400, True, float("nan"), "A", "b", {}, [1, 2], None, "-"])
    assert [row.get("v", "-") for row in sorted_rows(rows, "v", descending=True)][-2:] == [None, "-"]


def test_equal_rows_keep_their_order_in_both_directions() -> None:
    rows = [{"kind": kind, "n": n} for n, kind in enumerate("abab")]
    assert [row["n"] for row in sorted_rows(rows, "kind")] == [0, 2, 1, 3]
    assert [row["n"] for row in sorted_rows(rows, "kind", descending=True)] == [1, 3, 0, 2]


SHIPS = [{"name": "Limpet", "miles": 10, "fog": True}, {"name": "[b]Auk\x1b", "miles": 9, "note": "x" * 300}]


class Tables(App[None]):
    def __init__(self, value: Any) -> None:
        super().__init__()
        table = as_table(value)
        assert table is not None
        self.view = TableView(table)

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.view.focus()

    @property
    def lines(self) -> list[str]:
        strips = self.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


async def test_a_key_or_a_click_sorts_and_esc_restores_the_servers_order() -> None:
    app = Tables(SHIPS)
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.pause()
        assert app.lines[0].split() == ["name", "s", "miles", "#", "fog", "t/f", "note", "s"]
        assert app.lines[1].split() == ["▸", "Limpet", "10", "true"]
        for press, head, first in (
            ("o", "↑name s", "[b]Auk␛"),
            ("o", "↑miles #", "[b]Auk␛"),
            ("O", "↓miles #", "Limpet"),
            ("o", "↑fog t/f", "Limpet"),
            ("o", "↑note s", "[b]Auk␛"),
            ("o", "name s", "Limpet"),
        ):
            await pilot.press(press)
            await pilot.pause()
            assert head in app.lines[0]
            assert first in app.lines[1]
        column = app.lines[0].index("miles")
        for head, first in (("↑miles", "[b]Auk␛"), ("↓miles", "Limpet"), (" miles", "Limpet")):
            await pilot.click(TableHead, offset=(column + 1, 0))
            await pilot.pause()
            assert head in app.lines[0]
            assert first in app.lines[1]
        await pilot.press("o", "escape")
        await pilot.pause()
        assert "↑" not in app.lines[0]
        assert "Limpet" in app.lines[1]


async def test_enter_shows_a_row_with_all_of_its_texts() -> None:
    app = Tables(SHIPS)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, ReaderScreen)
        assert f'  "note": "{"x" * 300}"' in app.screen.query_one(TextView).lines


async def test_columns_out_of_view_are_reached_and_no_number_is_cut() -> None:
    app = Tables([{f"column {number}": 10**20 for number in range(6)}])
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.pause()
        assert "←→ columns · z zooms" in app.view.footnote
        shown = list[str]()
        for _ in range(6):
            assert set(app.lines[1].split()) == {"▸", str(10**20)}
            shown += [word for word in app.lines[0].split() if word.isdigit()]
            await pilot.press("right")
            await pilot.pause()
        assert sorted(set(shown)) == list("012345")
        assert app.lines[0].split()[:2] == ["column", "4"]


async def test_a_table_of_many_rows_sorts_and_shows_the_last(loop_watchdog: LoopWatchdog) -> None:
    rows = [{"name": f"ship {n * 7919 % 20_000}", "miles": n * 0.5, "n": -n} for n in range(20_000)]
    app = Tables(rows)
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.press("o", "o", "o", "end")
        await pilot.pause()
        assert app.lines[-1].split() == ["▸", "ship", "0", "0.0", "0"]
        assert loop_watchdog.longest < 1.0
