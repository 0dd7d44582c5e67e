"""Cases against live servers: made again, answered as recorded, and judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcphost.host.consent.policy import PolicyDecision
from mcphost.host.recordings.recording import RecordedEvent, RecordedExchange, RecordedSession, Recording
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.verification.answers import AnswerRules
from mcphost.host.verification.cases import CaseReport, RecordedCase, recorded_cases
from mcphost.host.verification.normalizers import NORMALIZERS
from mcphost.host.verification.updates import why_not
from tests.host.conftest import HostOf, RecordingHost, echo, script

RULES = AnswerRules(normalizers=NORMALIZERS)
ALLOW = {"default": "allow"}


def cases_of(*sessions: RecordedSession) -> list[RecordedCase]:
    return recorded_cases(Recording("x", sessions=sessions), "x")


async def run(host: RecordingHost, *exchanges: RecordedExchange) -> list[CaseReport]:
    cases = cases_of(RecordedSession("a", exchanges=exchanges))
    await host.servers.ready(["a"])
    return await run_cases(host, cases)


async def run_cases(host: RecordingHost, cases: list[RecordedCase]) -> list[CaseReport]:
    entry = host.config.servers["a"]
    return [await host.verification.run(case, "a", RULES, entry=entry) for case in cases]


def call(tool: str, arguments: dict[str, Any], words: str, *events: RecordedEvent, **more: Any) -> RecordedExchange:
    result = {"content": [{"type": "text", "text": words}], **more}
    return RecordedExchange("tools/call", {"name": tool, "arguments": arguments}, result=result, events=events)


async def test_recorded_requests_are_made_again_in_order(host: HostOf) -> None:
    async with host(a=echo(), policy=ALLOW) as running:
        refused = RecordedExchange("tools/call", {"name": "nowhere"}, error={"code": -32602, "message": "?"})
        reports = await run(
            running,
            call("echo", {"text": "at 2026-11-27T14:05:30Z"}, "at 2020-01-01T00:00:00Z"),
            call("add", {"a": 1, "b": 2}, "3", structuredContent={"sum": 4}),
            call("add", {"a": "1", "b": "2"}, "12", structuredContent={"sum": "12"}),
            refused,
            RecordedExchange("prompts/get", {"name": "x"}, result={"messages": []}),
            call("nowhere", {}, "x"),
        )
    assert [report.state for report in reports] == ["passed", "failed", "passed", "skipped", "failed", "failed"]
    assert [why_not(report) for report in reports[4:]] == ["the server did not answer"] * 2
    assert reports[0].found.counts == {"iso-time": 1}
    assert reports[1].words == ("structuredContent.sum: expected 4, got 3",)
    assert reports[4].words == ("the server does not offer prompts, which prompts/get needs",)


async def test_each_call_is_asked_for_and_audited_as_any_other(host: HostOf) -> None:
    async with host(a=echo()) as running:
        (report,) = await run(running, call("echo", {"text": "a"}, "a"))
        assert report.state == "passed"
        assert [(each.tool.name, each.arguments) for each in running.approver.questions] == [("echo", {"text": "a"})]


async def test_the_plan_counts_calls_and_foresees_decisions(host: HostOf) -> None:
    async with host(a=echo(tools={"fail": {"approval": "deny"}})) as running:
        await running.servers.ready(["a"])
        exchanges = (call("echo", {"text": "a"}, "a"), call("echo", {"text": "b"}, "b"), call("fail", {}, ""))
        cases = cases_of(RecordedSession("a", exchanges=exchanges))
        assert running.verification.planned([(case, "a") for case in cases]) == [
            ("a", "echo", 2, PolicyDecision.ASK),
            ("a", "fail", 1, PolicyDecision.DENY),
        ]


FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}


def question(answer: dict[str, Any] | None, method: str = "elicitation/create", **params: Any) -> RecordedEvent:
    given = FORM if method == "elicitation/create" else {}
    return RecordedEvent("question", method, {**given, **params}, answer=answer)


def asking(words: str, *events: RecordedEvent) -> RecordedExchange:
    return call("ask", {"requests": [{"method": "elicitation/create", "params": FORM}]}, words, *events)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([question({"result": {"action": "accept", "content": {"n": "Ada"}}})], []),
        (
            [],
            ["the server asked elicitation/create, which was not recorded: Who?"],
        ),
        (
            [question({"result": {"action": "accept", "content": {"n": "Ada"}}}, message="Why?")],
            ['elicitation/create: message: expected "Why?", got "Who?"'],
        ),
        (
            [question({"result": {"action": "accept", "content": {"n": "Ada"}}}), question(None, "roots/list")],
            ["the server did not ask roots/list, as recorded"],
        ),
    ],
)
async def test_questions_are_answered_as_recorded(host: HostOf, events: list[RecordedEvent], said: list[str]) -> None:
    given = {"action": "accept", "content": {"n": "Ada"}} if events else {"action": "cancel"}
    dependencies = {"answers": DIALOG_KINDS}
    async with host(a=script("asks.py"), policy=ALLOW, dependencies=dependencies) as running:
        (report,) = await run(running, asking("", *events))
    words = [each for each in report.words if not each.startswith("content")]
    assert words == said
    assert str(given["action"]) in str(report.answer.result)


async def test_another_recorded_session_gets_a_new_connection(host: HostOf) -> None:
    exchange = call("echo", {"text": "a"}, "a")
    cases = cases_of(RecordedSession("a", 1, exchanges=(exchange,)), RecordedSession("a", 2, exchanges=(exchange,)))
    async with host(a=echo(), policy=ALLOW) as running:
        await running.servers.ready(["a"])
        first = running.servers["a"].ready_at
        reports = await run_cases(running, cases)
        assert running.servers["a"].ready_at != first
    assert [report.state for report in reports] == ["passed", "passed"]


async def test_each_session_offers_what_its_client_declared(host: HostOf) -> None:
    heard = RecordedExchange("tools/call", {"name": "heard"}, result={"content": []})
    form: dict[str, Any] = {"capabilities": {"elicitation": {}}}
    cases = cases_of(
        RecordedSession("a", 1, revision="2025-11-25", client=form, exchanges=(heard,)),
        RecordedSession("a", 2, revision="2025-11-25", client={"capabilities": {"roots": {}}}, exchanges=(heard,)),
    )
    async with host(a=script("asks.py"), policy=ALLOW, dependencies={"answers": DIALOG_KINDS}) as running:
        reports = await run_cases(running, cases)
    texts = [str(report.answer.result) for report in reports]
    assert [("elicitation" in text, "roots" in text) for text in texts] == [(True, False), (False, True)]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_questions_in_reads_and_prompts_are_answered_as_recorded(host: HostOf, era: str) -> None:
    asked = [{"method": "elicitation/create", "params": FORM}]
    program = script("questions.py", "--era", era, "--ask", json.dumps(asked))
    event = question({"result": {"action": "accept", "content": {"n": "Ada"}}})
    async with host(a=program, policy=ALLOW, dependencies={"answers": DIALOG_KINDS}) as running:
        reports = await run(
            running,
            RecordedExchange("resources/read", {"uri": "ask:///"}, events=(event,), result={}),
            RecordedExchange("prompts/get", {"name": "ask"}, events=(event,), result={}),
            RecordedExchange("prompts/get", {"name": "ask"}, result={}),
        )
    assert [report.answer.problems for report in reports[:2]] == [(), ()]
    assert ["Ada" in str(report.answer.result) for report in reports] == [True, True, False]
    assert reports[2].answer.problems == ("the server asked elicitation/create, which was not recorded: Who?",)
