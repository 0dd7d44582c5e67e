from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import InvalidResult
from mcphost.protocol.models.content import (
    EmbeddedResource,
    MediaContent,
    ResourceLink,
    TextContent,
    UnreadableContent,
    read_content,
)
from mcphost.protocol.models.initialization import InitializeResult
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult, Tool

BARE = {"name": "t", "inputSchema": {"type": "object"}}


@pytest.mark.hostile("J07")
@pytest.mark.requirement("MSG-17", "META-01", "META-05", "TOOLS-27", "SCHEMA-06")
@pytest.mark.parametrize(
    "given",
    [
        BARE,
        {"name": "T"},
        {"name": "a b"},
        {"name": "x" * 300},
        BARE | {"x-future": {}, "_meta": {"io.modelcontextprotocol/x": [1], "": None}},
        BARE | {"__class__": 1, "constructor": {}, "model_dump": 2, "__proto__": None},
        BARE | {"inputSchema": {"$defs": {"a": {"x-y": 1}}, "anyOf": [{"$ref": "#/$defs/a"}], "x-order": ["b"]}},
        BARE | {"annotations": {"readOnlyHint": True, "x": 1, "_meta": {}}, "icons": [], "outputSchema": {}},
    ],
)
def test_a_tool_is_kept_as_it_was_defined(given: dict[str, Any]) -> None:
    """Odd member names included."""
    tool = Tool.read(given)
    assert tool.definition() == given
    assert tool.name == given["name"]


@pytest.mark.requirement("TOOLS-28")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": 7}, "name"),
        (BARE | {"inputSchema": []}, "inputSchema: is not an object"),
        (BARE | {"inputSchema": "{}"}, "inputSchema: is not an object"),
        ("t", "is not an object"),
        (None, "is null"),
    ],
)
def test_an_invalid_tool_is_refused_with_its_place(given: object, problem: str) -> None:
    with pytest.raises(InvalidResult, match=problem):
        Tool.read(given)


@pytest.mark.requirement("TOOLS-20")
@pytest.mark.parametrize(
    ("more", "label"),
    [
        ({}, "t"),
        ({"annotations": {"title": "Hint"}}, "Hint"),
        ({"annotations": {"title": "Hint"}, "title": "Title"}, "Title"),
        ({"title": ""}, "t"),
    ],
)
def test_a_tool_is_shown_by_its_title(more: dict[str, Any], label: str) -> None:
    assert Tool.read(BARE | more).label == label


@pytest.mark.requirement("TOOLS-19")
@pytest.mark.parametrize(
    ("hints", "claims"),
    [
        (None, ()),
        ({}, ()),
        ({"readOnlyHint": True}, ("read-only",)),
        ({"readOnlyHint": False}, ("writes",)),
        ({"destructiveHint": False}, ("not destructive",)),
        ({"readOnlyHint": True, "destructiveHint": True}, ("read-only",)),
        ({"idempotentHint": True, "openWorldHint": False}, ("idempotent", "closed-world")),
    ],
)
def test_a_tools_annotations_are_read_as_claimed(hints: dict[str, Any] | None, claims: tuple[str, ...]) -> None:
    tool = Tool.read(BARE if hints is None else BARE | {"annotations": hints})
    assert tool.claims == claims


@pytest.mark.requirement("EXT-03")
@pytest.mark.parametrize(
    ("meta", "has_ui", "app_only"),
    [
        ({"ui": {"resourceUri": "ui://a"}}, True, False),
        ({"ui": {"resourceUri": "ui://a", "visibility": ["app"]}}, True, True),
        ({"ui": {"visibility": ["model", "app"]}}, False, False),
        ({"ui": {"visibility": []}}, False, True),
        ({"ui": {"visibility": "app"}}, False, False),
        ({"ui": "model"}, False, False),
        ({}, False, False),
        (None, False, False),
        ("ui", False, False),
    ],
)
def test_whom_a_tool_is_for_is_read_from_its_metadata(meta: Any, has_ui: bool, app_only: bool) -> None:
    tool = Tool.read(BARE | {"_meta": meta})
    assert (tool.has_ui, tool.app_only) == (has_ui, app_only)


