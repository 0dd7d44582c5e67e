"""One consent for all runs of a repeated call: what it covers, and what ends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import Declined
from mcphost.host.consent.broker import Proposal
from mcphost.host.consent.questions import Answer
from mcphost.host.consent.repetition import Repetition
from mcphost.host.tool_calls.call import CallRequest
from mcphost.protocol.models.tools import Tool
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, ScriptedApprover, echo, settings

RUN = "npx files"
ASK: Mapping[str, Any] = {"default": "allow", "ask": ["files:*"]}


def tool(description: str = "Reads a file.") -> Tool:
    return Tool.read({"name": "read", "description": description, "inputSchema": {"type": "object"}})


def bound(*, by_user: bool = True, times: int | None = None) -> Repetition:
    repetition = Repetition(5, times)
    repetition.bind(RUN, tool(), {"path": "a", "lines": 3}, by_user=by_user)
    return repetition


def proposal(repetition: Repetition, **more: Any) -> Proposal:
    shown = Proposal(1, "files", tool(), {"path": "a", "lines": 3}, "you", RUN, repetition=repetition)
    return replace(shown, **more)


async def decided(made: Proposal, *answers: Answer, policy: Mapping[str, Any] = ASK) -> tuple[RecordingHost, Answer]:
    """The answer to a proposal, and the host that asked for it or did not."""
    host = RecordingHost(settings(policy=policy), ScriptedApprover(*answers))

    async def list_again() -> Proposal:
        return made

    return host, (await host.consent.decide(made, list_again))[1]


@pytest.mark.parametrize(("times", "words"), [(None, "every 5 s until you stop it"), (3, "every 5 s, 3 times")])
async def test_the_question_says_that_the_call_repeats_and_how_often(times: int | None, words: str) -> None:
    host, _ = await decided(proposal(Repetition(5, times)))
    assert [each.repeats for each in host.approver.questions] == [words]


@pytest.mark.requirement("TOOLS-29")
async def test_later_runs_are_not_asked_about_even_where_a_rule_asks() -> None:
    host, answer = await decided(proposal(bound()))
    assert (host.approver.questions, answer.by) == ([], "policy")
    assert answer.reason.startswith("allowed by you, every 5 s until you stop it, on ")


async def test_runs_that_a_rule_allowed_are_asked_about_once_it_asks() -> None:
    host, _ = await decided(proposal(bound(by_user=False)))
    assert len(host.approver.questions) == 1


@pytest.mark.requirement("SEC-01")
async def test_a_deny_wins_at_once() -> None:
    with pytest.raises(Declined, match=r"policy\.deny"):
        await decided(proposal(bound()), policy={"deny": ["files:read"]})


@pytest.mark.hostile("P03")
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"tool": tool("Also sends it elsewhere.")}, "the tool's definition"),
        ({"identity": "npx other"}, "the server's command or address"),
        ({"arguments": {"path": "b", "lines": 3}}, "the arguments"),
        ({"values": {"path": "secret", "lines": 3}}, "the arguments"),  # a reference has another value
    ],
)
async def test_a_change_since_the_first_run_is_declined(change: dict[str, Any], part: str) -> None:
    """Also where a rule allows the call."""
    with pytest.raises(Declined, match=f"{part} changed since the repetition began"):
        await decided(proposal(bound(), **change), policy={"default": "allow"})


async def test_the_order_of_arguments_is_no_change() -> None:
    host, _ = await decided(proposal(bound(), arguments={"lines": 3, "path": "a"}))
    assert host.approver.questions == []


@pytest.mark.hostile("P10")
async def test_a_tool_that_could_not_be_listed_again_is_asked_about() -> None:
    host, _ = await decided(proposal(bound(), unconfirmed="the server does not answer"))
    (question,) = host.approver.questions
    assert question.rule.startswith("it may have changed (the server does not answer), so that it is asked again; ")


@pytest.mark.slow
@pytest.mark.requirement("HOST-06")
async def test_the_audit_log_has_each_run_and_how_often(host: HostOf, tmp_path: Path, until: Until) -> None:
    audit = tmp_path / "audit.jsonl"
    async with host(a=echo(), policy={"ask": ["a:*"]}, dependencies={"audit_path": audit}) as running:
        repeated = running.repeated_calls.begin(CallRequest("a", "echo", {"text": "x"}), 0.0, 3)
        await until(lambda: repeated.end)
    decisions = [each for each in map(json.loads, audit.read_text().splitlines()) if each["event"] == "decision"]
    assert [(each["by"], each["repeats"]) for each in decisions] == [
        ("user", "without a pause, 3 times"),
        ("policy", "without a pause, 3 times"),
        ("policy", "without a pause, 3 times"),
    ]
    assert (repeated.runs, repeated.changes, len(running.approver.questions)) == (3, 0, 1)


def test_a_series_without_pauses_says_so() -> None:
    assert Repetition(0, 115).words == "without a pause, 115 times"
