from __future__ import annotations

import json
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ConfigError, Declined, ServerNotReady
from mcphost.host.consent.approval_store import from_toml
from mcphost.host.consent.approvals import ApprovalStatus, Lifetime
from mcphost.host.consent.broker import Proposal
from mcphost.host.consent.policy import PolicyDecision
from mcphost.host.consent.questions import Answer, DeclineAll
from mcphost.host.consent.rule_trial import earlier_calls
from mcphost.host.events import GrantsChanged
from mcphost.host.tool_calls.call import CallState
from tests.conftest import Until
from tests.host.conftest import (
    NO,
    YES,
    FileStore,
    HostOf,
    RecordingHost,
    Waiting,
    change_tool,
    drop_tool,
    echo,
    hostile,
    settings,
    stop_server,
    wire,
)

pytestmark = pytest.mark.slow

ALWAYS = Answer(allow=True, lifetime=Lifetime.ALWAYS)
SESSION = Answer(allow=True, lifetime=Lifetime.SESSION)
SAY = {"text": "x"}


def sent(record: Path) -> int:
    return record.read_text().count('"tools/call"') if record.exists() else 0


@pytest.mark.hostile("P01", "P06")
@pytest.mark.requirement("TOOLS-11", "TOOLS-14", "TOOLS-29", "SEC-02", "HOST-06")
async def test_a_question_shows_everything_before_anything_is_sent(host: HostOf, tmp_path: Path) -> None:
    """Description, schema, arguments, command, configured name; and nothing is sent after a refusal."""
    server = echo("--record", tmp_path / "wire", "--name", "mcphost")
    async with host(files=server, answers=(NO,)) as running:
        call = await running.run("files", "echo", SAY, origin="model x")
    (question,) = running.approver.questions
    assert (question.server, question.origin, question.arguments) == ("files", "model x", SAY)
    assert question.tool.description == "Says back the text it was given."
    assert shlex.split(question.identity)[-4:] == ["--record", str(tmp_path / "wire"), "--name", "mcphost"]
    assert (question.rule, question.approval.kind, question.note) == (
        "policy.default = 'ask'",
        ApprovalStatus.NEW,
        None,
    )
    assert call.state is CallState.DECLINED
    assert str(call.error) == "echo was declined by you: not today"
    assert isinstance(call.error, Declined)
    assert call.error.by == "user"
    assert sent(tmp_path / "wire") == 0


@pytest.mark.hostile("P03", "P10")
@pytest.mark.requirement("SEC-01", "TOOLS-29")
@pytest.mark.parametrize("by", ["--yes", "--allow"])
async def test_what_a_flag_allowed_was_seen_by_nobody(host: HostOf, tmp_path: Path, by: str) -> None:
    """A later question says that the tool is new, and a change of it is not a change for a user who saw it."""
    store, flag = FileStore(tmp_path), Answer(allow=True, by=by, reason=by)
    async with host(a=echo(), answers=(flag, flag), dependencies={"store": store}) as running:
        for _ in range(2):
            await running.run("a", "echo", SAY)
        assert [question.approval.kind for question in running.approver.questions] == [ApprovalStatus.NEW] * 2
        assert not any(isinstance(event, GrantsChanged) for event in running.events)
    assert from_toml(store.read("approvals")) == []
    async with host(a=echo(), answers=(NO,), dependencies={"store": store}) as later:
        await later.run("a", "echo", SAY)
        assert later.approver.questions[0].approval.kind is ApprovalStatus.NEW