RESOURCE = {"uri": "file:///a", "text": "inside"}


@pytest.mark.requirement("TOOLS-08", "META-05")
@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "text", "text": ""}, TextContent),
        ({"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "_meta": {"a": 1}}, TextContent),
        ({"type": "image", "data": "AAE=", "mimeType": "image/png"}, MediaContent),
        ({"type": "audio", "data": "AAE="}, MediaContent),
        ({"type": "resource", "resource": RESOURCE}, EmbeddedResource),
        ({"type": "resource", **RESOURCE}, EmbeddedResource),
        ({"type": "resource_link", "uri": "file:///a"}, ResourceLink),
        ({"type": "resource_link", "uri": "x:y", "name": "n", "size": 3}, ResourceLink),
    ],
)
def test_content_of_every_type_is_read(item: dict[str, Any], kind: type) -> None:
    block = read_content(item)
    assert isinstance(block, kind)
    if isinstance(block, MediaContent):
        assert block.content() == b"\x00\x01"
    if isinstance(block, EmbeddedResource):
        assert (block.resource.uri, block.resource.text) == ("file:///a", "inside")


@pytest.mark.requirement("TOOLS-07")
@pytest.mark.parametrize(
    ("item", "kind", "reason"),
    [
        ({"type": "hologram"}, "hologram", "does not know"),
        ({"type": "image", "data": "%%%"}, "image", "not base64"),
        ({"type": "image", "data": "é"}, "image", "not base64"),
        ({"type": "image"}, "image", "data"),
        ({"type": "text"}, "text", "text"),
        ({"type": "resource", "resource": 1}, "resource", "resource"),
        ({"type": 1}, "?", "not a content block"),
        ({}, "?", "not a content block"),
        ([], "?", "not a content block"),
        (None, "?", "not a content block"),
    ],
)
def test_unreadable_content_stays_in_its_place_with_the_reason(item: object, kind: str, reason: str) -> None:
    result = CallToolResult.read({"content": [item, {"type": "text", "text": "after"}]})
    bad, after = result.content
    assert isinstance(bad, UnreadableContent)
    assert (bad.type, bad.raw) == (kind, item)
    assert reason in bad.reason
    assert isinstance(after, TextContent)


@pytest.mark.requirement("TOOLS-09", "TOOLS-21", "MSG-17", "ERR-05")
@pytest.mark.parametrize(
    ("result", "is_error", "has_structured", "structured"),
    [
        ({}, False, False, None),
        ({"content": [], "isError": False}, False, False, None),
        ({"isError": True, "content": []}, True, False, None),
        ({"isError": "true"}, True, False, None),
        ({"isError": 1}, True, False, None),
        ({"isError": "no idea"}, True, False, None),
        ({"isError": "False"}, False, False, None),
        ({"isError": ""}, False, False, None),
        ({"isError": 0}, False, False, None),
        ({"isError": None}, False, False, None),
        ({"structuredContent": {"a": 1}}, False, True, {"a": 1}),
        ({"structuredContent": None}, False, True, None),
        ({"structuredContent": [1]}, False, True, [1]),
        ({"error": {"code": -32004}}, False, False, None),
    ],
)
def test_a_tool_fails_only_where_it_says_so(
    result: dict[str, Any], is_error: bool, has_structured: bool, structured: object
) -> None:
    read = CallToolResult.read(result)
    assert (read.is_error, read.has_structured, read.structured) == (is_error, has_structured, structured)
    assert read.raw is result


@pytest.mark.parametrize("content", [{}, {"other": 1}, 3, True])
def test_content_that_is_not_an_array_is_invalid(content: object) -> None:
    with pytest.raises(InvalidResult, match="not an array"):
        CallToolResult.read({"content": content})


