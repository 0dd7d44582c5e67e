"""Endpoints of other projects: aimock speaks as the vendors do, llmock breaks things and judges who asked it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mcphost.errors import ModelAnswerCut, ModelAnswerMalformed, ModelError, ModelKeyRefused, ModelRefused
from mcphost.protocol.models.sampling import SamplingMessage, ToolChoice, ToolResult, text_block
from mcphost.protocol.models.tools import Tool
from mcphost.providers.base import CollectedAnswer, ModelRequest
from mcphost.providers.retry import RetryLimits
from tests.providers.endpoints import KEY, VENDORS, each_vendor, gather
from tests.whole import model_endpoints
from tests.whole.model_endpoints import findings, script

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]  # a first run installs

PATHS = {"anthropic": "/anthropic", "openai": "/v1"}
"""Where llmock speaks like whom."""

refereed = pytest.mark.parametrize("vendor", PATHS)
PATIENCE = RetryLimits(connect=5, first=20, idle=2, backoff=0.1)
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
TOOLS = tuple(Tool.read({"name": name, "inputSchema": NUMBERS}) for name in ("get-sum", "echo"))

FIXTURES = [
    {"match": {"userMessage": "add 2 and 3", "hasToolResult": False},
     "response": {"toolCalls": [{"name": "get-sum", "arguments": '{"a": 2, "b": 3}'}]}},
    {"match": {"userMessage": "add 2 and 3", "hasToolResult": True}, "response": {"content": "The sum is 5."}},
    {"match": {"userMessage": "both", "hasToolResult": False},
     "response": {"blocks": [{"type": "text", "text": "Let me look."},
                             {"type": "toolCall", "name": "echo", "arguments": '{"a": 1}'},
                             {"type": "toolCall", "name": "get-sum", "arguments": '{"a": 1, "b": 1}'}]}},
    {"match": {"userMessage": "no key"},
     "response": {"error": {"message": "bad key", "type": "authentication_error"}, "status": 401}},
    {"match": {"userMessage": "hello"}, "response": {"content": "Grüße, 世界 \U0001f600, at some length."}},
]  # fmt: skip


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_endpoints.aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as url:
        yield url


@pytest.fixture(scope="module")
def llmock() -> Iterator[str]:
    with model_endpoints.llmock() as url:
        yield url


def asking(text: str, **more: Any) -> ModelRequest:
    return ModelRequest((SamplingMessage.create("user", text_block(text)),), 100, **more)


async def ask(vendor: str, url: str, *requests: ModelRequest) -> list[CollectedAnswer]:
    provider = VENDORS[vendor].provider("big", "some-model", key=KEY, base_url=url, limits=PATIENCE)
    try:
        return [await gather(provider, request) for request in requests]
    finally:
        await provider.aclose()


@each_vendor
async def test_a_real_stream_is_read(vendor: str, aimock: str) -> None:
    (told,) = await ask(vendor, aimock, asking("hello"))
    assert told.result.message.text == "Grüße, 世界 \U0001f600, at some length."
    assert (told.result.stop_reason, told.result.model) == ("endTurn", "some-model")
    assert None not in (told.usage.input_tokens, told.usage.output_tokens)


@each_vendor
async def test_a_tool_is_used_and_its_result_understood(vendor: str, aimock: str) -> None:
    request = asking("add 2 and 3", tools=TOOLS)
    (first,) = await ask(vendor, aimock, request)
    (use,) = first.result.message.uses
    assert (use.name, use.input, first.result.stop_reason) == ("get-sum", {"a": 2, "b": 3}, "toolUse")
    result = SamplingMessage.create("user", ToolResult.create(use.id, [{"type": "text", "text": "5"}]))
    (second,) = await ask(vendor, aimock, replace(request, messages=(*request.messages, first.result.message, result)))
    assert (second.result.message.text, second.result.stop_reason) == ("The sum is 5.", "endTurn")


@each_vendor
async def test_text_and_two_tool_uses_come_in_one_answer(vendor: str, aimock: str) -> None:
    (told,) = await ask(vendor, aimock, asking("both", tools=TOOLS))
    assert (told.result.message.text, told.flawed) == ("Let me look.", ())
    assert [(use.name, use.input) for use in told.result.message.uses] == [
        ("echo", {"a": 1}),
        ("get-sum", {"a": 1, "b": 1}),
    ]


@each_vendor
async def test_a_real_refusal_is_understood(vendor: str, aimock: str) -> None:
    with pytest.raises(ModelKeyRefused, match="it says: bad key"):
        await ask(vendor, aimock, asking("no key"))


FAULTS: list[tuple[list[dict[str, Any]], type[ModelError] | None, int]] = [
    ([{"type": "fail", "status": 429, "retry_after": 0.3, "times": 2}], None, 3),
    ([{"type": "fail", "status": 503}], None, 2),
    ([{"type": "fail", "status": 529}, {"type": "fail", "status": 500}], None, 3),
    ([{"type": "fail", "status": 401}], ModelKeyRefused, 2),
    ([{"type": "fail", "status": 400}], ModelRefused, 2),
    ([{"type": "stream_fault", "kind": "truncate", "after_chunks": 3}], ModelAnswerCut, 2),
    ([{"type": "stream_fault", "kind": "disconnect", "after_chunks": 3}], ModelAnswerCut, 2),
    ([{"type": "stream_fault", "kind": "malformed", "after_chunks": 3}], ModelAnswerMalformed, 2),
    ([{"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 6}], ModelAnswerCut, 2),
]


@pytest.mark.hostile("M05")
@refereed
@pytest.mark.parametrize(("behaviors", "failure", "attempts"), FAULTS)
async def test_the_referee_finds_no_fault_with_us(
    vendor: str, llmock: str, behaviors: list[dict[str, Any]], failure: type[ModelError] | None, attempts: int
) -> None:
    """401, 429, 500, stall, cut, bad SSE. Who meets an error that passes asks once more, as its sentence says."""
    await script(llmock, *behaviors)
    request = asking("tell me something")
    if failure is not None:
        with pytest.raises(failure) as caught:
            await ask(vendor, llmock + PATHS[vendor], request)
        request = asking("another thing") if caught.value.lasting else request
    (told,) = await ask(vendor, llmock + PATHS[vendor], request)
    assert told.result.message.text
    judged = await findings(llmock)
    # Where it had written all of a short stream before we stopped reading, it cannot tell that we did.
    unseen = "malformed_chunk_ignored" if failure is ModelAnswerMalformed else ""
    faults = [finding for finding in judged["findings"] if finding["code"] != unseen]
    assert (faults, judged["attempts"]) == ([], attempts)
    assert judged["faults_injected"] == attempts - 1


@pytest.mark.hostile("M02")
@refereed
@pytest.mark.parametrize(
    ("kind", "problem"),
    [("malformed_arguments", "not valid JSON"), ("unknown_tool", "no tool of exactly this name")],
)
async def test_a_broken_tool_use_is_flagged(vendor: str, llmock: str, kind: str, problem: str) -> None:
    await script(llmock, {"type": "tool_fault", "kind": kind})
    request = asking("use a tool", tools=TOOLS, tool_choice=ToolChoice("required"))
    (told,) = await ask(vendor, llmock + PATHS[vendor], request)
    (flawed,) = told.flawed
    assert problem in flawed.problem
    assert told.result.stop_reason == "toolUse"
