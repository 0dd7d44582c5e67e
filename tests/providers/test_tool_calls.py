"""Tools that a model wants to use, as its answer comes: begun, complete, odd, too many, forbidden."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcphost.protocol.models.sampling import SamplingMessage, ToolUse
from mcphost.providers.base import AnswerFinished, ToolUseBegun, ToolUseReady
from mcphost.providers.tool_calls import MOST_ARGUMENTS, MOST_USES
from tests.providers.endpoints import (
    ASKED,
    FORBIDDEN,
    USES,
    VENDORS,
    chunk,
    each_vendor,
    gather,
    gathered,
    line,
    meeting,
    read,
    streams,
)


@pytest.mark.requirement("SAMP-16")
@each_vendor
async def test_tool_uses_are_begun_and_then_complete(vendor: str) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(USES))) as met:
        events = await met.ask()
        whole = await gather(met.provider, ASKED)
    assert [each for each in events if isinstance(each, ToolUseBegun | ToolUseReady)] == [
        ToolUseBegun("u1", "add", True),
        *([] if vendor == "openai" else [ToolUseReady("u1", "add", {"a": 2, "b": 3}, True)]),
        ToolUseBegun("u2", "files.read/all", True),
        *([ToolUseReady("u1", "add", {"a": 2, "b": 3}, True)] if vendor == "openai" else []),
        ToolUseReady("u2", "files.read/all", {}, True),
    ]
    told = whole.result.as_object()
    assert [block["type"] for block in told["content"]] == ["text", "tool_use", "tool_use"]
    assert (told["stopReason"], whole.flawed) == ("toolUse", ())


ODD_USES: list[tuple[tuple[str, ...], dict[str, Any], bool, str]] = [
    (("add", '{"a": 1'), {}, True, "not valid JSON"),
    (("add", "{'a': 1}"), {}, True, "not valid JSON"),
    (("add", '{"a": NaN}'), {}, True, "not valid JSON"),
    (("add", "[" * 100_000), {}, True, "not valid JSON"),
    (("add", "[1]"), {}, True, "not a JSON object"),
    (("add", '"x"'), {}, True, "not a JSON object"),
    (("add", '{"a": "', "x" * MOST_ARGUMENTS, '"}'), {}, True, "larger than 1.0 MB"),
    (("Add", "{}"), {}, False, "no tool of exactly this name"),
    (("add\u200b", "{}"), {}, False, "no tool of exactly this name"),
    (("other__add", '{"a": 1}'), {"a": 1}, False, "no tool of exactly this name"),
    (("", "{}"), {}, False, "no tool of exactly this name"),
    (("add", ""), {}, True, ""),
    (("add", '{"a": 1, "extra": 2}'), {"a": 1, "extra": 2}, True, ""),
]


@pytest.mark.hostile("M02")
@each_vendor
@pytest.mark.parametrize(("use", "arguments", "offered", "problem"), ODD_USES)
def test_an_invalid_tool_use_is_reported_and_not_repaired(
    vendor: str, use: tuple[str, ...], arguments: dict[str, Any], offered: bool, problem: str
) -> None:
    """The wire's part; whether the arguments fit the schema is for the chat to say."""
    events = read(vendor, *VENDORS[vendor].stream((("use", "u1", *use), ("stop", "tools"))))
    (ready,) = (each for each in events if isinstance(each, ToolUseReady))
    assert (ready.name, ready.input, ready.offered) == (use[0], arguments, offered)
    assert problem in ready.problem
    assert bool(problem) == bool(ready.problem)
    assert "".join(use[1:])[:100] in ready.raw or not problem or not offered
    assert bool(gathered(events).gathered.flawed) == bool(problem)


@pytest.mark.hostile("M03")
@each_vendor
def test_more_tool_uses_than_anybody_wants_are_flawed(vendor: str) -> None:
    uses = [("use", f"u{number}", "add", "{}") for number in range(MOST_USES + 5)]
    flawed = gathered(read(vendor, *VENDORS[vendor].stream((*uses, ("stop", "tools"))))).gathered.flawed
    assert [use.id for use in flawed] == [f"u{MOST_USES + extra}" for extra in range(5)]


@pytest.mark.requirement("SAMP-18")
@each_vendor
def test_a_use_of_tools_that_were_forbidden_is_flawed(vendor: str) -> None:
    stream = VENDORS[vendor].stream((("use", "u1", "add", "{}"), ("stop", "tools")))
    (ready,) = (each for each in read(vendor, *stream, request=FORBIDDEN) if isinstance(each, ToolUseReady))
    assert (ready.offered, bool(ready.problem)) == (False, True)