@pytest.mark.parametrize(("answer", "questions"), [(YES, 2), (SESSION, 1), (ALWAYS, 1)])
@pytest.mark.requirement("SEC-01", "TOOLS-29")
async def test_an_approval_holds_for_its_lifetime_and_can_be_revoked(
    host: HostOf, answer: Answer, questions: int
) -> None:
    async with host(a=echo(), b=echo(), answers=(answer,)) as running:
        for _ in range(2):
            await running.run("a", "echo", SAY)
        assert len(running.approver.questions) == questions
        assert [grant.tool for grant in running.consent.approvals.grants()] == ["echo"] * (2 - questions)
        running.consent.revoke("a", "echo")
        await running.run("a", "echo", SAY)
        await running.run("b", "echo", SAY)
    assert [q.server for q in running.approver.questions[questions:]] == ["a", "b"]
    assert GrantsChanged() in running.events


def made_older(folder: Path, age: timedelta) -> None:
    """Have everything that was allowed there allowed so long ago."""
    (path,) = folder.rglob("approvals.toml")
    ago = datetime.now(UTC) - age
    path.write_text(re.sub(r"(?m)^since = .*$", f"since = {ago.isoformat()}", path.read_text()))


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(("days", "asked"), [(90, 1), (0, 0), (200, 0)])
async def test_an_approval_for_good_lapses_after_remember_days(
    host: HostOf, tmp_path: Path, days: int, asked: int
) -> None:
    store = FileStore(tmp_path)
    async with host(a=echo(), answers=(ALWAYS,), dependencies={"store": store}) as running:
        await running.run("a", "echo", SAY)
    made_older(tmp_path, timedelta(days=100))
    async with host(a=echo(), policy={"remember_days": days}, dependencies={"store": store}) as running:
        await running.run("a", "echo", SAY)
        assert len(running.approver.questions) == asked
        assert len(running.consent.grants()) == 1 - asked


@pytest.mark.hostile("P03")
@pytest.mark.parametrize("kind", ["description", "title", "schema", "annotations", "output", "meta"])
@pytest.mark.requirement("TOOLS-18", "TOOLS-30")
async def test_a_tool_that_changed_is_asked_about_again_with_what_changed(
    host: HostOf, until: Until, kind: str
) -> None:
    """Announced, after the first call."""
    async with host(a=hostile("definition-changes", "--kind", kind), answers=(ALWAYS, YES, NO)) as running:
        await running.run("a", "act")
        await running.run("a", "report")  # by its answer the announcement has come too
        call = await running.run("a", "act")
    question = running.approver.questions[2]
    assert question.approval.kind is ApprovalStatus.CHANGED
    assert question.approval.differences
    assert question.careful
    assert call.state is CallState.DECLINED


@pytest.mark.hostile("P03")
async def test_a_silent_change_is_found_at_the_next_listing(host: HostOf, tmp_path: Path) -> None:
    """Without list_changed, and compared with what an earlier run saw."""
    store = FileStore(tmp_path)
    entry = hostile("silent-change")
    async with host(a=entry, answers=(ALWAYS, NO), dependencies={"store": store}) as running:
        await running.run("a", "act")
        await running.servers["a"].relist()
        assert (await running.run("a", "act")).state is CallState.DECLINED
    async with host(a=entry, dependencies={"store": store}) as running:
        await running.run("a", "act")
        assert running.approver.questions == []  # it is again what was allowed


@pytest.mark.parametrize(("seconds", "listed", "state"), [(0, 2, CallState.DECLINED), (3600, 1, CallState.DONE)])
@pytest.mark.requirement("TOOLS-30")
async def test_a_silent_change_is_found_before_a_call_by_an_old_listing(
    host: HostOf, tmp_path: Path, seconds: int, listed: int, state: CallState
) -> None:
    entry = hostile("silent-change", "--record", tmp_path / "wire")
    async with host(a=entry, answers=(ALWAYS, NO), policy={"relist_sec": seconds}) as running:
        await running.run("a", "act")
        assert len(wire(tmp_path / "wire", "tools/list")) == 1  # a person was asked: nothing was remembered
        call = await running.run("a", "act")
        assert call.state is state
        assert len(wire(tmp_path / "wire", "tools/list")) == listed
    assert [question.approval.kind for question in running.approver.questions][1:] == [ApprovalStatus.CHANGED] * (
        listed - 1
    )


