"""Which structured content is a table."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.tui.results.tables import as_table

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
