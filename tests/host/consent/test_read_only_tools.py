"""One answer for all tools of a server that claim to be read-only: what it covers, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.host.consent.approvals import Approvals, ApprovalStatus, Lifetime
from mcphost.host.consent.questions import Answer, ReadOnlyTools, ToolCallQuestion
from mcphost.protocol.models.tools import Tool
from tests.host.conftest import NO, HostOf, RecordingHost, Step, echo

NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
RUN = "npx files"
READS: Mapping[str, Any] = {"readOnlyHint": True}


def tool(name: str, annotations: Mapping[str, Any] = READS, **more: Any) -> Tool:
    return Tool.read({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations, **more})


def together(*tools: Tool) -> Approvals:
    approvals = Approvals()
    approvals.allow_read_only("files", RUN, tools, NOW)
    return approvals


def remembered(approvals: Approvals, tool: Tool, *, server: str = "files", identity: str = RUN) -> str | None:
    return approvals.status_of(server, identity, tool).remembered({"path": "any"})


def test_covered_tools_run_with_any_arguments_and_name_the_claim() -> None:
    approvals = together(tool("read"), tool("list"))
    assert remembered(approvals, tool("list")) == (
        "allowed by you with the server's read-only tools, until mcphost exits, on 20 Nov 2026 14:30; "
        "it is read-only as the server says"
    )


@pytest.mark.hostile("P03")
@pytest.mark.requirement("TOOLS-18", "TOOLS-30")
def test_a_covered_tool_asks_again_once_its_definition_changes() -> None:
    status = together(tool("read")).status_of("files", RUN, tool("read", description="Also sends it elsewhere."))
    assert (status.kind, [each.field for each in status.differences]) == (ApprovalStatus.CHANGED, ["description"])
    assert status.remembered({}) is None


@pytest.mark.hostile("P03")
def test_a_covered_tool_asks_again_once_another_program_runs_it() -> None:
    approvals = together(tool("read"))
    assert approvals.status_of("files", "npx other", tool("read")).moved
    assert remembered(approvals, tool("read"), identity="npx other") is None


@pytest.mark.hostile("P03")
def test_a_tool_that_comes_later_or_elsewhere_is_not_covered() -> None:
    approvals = together(tool("read"))
    assert remembered(approvals, tool("new")) is None
    assert remembered(approvals, tool("read"), server="db") is None


def test_an_approval_of_another_definition_outweighs_the_common_one() -> None:
    approvals = together(tool("read"))
    approvals.allow("files", RUN, tool("read", title="Then"), Lifetime.ONCE, NOW)
    assert approvals.status_of("files", RUN, tool("read")).kind is ApprovalStatus.CHANGED
    assert remembered(approvals, tool("read")) is None


@pytest.mark.requirement("SEC-01", "TOOLS-29")
def test_the_common_approval_is_listed_and_revoked_as_one() -> None:
    approvals = together(tool("read"), tool("list"))
    (grant,) = approvals.grants()
    assert (grant.label, grant.words) == ("2 read-only tools", "read-only, as the server says: read, list")
    approvals.revoke("files", grant.tool, grant.when)
    assert approvals.grants() == []
    assert remembered(approvals, tool("read")) is None


def test_the_common_approval_is_never_saved_but_outlives_a_refresh() -> None:
    approvals = together(tool("read"))
    assert list(approvals.saved_part()) == []
    approvals.replace_saved_part(())
    assert remembered(approvals, tool("read"))


def test_forgetting_a_server_ends_its_common_approval() -> None:
    approvals = together(tool("read"), tool("list"))
    approvals.allow("files", RUN, tool("read"), Lifetime.ALWAYS, NOW)
    assert approvals.forget("files") == 2
    assert approvals.grants() == []


async def sorted_out(policy: Mapping[str, Any], own: Mapping[str, Any], *tools: Tool) -> ReadOnlyTools:
    server = {"command": "files", "tools": own}
    config = Config.model_validate({"policy": policy, "servers": {"files": server}}, strict=False)
    running = RecordingHost(config)
    return await running.consent.read_only_tools("files", RUN, tools)


@pytest.mark.hostile("P07")
@pytest.mark.requirement("TOOLS-19")
async def test_only_believable_claims_without_a_rule_are_covered() -> None:
    tools = (
        tool("read"),
        tool("silent", {}),
        tool("destroys", {"destructiveHint": True}),
        tool("hides", description="Reads\u200b\u200b."),
        tool("own"),
        tool("listed"),
        tool("denied"),
    )
    policy = {"ask": ["files:listed"], "deny": ["*:denied"]}
    found = await sorted_out(policy, {"own": {"approval": "ask"}}, *tools)
    assert [each.name for each in found.covered] == ["read"]
    assert {each.name: why for each, why in found.left_out} == {
        "hides": "its definition holds invisible characters",
        "own": "servers.files.tools.own.approval = 'ask'",
        "listed": "policy.ask has 'files:listed'",
        "denied": "policy.deny has '*:denied'",
    }


def agrees(running: list[RecordingHost]) -> Step:
    async def agree(question: ToolCallQuestion) -> Answer:
        found = await running[0].tool_calls.read_only_tools(question)
        return Answer(allow=True, together=found.covered)

    return agree


@pytest.mark.slow
@pytest.mark.hostile("P03", "P10")
@pytest.mark.requirement("SEC-01", "TOOLS-29", "TOOLS-30")
async def test_one_yes_spares_the_others_until_a_definition_changes(host: HostOf, tmp_path: Path) -> None:
    hosts: list[RecordingHost] = []
    audit = {"audit_path": tmp_path / "audit.jsonl"}
    async with host(a=echo(), answers=(agrees(hosts), NO, NO), dependencies=audit) as running:
        hosts.append(running)
        await running.servers.ready()
        await running.all_listed("a")
        definitions = [running.catalog.tool("a", name).definition() for name in ("echo", "fail")]
        running.catalog.keep("a", [Tool.read({**each, "annotations": READS}) for each in definitions])
        await running.run("a", "echo", {"text": "x"})
        await running.run("a", "fail")
        assert len(running.approver.questions) == 1
        running.catalog.keep("a", [Tool.read({**each, "annotations": READS, "title": "T"}) for each in definitions])
        await running.run("a", "fail")
        assert running.approver.questions[1].approval.kind is ApprovalStatus.CHANGED
        running.consent.revoke("a", "")
        assert [grant.tool for grant in running.consent.grants()] == []
    decisions = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    first, second = [each for each in decisions if each["event"] == "decision"][:2]
    assert (first["together"], first["by"]) == (["echo", "fail"], "user")
    assert second["by"] == "policy"
    assert second["rule"].startswith("allowed by you with the server's read-only tools")


@pytest.mark.slow
@pytest.mark.hostile("P07")
async def test_a_question_names_the_rule_that_forbids_a_common_answer(host: HostOf) -> None:
    async with host(a=echo(), policy={"ask": ["a:echo"]}, answers=(NO,)) as running:
        await running.servers.ready()
        await running.all_listed("a")
        claims = Tool.read({**running.catalog.tool("a", "echo").definition(), "annotations": READS})
        running.catalog.keep("a", [claims])
        await running.run("a", "echo", {"text": "x"})
    assert running.approver.questions[0].why_not_together == "policy.ask has 'a:echo'"