async def test_a_configured_rule_needs_no_new_listing(host: HostOf, tmp_path: Path) -> None:
    entry = echo("--record", tmp_path / "wire")
    async with host(a=entry, policy={"relist_sec": 0, "allow": ["a:*"]}) as running:
        for _ in range(2):
            assert (await running.run("a", "echo", SAY)).state is CallState.DONE
    assert len(wire(tmp_path / "wire", "tools/list")) == 1


async def other_command(running: RecordingHost) -> None:
    await running.apply(settings(a=echo("--name", "other")))  # the old one is still there


async def remove_server(running: RecordingHost) -> None:
    await running.apply(settings(b=echo()))


async def restart_server(running: RecordingHost) -> None:
    running.servers["a"].restart()
    await running.servers.ready()


async def crash(running: RecordingHost) -> None:
    await running.run("a", "exit", {"code": 3})


@pytest.mark.hostile("P04")
@pytest.mark.parametrize(
    ("meanwhile", "state", "words"),
    [
        (change_tool, CallState.DECLINED, "the tool's definition changed in the meantime; nothing was sent"),
        (other_command, CallState.DECLINED, "the server's command or address changed in the meantime"),
        (drop_tool, CallState.ERROR, "a has no tool 'echo'"),
    ],
)
async def test_what_runs_is_what_was_shown(
    host: HostOf,
    tmp_path: Path,
    meanwhile: Callable[[RecordingHost], Awaitable[None]],
    state: CallState,
    words: str,
) -> None:
    """Whatever changes between the question and the sending; sent at most once."""
    waiting = Waiting()
    async with host(a=echo("--record", tmp_path / "wire"), answers=(waiting,)) as running:
        call = running.tool_calls.call("a", "echo", SAY)
        await waiting.asked.wait()
        await meanwhile(running)
        waiting.answer.set_result(YES)
        await running.end_of(call)
    assert call.state is state
    assert words in str(call.error)
    assert sent(tmp_path / "wire") == 0


@pytest.mark.hostile("P04")
@pytest.mark.parametrize("leave", [remove_server, stop_server, restart_server, crash])
async def test_a_question_is_withdrawn_when_its_server_goes(
    host: HostOf, tmp_path: Path, leave: Callable[[RecordingHost], Awaitable[None]]
) -> None:
    """Whoever is asked, on a screen or not; another server's question stays."""
    waiting, other = Waiting(), Waiting()
    async with host(
        a=echo("--record", tmp_path / "wire"), b=echo(), policy={"allow": ["a:exit"]}, answers=(waiting, other)
    ) as running:
        call = running.tool_calls.call("a", "echo", SAY)
        await waiting.asked.wait()
        beside = running.tool_calls.call("b", "echo", SAY)
        await other.asked.wait()
        await leave(running)
        await running.end_of(call)
        assert not other.withdrawn
        other.answer.set_result(YES)
        await running.end_of(beside)
    assert waiting.withdrawn
    assert (call.state, type(call.error), call.allowed) == (CallState.ERROR, ServerNotReady, False)
    assert str(call.error) == "a went away while the question about echo was open; nothing was sent"
    assert beside.state is CallState.DONE
    assert '"text":"x"' not in (tmp_path / "wire").read_text()


@pytest.mark.hostile("P04")
async def test_a_change_announced_while_somebody_is_asked_stops_the_call(host: HostOf) -> None:
    """The list is read again before the call is sent, not at its leisure."""
    waiting = Waiting()
    async with host(a=hostile("definition-changes"), answers=(waiting,)) as running:
        call = running.tool_calls.call("a", "act", {})
        await waiting.asked.wait()
        await running.run("a", "act")
        await running.run("a", "report")  # by its answer the announcement has come too
        waiting.answer.set_result(YES)
        await running.end_of(call)
        report = await running.run("a", "report")
    assert call.state is CallState.DECLINED
    assert report.outcome is not None
    assert report.outcome.structured["seen"]["tools/call"] == 3


