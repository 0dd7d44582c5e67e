"""Which structured content is a table."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.tui.results.tables import ColumnWidth, as_table, fitted

ROWS = [{"name": "Great Auk", "miles": 7.8}, {"name": "Kittiwake"}]


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        (ROWS, "2 rows"),
        ({"ships": ROWS}, "ships · 2 rows"),
        ({"ships": ROWS, "lookout": "north", "fog": None}, "ships · 2 rows · lookout: north · fog: null"),
        ({"ships": ROWS, "at": "\x1b[2J"}, "ships · 2 rows · at: ␛[2J"),
    ],
)
def test_a_list_of_objects_is_a_table_with_its_plain_neighbours_named(value: Any, summary: str) -> None:
    table = as_table(value)
    assert table is not None
    assert table.summary == summary
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
        ([NAME, MILES, NOTE], 60, (17, 6, 37)),
        ([NAME, MILES, NOTE], 40, (17, 6, 17)),
        ([NAME, MILES, NOTE], 20, (17, 14, 40)),
    ],
    ids=["as needed", "headings first", "then the widest text", "and the next", "or it scrolls"],
)
def test_columns_share_the_room_and_no_number_is_cut(
    columns: list[ColumnWidth], room: int, widths: tuple[int, ...]
) -> None:
    assert fitted(columns, room) == widths
