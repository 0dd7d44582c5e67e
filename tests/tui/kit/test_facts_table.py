"""The table of facts."""

from __future__ import annotations

import pytest
from textual.content import Content
from textual.geometry import Size

from mcphost.tui.kit.facts_table import Fact, FactsTable


@pytest.mark.parametrize(("width", "rows"), [(110, 2), (100, 4)], ids=["side by side", "one below the other"])
def test_two_values_stand_side_by_side_where_there_is_room(width: int, rows: int) -> None:
    changed = Fact("changed", Content("- one\n- two"), other=Content("+ one\n+ 2"))
    table, size = FactsTable([changed]), Size(width, 40)
    assert table.get_content_height(size, size, width) == rows
    assert table.text.endswith("+ one\n+ 2")