@pytest.mark.parametrize(
    ("arguments", "state", "sent_arguments"),
    [({"text": "edited"}, CallState.DONE, {"text": "edited"}), ({"text": 7}, CallState.ERROR, None)],
)
async def test_edited_arguments_are_checked_and_sent_instead(
    host: HostOf, arguments: Mapping[str, Any], state: CallState, sent_arguments: Any
) -> None:
    async with host(a=echo(), answers=(Answer(allow=True, arguments=arguments),)) as running:
        call = await running.run("a", "echo", SAY)
    assert call.state is state
    assert call.edited is (sent_arguments is not None)
    assert (call.arguments if call.edited else None) == sent_arguments


@pytest.mark.requirement("CANC-07")
async def test_cancelling_withdraws_the_question(host: HostOf) -> None:
    waiting = Waiting()
    async with host(a=echo(), answers=(waiting,)) as running:
        call = running.tool_calls.call("a", "echo", SAY)
        await waiting.asked.wait()
        call.cancel()
        await running.end_of(call)
    assert waiting.withdrawn
    assert call.state is CallState.CANCELLED
    assert call.sent_at is None


async def test_leaving_withdraws_every_question(host: HostOf) -> None:
    steps = [Waiting(), Waiting()]
    async with host(a=echo(), answers=tuple(steps)) as running:
        calls = [running.tool_calls.call("a", "echo", SAY) for _ in steps]
        for step in steps:
            await step.asked.wait()
    assert all(step.withdrawn for step in steps)
    assert {call.state for call in calls} == {CallState.CANCELLED}


@pytest.mark.parametrize(
    ("policy", "entry", "state"),
    [
        ({"deny": ["a:echo"]}, {}, CallState.DECLINED),
        ({"allow": ["a:e*"]}, {}, CallState.DONE),
        ({}, {"tools": {"echo": {"approval": "deny"}}}, CallState.DECLINED),
    ],
)
@pytest.mark.requirement("HOST-04")
async def test_policy_decides_without_a_question(
    host: HostOf, policy: dict[str, Any], entry: dict[str, Any], state: CallState
) -> None:
    async with host(a=echo(**entry), policy=policy) as running:
        call = await running.run("a", "echo", SAY)
    assert call.state is state
    assert running.approver.questions == []
    assert running.consent.approvals.grants() == []
    if isinstance(call.error, Declined):
        assert call.error.by == "policy"
        assert "deny" in call.error.rule


@pytest.mark.hostile("P03", "P07")
@pytest.mark.parametrize(("trusted", "questions"), [(False, 2), (True, 1)])
@pytest.mark.requirement("TOOLS-19")
async def test_a_claim_spares_a_question_only_if_trusted_and_unchanged(
    host: HostOf, trusted: bool, questions: int
) -> None:
    """A tool that changed after its approval is asked about, though its server is trusted."""
    async with host(a=echo(trust_hints=trusted), answers=(ALWAYS, NO)) as running:
        await running.servers.ready()
        tool = running.catalog.tool("a", "echo")
        await running.run("a", "echo", SAY)
        claims = type(tool).read({**tool.definition(), "annotations": {"readOnlyHint": True}})
        running.catalog.keep("a", [claims])
        assert (await running.run("a", "echo", SAY)).state is CallState.DECLINED
        running.consent.revoke("a", "echo")
        await running.run("a", "echo", SAY)
    assert len(running.approver.questions) == 1 + questions


async def test_without_a_user_a_call_is_declined_with_advice(host: HostOf) -> None:
    answer = await DeclineAll("pass --yes").ask(None)  # type: ignore[arg-type]
    assert answer == Answer(allow=False, reason="pass --yes", by="policy")


