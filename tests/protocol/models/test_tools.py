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
    """(odd member names)."""
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
def test_what_is_no_tool_is_refused_with_the_place(given: object, problem: str) -> None:
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
def test_what_a_tool_claims_is_told_and_nothing_else(hints: dict[str, Any] | None, claims: tuple[str, ...]) -> None:
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
def test_content_that_is_no_array_is_an_invalid_result(content: object) -> None:
    with pytest.raises(InvalidResult, match="not an array"):
        CallToolResult.read({"content": content})


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
