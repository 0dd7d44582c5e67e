from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.errors import InvalidSampling
from mcphost.protocol.models.sampling import (
    MOST_PROBLEMS,
    REFUSAL,
    CreateMessageRequest,
    CreateMessageResult,
    ModelPreferences,
    SamplingMessage,
    ToolResult,
    ToolUse,
    check,
    problems,
    text_block,
)

HI = {"role": "user", "content": {"type": "text", "text": "hi"}}
USE = {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}, "_meta": {"cache": "x"}}
RESULT = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "2"}], "_meta": {"k": 1}}
TEXT = {"type": "text", "text": "and"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
TOOL = {"name": "add", "inputSchema": {"type": "object"}}


def says(role: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks), **more}


def asks(*messages: Any, **more: Any) -> CreateMessageRequest:
    return CreateMessageRequest.read({"messages": list(messages), "maxTokens": 10, **more})


def found(request: CreateMessageRequest, version: str = "2025-11-25", *, tools: bool = True) -> list[str]:
    return [f"{path}: {text}" for path, text in problems(request, version=version, tools=tools)]


@pytest.mark.requirement("SAMP-16", "META-05")
@pytest.mark.parametrize(
    "message",
    [
        HI,
        says("user", TEXT),
        says("user", TEXT, IMAGE, AUDIO, _meta={"a": 1}),
        says("assistant", TEXT, USE),
        says("user", RESULT),
        says("user", {"type": "hologram", "x": 1}),
        says("user", {"type": "tool_use", "id": 7}),
        {"role": "assistant", "content": USE, "future": True},
    ],
)
def test_a_message_goes_out_as_it_came_in(message: dict[str, Any]) -> None:
    assert SamplingMessage.read(message).as_object() == message


def test_everything_a_request_can_say_is_read() -> None:
    request = asks(
        HI,
        says("user", TEXT),
        modelPreferences={
            "hints": [{"name": "sonnet"}, {}, 7, {"name": " "}, {"name": "claude", "x": 1}],
            "costPriority": 7,
            "speedPriority": -1,
            "intelligencePriority": 0.3,
        },
        systemPrompt="be brief",
        includeContext="thisServer",
        temperature=0.2,
        stopSequences=["END"],
        metadata={"user_id": "u"},
        tools=[TOOL],
        toolChoice={"mode": "required"},
    )
    assert request.preferences == ModelPreferences(("sonnet", "claude"), cost=1.0, speed=0.0, intelligence=0.3)
    assert (request.system_prompt, request.include_context, request.temperature) == ("be brief", "thisServer", 0.2)
    assert (request.stop_sequences, request.metadata) == (("END",), {"user_id": "u"})
    assert ([tool.name for tool in request.tools], request.tool_choice.mode if request.tool_choice else "") == (
        ["add"],
        "required",
    )
    assert [message.text for message in request.messages] == ["hi", "and"]
    assert found(request) == []


@pytest.mark.parametrize("advice", [None, 7, [], "x", {"hints": 7, "costPriority": "dear"}, {"speedPriority": None}])
def test_preferences_that_make_no_sense_advise_nothing(advice: object) -> None:
    assert ModelPreferences.read(advice) == ModelPreferences()


@pytest.mark.requirement("MSG-10")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({}, "messages"),
        ({"messages": 7, "maxTokens": "many"}, "messages"),
        ({"messages": [HI]}, "maxTokens"),
        ({"messages": [HI], "maxTokens": "many"}, "maxTokens"),
        ({"messages": [HI], "maxTokens": True}, "maxTokens"),
        ({"messages": [HI], "maxTokens": 1.5}, "maxTokens"),
        ({"messages": [HI], "maxTokens": 1, "systemPrompt": 7}, "systemPrompt"),
        ({"messages": [HI], "maxTokens": 1, "tools": [{}]}, "tools[0]"),
    ],
)
def test_an_invalid_request_is_refused_with_its_place(params: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSampling) as caught:
        CreateMessageRequest.read(params)
    assert caught.value.problems[0][0] == path
    assert caught.value.problems[0][1]
    assert REFUSAL.value == -32602


