"""The rule by which members are read: null is absent, and what is only shown never takes its owner with it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from mcphost.client.paging import ListLimits, read_list
from mcphost.errors import InvalidResult, InvalidSampling, PeerError
from mcphost.protocol.forms.fields import read_form
from mcphost.protocol.lifecycle.results import InputRequired, read_result
from mcphost.protocol.lifecycle.revisions import REVISIONS
from mcphost.protocol.models.base import Hint, Shown, Wire
from mcphost.protocol.models.content import Annotations, UnreadableContent, plain_base64, read_content
from mcphost.protocol.models.elicitation import FormElicitation, read_elicitation
from mcphost.protocol.models.initialization import Implementation, InitializeResult
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.prompts import Completion, GetPromptResult, Prompt, PromptArgument
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.models.sampling import (
    CreateMessageRequest,
    ModelPreferences,
    SamplingMessage,
    ToolChoice,
    read_block,
)
from mcphost.protocol.models.tasks import CreateTaskResult, ExtensionTask, Task
from mcphost.protocol.models.tools import CallToolResult, TaskSupport, Tool, ToolAnnotations
from mcphost.protocol.schema.traversal import plain_schema
from mcphost.protocol.schema.validation import SchemaRefused, check_schema, problems
from mcphost.protocol.wire.jsonrpc import Malformed, decode

Json = dict[str, Any]

ICONS = [{"src": "data:,x"}]
META = {"a": None, "ui": {"resourceUri": "ui://x"}}
HINTS: Json = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T00:00:00Z"}
SHOWN: Json = {"title": "T", "description": "d", "icons": ICONS}
TEXT: Json = {"type": "text", "text": "hello", "annotations": HINTS, "_meta": META}
TOOL_HINTS: Json = {
    "title": "H",
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
TOOL: Json = {
    "name": "t",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "annotations": TOOL_HINTS,
    "execution": {"taskSupport": "optional"},
    "_meta": META,
    **SHOWN,
}
PROMPT: Json = {"name": "p", "arguments": [{"name": "a", "required": True}], "_meta": META, **SHOWN}
RESOURCE: Json = {
    "uri": "x:1",
    "name": "r",
    "mimeType": "text/plain",
    "size": 5,
    "annotations": HINTS,
    "_meta": META,
    **SHOWN,
}
TEMPLATE: Json = {
    "uriTemplate": "x:{a}",
    **{key: value for key, value in RESOURCE.items() if key not in ("uri", "size")},
}
CONTENTS: Json = {"uri": "x:1", "mimeType": "text/plain", "text": "hello", "_meta": META}
BLOB: Json = {"uri": "x:1", "mimeType": "image/png", "blob": "AAE=", "_meta": META}
MEDIA: Json = {"data": "AAE=", "mimeType": "image/png", "annotations": HINTS, "_meta": META}
INFO: Json = {"name": "n", "version": "1", "websiteUrl": "https://example.org", **SHOWN}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "logging": {},
    "completions": {},
    "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
    "experimental": {"x": {}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
TASK: Json = {"taskId": "1", "status": "working", "ttl": 5, "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "x"}
FORM: Json = {"type": "object", "properties": {"a": {"type": "string"}}}


def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def listing(key: str, read: Callable[[object], Any]) -> tuple[Callable[[Json], Any], Json]:
    """A reader of one list, and an example with two pages."""

    def read_all(page: Json) -> Any:
        async def fetch(cursor: str | None) -> Mapping[str, Any]:
            return page if cursor is None else {key: []}

        return finished(read_list(fetch, key, read, ListLimits(), lambda: 0.0)).items

    items = {"tools": TOOL, "prompts": PROMPT, "resources": RESOURCE, "resourceTemplates": TEMPLATE, "tasks": TASK}
    return read_all, {key: [items[key]], "nextCursor": "2", "_meta": META}


def form_with(schema: Json) -> Any:
    """The elicitation of a form whose one field has this schema."""
    asked = read_elicitation({"message": "m", "requestedSchema": {"type": "object", "properties": {"x": schema}}})
    assert isinstance(asked, FormElicitation)
    return read_form(asked.schema)


def decoded(members: Json) -> Any:
    (message,) = decode(json.dumps({"jsonrpc": "2.0", **members}).encode())
    if isinstance(message, Malformed):
        raise InvalidResult(message.reason)
    return message


def needed(result: Json) -> Any:
    read = read_result("tools/call", result, dict)
    assert isinstance(read, InputRequired)
    return read


def choice(**more: Any) -> tuple[Callable[[Json], Any], Json]:
    return form_with, {"title": "T", "description": "d", **more}


EXAMPLES: dict[str, tuple[Callable[[Json], Any], Json]] = {
    "Annotations": (Annotations.read, HINTS),
    "AudioContent": (read_content, {"type": "audio", **MEDIA}),
    "BlobResourceContents": (lambda each: ReadResourceResult.read({"contents": [each]}), BLOB),
    "CallToolResult": (
        CallToolResult.read,
        {"content": [TEXT], "isError": True, "structuredContent": {"a": None}, "_meta": META},
    ),
    "CompleteResult": (Completion.read, {"completion": {"values": ["a"]}, "_meta": META}),
    "CompleteResult.completion": (
        lambda each: Completion.read({"completion": each}),
        {"values": ["a"], "total": 3, "hasMore": True},
    ),
    "CreateMessageRequestParams": (
        CreateMessageRequest.read,
        {
            "messages": [{"role": "user", "content": TEXT}],
            "maxTokens": 5,
            "includeContext": "none",
            "metadata": {"a": None},
            "modelPreferences": {"costPriority": 1},
            "stopSequences": ["x"],
            "systemPrompt": "s",
            "task": {"ttl": 5},
            "temperature": 0.5,
            "toolChoice": {"mode": "none"},
            "tools": [TOOL],
            "_meta": META,
        },
    ),
    "CreateTaskResult": (CreateTaskResult.read, {"task": TASK, "_meta": META}),
    "DiscoverResult": (
        lambda each: InitializeResult.from_discovery("2026-07-28", each),
        {"capabilities": CAPABILITIES, "instructions": "i", "_meta": META},
    ),
    "ElicitRequestFormParams": (
        read_elicitation,
        {"message": "m", "mode": "form", "requestedSchema": FORM, "task": {"ttl": 5}, "_meta": META},
    ),
    "ElicitRequestURLParams": (
        read_elicitation,
        {
            "message": "m",
            "mode": "url",
            "url": "https://example.org/",
            "elicitationId": "1",
            "task": {"ttl": 5},
            "_meta": META,
        },
    ),
    "EmbeddedResource": (read_content, {"type": "resource", "resource": CONTENTS, "annotations": HINTS, "_meta": META}),
    "EnumSchema": choice(type="string", enum=["a"], enumNames=["A"]),
    "Error": (
        lambda each: decoded({"id": 1, "error": each}),
        {"code": 1, "message": "m", "data": {"a": None}},
    ),
    "GetPromptResult": (
        GetPromptResult.read,
        {"messages": [{"role": "user", "content": TEXT}], "description": "d", "_meta": META},
    ),
    "ImageContent": (read_content, {"type": "image", **MEDIA}),
    "Implementation": (Implementation.read, INFO),
    "InitializeResult": (
        InitializeResult.read,
        {
            "protocolVersion": "2025-11-25",
            "capabilities": CAPABILITIES,
            "serverInfo": INFO,
            "instructions": "i",
            "_meta": META,
        },
    ),
    "InputRequiredResult": (
        needed,
        {
            "resultType": "input_required",
            "inputRequests": {"a": {"method": "roots/list"}},
            "requestState": "s",
            "_meta": META,
        },
    ),
    "JSONRPCNotification": (decoded, {"method": "notifications/x", "params": {"a": None}}),
    "JSONRPCRequest": (decoded, {"id": 1, "method": "ping", "params": {"a": None}}),
    "LegacyTitledEnumSchema": choice(type="string", enum=["a"], enumNames=["A"], default="a"),
    "ListPromptsResult": listing("prompts", Prompt.read),
    "ListResourceTemplatesResult": listing("resourceTemplates", ResourceTemplate.read),
    "ListResourcesResult": listing("resources", Resource.read),
    "ListTasksResult": listing("tasks", Task.read),
    "ListToolsResult": listing("tools", Tool.read),
    "ModelHint": (lambda each: ModelPreferences.read({"hints": [each]}), {"name": "m"}),
    "ModelPreferences": (
        ModelPreferences.read,
        {"costPriority": 1, "speedPriority": 0.5, "intelligencePriority": 0, "hints": [{"name": "m"}]},
    ),
    "NumberSchema": choice(type="number", default=2, minimum=1, maximum=3),
    "ProgressNotificationParams": (
        Progress.read,
        {"progressToken": 1, "progress": 1, "total": 2, "message": "m", "_meta": META},
    ),
    "Prompt": (Prompt.read, PROMPT),
    "PromptArgument": (PromptArgument.read, {"name": "a", "title": "T", "description": "d", "required": True}),
    "ReadResourceResult": (ReadResourceResult.read, {"contents": [CONTENTS], "_meta": META}),
    "Resource": (Resource.read, RESOURCE),
    "ResourceLink": (read_content, {"type": "resource_link", **RESOURCE}),
    "ResourceTemplate": (ResourceTemplate.read, TEMPLATE),
    "SamplingMessage": (SamplingMessage.read, {"role": "user", "content": TEXT, "_meta": META}),
    "ServerCapabilities": (
        lambda each: InitializeResult.read({"protocolVersion": "x", "capabilities": each}).capabilities,
        CAPABILITIES,
    ),
    "BooleanSchema": choice(type="boolean", default=True),
    "StringSchema": choice(type="string", default="aa", format="email", minLength=1, maxLength=9),
    "Task": (Task.read, {**TASK, "pollInterval": 5, "statusMessage": "m"}),
    "TextContent": (read_content, TEXT),
    "TextResourceContents": (lambda each: ReadResourceResult.read({"contents": [each]}), CONTENTS),
    "TitledMultiSelectEnumSchema": choice(
        type="array", items={"anyOf": [{"const": "a", "title": "A"}]}, default=["a"], minItems=0, maxItems=1
    ),
    "TitledSingleSelectEnumSchema": choice(type="string", oneOf=[{"const": "a", "title": "A"}], default="a"),
    "Tool": (Tool.read, TOOL),
    "ToolAnnotations": (ToolAnnotations.read, TOOL_HINTS),
    "ToolChoice": (ToolChoice.read, {"mode": "auto"}),
    "ToolExecution": (TaskSupport.read, {"taskSupport": "optional"}),
    "ToolResultContent": (
        read_block,
        {
            "type": "tool_result",
            "toolUseId": "1",
            "content": [TEXT],
            "isError": True,
            "structuredContent": {"a": None},
            "_meta": META,
        },
    ),
    "ToolUseContent": (read_block, {"type": "tool_use", "id": "1", "name": "n", "input": {"a": None}, "_meta": META}),
    "UntitledMultiSelectEnumSchema": choice(
        type="array", items={"type": "string", "enum": ["a"]}, default=["a"], minItems=0, maxItems=1
    ),
    "UntitledSingleSelectEnumSchema": choice(type="string", enum=["a"], default="a"),
}
"""Each type of the specification that servers send: how it is read, and an example with all optional members."""

PASSED_ON = {
    "CancelledNotificationParams",
    "LoggingMessageNotificationParams",
    "ResourceUpdatedNotificationParams",
    "SubscriptionsAcknowledgedNotificationParams",
}
"""Params without a model."""

VALUES = {("CallToolResult", "structuredContent"), ("ToolResultContent", "structuredContent")}
"""Members that may be null with a meaning of its own; `default` of a schema is another."""

DECIDING = {
    "CreateMessageRequestParams": {"systemPrompt", "stopSequences", "tools", "toolChoice"},
    "CallToolResult": {"isError"},
    "Error": {"data"},
    "ElicitRequestFormParams": {"mode"},
    "InputRequiredResult": {"inputRequests", "requestState"},
    "JSONRPCNotification": {"params"},
    "JSONRPCRequest": {"params"},
    "Prompt": {"arguments"},
    "ServerCapabilities": {"tools", "prompts", "resources", "logging", "completions", "tasks"},
    "ToolChoice": {"mode"},
    **{f"List{kind}Result": {"nextCursor"} for kind in ("Prompts", "ResourceTemplates", "Resources", "Tasks", "Tools")},
}
"""Members with a part in what happens: a wrong type may be refused, in mcphost's words, or mean something."""

