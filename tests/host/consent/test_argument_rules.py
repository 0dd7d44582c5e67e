"""Rules by argument: when they fit, which patterns are none, what is suggested, and what they would have allowed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.argument_rules import fits, in_words, left_open, problem, suggested
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.history import PAST_CALLS, PAST_CHARACTERS, CallHistory, call_history, tried
from mcphost.protocol.models.tools import Tool

BEGAN = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(
    ("when", "arguments", "fit"),
    [
        ({"sql": r"^SELECT\b"}, {"sql": "SELECT 1", "limit": 3}, True),
        ({"sql": r"^SELECT\b"}, {"sql": "SELECTED"}, False),
        ({"sql": r"^SELECT\b"}, {"sql": "x\nSELECT 1"}, False),
        ({"sql": "^SELECT$"}, {"sql": "SELECT\n"}, False),
        ({"sql": "."}, {"sql": ["SELECT 1"]}, False),
        ({"sql": "."}, {"sql": None}, False),
        ({"sql": "."}, {"SQL": "SELECT 1"}, False),
        ({"a": "x", "b": "y"}, {"a": "x"}, False),
        ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, True),
        ({}, {"a": "x"}, False),
        ({"a": "("}, {"a": "("}, False),
        ({"a": "(a+)+$"}, {"a": "a" * 50_000 + "!"}, False),
        ({"a": "^(?=a)"}, {"a": "a"}, False),
        ({"a": "x"}, {"a": "x" * 10_000_000}, False),
        ({"a": "."}, {"a": "\ud800"}, False),
        ({"\ud800": "."}, {"\ud800": "x"}, False),
    ],
)
def test_a_rule_fits_where_every_text_it_names_is_there_and_matches(
    when: dict[str, str], arguments: dict[str, Any], fit: bool
) -> None:
    """A pattern that cannot be tried at once does not match, and a rule that names nothing fits nothing."""
    assert fits(when, arguments) is fit


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "is empty"), ("(", "is not a regular expression"), (r"\q", "is not a regular expression"),
        ("(?=a)", "takes too long to try"), ("(a{999}){999}", "takes too long to try"),
        ("x" * 2001, "has more than 2,000 characters"), ("\ud800", "takes too long to try"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_kept_is_refused_with_a_sentence(pattern: str, words: str) -> None:
    assert problem({"ok": "^a$", "b\x1b": pattern}).startswith(f"the pattern for b␛ {words}")


def test_patterns_that_are_too_much_together_are_refused() -> None:
    assert not problem({"a": "a{2000}"})
    assert problem({name: f"{name}{{2000}}" for name in "abc"}) == "the patterns together take too long to try"


@pytest.mark.hostile("T08")
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("SELECT *\nFROM t", r"^SELECT\b"), ("main", "^main$"), ("", "^$"), ("/a b/c.txt", r"^/a b/c\.txt$"),
        ("a\n\t\r", r"^a\n\t\r$"), (r".*+?^${}()|[]\-#/", r"^\.\*\+\?\^\$\{\}\(\)\|\[\]\\-#/$"),
        ("a\u200b\x1b\u2028", r"^a\u200b\u001b\u2028$"), ("a\U000e0041", r"^a\u{e0041}$"), ("é🜂", "^é🜂$"),
        ("x" * 500, "^" + "x" * 60),
    ],
)  # fmt: skip
def test_a_suggestion_can_be_read_and_matches_the_text_it_is_made_of(text: str, pattern: str) -> None:
    """Nothing in it is unseen."""
    assert suggested(text) == pattern
    assert not problem({"a": pattern})
    assert fits({"a": pattern}, {"a": text})


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^a$", ""), ("^(a|b)$", ""), ("^[|]$", ""), (r"^a\|$", ""), (r"^a\$", "after it"), ("a$", "before it"),
        (r"^SELECT\b", "after it"), ("a", "before it or after it"), ("^a|b$", "before it or after it"),
        ("^(?m)a$", "before it or after it"), ("^(?i)a$", ""), ("^(?P<x>a)$", ""),
    ],
)  # fmt: skip
def test_what_a_pattern_leaves_open_is_told(pattern: str, words: str) -> None:
    assert left_open(pattern) == words


@pytest.mark.hostile("T08")
def test_a_rule_in_words_is_safe_to_show() -> None:
    assert in_words({"a\n": "^\x1b$", "b": "c"}) == "a⏎ matches '^␛$', b matches 'c'"


def question(call: int = 9) -> ToolCallQuestion:
    tool = Tool.read({"name": "act", "inputSchema": {}})
    return ToolCallQuestion(call, "s", tool, {}, "you", "run s", ToolApproval(ApprovalStatus.NEW), "")


def call(number: int, text: Any, *, server: str = "s", tool: str = "act", task: str | None = None) -> ToolCall:
    return ToolCall(number, CallRequest(server, tool, {"a": text}, task=task), lambda: 0.0)


def line(**change: Any) -> str:
    record = {"event": "decision", "time": "2026-11-20T11:00:00+00:00", "server": "s", "sent_to": "run s"}
    return json.dumps({**record, "tool": "act", "arguments": {"a": "x"}, "allowed": True, **change}) + "\n"


@pytest.mark.hostile("P10")
async def test_past_calls_are_those_of_the_tool_and_the_newest_first(tmp_path: Path) -> None:
    """The history is of this run and of the log, whatever else is in the log."""
    log = tmp_path / "audit.jsonl"
    others = [
        line(server="t"), line(sent_to="run other"), line(tool="other"), line(event="outcome"), line(arguments="left"),
        line(time="2026-11-20T13:00:00+00:00"), line(time="2026-11-20T11:00:00"), line(time="soon"), line(allowed=1),
        '{"event": "decision"', "[" * 100_000 + '"decision"\n', '"decision"\n', "\udcff\n",
    ]  # fmt: skip
    log.write_text("".join([line(arguments={"a": "old"}, allowed=False), *others]), errors="surrogateescape")
    calls = [call(1, "x"), call(2, "y"), call(3, "x", server="t"), call(4, "x", tool="b"), call(5, "x", task="t")]
    past = await call_history(question(), [*calls, call(9, "me")], log, BEGAN)
    assert past.reaches == "this run, audit log"
    trials = tried({"a": "^x$"}, past)
    assert [(each.call.arguments["a"], each.allowed) for each in trials] == [("y", False), ("x", True), ("old", False)]
    assert [each.call.declined for each in trials] == [False, False, True]
    assert trials[0].call.name == "call 2"


async def test_a_missing_log_before_the_first_call_is_fine(tmp_path: Path) -> None:
    past = await call_history(question(), [call(1, "x")], tmp_path / "absent", BEGAN)
    assert (len(past.calls), past.reaches) == (1, "this run, audit log")


@pytest.mark.parametrize("kind", ["none", "folder"])
async def test_without_a_readable_log_the_history_is_of_this_run(tmp_path: Path, kind: str) -> None:
    log = {"none": None, "folder": tmp_path}[kind]
    past = await call_history(question(), [call(1, "x")], log, BEGAN)
    assert [each.name for each in past.calls] == ["call 1"]
    assert past.reaches.startswith("this run; ")


@pytest.mark.hostile("P08")
async def test_no_more_past_calls_are_tried_than_can_be_at_once(tmp_path: Path) -> None:
    """A hostile model cannot make the preview slow."""
    log = tmp_path / "audit.jsonl"
    log.write_text(line() * 20_000)  # more than is read
    many = await call_history(question(), [], log, BEGAN)
    long = await call_history(question(), [call(n, "x" * 60_000) for n in range(5)], None, BEGAN)
    assert len(many.calls) == PAST_CALLS
    assert len(long.calls) == PAST_CHARACTERS // 60_000
    assert tried({"a": "x"}, CallHistory()) == []