@pytest.mark.requirement("SAMP-10", "SAMP-15", "SAMP-16", "SAMP-17")
@pytest.mark.parametrize(
    ("messages", "more", "reason"),
    [
        ([], {}, "messages: is empty"),
        ([HI], {"maxTokens": 0}, "maxTokens: must be at least 1"),
        ([HI | {"role": "system"}], {}, "messages[0].role: must be user or assistant"),
        (["hi"], {}, "messages[0].content: not a message"),
        ([says("user")], {}, "messages[0].content: is empty"),
        ([says("user", TEXT, {"type": "smell"})], {}, "messages[0].content[1]: a type of content that"),
        ([says("user", {"type": "resource_link", "uri": "x:/"})], {}, "messages[0].content[0]: a message cannot hold"),
        ([says("user", IMAGE | {"data": "%%"})], {}, "messages[0].content[0]: the image data is not base64"),
        ([HI, says("assistant", USE)], {}, "messages[1].content: the tool use 'u1' has no result"),
        ([HI, says("assistant", USE), HI], {}, "messages[1].content: the tool use 'u1' has no result"),
        ([HI, says("assistant", USE, USE), says("user", RESULT)], {}, "two tool uses have the id 'u1'"),
        ([HI, says("assistant", USE), says("user", RESULT, TEXT)], {}, "messages[2].content: tool results are mixed"),
        ([HI, says("user", RESULT)], {}, "messages[1].content: no tool use before it has the id 'u1'"),
        ([HI, says("assistant", USE), says("user", RESULT, RESULT)], {}, "no tool use before it has the id 'u1'"),
        ([says("user", USE), says("user", RESULT)], {}, "messages[0].content[0]: only the assistant uses tools"),
        ([says("assistant", USE), says("assistant", RESULT)], {}, "a tool result is the user's to bring"),
        ([HI], {"tools": [TOOL, TOOL]}, "tools: two tools are called 'add'"),
        ([HI], {"tools": [TOOL], "toolChoice": {"mode": "perhaps"}}, "toolChoice.mode: must be auto, required or none"),
        ([HI], {"toolChoice": {"mode": "required"}}, "toolChoice.mode: required, and there are no tools"),
    ],
)
def test_a_broken_rule_is_reported_with_its_place(messages: list[Any], more: dict[str, Any], reason: str) -> None:
    request = asks(*messages, **more)
    assert any(reason in each for each in found(request)), found(request)
    with pytest.raises(InvalidSampling):
        check(request, version="2025-11-25", tools=True)


@pytest.mark.requirement("SAMP-10", "SAMP-15")
@pytest.mark.parametrize(
    ("message", "version", "reason"),
    [
        (HI, "2024-11-05", ""),
        (HI | {"content": IMAGE}, "2024-11-05", ""),
        (HI | {"content": AUDIO}, "2024-11-05", "audio is not part of the protocol before 2025-03-26"),
        (HI | {"content": AUDIO}, "2025-03-26", ""),
        (says("user", TEXT), "2025-06-18", "must be one block before 2025-11-25"),
        (says("user", TEXT, TEXT), "2025-11-25", ""),
        (HI | {"role": "assistant", "content": USE}, "2025-06-18", "tools are not part of sampling"),
    ],
)
def test_a_revision_allows_what_it_has(message: dict[str, Any], version: str, reason: str) -> None:
    told = found(asks(message), version)
    assert any(reason in each for each in told) if reason else not told


@pytest.mark.requirement("SAMP-15")
@pytest.mark.parametrize("more", [{"tools": [TOOL]}, {"tools": []}, {"toolChoice": {}}])
def test_tools_that_were_not_declared_are_refused(more: dict[str, Any]) -> None:
    assert found(asks(HI, **more), tools=False) == ["tools: this host did not declare sampling.tools"]
    assert found(asks(HI, **more)) == []


def test_several_uses_may_be_answered_in_any_order() -> None:
    uses = says("assistant", USE, USE | {"id": "u2"})
    assert found(asks(HI, uses, says("user", RESULT | {"toolUseId": "u2"}, RESULT), HI)) == []


def test_the_number_of_reported_problems_is_bounded() -> None:
    assert len(found(asks(*["x"] * 500))) == MOST_PROBLEMS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "text", "tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "id", "name", "input"]), inner)
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), JSON, JSON)
def test_any_value_is_read_or_refused(messages: list[Any], tools: Any, preferences: Any) -> None:
    try:
        request = asks(*messages, tools=tools, modelPreferences=preferences, toolChoice=tools)
    except InvalidSampling:
        return
    found(request)


@pytest.mark.requirement("SAMP-09", "SAMP-16")
@pytest.mark.parametrize(
    ("result", "version", "content"),
    [
        (CreateMessageResult((text_block("a"),), "m", "endTurn"), "2025-11-25", {"type": "text", "text": "a"}),
        (CreateMessageResult((ToolUse.create("u", "add", {}),), "m", "toolUse"), "2025-11-25", None),
        (CreateMessageResult((text_block("a"), text_block("b")), "m"), "2025-11-25", None),
        (CreateMessageResult((text_block("a"), text_block("b")), "m"), "2025-06-18", {"type": "text", "text": "ab"}),
    ],
)
def test_an_answer_has_the_shape_of_its_revision(result: CreateMessageResult, version: str, content: Any) -> None:
    told = result.as_object(version)
    assert told["content"] == content if content else isinstance(told["content"], list)
    assert (told["role"], told["model"], told.get("stopReason")) == ("assistant", "m", result.stop_reason)
    assert SamplingMessage.read(told).blocks == result.message.blocks or version < "2025-11-25"


def test_a_result_of_ours_reads_like_one_of_theirs() -> None:
    ours = ToolResult.create("u1", [{"type": "text", "text": "2"}], is_error=True)
    message = SamplingMessage.create("user", ours)
    assert message.as_object()["content"] == {
        "type": "tool_result",
        "toolUseId": "u1",
        "content": [{"type": "text", "text": "2"}],
        "isError": True,
    }
    assert SamplingMessage.read(json.loads(json.dumps(message.as_object()))).results == (ours,)
