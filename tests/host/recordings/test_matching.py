"""The recorded exchange that a request asks for."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.host.recordings.matching import ExchangeIndex, ExchangeSequence, Matching, fits, titled
from mcphost.protocol.json_paths import JsonPath
from mcphost.redaction import MASK

Json = dict[str, Any]
CALL = "tools/call"


def tool(name: str = "t", **arguments: Any) -> Json:
    return {"name": name, "arguments": arguments}


def index(*params: Json, matching: Matching = "exact", ignored: str = "") -> ExchangeIndex:
    paths = [JsonPath.parse(ignored)] if ignored else []
    return ExchangeIndex([(CALL, each) for each in params], matching, paths)


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        (tool(a=1, b=2), tool(b=2, a=1)),
        (tool(a=1), tool(a=1.0)),
        (tool(), {"name": "t"}),
        (tool(), {"name": "t", "arguments": None}),
        (tool(), {**tool(), "_meta": {"progressToken": 1}, "task": {}, "requestState": "s", "inputResponses": {}}),
        (tool(a=MASK), tool(a={"any": 1})),
        (tool(a=f"Bearer {MASK}"), tool(a="Bearer xyz")),
        (tool(a=[{"b": MASK}]), tool(a=[{"b": 2}])),
    ],
)
def test_a_request_is_the_same(recorded: Json, live: Json) -> None:
    assert index(recorded).candidates(CALL, live) == [0]


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        (tool(a=1), tool(a=2)),
        (tool(a=1), tool(a=True)),
        (tool(a=1), tool(a="1")),
        (tool(), tool("u")),
        (tool(a=[1, 2]), tool(a=[2, 1])),
        (tool(a=f"Bearer {MASK}"), tool(a="Basic xyz")),
        (tool(a=MASK), tool(a=1, b=2)),
        (tool(a=MASK), tool()),
        (tool(), {**tool(), "more": 1}),
    ],
)
def test_a_request_is_another(recorded: Json, live: Json) -> None:
    assert index(recorded).candidates(CALL, live) == []


@pytest.mark.parametrize(
    ("recorded", "live", "expected"),
    [
        (f"{MASK}-{MASK}", "ab-cd", True),
        (f"a{MASK}b{MASK}c", "axbyc", True),
        (f"a{MASK}b{MASK}c", "axc", False),
        (f"ab{MASK}bc", "abc", False),
        ({f"x{MASK}": 1, "y": 2}, {"xyz": 3, "y": 2}, True),
        ({f"x{MASK}": 1, "y": 2}, {"xyz": 3}, False),
    ],
)
def test_masked_parts_fit_anything(recorded: Any, live: Any, expected: bool) -> None:
    assert fits(recorded, live) is expected


def test_ignored_parts_are_not_compared() -> None:
    found = index(tool(at="monday", n=1), ignored="$.arguments.at")
    assert found.candidates(CALL, tool(at="tuesday", n=1)) == found.candidates(CALL, tool(n=1)) == [0]
    assert found.candidates(CALL, tool(at="monday", n=2)) == []
    assert index(tool(rows=[{"id": 1}, 2]), ignored="$..id").candidates(CALL, tool(rows=[{"id": 9}, 2])) == [0]


def test_by_arguments_other_params_are_not_compared() -> None:
    assert index({**tool(), "more": 1}, matching="arguments").candidates(CALL, tool()) == [0]


def test_in_order_only_the_method_counts() -> None:
    found = ExchangeSequence(index(tool("a"), tool("b"), matching="order"))
    assert [found.take(CALL, tool("z")) for _ in range(3)] == [(0, False), (1, False), (1, True)]
    assert found.take("prompts/get", {}) is None


def test_the_same_requests_are_answered_in_order() -> None:
    recorded = index(tool(), tool("u"), tool())
    once, loop = ExchangeSequence(recorded), ExchangeSequence(recorded, loop=True)
    assert [once.take(CALL, tool()) for _ in range(4)] == [(0, False), (2, False), (2, True), (2, True)]
    assert [loop.take(CALL, tool()) for _ in range(4)] == [(0, False), (2, False), (0, True), (2, False)]


@pytest.mark.parametrize(
    ("live", "words"),
    [
        (tool("log", n=2), "Nearest: log {n: 1}; it differs in n."),
        (tool("log", n=1, m=MASK), "Nearest: log {n: 1}; it differs in m."),
        (tool("log"), "Nearest: log {n: 1}; it differs in n."),
        (tool("show"), "It holds status and log."),
    ],
)
def test_the_nearest_request_is_named(live: Json, words: str) -> None:
    found = index(tool("status"), tool("log", n=1), tool("log", n=1, other=[1]))
    assert found.miss(CALL, live) == f"The recording holds no such call. {words}"


def test_requests_that_take_long_to_compare_are_not_named() -> None:
    assert index(tool("log", n="x" * 30_000)).miss(CALL, tool("log")) == "The recording holds no such call."


def test_deep_arguments_are_compared() -> None:
    def deep(innermost: str) -> Json:
        value: Any = innermost
        for _ in range(120):
            value = [{"a": value}]
        return tool(value=value)

    assert index(deep("x")).candidates(CALL, deep("x")) == [0]
    assert index(deep(f"x{MASK}")).candidates(CALL, deep("xy")) == [0]
    assert index(deep("x")).miss(CALL, deep("y")).endswith("it differs in value.")


def test_a_method_without_requests_is_named() -> None:
    assert index(tool()).miss("prompts/get", {}) == "The recording holds no prompts/get."


@pytest.mark.hostile("T01")
def test_the_words_are_safe_to_show() -> None:
    words = index(tool("log", **{"n\x1b[2J": "\x1b]0;x\x07", "long": "y" * 9_999})).miss(CALL, tool("log"))
    assert words.isprintable()
    assert len(words) < 600


def test_an_answered_exchange_comes_before_one_without_an_answer() -> None:
    calls = [("tools/call", {"name": "slow"})] * 2
    sequence = ExchangeSequence(ExchangeIndex(calls, unanswered={0}))
    assert sequence.take(*calls[0]) == (1, False)
    assert sequence.take(*calls[0]) == (1, True)


def test_a_request_without_a_subject_is_titled_by_its_method() -> None:
    assert titled("tools/list", {}) == "tools/list"
    assert titled("tools/call", {"name": "add", "arguments": {"a": 1}}) == "tools/call add {a: 1}"
