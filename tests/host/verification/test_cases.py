"""The cases of recordings and saved calls, and the words about their ends."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.config.calls import parse_calls
from mcphost.errors import RequestTimeout, ServerError
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession, Recording
from mcphost.host.verification.answers import AnswerRules
from mcphost.host.verification.cases import (
    LiveAnswer,
    RecordedCase,
    SavedCase,
    chosen,
    judged,
    recorded_cases,
    saved_cases,
)
from mcphost.host.verification.updates import why_not
from mcphost.redaction import MASK

LIST = RecordedExchange("tools/list", result={"tools": [{"name": "log"}]}, answer_line=2)
CALL = RecordedExchange("tools/call", {"name": "log", "arguments": {"n": 1}}, result={"content": []}, answer_line=4)


def cases_of(*exchanges: RecordedExchange, server: str = "git") -> list[RecordedCase]:
    session = RecordedSession(server, exchanges=exchanges)
    return recorded_cases(Recording("x", sessions=(session,)), "x")


def recorded(exchange: RecordedExchange, answer: LiveAnswer) -> tuple[str, ...]:
    return judged(cases_of(exchange)[0], answer, AnswerRules()).words


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def test_each_request_with_an_answer_is_a_case_in_order() -> None:
    others = (RecordedExchange("initialize", result={}), RecordedExchange("ping", result={}))
    read = RecordedExchange("resources/read", {"uri": "a://b"}, result={"contents": []})
    found = cases_of(*others, LIST, CALL, read)
    assert [case.name for case in found] == ["1 tools/list", "2 tools/call log", "3 resources/read a://b"]
    assert [case.line for case in found] == [2, 4, 0]
    assert found[1].uses == ("log", {"n": 1})


def test_a_list_that_came_again_unchanged_is_one_case() -> None:
    first = RecordedExchange("tools/list", {}, result={"tools": [{"name": "a"}], "nextCursor": "2"}, answer_line=2)
    last = RecordedExchange("tools/list", {"cursor": "2"}, result={"tools": [{"name": "log"}]}, answer_line=4)
    changed = RecordedExchange("tools/list", result={"tools": []})
    found = cases_of(first, last, CALL, first, last, changed)
    assert [(case.name, len(case.pages), len(case.again)) for case in found] == [
        ("1 tools/list", 2, 1),
        ("2 tools/call log", 0, 0),
        ("3 tools/list", 1, 0),
    ]
    assert [exchange.answer_line for exchange, _ in found[0].pages] == [2, 4]


@pytest.mark.parametrize(
    ("exchange", "why"),
    [
        (CALL._replace(result=None), "the recording holds no answer"),
        (
            CALL._replace(params={"name": "log", "arguments": {"key": MASK}}),
            "a secret was taken out of its arguments.key",
        ),
        (CALL._replace(params={"name": 5}), "it names no tool"),
    ],
)
def test_a_request_that_cannot_be_made_again_is_skipped(exchange: RecordedExchange, why: str) -> None:
    (case,) = cases_of(exchange)
    assert (case.skipped, case.uses) == (why, None)


def test_a_call_that_became_a_task_is_judged_by_what_that_brought() -> None:
    begun = CALL._replace(params={"name": "log", "task": {}}, result={"task": {"taskId": "7"}})
    ended = RecordedExchange("tasks/result", {"taskId": "7"}, result=text("done"), answer_line=9)
    (case,) = cases_of(begun, ended)
    assert judged(case, LiveAnswer(text("done")), AnswerRules()).state == "passed"
    changed = judged(case, LiveAnswer(text("else")), AnswerRules())
    assert why_not(changed) == "its answer has no line of its own; record it again"


def test_names_choose_cases() -> None:
    cases = cases_of(LIST, CALL)
    assert [case.name for case in chosen(cases, "CALL")] == ["2 tools/call log"]
    assert [case.name for case in chosen(cases, "1*list")] == ["1 tools/list"]
    assert len(chosen(cases, "")) == 2


ERROR = CALL._replace(result=None, error={"code": -32602, "message": "no such thing"})


@pytest.mark.parametrize(
    ("exchange", "answer", "said"),
    [
        (ERROR, LiveAnswer(error=ServerError(-32602, "in other words")), ()),
        (ERROR, LiveAnswer(error=ServerError(-1, "ouch")), ("error code: expected -32602, got -1 (ouch)",)),
        (ERROR, LiveAnswer(text("x")), ("expected the error -32602 (no such thing), got a result",)),
        (CALL, LiveAnswer(error=ServerError(-1, "ouch")), ("the server answered with an error: ouch (-1)",)),
        (CALL, LiveAnswer({"content": [], "_meta": {"a": 1}, "resultType": "complete"}), ()),
        (CALL, LiveAnswer({"content": [], "isError": True}), ("isError: not expected, got true",)),
        (LIST, LiveAnswer(items=[{"name": "log"}]), ()),
        (LIST, LiveAnswer(items=[]), ('tools.log: expected {"name": "log"}, and it is missing',)),
    ],
)
def test_an_answer_is_judged_by_the_recorded_one(
    exchange: RecordedExchange, answer: LiveAnswer, said: tuple[str, ...]
) -> None:
    assert recorded(exchange, answer) == said


def test_the_order_of_a_list_says_nothing() -> None:
    tools = [{"name": "a"}, {"name": "b"}]
    (case,) = cases_of(RecordedExchange("tools/list", result={"tools": tools}))
    assert judged(case, LiveAnswer(items=tools[::-1]), AnswerRules()).state == "passed"


def saved(toml: str) -> SavedCase:
    (case,) = saved_cases(parse_calls(f'[[call]]\nname = "c"\nserver = "s"\ntool = "t"\n{toml}'), "calls.toml")
    return case


@pytest.mark.parametrize(
    ("toml", "answer", "said"),
    [
        ("expect = {}", LiveAnswer(text("fine")), []),
        ("expect = {}", LiveAnswer(text("no", isError=True)), ["is_error: expected false, got true; it says: no"]),
        ("max_seconds = 2", LiveAnswer(text("fine"), seconds=1.0), []),
        ("max_seconds = 2", LiveAnswer(text("fine"), seconds=3.0), ["max_seconds: took 3.0 s, at most 2.0 s"]),
        ("expect = { is_error = true }", LiveAnswer(text("x")), ["is_error: expected true, got false"]),
        ("expect = { is_error = true }", LiveAnswer(error=ServerError(-1, "ouch")), []),
        (
            'expect = { text_matches = "^b" }',
            LiveAnswer({"messages": [{"content": {"type": "text", "text": "b"}}]}),
            [],
        ),
        ('expect = { text_matches = "b$" }', LiveAnswer({"contents": [{"text": "ab"}]}), []),
        ('expect = { text_matches = "^b" }', LiveAnswer(text("a")), ['text_matches: "^b" matches nothing in "a"']),
        ('expect = { text_matches = "a" }', LiveAnswer(text("a", isError=True)), []),
        ("expect = { structured = { n = 1 } }", LiveAnswer({"structuredContent": {"n": 1.0, "m": 2}}), []),
        (
            "expect = { structured = { n = { m = 1 } } }",
            LiveAnswer({"structuredContent": {"n": {"m": 2}}}),
            ["structured.n.m: expected 1, got 2"],
        ),
        ("expect = { structured = {} }", LiveAnswer({}), ["structured: the answer has no structuredContent"]),
        (
            "expect = {}",
            LiveAnswer(error=RequestTimeout("tools/call", 3)),
            ["tools/call timed out after 3 s without an answer or a sign of progress"],
        ),
    ],
)
def test_each_expectation_of_a_saved_call_has_its_words(toml: str, answer: LiveAnswer, said: list[str]) -> None:
    assert list(judged(saved(toml), answer, AnswerRules()).words) == said


def test_a_saved_call_without_expectation_is_skipped() -> None:
    assert saved("").skipped == "it has neither expect nor max_seconds"
    assert saved("expect = {}").skipped == ""


def test_no_sentence_holds_a_part_of_a_secret() -> None:
    secret = "swordfish" * 40
    report = judged(
        cases_of(CALL._replace(result=text("x")))[0],
        LiveAnswer(text("a" * 100 + secret), seconds=1),
        AnswerRules(),
        lambda words: words.replace(secret, MASK),
    )
    assert report.state == "failed"
    assert "sword" not in f"{report.words}{report.found}"
    expected = saved('expect = { text_matches = "nothing" }')
    words = judged(expected, LiveAnswer(text(secret)), AnswerRules(), lambda words: words.replace(secret, MASK)).words
    assert "sword" not in str(words)
