"""Rounds of input for a modern server: requested, given, bounded, and never mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.client.client import RequestTimeouts
from mcphost.client.requester import ClientLimits
from mcphost.client.rounds import InputRound, RoundLimits
from mcphost.client.server_requests import InputRequest
from mcphost.errors import InputNotGiven, InvalidResult, McphostError, RequestTimeout
from tests.client.conftest import Draw, Line
from tests.client.handlers import DONE, Answers, needs
from tests.conftest import Until

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
}
EVERYTHING: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}


async def modern(draw: Draw, *answers: Any, handler: Answers | None = None, **more: Any) -> Line:
    """A line to a modern server, which answers each tool call with the next of ``answers``."""
    always = answers[0] if len(answers) == 1 and callable(answers[0]) else list(answers)
    script = {"server/discover": DISCOVERED, "tools/call": always}
    line = draw(script, era="auto", capabilities=EVERYTHING, handler=handler or Answers(), **more)
    await line.client.connect(5)
    return line


def sent(line: Line) -> list[dict[str, Any]]:
    """The params of all calls, without their metadata."""
    calls = [dict(request.params or {}) for request in line.server.requests("tools/call")]
    for params in calls:
        params.pop("_meta")
    return calls


@pytest.mark.requirement("MRTR-01", "MRTR-02", "MRTR-03", "MRTR-04", "ROOT-12", "ELIC-25")
async def test_answers_and_state_go_back_with_the_same_request(draw: Draw) -> None:
    first = needs("s\u0000tate ☃", form="elicitation/create", folders="roots/list")
    line = await modern(draw, first, needs(model="sampling/createMessage"), DONE)
    await line.client.call_tool("t", {"a": 1})
    original = {"name": "t", "arguments": {"a": 1}}
    assert sent(line) == [
        original,
        {
            **original,
            "inputResponses": {"form": {"got": "form"}, "folders": {"got": "folders"}},
            "requestState": "s\u0000tate ☃",
        },
        {**original, "inputResponses": {"model": {"got": "model"}}},
    ]
    ids = [request.id for request in line.server.requests("tools/call")]
    assert len(set(ids)) == 3
    assert line.server.replies() == []


@pytest.mark.requirement("MRTR-14")
async def test_each_attempt_has_its_own_progress_token(draw: Draw) -> None:
    line = await modern(draw, needs(form="elicitation/create"), DONE)
    await line.client.call_tool("t", {})
    for request in line.server.requests("tools/call"):
        assert request.params is not None
        assert request.params["_meta"]["progressToken"] == request.id


@pytest.mark.requirement("MRTR-10")
async def test_the_handler_learns_what_needs_the_input(draw: Draw) -> None:
    handler = Answers()
    second = needs(a="roots/list", b="roots/list")
    line = await modern(draw, needs(form="elicitation/create"), second, DONE, handler=handler)
    await line.client.call_tool("deploy", {})
    purposes = [request.purpose for request in handler.asked]
    assert [(each.method, each.name, each.round) for each in purposes if each] == [
        ("tools/call", "deploy", 1), ("tools/call", "deploy", 2), ("tools/call", "deploy", 2),
    ]  # fmt: skip


@pytest.mark.requirement("SAMP-20", "ROOT-12")
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list"])
async def test_a_refused_input_ends_the_call(draw: Draw, method: str) -> None:
    line = await modern(draw, needs("s", a=method, b="elicitation/create"), handler=Answers(method))
    with pytest.raises(InputNotGiven, match="the user declined"):
        await line.client.call_tool("t", {})
    assert len(sent(line)) == 1
    assert line.server.methods() == ["server/discover", "tools/call"]


@pytest.mark.requirement("MRTR-09")
@pytest.mark.parametrize(
    "wrong",
    [
        {"form": "elicitation/create", "x": "tasks/list"},
        {"form": "elicitation/create", "unreadable": "sampling/createMessage"},
    ],
)
async def test_inputs_are_judged_together_before_any_is_shown(draw: Draw, wrong: dict[str, str]) -> None:
    handler = Answers()
    line = await modern(draw, needs(**wrong), handler=handler)
    with pytest.raises(InputNotGiven):
        await line.client.call_tool("t", {})
    assert handler.asked == []


@pytest.mark.requirement("MRTR-09", "MOD-33")
async def test_what_was_not_declared_is_not_answered(draw: Draw) -> None:
    handler = Answers()
    script = {"server/discover": DISCOVERED, "tools/call": needs(form="elicitation/create")}
    line = draw(script, era="auto", capabilities={"roots": {}}, handler=handler)
    await line.client.connect(5)
    with pytest.raises(InputNotGiven, match="did not offer"):
        await line.client.call_tool("t", {})
    assert handler.asked == []


@pytest.mark.requirement("MRTR-06", "MRTR-07")
async def test_attempts_without_inputs_are_bounded(draw: Draw) -> None:
    line = await modern(draw, needs("1"), needs(""), DONE)
    await line.client.call_tool("t", {})
    assert [params.get("requestState") for params in sent(line)] == [None, "1", ""]
    endless = await modern(
        draw, lambda request: needs("again"), limits=ClientLimits(rounds=RoundLimits(state_rounds=2))
    )
    with pytest.raises(InvalidResult, match="2 times to try again without needing anything"):
        await endless.client.call_tool("t", {})
    assert len(sent(endless)) == 3


@pytest.mark.requirement("MRTR-07", "MRTR-13")
@pytest.mark.parametrize(
    ("answer", "limits", "says"),
    [
        (needs(form="elicitation/create"), RoundLimits(rounds=3), "still needs input after 3 rounds"),
        (needs(**{f"k{n}": "roots/list" for n in range(1000)}), RoundLimits(), "needs 1000 inputs at once"),
        (needs("x" * 20_000_000), RoundLimits(), "requestState is over the limit of 4.0 MB"),
    ],
    ids=["rounds", "inputs", "state"],
)
async def test_what_a_server_may_need_is_bounded(draw: Draw, answer: Any, limits: RoundLimits, says: str) -> None:
    line = await modern(draw, lambda request: answer, limits=ClientLimits(rounds=limits))
    with pytest.raises(InvalidResult, match=says):
        await line.client.call_tool("t", {})


INVALID: list[dict[str, Any]] = [
    {"resultType": "input_required"},
    {"resultType": "input_required", "inputRequests": {}},
    {"resultType": "input_required", "inputRequests": []},
    {"resultType": "input_required", "inputRequests": {"a": 5}},
    {"resultType": "input_required", "inputRequests": {"a": {"method": 5}}},
    {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", "params": [1]}}},
    {"resultType": "input_required", "requestState": 5},
    {"resultType": "zzz"},
    {"resultType": 5},
    {"resultType": None},
    {"resultType": "task", "taskId": "1"},
]


@pytest.mark.requirement("MRTR-08", "MOD-16")
@pytest.mark.parametrize("answer", INVALID, ids=str)
async def test_a_result_of_no_known_shape_is_invalid(draw: Draw, answer: dict[str, Any]) -> None:
    line = await modern(draw, answer)
    with pytest.raises(InvalidResult):
        await line.client.call_tool("t", {})
    assert len(sent(line)) == 1


@pytest.mark.requirement("MRTR-08", "MOD-15", "MOD-16", "XTASK-02")
async def test_a_list_may_not_need_input_or_become_a_task(draw: Draw) -> None:
    line = await modern(draw)
    line.server.script["tools/list"] = [needs(form="elicitation/create"), {"resultType": "task"}, {"tools": []}]
    for _ in range(2):
        with pytest.raises(InvalidResult):
            await line.client.list_tools()
    assert (await line.client.list_tools()).items == []


@pytest.mark.requirement("MRTR-11")
async def test_who_called_may_stop_before_a_retry(draw: Draw) -> None:
    class Stopped(McphostError):
        pass

    told: list[InputRound] = []

    async def report(current: InputRound) -> None:
        told.append(current)
        if current.answered:
            raise Stopped

    line = await modern(draw, needs("s", form="elicitation/create"))
    with pytest.raises(Stopped):
        await line.client.call_tool("t", {}, on_round=report)
    assert [(each.number, each.answered) for each in told] == [(1, False), (1, True)]
    assert len(sent(line)) == 1


@pytest.mark.requirement("MRTR-05")
async def test_rounds_of_calls_side_by_side_do_not_mix(draw: Draw) -> None:
    def answer(request: Any) -> Any:
        who = request.params["name"]
        return DONE if "requestState" in request.params else needs(f"state of {who}", **{who: "elicitation/create"})

    line = await modern(draw, answer)
    await asyncio.gather(*(line.client.call_tool(f"t{number}", {}) for number in range(20)))
    for params in sent(line):
        if "requestState" in params:
            assert params["requestState"] == f"state of {params['name']}"
            assert params["inputResponses"] == {params["name"]: {"got": params["name"]}}


@pytest.mark.requirement("MRTR-13")
async def test_rounds_share_the_time_that_no_person_takes(draw: Draw, until: Until) -> None:
    class Slow(Answers):
        async def answer(self, request: InputRequest) -> Mapping[str, Any]:
            await asyncio.sleep(2)  # longer than the request may take
            return await super().answer(request)

    limit = RequestTimeouts(idle=1.5, hard=1.5)
    line = await modern(draw, needs(form="elicitation/create"), DONE, handler=Slow(), timeouts=limit)
    await line.client.call_tool("t", {})

    def after_a_while(request: Any) -> Any:
        answer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.04, answer.set_result, needs("s"))
        return answer

    rounds, limit = RoundLimits(rounds=10_000, state_rounds=10_000), RequestTimeouts(idle=0.4, hard=0.5)
    endless = await modern(draw, after_a_while, limits=ClientLimits(rounds=rounds), timeouts=limit)
    with pytest.raises(RequestTimeout):
        await endless.client.call_tool("t", {})
