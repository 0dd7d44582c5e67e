"""Resources, prompts and completion: the verbs against a scripted server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems
from mcphost.errors import CapabilityMissing, InvalidResult, ResourceMissing, ServerError
from mcphost.protocol.lifecycle.revisions import V2024_11_05, V2025_11_25, Revision
from mcphost.protocol.models.prompts import Completion, PromptRef, TemplateRef
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request
from tests.client.conftest import Connect, Line, hello
from tests.client.scripted import Answer

ODD_URI = "Foo+BAR://x/%7e%2F/ü ?a=b&c#d"
OFFERED: dict[str, Any] = {
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
Open = Callable[..., Awaitable[Line]]


@pytest.fixture
def open_line(connect: Connect, revision: Revision) -> Open:
    """`await open_line(script, offered)`: a session in which the server has these capabilities."""

    async def opened(script: dict[str, Answer], offered: dict[str, Any] | None = None) -> Line:
        greeting = hello(revision, capabilities=OFFERED if offered is None else offered)
        return await connect({"initialize": greeting, **script})

    return opened


def params(line: Line, method: str) -> list[Any]:
    return [request.params for request in line.server.requests(method)]


Lists = Callable[[Client], Awaitable[ListedItems[Any]]]


@pytest.mark.requirement("RES-01", "PROMPT-01", "PAGE-01", "PAGE-02", "PAGE-04")
@pytest.mark.parametrize(
    ("method", "key", "name", "ask"),
    [
        ("resources/list", "resources", "uri", lambda client: client.resources.list()),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", lambda client: client.resources.templates()),
        ("prompts/list", "prompts", "name", lambda client: client.prompts.list()),
    ],
)
async def test_every_list_is_read_to_its_last_page(
    open_line: Open, method: str, key: str, name: str, ask: Lists
) -> None:
    pages = [
        {key: [{name: "a"}, {"title": "nameless", "name": None}], "nextCursor": "a b=/+"},
        {key: [], "nextCursor": "3"},
        {key: [{name: "b"}]},
    ]
    line = await open_line({method: pages})
    listing = await ask(line.client)
    assert [getattr(item, "uri_template" if name == "uriTemplate" else name) for item in listing.items] == ["a", "b"]
    assert [refused.name for refused in listing.rejected] == ["unnamed"]
    assert params(line, method) == [None, {"cursor": "a b=/+"}, {"cursor": "3"}]


Ask = Callable[[Client], Awaitable[Any]]


@pytest.mark.requirement("RES-04", "CAP-02", "CAP-03")
@pytest.mark.parametrize(
    ("offered", "ask", "lacking"),
    [
        ({}, lambda client: client.resources.list(), "resources"),
        ({}, lambda client: client.resources.read("x:"), "resources"),
        ({"resources": {}}, lambda client: client.resources.subscribe("x:"), "resources.subscribe"),
        ({"resources": {"subscribe": {}}}, lambda client: client.resources.unsubscribe("x:"), "resources.subscribe"),
        ({"resources": {}}, lambda client: client.prompts.get("p"), "prompts"),
        ({}, lambda client: client.tasks.get("1"), "tasks"),
        ({"tasks": {}}, lambda client: client.tasks.list(), "tasks.list"),
    ],
)
async def test_nothing_is_sent_that_was_not_offered(
    open_line: Open, offered: dict[str, Any], ask: Ask, lacking: str
) -> None:
    line = await open_line({}, offered)
    with pytest.raises(CapabilityMissing) as caught:
        await ask(line.client)
    assert caught.value.capability == lacking
    assert len(line.server.sent) == 2


@pytest.mark.requirement("RES-02", "RES-10", "RES-06")
async def test_a_uri_goes_out_as_it_came(open_line: Open) -> None:
    line = await open_line({"resources/read": {"contents": []}, "resources/subscribe": {}, "resources/unsubscribe": {}})
    resources = line.client.resources
    assert (await resources.read(ODD_URI)).contents == ()
    await resources.subscribe(ODD_URI)
    await resources.unsubscribe(ODD_URI)
    for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        assert params(line, method) == [{"uri": ODD_URI}]


@pytest.mark.requirement("RES-11", "ERR-03", "ERR-02")
@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            ErrorObject(-32002, "nope", {"uri": "x:other"}),
            ResourceMissing,
            "resource not found: x:other; the server says: nope (-32002)",
        ),
        (
            ErrorObject(-32002, "nope", ["x"]),
            ResourceMissing,
            "resource not found: x:1; the server says: nope (-32002)",
        ),
        (ErrorObject(-32001, "resource not found"), ServerError, "resource not found (-32001)"),
        ({"contents": 7}, InvalidResult, "the contents of the resource are not an array"),
    ],
)
async def test_a_resource_that_is_not_there_is_named(
    open_line: Open, answer: Answer, error: type[Exception], words: str
) -> None:
    line = await open_line({"resources/read": answer})
    with pytest.raises(error) as caught:
        await line.client.resources.read("x:1")
    assert type(caught.value) is error
    assert str(caught.value) == words


async def test_what_changed_is_heard_by_its_uri(open_line: Open) -> None:
    line = await open_line({})
    for given in ({"uri": "x:1"}, {"uri": 1}, {}, None, {"uri": "x:2", "title": "T"}):
        line.server.says("notifications/resources/updated", given)
    for kind in ("resources", "prompts", "tools"):
        line.server.says(f"notifications/{kind}/list_changed")
    assert line.notes.all("updated") == ["x:1", "x:2"]
    assert line.notes.all("changed") == ["resources", "prompts"]


@pytest.mark.requirement("PROMPT-02", "PROMPT-07")
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (None, {"name": "p"}),
        ({}, {"name": "p"}),
        ({"a": "x", "b": 5, "c": True}, {"name": "p", "arguments": {"a": "x", "b": "5", "c": "true"}}),
        ({"a": "", "b": ["é"]}, {"name": "p", "arguments": {"a": "", "b": '["é"]'}}),
    ],
)
async def test_the_arguments_of_a_prompt_are_strings(
    open_line: Open, arguments: dict[str, object] | None, sent: dict[str, Any]
) -> None:
    refused = ErrorObject(-32602, "no such prompt")
    line = await open_line({"prompts/get": [{"messages": []}, refused]})
    assert (await line.client.prompts.get("p", arguments)).messages == ()
    with pytest.raises(ServerError) as caught:
        await line.client.prompts.get("p", arguments)
    assert caught.value.code == -32602
    assert params(line, "prompts/get") == [sent, sent]


SUGGESTED = {"completion": {"values": ["python"], "total": 1, "hasMore": False}}


@pytest.mark.requirement("COMP-01", "COMP-03", "PROMPT-09")
async def test_a_completion_request_names_argument_and_context(open_line: Open, revision: Revision) -> None:
    line = await open_line({"completion/complete": SUGGESTED})
    known = {"language": "py", "framework": "fl"}
    found = await line.client.completions.complete(PromptRef("p"), "language", "py", known)
    await line.client.completions.complete(TemplateRef("x:{a}"), "a", "")
    assert found == Completion(("python",), 1, has_more=False)
    first: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "language", "value": "py"},
    }
    if revision.completion_context:
        first["context"] = {"arguments": {"framework": "fl"}}
    second = {"ref": {"type": "ref/resource", "uri": "x:{a}"}, "argument": {"name": "a", "value": ""}}
    assert params(line, "completion/complete") == [first, second]


@pytest.mark.requirement("COMP-02")
async def test_completion_is_requested_if_offered_or_tried_once(open_line: Open, revision: Revision) -> None:
    line = await open_line({"completion/complete": ErrorObject(-32601, "unknown method")}, {"prompts": {}})
    old = revision is V2024_11_05
    assert line.client.completions.offered is old
    for error in (ServerError if old else CapabilityMissing, CapabilityMissing, CapabilityMissing):
        with pytest.raises(error):
            await line.client.completions.complete(PromptRef("p"), "a", "")
    assert len(line.server.requests("completion/complete")) == (1 if old else 0)
    assert not line.client.completions.offered


@pytest.mark.parametrize("revision", [V2025_11_25], ids=lambda revision: revision.version)
@pytest.mark.requirement("COMP-06")
async def test_a_completion_that_fails_once_is_asked_for_again(open_line: Open) -> None:
    line = await open_line({"completion/complete": [ErrorObject(-32603, "busy"), SUGGESTED]})
    with pytest.raises(ServerError):
        await line.client.completions.complete(PromptRef("p"), "a", "")
    assert line.client.completions.offered
    assert (await line.client.completions.complete(PromptRef("p"), "a", "")).values == ("python",)
    assert all(isinstance(request, Request) for request in line.server.requests("completion/complete"))
