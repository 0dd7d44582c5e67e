from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from mcphost.config import Values
from mcphost.config.gated import GatedProgram
from mcphost.config.policy import Policy, rule_matches
from mcphost.host.consent.approval_store import from_toml, to_toml
from mcphost.host.consent.approvals import Approvals, ApprovalStatus, Gate, Lifetime, ToolApproval
from mcphost.host.consent.policy import GatedBy, PolicyDecision, decide
from mcphost.host.consent.questions import why_not_always
from mcphost.protocol.models.tools import Tool
from tests.host.conftest import settings

ALLOW, ASK, DENY = PolicyDecision
OWN, FOREIGN = GatedBy("claude", same_program=True), GatedBy("claude", same_program=False)
NAMELESS = GatedBy("", same_program=False)
NOW = datetime(2026, 11, 27, tzinfo=UTC)
LOG = Tool.model_validate({"name": "log", "inputSchema": {"type": "object"}})


@pytest.mark.parametrize(
    ("rule", "agent", "fits"),
    [
        ("git:log", "claude", True),
        ("claude>git:log", "claude", True),
        ("claude>git:*", "codex", False),
        ("*>git:log", "codex", True),
        ("*>git:log", "", False),
        ("git:a>b", "", False),
    ],
)
def test_a_rule_that_names_an_agent_fits_its_calls(rule: str, agent: str, fits: bool) -> None:
    assert rule_matches(rule, "git", "log", agent) is fits


def test_a_tool_name_may_hold_an_arrow() -> None:
    assert rule_matches("git:a>b", "git", "a>b")


@pytest.mark.parametrize("rule", [">git:log", "claude>:log", "claude>git", "claude>git:"])
def test_half_a_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="agent>server:tool"):
        Policy(deny=(rule,))


@pytest.mark.hostile("P07")
@pytest.mark.parametrize(
    ("policy", "entry", "gated", "decision"),
    [
        ({"allow": ["git:*"]}, {}, OWN, ALLOW),
        ({"allow": ["git:*", "*:*"]}, {}, FOREIGN, ASK),
        ({"allow": ["claude>git:*"]}, {}, FOREIGN, ALLOW),
        ({"allow": ["claude>git:*"]}, {}, NAMELESS, ASK),
        ({"allow": ["claude>git:*"]}, {}, None, ASK),
        ({"allow": ["claude>git:*"], "ask": ["git:log"]}, {}, FOREIGN, ASK),
        ({"default": "allow", "ask": ["git:log"]}, {}, FOREIGN, ASK),
        ({"default": "allow", "deny": ["git:log"]}, {}, FOREIGN, DENY),
        ({}, {"tools": {"log": {"approval": "allow"}}}, OWN, ALLOW),
        ({}, {"tools": {"log": {"approval": "allow"}}}, FOREIGN, ASK),
        ({}, {"tools": {"log": {"allow_when": {"n": "1"}}}}, FOREIGN, ASK),
        ({"default": "allow"}, {"tools": {"log": {"approval": "ask"}}}, FOREIGN, ASK),
        ({"default": "allow"}, {"tools": {"log": {"approval": "deny"}}}, FOREIGN, DENY),
        ({}, {"trust_hints": True}, OWN, ALLOW),
        ({}, {"trust_hints": True}, FOREIGN, ASK),
        ({"default": "allow"}, {"disabled_tools": ["l*"]}, OWN, DENY),
    ],
)
def test_a_trusted_name_alone_allows_nothing(
    policy: dict[str, Any], entry: dict[str, Any], gated: GatedBy | None, decision: PolicyDecision
) -> None:
    """An agent's file chooses the name of its server, and the command behind it."""
    config = settings(policy=policy, git={"command": "git-server", **entry})
    arguments = {"n": "1"}
    result = decide(config, "git", "log", remembered=None, claims_read_only=True, arguments=arguments, gated=gated)
    assert result.decision is decision, result.rule