RULES = {"default", "format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enumNames"}
"""Keywords of schemas that are not only shown."""


def is_value(name: str, member: str) -> bool:
    return (name, member) in VALUES or (name.endswith("Schema") and member == "default")


def decides(name: str, member: str) -> bool:
    return member in (RULES if name.endswith("Schema") else DECIDING.get(name, ()))


def optional_members() -> list[tuple[str, str, tuple[str, ...]]]:
    lines = Path(__file__).with_name("optional_members.tsv").read_text("utf-8").splitlines()
    return [
        (name, member, tuple(versions.split(","))) for name, member, versions in (line.split("\t") for line in lines)
    ]


MEMBERS = [(name, member) for name, member, _ in optional_members() if name not in PASSED_ON]


def view(value: Any) -> Any:
    """The used parts of a value: its members and properties, without those that are only kept as they came."""
    if isinstance(value, Wire):
        kind = type(value)
        derived = (
            name
            for base in kind.__mro__
            if base is not Wire and issubclass(base, Wire)
            for name in vars(base)
            if isinstance(vars(base)[name], property | cached_property)
        )
        return kind, {name: view(getattr(value, name)) for name in (*kind.model_fields, *derived)}
    if isinstance(value, CallToolResult):
        return view((value.content, value.is_error, value.has_structured, value.structured))
    if isinstance(value, UnreadableContent):
        return "unreadable"
    if is_dataclass(value) and not isinstance(value, type):
        unused = {"raw", "extra", "remark", "freshness"}
        return type(value), {
            each.name: view(getattr(value, each.name)) for each in fields(value) if each.name not in unused
        }
    if isinstance(value, list | tuple):
        return [view(each) for each in value]
    return value