@pytest.mark.hostile("P10")
async def test_approvals_are_kept_between_runs_and_bound_to_the_command(host: HostOf, tmp_path: Path) -> None:
    """The same name with another command is asked about, and the difference is the command."""
    store = FileStore(tmp_path)
    for entry, questions in ((echo(), 1), (echo(), 0), (echo("--name", "x"), 1)):
        async with host(a=entry, answers=(ALWAYS,), dependencies={"store": store}) as running:
            await running.run("a", "echo", SAY)
        assert len(running.approver.questions) == questions
    assert [change.field for change in running.approver.questions[0].approval.differences] == ["command"]
    assert (tmp_path / "approvals.toml").stat().st_mode & 0o077 == 0


RULE = Answer(allow=True, lifetime=Lifetime.ALWAYS, when={"text": "^x"})


@pytest.mark.hostile("P10")
@pytest.mark.requirement("SEC-01", "HOST-04")
async def test_a_rule_made_in_the_dialog_holds_in_later_runs(host: HostOf, tmp_path: Path) -> None:
    """Other arguments, another server and a changed tool are asked about as ever."""
    parts = {"store": FileStore(tmp_path), "audit_path": tmp_path / "audit.jsonl", "history_path": tmp_path / "h"}
    async with host(a=echo(), answers=(RULE, NO), dependencies=parts) as running:
        for text in ("x", "x and more", "not x"):
            await running.run("a", "echo", {"text": text})
        assert len(running.approver.questions) == 2
    async with host(a=echo(), b=echo(), answers=(NO, NO, NO), dependencies=parts) as running:
        assert (await running.run("a", "echo", SAY)).state is CallState.DONE
        assert (await running.run("b", "echo", SAY)).state is CallState.DECLINED
        past = await earlier_calls(running.approver.questions[0], running.history)
        assert past.calls == ()  # of b; the history has calls of a
        await change_tool(running)
        assert (await running.run("a", "echo", SAY)).state is CallState.DECLINED
        past = await earlier_calls(running.approver.questions[1], running.history)
        assert [(each.arguments["text"], each.state is CallState.DECLINED) for each in past.calls] == [
            ("x", False), ("not x", True), ("x and more", False), ("x", False),
        ]  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    made, by_rule, asked = [line for line in lines if line["event"] == "decision"][:3]
    assert (made["by"], made["when"], made["lifetime"]) == ("user", {"text": "^x"}, "always")
    assert by_rule["by"] == "policy"
    assert by_rule["rule"].startswith("allowed by you where text matches '^x', always, on ")
    assert (asked["rule"], asked["allowed"]) == ("policy.default = 'ask'", False)


async def _not_listed() -> Proposal:
    raise AssertionError("a question is no reason to list the tools again")


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(("outside", "verdict"), [("", PolicyDecision.ALLOW), ("a web page", PolicyDecision.ASK)])
async def test_a_rule_is_asked_about_again_after_outside_text(
    host: HostOf, outside: str, verdict: PolicyDecision
) -> None:
    async with host(a=echo(), answers=(RULE, NO)) as running:
        await running.run("a", "echo", SAY)
        (asked,) = running.approver.questions
        assert running.consent.foresee("a", asked.identity, asked.tool, SAY, outside=outside) is verdict
        assert running.consent.foresee("a", asked.identity, asked.tool, {"text": "y"}) is PolicyDecision.ASK
        if outside:
            proposal = Proposal(7, "a", asked.tool, SAY, "m", asked.identity, outside=outside)
            with pytest.raises(Declined):
                await running.consent.decide(proposal, _not_listed)
            assert "has read a web page, so that it is asked again; allowed by you where text matches '^x'" in (
                running.approver.questions[1].rule
            )


