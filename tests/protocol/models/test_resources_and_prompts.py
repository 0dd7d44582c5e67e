"""Resources, prompts and what else servers offer besides tools, as they arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mcphost.errors import InvalidResult
from mcphost.protocol.lifecycle.revisions import (
    HANDSHAKE_REVISIONS,
    TASK_CALLS,
    V2025_06_18,
    V2025_11_25,
    missing_capability,
    offers,
)
from mcphost.protocol.models.base import Wire
from mcphost.protocol.models.content import Annotations, ResourceContents, ResourceLink, TextContent, UnreadableContent
from mcphost.protocol.models.prompts import Completion, GetPromptResult, Prompt, PromptArgument
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.models.tools import TaskSupport, Tool


@pytest.mark.requirement("RES-10", "TOOLS-20", "PROMPT-01")
@pytest.mark.parametrize(
    ("model", "given", "label"),
    [
        (Resource, {"uri": "foo+bar://x"}, "foo+bar://x"),
        (Resource, {"uri": "no uri at all", "name": "n"}, "n"),
        (Resource, {"uri": "x:", "name": "n", "title": "T", "icons": [{"src": "javascript:1"}], "x": {}}, "T"),
        (ResourceTemplate, {"uriTemplate": "x:{a}", "name": "n"}, "n"),
        (ResourceTemplate, {"uriTemplate": "x:{a}", "name": "n", "title": "T", "_meta": {"a": 1}}, "T"),
        (Prompt, {"name": "p"}, "p"),
        (Prompt, {"name": "p", "title": "T", "arguments": [{"name": "a", "required": True}], "icons": "odd"}, "T"),
        (PromptArgument, {"name": "a"}, "a"),
        (PromptArgument, {"name": "a", "title": "T", "required": True}, "T"),
        (ResourceLink, {"type": "resource_link", "uri": "x:1"}, "x:1"),
    ],
)
def test_an_offer_is_kept_as_it_was_defined_and_called_by_its_title(
    model: type[Resource | ResourceTemplate | Prompt | PromptArgument | ResourceLink], given: dict[str, Any], label: str
) -> None:
    offer = model.read(given)
    assert offer.definition() == given
    assert offer.label == label


@pytest.mark.parametrize(
    ("model", "given", "place"),
    [
        (Resource, {"name": "n"}, "uri"),
        (Resource, {"uri": ""}, "uri"),
        (ResourceTemplate, {"uriTemplate": 7}, "uriTemplate"),
        (Prompt, {"name": None}, "name"),
        (Prompt, {"name": "p", "arguments": [{"title": "no name"}]}, "arguments.0.name"),
        (Prompt, [], ""),
    ],
)
def test_an_offer_without_its_name_is_refused_in_words(model: type[Wire], given: Any, place: str) -> None:
    with pytest.raises(InvalidResult) as refused:
        model.read(given)
    assert str(refused.value).startswith(place)


@pytest.mark.requirement("RES-09")
def test_hints_that_make_no_sense_are_left_out_and_the_rest_is_read() -> None:
    odd = {"uri": "x:", "size": "big", "annotations": {"audience": "me", "priority": "high", "lastModified": 3}}
    resource = Resource.read(odd)
    assert resource.size is None
    assert resource.annotations == Annotations(audience=None, priority=None, last_modified=None)
    assert Resource.read({"uri": "x:", "annotations": 7}).annotations is None
    folder = {"uri": "x:", "size": 500_000_000, "mimeType": "inode/directory"}
    good = Resource.read({**folder, "annotations": {"audience": ["user"], "priority": 0.5}})
    assert (good.size, good.is_folder) == (500_000_000, True)
    assert good.annotations is not None
    assert (good.annotations.audience, good.annotations.priority) == (["user"], 0.5)
    block = TextContent.read({"type": "text", "text": "t", "annotations": {"priority": 1}})
    assert block.annotations is not None
    assert block.annotations.priority == 1


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2025-01-12T15:00:58Z", datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12T15:00:58", datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12", datetime(2025, 1, 12, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_time_of_the_last_change_is_a_moment_or_nothing(written: str, moment: datetime | None) -> None:
    assert Annotations.read({"lastModified": written}).modified == moment


@pytest.mark.requirement("RES-03", "RES-17")
def test_every_part_of_a_resource_is_kept_even_unreadable_ones() -> None:
    contents: list[Any] = [
        {"uri": "x:1", "text": "héllo", "mimeType": "text/plain"},
        {"uri": "x:1/2", "blob": "AAH/"},
        {"uri": "x:3", "blob": "not base64!"},
        {"uri": "x:4"},
        "odd",
    ]
    text, blob, *rest = ReadResourceResult.read({"contents": contents}).contents
    assert isinstance(text, ResourceContents)
    assert isinstance(blob, ResourceContents)
    assert (text.content(), blob.content(), blob.uri) == ("héllo".encode(), b"\x00\x01\xff", "x:1/2")
    assert [each.reason for each in rest if isinstance(each, UnreadableContent)] == [
        "the blob is not base64",
        "neither text nor blob",
        "is not an object",
    ]
    assert ReadResourceResult.read({"contents": []}).contents == ReadResourceResult.read({}).contents == ()
    with pytest.raises(InvalidResult, match="not an array"):
        ReadResourceResult.read({"contents": {}})


@pytest.mark.requirement("PROMPT-05", "PROMPT-06")
def test_the_messages_of_a_prompt_keep_order_role_and_content() -> None:
    link = {"type": "resource_link", "uri": "x:1", "name": "n"}
    messages: list[Any] = [
        {"role": "user", "content": {"type": "text", "text": "1"}},
        {"role": "assistant", "content": {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}},
        {"role": "user", "content": [link, {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "x:2", "text": "t"}}},
        {"content": {"type": "text", "text": "of nobody"}},
        {"role": "narrator"},
    ]
    prompt = GetPromptResult.read({"description": 7, "messages": messages})
    assert [(message.role, message.content.type) for message in prompt.messages] == [
        ("user", "text"), ("assistant", "audio"), ("user", "resource_link"), ("user", "image"), ("user", "resource"),
        ("?", "?"), ("narrator", "?"),
    ]  # fmt: skip
    assert prompt.description is None
    with pytest.raises(InvalidResult, match="not an array"):
        GetPromptResult.read({"messages": 7})


def test_a_text_where_a_list_belongs_is_kept_in_the_words() -> None:
    (message,) = GetPromptResult.read({"messages": "hello"}).messages
    (contents,) = ReadResourceResult.read({"contents": "hello"}).contents
    for each in (message.content, contents):
        assert isinstance(each, UnreadableContent)
        assert "hello" in each.words


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        ({"uri": "x:1", "text": "fine"}, ["fine"]),
        ([{"uri": "x:1", "text": {"a": None}}, {"text": "b"}], ['{"a": null}', "b"]),
        ([{"uri": None, "mimeType": 5, "text": "fine", "blob": None}], ["fine"]),
        ([{"uri": "x:1", "blob": "Zmlu\r\nZQ=="}], ["fine"]),
        (None, []),
    ],
)
def test_contents_of_an_odd_shape_are_read(contents: object, texts: list[str]) -> None:
    result = ReadResourceResult.read({"contents": contents})
    found = [each.content().decode() for each in result.contents if isinstance(each, ResourceContents)]
    assert found == texts
    assert len(result.contents) == len(texts)


def test_a_message_whose_content_is_a_text_is_that_text() -> None:
    prompt = GetPromptResult.read({"messages": {"role": "user", "content": "hello"}})
    assert [getattr(message.content, "text", "") for message in prompt.messages] == ["hello"]
    assert prompt.remarks == ["a content block is a text, not an object"]


def test_an_answer_without_content_names_its_members() -> None:
    assert ReadResourceResult.read({"data": 1, "ttlMs": 5}).unread == "the result has no contents, but data"
    assert GetPromptResult.read({"text": 1}).unread == "the result has no messages, but text"
    assert ReadResourceResult.read({}).unread == GetPromptResult.read({"messages": [], "description": "d"}).unread == ""


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"values": ["a"]}, "the result has no suggestions, but values"),
        ({"completion": {"items": ["a"], "total": 1}}, "the result has no suggestions, but items"),
        ({"completion": {"values": "abc"}}, "the completion of the result cannot be read: values: is not a list"),
        ({"completion": ["a"]}, "the completion of the result cannot be read: is not an object"),
        ({"completion": []}, ""),
        ({"completion": {"values": None, "total": 0}}, ""),
        ({"completion": {"values": [], "extra": 1}}, ""),
    ],
)
def test_a_completion_that_holds_something_else_says_what(result: dict[str, Any], words: str) -> None:
    assert Completion.read(result).unread == words


def test_suggestions_that_are_not_texts_are_counted() -> None:
    assert Completion.read({"completion": {"values": [1, "a", None]}}).unreadable == 2


@pytest.mark.parametrize(
    ("status", "odd"), [("done", True), ("COMPLETED", True), ("", True), ("working", False), ("cancelled", False)]
)
def test_a_status_that_the_specification_does_not_have_is_named(status: str, odd: bool) -> None:
    named = Task.read({"taskId": "1", "status": status}).oddity
    assert bool(named) is odd
    assert not odd or f'"{status}", which is not a status (working, ' in named


@pytest.mark.requirement("PROMPT-03")
def test_a_prompt_tells_which_required_arguments_are_missing() -> None:
    prompt = Prompt.read({"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}]})
    assert (prompt.missing({}), prompt.missing({"a": ""}), Prompt.read({"name": "q"}).missing({})) == (("a",), (), ())


@pytest.mark.requirement("COMP-06", "COMP-07", "COMP-08")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"completion": {"values": ["a", "b"], "total": 9, "hasMore": True}}, Completion(("a", "b"), 9, True)),
        ({"completion": {"values": ["a", 7, None, {}]}}, Completion(("a",))),
        ({"completion": {"values": [], "total": "many", "hasMore": "maybe"}}, Completion()),
        ({"completion": {"values": [str(n) for n in range(101)]}}, Completion((*map(str, range(100)),), None, True)),
        ({"completion": {"values": "abc"}}, Completion()),
        ({"completion": []}, Completion()),
        ({}, Completion()),
    ],
)
def test_suggestions_are_what_makes_sense_of_an_answer(given: dict[str, Any], expected: Completion) -> None:
    assert Completion.read(given) == expected


@pytest.mark.requirement("COMP-08")
def test_only_what_fits_a_field_is_usable() -> None:
    odd = Completion(("good", "good", "two\nlines", "\x1b[2J", "\u202etxt", "x" * 5000, "héé", ""))
    assert odd.usable == ("good", "héé", "")


@pytest.mark.requirement("TASK-02")
@pytest.mark.parametrize(
    ("execution", "support"),
    [
        ({"taskSupport": "required"}, TaskSupport.REQUIRED),
        ({"taskSupport": "optional", "x": 1}, TaskSupport.OPTIONAL),
        ({"taskSupport": "forbidden"}, TaskSupport.FORBIDDEN),
        ({"taskSupport": "REQUIRED"}, TaskSupport.FORBIDDEN),
        ({"taskSupport": ["required"]}, TaskSupport.FORBIDDEN),
        ({}, TaskSupport.FORBIDDEN),
        ("required", TaskSupport.FORBIDDEN),
        (None, TaskSupport.FORBIDDEN),
    ],
)
def test_a_tool_runs_as_a_task_only_where_it_says_so(execution: Any, support: TaskSupport) -> None:
    tool = Tool.read({"name": "t", "execution": execution})
    assert tool.task_support is support
    assert tool.definition() == {"name": "t", "execution": execution}


@pytest.mark.parametrize(
    ("given", "words", "ended", "wants_input"),
    [
        ({"status": "working"}, "working", False, False),
        ({"status": "working", "statusMessage": "2 of 3"}, "working: 2 of 3", False, False),
        ({"status": "input_required", "ttl": None}, "input required", False, True),
        ({"status": "completed", "ttl": 5}, "completed", True, False),
        ({"status": "failed"}, "failed", True, False),
        ({"status": "cancelled", "pollInterval": "odd"}, "cancelled", True, False),
        ({"status": "dreaming"}, "dreaming", False, False),
    ],
)
def test_a_task_reports_its_state(given: dict[str, Any], words: str, ended: bool, wants_input: bool) -> None:
    task = Task.read({"taskId": "1", **given})
    assert (task.words, task.ended, task.wants_input) == (words, ended, wants_input)


ALL: dict[str, Any] = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}


@pytest.mark.requirement("TASK-01")
@pytest.mark.parametrize(
    ("capabilities", "may_call", "may_cancel"),
    [
        (ALL, True, True),
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, True, False),
        ({"tasks": {"requests": {"tools": {"call": True}}, "cancel": None}}, False, False),
        ({"tasks": {"requests": {"tools": []}}}, False, False),
        ({"tasks": {}}, False, False),
        ({"tasks": True}, False, False),
        ({}, False, False),
    ],
)
def test_tasks_need_their_capability_and_revision(
    capabilities: dict[str, Any], may_call: bool, may_cancel: bool
) -> None:
    assert offers(TASK_CALLS, capabilities, V2025_11_25) is may_call
    assert (missing_capability("tasks/cancel", capabilities, V2025_11_25) is None) is may_cancel
    for older in HANDSHAKE_REVISIONS[:-1]:
        assert not offers(TASK_CALLS, capabilities, older)
        assert missing_capability("tasks/get", capabilities, older) == "tasks"
    assert V2025_06_18.completion_context
    assert [revision.completion_context for revision in HANDSHAKE_REVISIONS] == [False, False, True, True]
