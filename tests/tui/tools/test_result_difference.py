"""The difference between two results, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.tui.tools.result_difference import ELSEWHERE, LINES, SAME, difference_spans, difference_text


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (said("a\nb"), said("a\nc"), ["--- old", "+++ new", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]),
        (said("a"), said("a"), [SAME]),
        (said("a"), {**said("a"), "_meta": {"b": 1}}, [ELSEWHERE]),
        (said("a\n" * LINES), said("a\n" * LINES + "b"), [ELSEWHERE]),
        ({"structuredContent": 1}, {"structuredContent": 2}, ["--- old", "+++ new", "@@ -1 +1 @@", "-1", "+2"]),
        ({"content": 3}, {"content": [7]}, ["--- old", "+++ new", "@@ -0,0 +1 @@", "+7"]),
    ],
)  # fmt: skip
def test_results_are_compared_by_lines(before: dict[str, Any], after: dict[str, Any], lines: list[str]) -> None:
    assert difference_text(before, after, ("old", "new")).split("\n") == lines


@pytest.mark.hostile("T08")
def test_what_a_server_sent_is_safe_to_show_in_a_difference() -> None:
    text = difference_text(said("\x1b[2J"), said("\u202e"), ("old", "new"))
    assert text.split("\n")[-2:] == ["-␛[2J", "+⟨U+202E⟩"]


def test_changed_lines_have_their_colours() -> None:
    assert [list(difference_spans(line)) for line in ("+a", "-a", " a", "")] == [
        [(0, 2, "added")], [(0, 2, "removed")], [], [],
    ]  # fmt: skip