@pytest.mark.parametrize(
    ("item", "text", "remark"),
    [
        ("fine", "fine", "a content block is a text, not an object"),
        ({"text": "fine"}, "fine", "a content block has no type, and is read as text"),
        ({"type": None, "text": "fine"}, "fine", "a content block has no type, and is read as text"),
        ({"type": "text", "text": 5}, "5", "text is a number, and is shown as JSON"),
        ({"type": "text", "text": {"a": None}}, '{"a": null}', "text is an object, and is shown as JSON"),
        ({"type": "text", "text": "fine", "annotations": []}, "fine", "annotations is a list, and counts as absent"),
    ],
)
def test_a_text_of_an_odd_shape_is_read_with_a_remark(item: object, text: str, remark: str) -> None:
    result = CallToolResult.read({"content": [item]})
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert (block.text, result.remarks) == (text, [remark])


@pytest.mark.parametrize("content", ["fine", {"type": "text", "text": "fine"}, {"text": "fine"}])
def test_content_that_is_one_block_is_read_with_a_remark(content: object) -> None:
    result = CallToolResult.read({"content": content})
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert block.text == "fine"
    assert any("not a list" in remark for remark in result.remarks)


PIXEL = "iVBORw0KGgo="


@pytest.mark.parametrize("data", [PIXEL, "iVBO\r\nRw0K\nGgo=\n", f"data:image/png;base64,{PIXEL}", "iVBORw0KGgo"])
def test_pictures_and_blobs_are_decoded(data: str) -> None:
    image = read_content({"type": "image", "data": data, "mimeType": "image/png"})
    embedded = read_content({"type": "resource", "resource": {"uri": "x:1", "blob": data}})
    assert isinstance(image, MediaContent)
    assert isinstance(embedded, EmbeddedResource)
    assert image.content() == embedded.resource.content() == b"\x89PNG\r\n\x1a\n"
    assert (image.data, image.definition()["data"]) == (PIXEL, data)


@pytest.mark.parametrize("data", ["?!", "data:image/png,abc", "A", "data:;base64,?"])
def test_a_blob_that_is_not_base64_is_unreadable(data: str) -> None:
    block = read_content({"type": "resource", "resource": {"uri": "x:1", "blob": data}})
    assert isinstance(block, UnreadableContent)
    assert block.reason == "the blob is not base64"
    assert "x:1" in block.words


@pytest.mark.parametrize("size", [12.5, "large", [], True, None])
def test_a_link_with_an_odd_size_is_a_link(size: object) -> None:
    link = read_content({"type": "resource_link", "uri": "x:1", "size": size, "mimeType": ["text/plain"]})
    assert isinstance(link, ResourceLink)
    assert link.mime_type is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"type": "thinking", "text": "hm"}, "no: hm"),
        ({"type": "thinking", "why": [1]}, 'no: {"why": [1]}'),
        ({"type": "thinking"}, "no"),
        (5, "no: 5"),
        (None, "no"),
        ("x" * 300, f"no: {'x' * 200}…"),
    ],
)
def test_unreadable_parts_are_quoted_if_short(raw: object, words: str) -> None:
    assert UnreadableContent("?", "no", raw).words == words


@pytest.mark.parametrize(
    ("result", "unread"),
    [
        ({"output": "x"}, "the result has neither content nor structuredContent, but output"),
        ({"content": [], "a": 1, "b": 2}, "the result has neither content nor structuredContent, but a, b"),
        ({"toolResult": None, "_meta": {}, "resultType": "complete"}, ""),
        ({"content": [], "isError": True}, ""),
        ({"structuredContent": None, "output": "x"}, ""),
        ({"content": ["x"], "output": "x"}, ""),
    ],
)
def test_a_result_without_content_names_its_members(result: dict[str, Any], unread: str) -> None:
    read = CallToolResult.read(result)
    assert read.unread == unread
    assert (unread in read.remarks) is bool(unread)


