"""Definitions, results, errors and questions between two revisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.host.endpoint.translation import Translation, of_this_leg
from mcphost.protocol.lifecycle.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Revision,
)
from mcphost.serving.negotiation import RpcError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "content", "messages", "outputSchema", "execution", "structuredContent", "text"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["content", "messages", "outputSchema", "structuredContent"]), JSON)
REVISION = st.sampled_from(REVISIONS)
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": {"priority": 1}}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
TEXT = {"type": "text", "text": "t"}


def to_older(agent: Revision, server: Revision = V2026_07_28) -> Translation:
    return Translation(server, agent)


@given(REVISION, OBJECTS)
def test_within_one_revision_nothing_changes(revision: Revision, value: dict[str, Any]) -> None:
    same = Translation(revision, revision)
    assert same.tool(value) is value
    assert same.tool_result(value) is value
    assert same.prompt(value) is value
    assert same.question("sampling/createMessage", value) is value
    assert same.answer("sampling/createMessage", value) is value


@given(REVISION, REVISION, OBJECTS)
def test_any_value_passes_between_any_revisions(server: Revision, agent: Revision, value: dict[str, Any]) -> None:
    translation = Translation(server, agent)
    translation.tool(value)
    translation.tool_result(value)
    translation.prompt(value)
    for method in ("sampling/createMessage", "elicitation/create"):
        translation.question(method, value)
        translation.answer(method, value)


@given(REVISION, OBJECTS)
def test_a_result_that_an_older_revision_has_stays(agent: Revision, extra: dict[str, Any]) -> None:
    result = {
        "isError": False,
        "_meta": extra,
        "content": [TEXT, {"type": "image", "data": "", "mimeType": "image/png"}],
    }
    assert to_older(agent).tool_result(result) is result


@pytest.mark.server_requirement("STOOL-33", "STOOL-34")
@pytest.mark.parametrize(
    ("agent", "texts"),
    [
        (V2024_11_05, ["[audio: audio/wav]", "a: file:///a"]),
        (V2025_03_26, [None, "a: file:///a"]),
        (V2025_06_18, [None, None]),
    ],
)
def test_unknown_content_becomes_text(agent: Revision, texts: list[str | None]) -> None:
    content = to_older(agent).tool_result({"content": [AUDIO, LINK]})["content"]
    assert [block.get("text") for block in content] == texts
    assert content[0]["annotations"] == {"priority": 1}


@pytest.mark.server_requirement("SPROM-13", "SPROM-14")
def test_unknown_content_of_a_prompt_becomes_text() -> None:
    prompt = to_older(V2024_11_05).prompt({"messages": [{"role": "user", "content": AUDIO}, "odd"]})
    assert prompt["messages"][0]["content"]["text"] == "[audio: audio/wav]"


@pytest.mark.server_requirement("STOOL-37", "STOOL-38")
@pytest.mark.parametrize("content", [[], [{"type": "text", "text": "Done"}]])
def test_structure_that_is_no_object_becomes_text(content: list[Any]) -> None:
    result = to_older(V2025_11_25).tool_result({"content": content, "structuredContent": [1, "é"]})
    assert result == {"content": [*content, {"type": "text", "text": '[1, "é"]'}]}


def test_structure_that_a_text_repeats_is_left_out() -> None:
    content = [{"type": "text", "text": "[ 1,\n 2 ]"}]
    result = to_older(V2025_11_25).tool_result({"content": content, "structuredContent": [1, 2]})
    assert result == {"content": content}


def test_structure_that_is_an_object_stays() -> None:
    result = {"content": [], "structuredContent": {"a": 1}}
    assert to_older(V2025_06_18).tool_result(result) == result


@pytest.mark.server_requirement("STOOL-11")
@pytest.mark.parametrize("schema", [{"type": "array"}, {"anyOf": []}, True])
def test_an_output_schema_of_another_root_is_left_out(schema: Any) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema, "x": 1}
    assert "outputSchema" not in to_older(V2025_11_25).tool(tool)
    assert to_older(V2026_07_28, V2025_11_25).tool(tool) == tool


def test_only_agents_with_tasks_learn_that_a_tool_has_them() -> None:
    tool = {"name": "t", "execution": {"taskSupport": "required"}}
    assert to_older(V2026_07_28, V2025_11_25).tool(tool) == {"name": "t"}
    assert to_older(V2025_11_25).tool(tool) == tool


@pytest.mark.server_requirement("SRES-25", "SRES-26", "SMSG-27", "SMSG-28", "SMSG-30")
@pytest.mark.parametrize(
    ("server", "agent", "code", "passed"),
    [
        (V2026_07_28, V2025_11_25, -32602, -32002),
        (V2025_11_25, V2026_07_28, -32002, -32602),
        (V2026_07_28, V2026_07_28, -32602, -32602),
        (V2025_06_18, V2024_11_05, -32002, -32002),
        (V2026_07_28, V2026_07_28, -32022, -32603),
        (V2026_07_28, V2025_06_18, -32020, -32603),
        (V2026_07_28, V2026_07_28, -32021, -32603),
        (V2025_11_25, V2026_07_28, -32042, -32603),
        (V2025_11_25, V2026_07_28, -32050, -32603),
        (V2025_11_25, V2025_06_18, -32042, -32603),
        (V2025_11_25, V2025_11_25, -32042, -32042),
        (V2025_06_18, V2025_11_25, -32022, -32022),
        (V2025_06_18, V2026_07_28, -32000, -32000),
        (V2025_06_18, V2026_07_28, 17, 17),
    ],
)
def test_errors_keep_their_code_unless_it_means_another_thing(
    server: Revision, agent: Revision, code: int, passed: int
) -> None:
    error = Translation(server, agent).error("resources/read", RpcError(code, "words", {"a": 1}))
    original = {"code": code, "message": "words", "data": {"a": 1}}
    assert (error.code, error.message) == (passed, "words")
    assert error.data == (original if passed == -32603 else {"a": 1})


def test_a_capability_that_the_agent_lacks_is_named() -> None:
    error = RpcError(-32021, "no sampling", {"requiredCapabilities": {"sampling": {}}})
    assert to_older(V2026_07_28).error("tools/call", error, lacking=True) is error


def test_only_reads_have_unknown_resources() -> None:
    error = RpcError(-32602, "bad cursor")
    assert to_older(V2025_11_25).error("tools/call", error) is error
    inner = Translation(V2025_11_25, V2026_07_28).error("prompts/get", RpcError(-32002, "?"))
    assert inner.code == -32603


def test_messages_of_several_blocks_are_split_for_older_agents() -> None:
    params = {"messages": [{"role": "user", "content": [TEXT, AUDIO]}], "maxTokens": 9}
    asked = to_older(V2025_06_18).question("sampling/createMessage", params)
    assert asked is not None
    assert asked["messages"] == [{"role": "user", "content": TEXT}, {"role": "user", "content": AUDIO}]
    assert asked["maxTokens"] == 9


@pytest.mark.parametrize(
    "params",
    [
        {"messages": [], "tools": [{"name": "t"}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
    ],
)
def test_sampling_with_tools_is_not_for_older_agents(params: dict[str, Any]) -> None:
    assert to_older(V2025_06_18).question("sampling/createMessage", params) is None


def test_audio_is_not_for_agents_of_the_first_revision() -> None:
    params = {"messages": [{"role": "user", "content": AUDIO}]}
    assert to_older(V2024_11_05).question("sampling/createMessage", params) is None


def test_an_older_server_gets_one_block() -> None:
    answer = Translation(V2025_06_18, V2026_07_28).answer
    assert answer("sampling/createMessage", {"content": [TEXT], "model": "m"}) == {"content": TEXT, "model": "m"}
    assert answer("sampling/createMessage", {"content": [TEXT, TEXT]})["content"]["text"] == "tt"


def test_titled_choices_get_their_older_spelling() -> None:
    field = {"type": "string", "title": "Size", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}]}
    params = {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {"size": field, "n": {"type": "number"}}},
    }
    asked = to_older(V2025_06_18).question("elicitation/create", params)
    assert asked is not None
    assert asked["requestedSchema"]["properties"] == {
        "size": {"type": "string", "title": "Size", "enum": ["s", "l"], "enumNames": ["Small", "l"]},
        "n": {"type": "number"},
    }


def test_a_form_with_a_list_is_not_for_older_agents() -> None:
    schema = {"type": "object", "properties": {"sizes": {"type": "array", "items": {"enum": ["s"]}}}}
    assert to_older(V2025_06_18).question("elicitation/create", {"requestedSchema": schema}) is None


@pytest.mark.server_requirement("SMETA-17", "SCACHE-07")
def test_a_result_names_nothing_of_the_servers_session() -> None:
    meta = {"io.modelcontextprotocol/related-task": {"taskId": "1"}, "io.modelcontextprotocol/serverInfo": {}}
    assert of_this_leg({"content": [], "_meta": meta}) == {"content": []}
    assert of_this_leg({"_meta": {**meta, "k": 1}, "cacheScope": "public"}) == {
        "_meta": {"k": 1},
        "cacheScope": "private",
    }
    untouched = {"content": [], "_meta": {"k": 1}}
    assert of_this_leg(untouched) is untouched