def without(value: Any, member: str) -> Any:
    """A view without one member of its outermost object."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in member)
        return value[0], {name: each for name, each in value[1].items() if name not in (member, snake)}
    return value


ODD: Sequence[Any] = (True, False, 0, 7, -1.5, 10**30, "", "odd", [], ["odd"], [None], {}, {"odd": None}, [[]])


def kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def odd_values(name: str, member: str) -> list[Any]:
    """Values of types that the member may not have."""
    right = EXAMPLES[name][1][member]
    odd = (value for value in ODD if kind(value) is not kind(right))
    return [value for value in odd if not (isinstance(right, int | float) and isinstance(value, bool))]


@st.composite
def plain_objects(draw: st.DrawFn) -> tuple[str, str, Json]:
    """A type, an optional member of it, and an object without that member and some of the others."""
    name, member = draw(st.sampled_from(MEMBERS))
    others = [other for owner, other in MEMBERS if owner == name and other != member]
    left_out = draw(st.sets(st.sampled_from(others))) if others else set()
    plain = {key: value for key, value in EXAMPLES[name][1].items() if key != member and key not in left_out}
    return name, member, plain


def test_every_optional_member_of_every_revision_is_in_an_example() -> None:
    missing = [(name, member) for name, member in MEMBERS if name not in EXAMPLES or member not in EXAMPLES[name][1]]
    assert missing == []
    assert {version for _, _, versions in optional_members() for version in versions} == {
        revision.version for revision in REVISIONS
    }


def read_or_refuse(name: str, value: Json) -> Any:
    """The view of what is read, or why it is refused."""
    try:
        return view(EXAMPLES[name][0](value))
    except (InvalidResult, InvalidSampling, SchemaRefused) as refused:
        return f"refused: {refused}"


def check_null(name: str, member: str, plain: Json) -> None:
    if not is_value(name, member):
        assert read_or_refuse(name, {**plain, member: None}) == read_or_refuse(name, plain)


def check_odd(name: str, member: str, plain: Json, odd: Any) -> None:
    read = read_or_refuse(name, {**plain, member: odd})
    assert not any(words in str(read) for words in ("Input should", "instance of", "validation error"))
    if not decides(name, member) and not is_value(name, member):
        assert without(read, member) == without(read_or_refuse(name, plain), member)


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_each_member_may_be_null_and_of_any_type_if_it_is_only_shown(name: str, member: str) -> None:
    plain = {key: value for key, value in EXAMPLES[name][1].items() if key != member}
    check_null(name, member, plain)
    for odd in odd_values(name, member):
        check_odd(name, member, plain, odd)


@settings(max_examples=300)
@given(plain_objects())
def test_null_equals_absent(case: tuple[str, str, Json]) -> None:
    check_null(*case)


@settings(max_examples=300)
@given(plain_objects(), st.data())
def test_an_invalid_optional_member_does_not_refuse_its_owner(case: tuple[str, str, Json], data: st.DataObject) -> None:
    check_odd(*case, data.draw(st.sampled_from(odd_values(*case[:2]))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("aé", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_nulls_inside_data_stay(value: Any, other: Any) -> None:
    tool = {**TOOL, "title": None, "annotations": None, "_meta": {"a": value}, "inputSchema": {"default": other}}
    assert Tool.read(tool).definition() == tool
    assert Tool.read(tool).input_schema == {"default": other}
    result = CallToolResult.read({"content": None, "structuredContent": value, "_meta": {"a": other}})
    assert (result.has_structured, result.structured) == (True, value)
    assert result.raw == {"content": None, "structuredContent": value, "_meta": {"a": other}}
    data = {"default": value, "const": value, "enum": [value, other], "examples": [other], "title": None}
    schema = {"properties": {"a": data, "title": data}, "items": [data], "additionalProperties": data, "required": None}
    plain = {key: each for key, each in data.items() if key != "title"}
    assert plain_schema(schema) == {
        "properties": {"a": plain, "title": plain}, "items": [plain], "additionalProperties": plain
    }  # fmt: skip
    (message,) = decode(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"a": value, "b": None}}).encode())
    assert message.as_object()["result"] == {"a": value, "b": None}  # type: ignore[union-attr]


def test_null_is_a_value_where_a_schema_allows_it() -> None:
    schema = {"const": None, "title": None, "type": ["null", "string"], "$schema": None}
    check_schema(schema)
    assert problems(schema, None) == []
    assert problems(schema, "x")
    assert problems({"enum": [None], "description": 5}, None) == []


@pytest.mark.parametrize("schema", [{"type": 5}, {"properties": {"a": None}}, {"required": "a"}, {"$ref": "#/x"}])
def test_a_schema_that_decides_wrongly_is_refused(schema: Json) -> None:
    with pytest.raises(SchemaRefused):
        check_schema(schema)


class _Owner(Wire):
    name: str = Field(min_length=1)
    title: Hint[str] = None
    version: Shown[str] = "0"
    part: Hint[Annotations] = None


def test_deviations_are_remarked_on_and_kept() -> None:
    given = {"name": "n", "title": None, "version": 1.0, "part": {"audience": "user", "priority": None}, "more": None}
    owner = _Owner.read(given)
    assert (owner.title, owner.version) == (None, "0")
    assert owner.definition() == given
    assert owner.remarks == (
        "title is null, and counts as absent",
        "version is a number, and counts as absent",
        "priority is null, and counts as absent",
        "audience is a text, and counts as absent",
    )
    assert _Owner.read({"name": "n", "title": "t"}).remarks == ()


def test_a_changed_copy_does_not_keep_the_original_members() -> None:
    task = Task.read({"taskId": "1", "status": "working", "statusMessage": "secret"})
    masked = task.model_copy(update={"status_message": "***"})
    assert masked.definition() == {"taskId": "1", "status": "working", "statusMessage": "***"}


@pytest.mark.parametrize("params", [{}, {"params": None}, {"params": {}}])
def test_the_params_of_a_needed_input_may_be_null(params: Json) -> None:
    read = needed({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", **params}}})
    assert (read.inputs["a"].method, read.inputs["a"].params) == ("roots/list", {})


@pytest.mark.parametrize(("kind", "member"), [(Task, "ttl"), (ExtensionTask, "ttlMs")])
def test_a_lifetime_of_null_is_valid(kind: type[Task], member: str) -> None:
    task = kind.read({"taskId": "1", "status": "working", member: None})
    assert (task.ttl, task.remarks) == (None, ())


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "name: is missing"),
        ({"name": None}, "name: is null"),
        ({"name": ""}, "name: is empty"),
        ({"name": ["n"]}, "name: is not a text"),
        ([], "is not an object"),
        ("n", "is not an object"),
    ],
)
def test_a_problem_is_said_in_plain_words(value: object, problem: str) -> None:
    with pytest.raises(PeerError) as raised:
        _Owner.read(value)
    assert str(raised.value) == problem


@given(st.binary(max_size=200), st.sampled_from(["", "\n", "\r\n", " ", "\t"]), st.integers(1, 80))
def test_base64_is_read_in_the_forms_in_which_it_is_written(data: bytes, between: str, width: int) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(data).decode()
        wrapped = between.join(text[at : at + width] for at in range(0, len(text), width))
        for written in (wrapped, wrapped + between, wrapped.rstrip("="), f"data:image/png;base64,{wrapped}"):
            assert base64.b64decode(plain_base64(written), validate=True) == data