@pytest.mark.parametrize("hint", ["true", 1, 1.0, "yes", [], {}, None])
def test_a_hint_of_another_type_claims_nothing(hint: object) -> None:
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    tool = Tool.read(BARE | {"annotations": dict.fromkeys(names, hint)})
    assert (tool.claims, tool.open_world, tool.reaches_out) == ((), True, True)


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": []},
        {"annotations": "read-only"},
        {"annotations": {"readOnlyHint": "maybe"}},
        {"outputSchema": []},
        {"title": 5, "description": ["a"], "icons": {}, "execution": []},
        {"inputSchema": None},
    ],
)
def test_a_tool_with_an_odd_member_is_a_tool_and_kept_as_it_came(odd: dict[str, Any]) -> None:
    tool = Tool.read(BARE | odd)
    assert (tool.label, tool.input_schema, tool.output_schema) == ("t", {"type": "object"}, None)
    assert tool.definition() == BARE | odd


@pytest.mark.parametrize(
    ("declared", "read"),
    [
        (None, {}),
        ([], {}),
        ({"tools": True, "prompts": [], "resources": {"subscribe": True}},
         {"tools": {}, "prompts": {}, "resources": {"subscribe": True}}),
        ({"tools": None, "logging": False, "x": None}, {}),
        ({"tools": "yes", "experimental": [], "extensions": {"a/b": []}}, {"tools": {}, "extensions": {"a/b": {}}}),
        ({"tasks": {"list": [], "cancel": True, "requests": {"tools": {"call": []}}}},
         {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}),
    ],
)  # fmt: skip
def test_odd_capabilities_are_read_with_a_remark(declared: object, read: dict[str, Any]) -> None:
    server = InitializeResult.read({"protocolVersion": "2025-11-25", "capabilities": declared})
    assert server.capabilities == read
    assert server.remarks


@pytest.mark.parametrize("declared", ["tools", 5, True, ["tools"]])
def test_capabilities_that_say_nothing_are_refused(declared: object) -> None:
    with pytest.raises(InvalidResult, match="capabilities: is not an object"):
        InitializeResult.read({"protocolVersion": "2025-11-25", "capabilities": declared})


def test_the_least_a_server_can_say_of_itself_is_enough() -> None:
    read = InitializeResult.read({"protocolVersion": "2024-11-05"})
    assert (read.capabilities, read.server_info.name, read.instructions) == ({}, "", None)


def test_levels_are_read_by_their_exact_names() -> None:
    names = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert [LogLevel.read(name) for name in names] == list(LogLevel)
    assert [level.wire for level in LogLevel] == names
    strange: list[object] = ["fatal", "INFO", "", None, 3, []]
    assert {LogLevel.read(name) for name in strange} == {None}


@pytest.mark.hostile("F02")
@pytest.mark.requirement("PROG-03")
@pytest.mark.parametrize(
    ("params", "fraction"),
    [
        ({"progress": 1, "total": 4}, 0.25),
        ({"progress": 0.5, "total": 1, "message": "m"}, 0.5),
        ({"progress": 9, "total": 4}, 1.0),
        ({"progress": -1, "total": 4}, 0.0),
        ({"progress": 7, "total": 0}, None),
        ({"progress": 7, "total": -3}, None),
        ({"progress": 7}, None),
        ({"progress": 7, "total": "4", "message": 3}, None),
        ({"progress": 7, "total": 10**4000}, None),
        ({"progress": 1e308, "total": 1}, "unread"),
        ({"progress": 10**4000}, "unread"),
        ({"progress": "1"}, "unread"),
        ({"progress": True}, "unread"),
        ({}, "unread"),
    ],
)
def test_progress_is_a_share_between_nothing_and_all(params: dict[str, Any], fraction: float | str | None) -> None:
    progress = Progress.read(params)
    assert ("unread" if progress is None else progress.fraction) == fraction


def test_remarks_are_made_without_decoding_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {"priority": "high"}}
    result = CallToolResult.read({"content": [picture]})
    monkeypatch.setattr(MediaContent, "content", lambda self: pytest.fail("decoded"))
    assert result.remarks == ["priority is a text, and counts as absent"]