@pytest.mark.hostile("P07")
@pytest.mark.parametrize(
    ("program", "entry", "same"),
    [
        (GatedProgram(("git-server", "-v"), folder="/w"), {"args": ["-v"]}, True),
        (GatedProgram(("git-server", "-v"), folder="/w"), {"args": ["${OPTION}"]}, True),
        (GatedProgram(("git-server",), folder="/w"), {"args": ["${UNSET}"]}, False),
        (GatedProgram(("git-server", "-v", "-x"), folder="/w"), {"args": ["-v"]}, False),
        (GatedProgram(("evil",), folder="/w"), {}, False),
        (GatedProgram(("git-server",), folder="/w"), {"cwd": "/w"}, True),
        (GatedProgram(("git-server",), folder="/w"), {"cwd": "/v"}, False),
        (GatedProgram(("git-server",), folder="/w", names=frozenset({"HOME", "TOKEN"})), {"env": {"TOKEN": "t"}}, True),
        (GatedProgram(("git-server",), folder="/w", names=frozenset({"HOME"})), {"env": {"TOKEN": "t"}}, False),
        (GatedProgram(("git-server",), folder="/w"), {"enabled": False}, False),
    ],
)
def test_the_same_program_has_the_same_words_and_folder(
    program: GatedProgram, entry: dict[str, Any], same: bool
) -> None:
    config = settings(git={"command": "git-server", **entry})
    assert program.is_entry(config, "git", Values({"OPTION": "-v"})) is same


@pytest.mark.parametrize(
    ("names", "url", "same"),
    [
        (["authorization"], "https://a.example/mcp", True),
        ([], "https://a.example/mcp", False),
        (["Authorization"], "https://b.example/mcp", False),
    ],
)
def test_the_same_address_is_sent_the_same_headers(names: list[str], url: str, same: bool) -> None:
    config = settings(web={"url": "https://a.example/mcp", "http_headers": {"Authorization": "Bearer t"}})
    assert GatedProgram(url=url, names=frozenset(names)).is_entry(config, "web", Values({})) is same


@pytest.mark.hostile("P03")
def test_another_folder_is_another_identity() -> None:
    here, there = GatedProgram(("git-server",), folder="/a"), GatedProgram(("git-server",), folder="/b")
    assert here.identity == "git-server (in /a)"
    approvals = Approvals()
    approvals.allow("git", here.identity, LOG, Lifetime.ALWAYS, NOW, gate=Gate("/a"))
    assert approvals.status_of("git", here.identity, LOG, Gate("/a", "claude")).remembered({})
    assert approvals.status_of("git", there.identity, LOG, Gate("/b", "claude")).kind is ApprovalStatus.NEW
    assert approvals.status_of("git", "git-server", LOG).kind is ApprovalStatus.NEW


def test_another_command_in_the_same_folder_shows_the_change() -> None:
    approvals, gate = Approvals(), Gate("/a")
    approvals.allow("git", GatedProgram(("git-server",), folder="/a").identity, LOG, Lifetime.ALWAYS, NOW, gate=gate)
    status = approvals.status_of("git", GatedProgram(("evil",), folder="/a").identity, LOG, gate)
    assert (status.kind, status.remembered({})) == (ApprovalStatus.CHANGED, None)
    assert [each.before for each in status.differences] == ["git-server (in /a)"]


def test_an_approval_for_one_agent_holds_for_no_other() -> None:
    approvals = Approvals()
    approvals.allow("git", "g (in /a)", LOG, Lifetime.ALWAYS, NOW, {"n": "^1$"}, Gate("/a", "claude"))
    saved = Approvals(from_toml(to_toml(approvals.saved_part())))
    assert saved.status_of("git", "g (in /a)", LOG, Gate("/a", "claude")).remembered({"n": "1"})
    assert not saved.status_of("git", "g (in /a)", LOG, Gate("/a", "codex")).remembered({"n": "1"})
    saved.allow("git", "g (in /a)", LOG, Lifetime.ALWAYS, NOW, gate=Gate("/a"))
    assert saved.status_of("git", "g (in /a)", LOG, Gate("/a", "codex")).remembered({"n": "2"})
    assert [grant.words for grant in saved.grants()] == [
        "where n matches '^1$' for claude in /a",
        "any arguments in /a",
    ]


def test_policy_and_approvals_load_nothing_that_waits() -> None:
    code = (
        "import sys, mcphost.config.gated, mcphost.host.consent.policy, mcphost.host.consent.approvals; "
        "print(sorted({'asyncio', 'textual', 'httpx', 'rich', 'keyring'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("hints", "gated", "reason"),
    [
        ({}, False, "allow it once first, since it may be destructive"),
        ({}, True, ""),
        ({"destructiveHint": True}, True, "the tool says that it is destructive"),
        ({"readOnlyHint": True}, False, ""),
    ],
)
def test_a_gated_call_may_be_allowed_for_good_at_once(hints: dict[str, bool], gated: bool, reason: str) -> None:
    tool = Tool.read({"name": "log", "inputSchema": {"type": "object"}, "annotations": hints})
    assert why_not_always(tool, ToolApproval(ApprovalStatus.NEW), gated=gated) == reason
