"""The comparison of two observed sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcphost.errors import ServerError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.observation import CallObservation, Exchange, SideObservation
from mcphost.host.comparison.report import as_object, compare_sides, rows_of
from mcphost.host.comparison.sides import Side

ECHO = {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object"}}


def seen(label: str, *tools: dict[str, Any], **more: Any) -> SideObservation:
    offered = {CatalogKind.TOOLS: {tool["name"]: tool for tool in tools}}
    return SideObservation(Side(label, label), f"run {label}", revision="2026-07-28", offered=offered, **more)


def answered(text: str, *, seconds: float = 0.1, **envelope: Any) -> CallObservation:
    result = {"content": [{"type": "text", "text": text}], **envelope}
    return CallObservation("echo", result, None, seconds, Exchange(2, 10, 20))


def test_sides_with_equal_offers_and_answers_are_the_same() -> None:
    first = seen("a", ECHO, calls=(answered("hi"),))
    second = seen("b", dict(reversed(ECHO.items())), calls=(answered("hi", resultType="complete", _meta={"x": 1}),))
    assert compare_sides(first, second).same


def test_definitions_differ_by_name_and_by_field() -> None:
    changed = {**ECHO, "inputSchema": {"type": "object", "required": ["text"]}}
    first, second = seen("a", ECHO, {"name": "old"}), seen("b", changed, {"name": "new"})
    found = compare_sides(first, second)
    assert not found.same
    tools = as_object(found)["tools"]
    assert tools["only"] == {"a": ["old"], "b": ["new"]}
    assert tools["differ"] == {"echo": [{"field": "inputSchema.required", "a": None, "b": '["text"]'}]}
    assert tools["same"] == 0
    rows = [(row.label, row.first, row.second) for row in rows_of(found) if row.differs]
    assert rows == [
        ("echo: argument text is now required", "false", "true"),
        ("new: a new tool", "-", "yes"),
        ("old: the tool is gone", "yes", "-"),
    ]


def test_an_answer_that_varies_on_one_side_is_not_a_difference() -> None:
    first = seen("a", calls=(answered("12:00"), answered("12:01")))
    assert not compare_sides(replace(first, calls=first.calls[:1]), seen("b", calls=(answered("12:02"),))).same
    found = compare_sides(first, seen("b", calls=(answered("12:02"), answered("12:03"))))
    assert found.same
    assert as_object(found)["answers"] == {"differ": [], "varying": ["content[0].text"]}


def test_an_error_is_an_answer_too() -> None:
    failed = CallObservation("echo", None, ServerError(-32602, "no such city"), 0.1, Exchange())
    found = compare_sides(seen("a", calls=(failed,)), seen("b", calls=(answered("hi"),)))
    assert found.answers is not None
    assert "error" in {each.field for each in found.answers.changed}


def test_calls_that_fail_alike_are_not_the_same_answers() -> None:
    failed = CallObservation("echo", None, ServerError(-32602, "no such city"), 0.1, Exchange())
    found = compare_sides(seen("a", calls=(failed,)), seen("b", calls=(failed, answered("hi"))))
    assert not found.same
    rows = [(row.label, row.first, row.second) for row in rows_of(found) if row.differs]
    assert rows == [("failed", "no such city (-32602)", "1 of 2: no such city (-32602)")]
    assert "Calls: the same answers" not in {row.label for row in rows_of(found)}


def test_what_only_one_era_has_is_no_difference_between_the_eras() -> None:
    task = {**ECHO, "execution": {"taskSupport": "optional"}}
    old = {"tools": {"listChanged": False}, "tasks": {"list": {}}, "prompts": {"listChanged": True}}
    new: dict[str, Any] = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}, "prompts": {}}
    first = replace(seen("a", task, capabilities=old), revision="2025-11-25")
    second = seen("b", ECHO, capabilities=new)
    assert compare_sides(first, second).same
    assert not compare_sides(first, replace(second, revision="2025-06-18")).same


def test_a_side_that_is_not_open_is_neither_the_same_nor_compared() -> None:
    found = compare_sides(seen("a", ECHO), SideObservation(Side("b", "b"), failure="it exited"))
    assert (found.same, found.complete, found.findings) == (False, False, ())
    assert [row.second for row in rows_of(found) if row.differs] == ["it exited"]
