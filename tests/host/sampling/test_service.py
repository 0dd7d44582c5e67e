"""Sampling requests: the questions to the user, the request to the model, and the result for the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mcphost.errors import (
    ModelAnswerCut,
    ModelKeyRefused,
    ModelUnreachable,
)
from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.sampling.request import SamplingEdit, SamplingReply
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS, SAMPLING, SCREEN_KINDS
from mcphost.protocol.models.sampling import SamplingMessage, text_block
from mcphost.providers.base import AnswerFinished, TextDelta, ToolUseReady
from tests.host.sampling.sampling_host import MODEL, Attempt, create, lending_host
from tests.host.server_requests.pending import LATER, NO, YES, Step

pytestmark = pytest.mark.slow

REJECTED = {"code": -1, "message": "User rejected sampling request"}
NO_ANSWER = {"code": -32603, "message": "the language model gave no answer"}
ADD = {"name": "add", "inputSchema": {"type": "object"}}
TEXT_ONLY = {**MODEL, "takes": []}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
UNREACHABLE: Attempt = (ModelUnreachable("claude", "nobody answers at sk-canary"),)
CUT: Attempt = (TextDelta("Hal"), ModelAnswerCut("claude", "broke off"))
USE: Attempt = (ToolUseReady("u1", "add", {"a": 1}, True), AnswerFinished("toolUse", "m"))
UNOFFERED: Attempt = (ToolUseReady("u1", "rm", {}, False, "there is no such tool"), AnswerFinished("toolUse", "m"))
AGAIN = Answer(True, content=SamplingEdit())
BY_RULE = Answer(True, by="--accept")


def said(text: str, model: str = "claude-real-1", reason: str | None = "endTurn") -> dict[str, Any]:
    stop = {} if reason is None else {"stopReason": reason}
    return {"result": {"role": "assistant", "content": {"type": "text", "text": text}, "model": model, **stop}}


def error(told: Mapping[str, Any], reason: str = "") -> dict[str, Any]:
    return {"error": {**told, "message": f"{told['message']}: {reason}"} if reason else dict(told)}


def written(text: str) -> Answer:
    return Answer(True, content=SamplingReply.of(text))


# What is asked for, the answers to the questions, what the model does, what the server gets, how often it was asked.
ANSWERED: list[tuple[dict[str, Any], Sequence[Step], Sequence[Attempt], Any, int]] = [
    ({}, [YES, YES], [], said("Hello"), 1),
    ({}, [NO], [], error(REJECTED, "no"), 0),
    ({}, [Answer(False, reason="--accept would allow it", by="policy")], [], error(REJECTED), 0),
    ({}, [LATER], [], error(REJECTED), 0),
    ({}, [YES, NO], [], error(REJECTED, "no"), 1),
    ({}, [YES, written("Good day")], [], said("Good day"), 1),
    ({}, [written("By hand")], [], said("By hand", "human"), 0),
    ({}, [YES, AGAIN, YES], [[TextDelta("Bah"), AnswerFinished("endTurn", "m")]], said("Hello"), 2),
    ({}, [YES, YES], [UNREACHABLE], error(NO_ANSWER), 1),
    ({}, [YES, AGAIN, YES], [UNREACHABLE], said("Hello"), 2),
    ({}, [YES, NO], [UNREACHABLE], error(REJECTED, "no"), 1),
    ({}, [YES, written("It is away")], [UNREACHABLE], said("It is away", "human"), 1),
    # Half an answer is sent only after the user saw it.
    ({}, [YES, YES], [CUT], said("Hal", "claude-sonnet-4-5", None), 1),
    ({}, [BY_RULE, BY_RULE], [CUT], error(NO_ANSWER), 1),
    ({}, [BY_RULE, BY_RULE], [], said("Hello"), 1),
    ({}, [BY_RULE, replace(AGAIN, by="--answers")], [], said("Hello"), 1),
    ({}, [YES, YES], [[AnswerFinished("endTurn", "m")]], error(NO_ANSWER), 1),
    ({}, [YES, YES], [[ModelKeyRefused("claude", "no key")]], error(NO_ANSWER), 1),
    ({}, [YES, YES], [[RuntimeError("a fault of a provider")]], error(NO_ANSWER), 1),
    ({}, [RuntimeError("a fault of the front")], [], error(NO_ANSWER), 0),
    (
        {"tools": [ADD]},
        [YES, YES],
        [[TextDelta("I add"), *USE]],
        {
            "result": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I add"},
                    {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}},
                ],
                "model": "m",
                "stopReason": "toolUse",
            }
        },
        1,
    ),
    ({"tools": [ADD]}, [YES, written("Three")], [USE], said("Three", "m"), 1),
    ({"tools": [ADD]}, [YES, YES], [UNOFFERED], error(NO_ANSWER), 1),
]


@pytest.mark.hostile("M05")
@pytest.mark.requirement("SAMP-02", "SAMP-03", "SAMP-04", "SAMP-09", "SAMP-13", "SAMP-16")
@pytest.mark.parametrize(("wanted", "steps", "attempts", "expected", "asked"), ANSWERED)
async def test_the_server_gets_what_was_agreed_to(
    wanted: dict[str, Any], steps: Sequence[Step], attempts: Sequence[Attempt], expected: Any, asked: int
) -> None:
    """The user sees the failure of the model; the server learns only that it has no answer."""
    async with lending_host(*steps, attempts={"claude": attempts}) as host:
        await host.servers.ready()
        assert await host.replies(create(**wanted)) == [expected]
        assert len(host.port.requests) == asked == host.last_sampling.attempts
        assert host.last_sampling.state.ended
        assert host.person.steps == []


@pytest.mark.requirement("SAMP-02", "SAMP-07", "SAMP-08")
async def test_what_the_model_gets_can_be_changed_before_it_is_asked() -> None:
    messages = (SamplingMessage.create("user", text_block("Say something else entirely")),)

    async def change(question: SamplingQuestion) -> Answer:
        sampling = host.sampling.all[question.sampling]
        assert (sampling.request.temperature, sampling.request.stop) == (0.3, ("END",))
        assert (sampling.request.system, sampling.request.metadata) == ("Be kind", {"user_id": "u"})
        before = sampling.estimate.input_tokens
        request = replace(sampling.request, messages=messages, system="Be brief", max_tokens=10**9, temperature=None)
        sampling.edit(SamplingEdit(request, "local"))
        assert (sampling.model.entry, sampling.reason, sampling.edited) == ("local", "you chose it", True)
        assert sampling.estimate.input_tokens > before
        return YES

    models = {"claude": MODEL, "local": {"provider": "openai", "model": "qwen3"}}
    async with lending_host(change, YES, models=models) as host:
        await host.servers.ready()
        params: dict[str, Any] = {
            "temperature": 0.3,
            "stopSequences": ["END"],
            "metadata": {"user_id": "u"},
            "systemPrompt": "Be kind",
        }
        await host.replies(create(**params))
        ((entry, asked),) = host.port.requests
        assert (entry, asked.messages, asked.system, asked.temperature) == ("local", messages, "Be brief", None)
        assert asked.max_tokens == 100, "never more than the server wants"
        assert asked.metadata == {"user_id": "u"}


@pytest.mark.requirement("SAMP-03", "SAMP-09")
@pytest.mark.parametrize("models", [{}, {"me": {"provider": "manual"}}])
@pytest.mark.parametrize(
    ("policy", "steps", "expected"),
    [
        ("ask", [YES, written("I think so")], said("I think so", "human")),
        ("ask", [written("I think so")], said("I think so", "human")),
        ("ask", [YES, NO], error(REJECTED, "no")),
        ("ask", [YES, YES], error(NO_ANSWER)),
        ("allow", [written("I think so")], said("I think so", "human")),
        ("ask", [YES, Answer(True, content=SamplingEdit()), written("x")], said("x", "human")),
    ],
)
async def test_where_no_model_is_the_user_is_one(models: Any, policy: str, steps: list[Step], expected: Any) -> None:
    async with lending_host(*steps, models=models, policy=policy) as host:
        await host.servers.ready()
        assert await host.replies(create()) == [expected]
        assert host.person.steps == []
        assert (host.last_sampling.attempts, host.last_sampling.estimate.cost) == (0, 0.0)


async def test_the_user_may_write_the_answer_or_choose_another_model() -> None:
    async def by_hand(question: SamplingQuestion) -> Answer:
        assert [model.entry for model in host.sampling.all[question.sampling].models] == ["claude", "manual"]
        return Answer(True, content=SamplingEdit(model="manual"))

    back = Answer(True, content=SamplingEdit(model="claude"))
    async with lending_host(by_hand, back, YES, Answer(True, content=SamplingEdit(model="nobody"))) as host:
        await host.servers.ready()
        assert await host.replies(create()) == [said("Hello")]
        assert await host.replies(create()) == [error(NO_ANSWER)]
        assert str(host.last_sampling.error) == "no model is called 'nobody'; there are: claude, manual"


LOCAL = {"provider": "openai", "model": "qwen3", "takes": []}

# Models, the server's own settings, the global policy, who can answer; what is declared.
DECLARED: list[tuple[Any, dict[str, Any], str, frozenset[str], Any]] = [
    ({"claude": MODEL}, {}, "ask", SCREEN_KINDS, {"tools": {}}),
    ({"claude": MODEL}, {"sampling": {"context": "this-server"}}, "ask", SCREEN_KINDS, {"tools": {}, "context": {}}),
    ({"local": LOCAL}, {}, "ask", SCREEN_KINDS, {}),
    ({"local": LOCAL, "claude": MODEL}, {"sampling": {"model": "local"}}, "ask", SCREEN_KINDS, {}),
    ({}, {}, "ask", SCREEN_KINDS, {}),  # the user is the model
    ({"me": {"provider": "manual"}}, {}, "ask", SCREEN_KINDS, {}),
    ({}, {"capabilities": {"sampling": False}}, "ask", SCREEN_KINDS, None),
    ({"claude": MODEL}, {"capabilities": {"sampling": False}}, "ask", SCREEN_KINDS, None),
    ({"claude": MODEL}, {"sampling": {"policy": "deny"}}, "ask", SCREEN_KINDS, None),
    ({"claude": MODEL}, {"sampling": {"policy": "allow"}}, "deny", SCREEN_KINDS, None),
    ({"claude": MODEL}, {"sampling": {"per_minute": 0}}, "ask", SCREEN_KINDS, None),
    ({"claude": MODEL}, {}, "ask", DIALOG_KINDS, None),  # without a user
    ({"claude": MODEL}, {}, "ask", DIALOG_KINDS | {SAMPLING}, {"tools": {}}),
    ({}, {}, "ask", DIALOG_KINDS | {SAMPLING}, None),  # who answers by rule writes nothing
    ({"me": {"provider": "manual"}}, {}, "allow", DIALOG_KINDS, None),
    ({"claude": MODEL}, {"sampling": {"policy": "allow"}}, "ask", DIALOG_KINDS, {"tools": {}}),
    ({"claude": MODEL}, {"sampling": {"policy": "allow", "review": "ask"}}, "ask", DIALOG_KINDS, None),
    ({"claude": MODEL}, {}, "allow", DIALOG_KINDS, {"tools": {}}),
]


@pytest.mark.requirement("SAMP-01", "SAMP-13", "SAMP-15")
@pytest.mark.parametrize(("models", "entry", "policy", "answers", "expected"), DECLARED)
async def test_sampling_is_declared_if_a_model_and_a_user_can_answer(
    models: Any, entry: dict[str, Any], policy: str, answers: frozenset[str], expected: Any
) -> None:
    async with lending_host(models=models, policy=policy, answers=answers, **split(entry)) as host:
        await host.servers.ready()
        declared = (await host.use("heard"))["capabilities"]
        assert declared.get("sampling") == expected
        if expected is None:
            assert [reply["error"]["code"] for reply in await host.replies(create())] == [-32601]
            assert host.sampling.all == {}


def split(entry: dict[str, Any]) -> dict[str, Any]:
    return {"sampling": entry.get("sampling"), "entry": {k: v for k, v in entry.items() if k != "sampling"}}


def message(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


TEXT = {"type": "text", "text": "x"}
TOOL_USE = {"type": "tool_use", "id": "u1", "name": "add", "input": {}, "_meta": {"k": 1}}
TOOL_RESULT = {"type": "tool_result", "toolUseId": "u1", "content": [TEXT]}

# What is wrong, in which revision, with which models, and a word of the answer.
WRONG: list[tuple[dict[str, Any], str, Any, str]] = [
    ({"messages": "x"}, "2025-11-25", MODEL, "messages"),
    ({"messages": []}, "2025-11-25", MODEL, "is empty"),
    ({"messages": [message(TEXT)] * 2001}, "2025-11-25", MODEL, "more than 2000 messages"),
    ({"messages": [message([TEXT] * 2001)]}, "2025-11-25", MODEL, "more than 2000 messages"),
    ({"maxTokens": "many"}, "2025-11-25", MODEL, "maxTokens"),
    ({"maxTokens": 0}, "2025-11-25", MODEL, "at least 1"),
    ({"messages": [message(TEXT, "system")]}, "2025-11-25", MODEL, "user or assistant"),
    ({"messages": [message({"type": "video"})]}, "2025-11-25", MODEL, "messages[0].content"),
    ({"messages": [message(IMAGE)]}, "2025-11-25", TEXT_ONLY, "no model here takes image"),
    ({"messages": [message({**IMAGE, "type": "audio"})]}, "2024-11-05", MODEL, "audio is not part"),
    ({"messages": [message({**IMAGE, "type": "audio", "mimeType": "audio/wav"})]}, "2025-03-26", MODEL, "takes audio"),
    ({"messages": [message([TEXT])]}, "2025-06-18", MODEL, "one block before"),
    ({"tools": [ADD]}, "2025-11-25", TEXT_ONLY, "did not declare sampling.tools"),
    ({"toolChoice": {"mode": "auto"}}, "2025-11-25", TEXT_ONLY, "did not declare sampling.tools"),
    ({"tools": [ADD]}, "2025-06-18", MODEL, "did not declare sampling.tools"),
    ({"tools": [ADD] * 129}, "2025-11-25", MODEL, "more than 128 tools"),
    ({"tools": [{**ADD, "name": "n" * 129}]}, "2025-11-25", MODEL, "1 to 128 characters"),
    ({"tools": [ADD], "toolChoice": {"mode": "must"}}, "2025-11-25", MODEL, "auto, required or none"),
    ({"messages": [message(TOOL_USE, "assistant")], "tools": [ADD]}, "2025-11-25", MODEL, "has no result"),
    (
        {"messages": [message(TOOL_USE, "assistant"), message([TOOL_RESULT, TEXT])], "tools": [ADD]},
        "2025-11-25",
        MODEL,
        "mixed with other content",
    ),
]


@pytest.mark.requirement("SAMP-10", "SAMP-11", "SAMP-15", "SAMP-17")
async def test_a_request_that_cannot_be_asked_is_refused_before_anybody_is() -> None:
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        for model in (MODEL, TEXT_ONLY):
            cases = [(params, part) for params, since, for_, part in WRONG if (since, for_) == (revision, model)]
            args = "--revision", revision
            async with lending_host(models={"claude": model}, args=args, sampling={"per_minute": 99}) as host:
                await host.servers.ready()
                for params, part in cases:
                    (reply,) = await host.replies(create(**params))
                    assert reply["error"]["code"] == -32602, (params, reply)
                    assert part in reply["error"]["message"], (part, reply)
                assert host.person.asked == [] == host.port.requests