@pytest.mark.hostile("P10")
@pytest.mark.parametrize("pattern", ["(", "", "(?=x)", "x" * 3000])
async def test_a_pattern_that_cannot_be_kept_allows_this_call_and_no_other(host: HostOf, pattern: str) -> None:
    """A rule is never widened to what could be kept of it."""
    bad = Answer(allow=True, lifetime=Lifetime.ALWAYS, when={"text": pattern})
    async with host(a=echo(), answers=(bad, NO)) as running:
        assert (await running.run("a", "echo", SAY)).state is CallState.DONE
        assert (await running.run("a", "echo", SAY)).state is CallState.DECLINED
        assert running.consent.approvals.grants() == []
    assert running.alarms[0].startswith("this call of echo runs, but no rule was made of it: the pattern for text ")


async def test_what_cannot_be_saved_is_an_alarm_and_nothing_worse(host: HostOf, tmp_path: Path, until: Until) -> None:
    class Full(FileStore):
        def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
            raise ConfigError("disk full") if not self.alarms else RuntimeError("secret")

    store = Full(tmp_path)
    async with host(a=echo(), answers=(ALWAYS, SESSION), dependencies={"store": store}) as running:
        await running.run("a", "echo", SAY)
        await until(lambda: running.alarms)
        store.alarms.append("next time another error")
        running.consent.revoke("a", "echo")
        assert (await running.run("a", "echo", SAY)).state is CallState.DONE
    assert running.alarms[0] == "what you allowed could not be saved: disk full"
    assert "secret" not in " ".join(running.alarms)


async def test_what_nothing_changed_in_is_not_written(host: HostOf, tmp_path: Path) -> None:
    for times in (1, 2):
        async with host(a=echo(), answers=(NO,) * times, dependencies={"store": FileStore(tmp_path)}) as running:
            await running.run("a", "echo", SAY)
        assert not (tmp_path / "approvals.toml").exists()


@pytest.mark.hostile("P03")
async def test_a_configured_rule_holds_but_a_changed_tool_is_reported(host: HostOf, tmp_path: Path) -> None:
    """A rule is bound to names, so a change since the tool last ran cannot stop it; it is an alarm, once."""
    entry, store = hostile("silent-change", "--kind", "annotations"), FileStore(tmp_path)
    for alarms in (1, 2):  # the next run begins with what it was at first
        async with host(a=entry, policy={"allow": ["a:*"]}, dependencies={"store": store}) as running:
            for _ in range(2):
                await running.run("a", "act")
                await running.servers["a"].relist()
        assert len(running.alarms) == alarms
        assert running.alarms[0].startswith("a:act is not what it was when it ran before (annotations.")
        assert running.alarms[0].endswith("it runs by policy.allow has 'a:*'")
        assert running.approver.questions == []
    async with host(a=echo(), policy={"allow": ["a:*"]}, dependencies={"store": store}) as running:
        await running.run("a", "echo", SAY)
    async with host(a=echo("--name", "x"), policy={"allow": ["a:*"]}, dependencies={"store": store}) as running:
        await running.run("a", "echo", SAY)
    assert running.alarms == []  # the user's own doing


@pytest.mark.hostile("C07")
async def test_two_hosts_at_once_lose_nothing_of_what_either_was_told(host: HostOf, tmp_path: Path) -> None:
    """An approval in one does not undo an approval or revocation in the other."""
    store, always = FileStore(tmp_path), (ALWAYS, ALWAYS)
    async with host(a=echo(), answers=always, dependencies={"store": store}) as first:
        await first.run("a", "echo", SAY)
        await first.run("a", "sleep", {"seconds": 0})
    async with (
        host(a=echo(), answers=always, dependencies={"store": store}) as first,
        host(a=echo(), answers=always, dependencies={"store": store}) as second,
    ):
        first.consent.revoke("a", "echo")
        await second.run("a", "fail")
        await first.run("a", "add", {"a": 1, "b": 2})
    kept = from_toml(store.read("approvals"))
    assert sorted(each.tool for each in kept) == ["add", "fail", "sleep"]