def calls(*each: Any) -> dict[str, Any]:
    return chunk(tool_calls=list(each))


FUNCTION = {"name": "add", "arguments": '{"a":1}'}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([calls({"id": "a", "function": FUNCTION}, {"id": "b", "function": FUNCTION})], ["a", "b"]),
        ([calls({"index": 0, "id": "a", "function": FUNCTION}), calls({"index": 0, "id": "b", "function": FUNCTION})],
         ["a", "b"]),
        ([calls({"id": "a", "function": {"name": "add", "arguments": {"a": 1}}})], ["a"]),
        ([calls({"function": FUNCTION}), calls({"index": 1, "function": FUNCTION})], ["call_1", "call_2"]),
        ([calls({"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}}),
          calls({"index": 0, "id": "a", "function": {"arguments": '{"a"'}}),
          calls({"index": 0, "id": "", "function": {"arguments": ":1}"}})], ["a"]),
        ([{"choices": [{"message": {"tool_calls": [{"id": "a", "function": FUNCTION}]}, "finish_reason": "stop"}]}],
         ["a"]),
    ],
)  # fmt: skip
def test_the_ways_in_which_compatible_servers_tell_tool_calls(documents: list[Any], expected: list[str]) -> None:
    told = [json.dumps(document).encode() for document in [*documents, {"choices": [{"finish_reason": "stop"}]}]]
    events = read("openai", *(b"data: " + each + b"\n\n" for each in told))
    uses = [each for each in events if isinstance(each, ToolUseReady)]
    assert [(use.id, use.input, use.problem) for use in uses] == [(each, {"a": 1}, "") for each in expected]
    assert events[-1] == AnswerFinished("toolUse", "asked-for")


