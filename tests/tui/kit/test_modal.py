"""The answers of a question."""

from __future__ import annotations

import pytest

from mcphost.tui.kit.modal import AnswerOption, _row, naming


@pytest.mark.parametrize("locked", [False, True])
def test_a_name_in_an_answer_is_set_off_from_the_sentence(locked: bool) -> None:
    row = _row(AnswerOption("M", naming("mute ", "[b]srv", " until mcphost exits"), "mute", locked=locked), 60)
    assert row.plain.rstrip() == "M   mute [b]srv until mcphost exits"
    assert [row.plain[start:end] for start, end, style in row.spans if style == "bold"] == ["[b]srv"]