NAMED = {"name": "add", "arguments": ""}
ONE, TWO = {"arguments": '{"a"'}, {"arguments": ":1}"}
NOW = {"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}}


@pytest.mark.hostile("M02")
@pytest.mark.parametrize(
    "pieces",
    [
        [{"index": 0, "id": "a", "function": NAMED}, {"index": 0, "id": "b", "function": ONE},
         {"index": 0, "id": "c", "function": TWO}],
        [{"index": 0, "id": "a", "function": NAMED}, {"index": 0, "id": "null", "function": ONE},
         {"index": 0, "id": None, "function": TWO}],
        [{"id": "a", "function": NAMED}, {"id": "b", "function": ONE}, {"function": TWO}],
        [{"index": 0, "id": "a", "function": NAMED}, {"index": 0, "id": "a", "function": {"name": "add", **ONE}},
         {"index": 0, "id": "a", "function": {"name": "add", **TWO}}],
        [{"index": 0, "id": "a", "function": {"name": "add", **ONE}},
         {"index": 0, "id": "b", "function": {"name": "add", **TWO}}],
        [{"index": 0, "id": "a", "function": {"name": "add", **ONE}},
         {"index": 0, "function": {"name": "add", **TWO}}],
        [{"index": 0, "id": "a"}, {"index": 0, "function": {"name": "add"}}, {"index": 0, "function": ONE},
         {"index": 0, "function": TWO}],
        [{"index": 3, "id": "a", "function": ONE}, {"index": 3, "function": {"name": "add", **TWO}}],
    ],
    ids=["new ids", "placeholder ids", "no index", "name again", "name again, new id", "name again, no id",
         "name later", "name last"],
)  # fmt: skip
def test_a_tool_use_begins_with_its_name_whatever_its_ids(pieces: list[Any]) -> None:
    told = [json.dumps(document).encode() for document in [*map(calls, pieces), FINISH]]
    events = read("openai", *(b"data: " + each + b"\n\n" for each in told))
    uses = [each for each in events if isinstance(each, ToolUseBegun | ToolUseReady)]
    assert uses == [ToolUseBegun("a", "add", True), ToolUseReady("a", "add", {"a": 1}, True)]


FINISH = {"choices": [{"finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([{"function": FUNCTION}, {"function": FUNCTION}], [{"a": 1}, {"a": 1}]),
        ([{"index": 0, "id": "", "function": FUNCTION}, {"index": 0, "id": "", "function": FUNCTION}],
         [{"a": 1}, {"a": 1}]),
        ([{"id": "", "function": NAMED}, {"function": ONE}, {"function": TWO},
          {"function": {"name": "files_read_all_1"}}, {"function": {"arguments": "{}"}}], [{"a": 1}, {}]),
        ([{"index": 0, "function": NAMED}, {"index": 0, "function": ONE}, {"index": 0, "function": TWO},
          {"index": 0, "function": {"name": "add"}}, {"index": 0, "function": ONE}, {"index": 0, "function": TWO}],
         [{"a": 1}, {"a": 1}]),
    ],
)  # fmt: skip
def test_a_second_name_begins_a_second_tool_use(pieces: list[Any], expected: list[Any]) -> None:
    told = [json.dumps(document).encode() for document in [*map(calls, pieces), FINISH]]
    events = read("openai", *(b"data: " + each + b"\n\n" for each in told))
    uses = [each for each in events if isinstance(each, ToolUseReady)]
    assert [(use.input, use.problem) for use in uses] == [(each, "") for each in expected]
    assert len({use.id for use in uses}) == len(uses)


@pytest.mark.hostile("M02")
@pytest.mark.parametrize(
    ("documents", "problems"),
    [
        ([calls(NOW), calls({**NOW, "id": "b"}), FINISH], ["its arguments did not come", ""]),
        ([calls(NOW), {"choices": [{"finish_reason": "length"}]}], ["its arguments did not come"]),
        ([calls(NOW), {"choices": [{"finish_reason": "content_filter"}]}], ["its arguments did not come"]),
        ([calls({"index": 0, "function": ONE}), FINISH], ["no tool of exactly this name"]),
        ([calls({"function": {"name": "add", "arguments": [1]}}), FINISH], ["not a JSON object"]),
        ([calls({"function": {"name": "add", "arguments": 7}}), FINISH], ["not a JSON object"]),
        ([calls({"function": {"name": "add", "arguments": None}}), FINISH], [""]),
    ],
)
def test_a_tool_use_that_is_half_known_has_a_problem(documents: list[Any], problems: list[str]) -> None:
    events = read("openai", *(b"data: " + json.dumps(each).encode() + b"\n\n" for each in documents))
    uses = [each for each in events if isinstance(each, ToolUseReady)]
    for use, problem in zip(uses, problems, strict=True):
        assert problem in use.problem
        assert bool(problem) == bool(use.problem)


@each_vendor
def test_a_tool_use_cut_off_before_its_arguments_is_not_run(vendor: str) -> None:
    (ready,) = (
        each
        for each in read(vendor, *VENDORS[vendor].stream((("use", "u1", "add"), ("stop", "length"))))
        if isinstance(each, ToolUseReady)
    )
    # Ollama sends a whole tool use in one piece.
    assert ready.problem == ("" if vendor == "ollama" else "its arguments did not come")


def test_arguments_at_the_start_count_if_no_pieces_follow() -> None:
    stream = b"".join(VENDORS["anthropic"].stream((("use", "u1", "add"), ("stop", "tools"))))
    (ready,) = (
        each
        for each in read("anthropic", stream.replace(b'"input": {}', b'"input": {"a": 1}'))
        if isinstance(each, ToolUseReady)
    )
    assert ready == ToolUseReady("u1", "add", {"a": 1}, True)


def test_tool_uses_without_ids_get_unused_ones() -> None:
    past = SamplingMessage.create("assistant", *(ToolUse.create(name, "add", {}) for name in ("call_2", "call_4")))
    request = replace(ASKED, messages=(*ASKED.messages, past))
    call = {"function": {"name": "add", "arguments": {"a": 1}}}
    told = [line({"message": {"tool_calls": [call, call]}}), line({"message": {"tool_calls": [call]}, "done": True})]
    uses = [each for each in read("ollama", *told, request=request) if isinstance(each, ToolUseReady)]
    assert [(use.id, use.input, use.problem) for use in uses] == [
        (name, {"a": 1}, "") for name in ("call_3", "call_5", "call_6")
    ]
    assert uses == [each for each in read("ollama", *told, request=request) if isinstance(each, ToolUseReady)]


def test_a_use_without_problem_is_a_block_of_the_protocol() -> None:
    block = ToolUse.create("u", "add", {"a": 1})
    assert block.definition() == {"type": "tool_use", "id": "u", "name": "add", "input": {"a": 1}}
