"""Calls of a model that acts on a skill: what a rule or an earlier answer allows is asked about all the same."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.host.consent.approvals import Approvals, Lifetime
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.policy import PolicyDecision
from mcphost.protocol.models.tools import Tool

ACTING = "the skill tides of charts"
READ = Tool.read({"name": "read", "annotations": {"readOnlyHint": True}})
WRITE = Tool.read({"name": "write", "annotations": {"readOnlyHint": False, "destructiveHint": False}})
LOCAL, REMOTE = {"command": "npx"}, {"url": "https://files.test/mcp"}
TRUSTED = {"trust_hints": True}
ALLOW, ASK, DENY = PolicyDecision.ALLOW, PolicyDecision.ASK, PolicyDecision.DENY


def decided(
    tool: Tool, entry: dict[str, Any], policy: dict[str, Any], *, skill: str, approvals: Approvals | None = None
) -> PolicyDecision:
    config = Config.model_validate({"servers": {"files": entry}, "policy": policy}, strict=False)
    store: Any = SimpleNamespace(approvals=approvals or Approvals())
    nothing: Any = SimpleNamespace(audit=None, bus=None)
    broker = ConsentBroker(lambda: config, store, nothing, nothing)
    identity = config.servers["files"].identity
    return broker.foresee("files", identity, tool, {}, skill=skill)


@pytest.mark.parametrize(
    ("tool", "entry", "policy"),
    [
        (WRITE, REMOTE | TRUSTED, {"default": "allow"}),
        (WRITE, REMOTE, {"allow": ["files:*"]}),
        (READ, REMOTE, {"allow": ["files:read"]}),
        (READ, LOCAL | TRUSTED, {}),
        (READ, LOCAL | TRUSTED | {"tools": {"read": {"approval": "allow"}}}, {}),
    ],
)
def test_a_rule_spares_no_question_while_acting_on_a_skill(
    tool: Tool, entry: dict[str, Any], policy: dict[str, Any]
) -> None:
    assert decided(tool, entry, policy, skill="") is ALLOW
    assert decided(tool, entry, policy, skill=ACTING) is ASK


def test_a_trusted_remote_reading_tool_runs_while_acting_on_a_skill() -> None:
    assert decided(READ, REMOTE | TRUSTED, {}, skill=ACTING) is ALLOW


def test_an_earlier_always_is_asked_about_while_acting_on_a_skill() -> None:
    approvals, now = Approvals(), datetime(2026, 11, 20, tzinfo=UTC)
    for entry in (LOCAL, REMOTE):
        identity = Config.model_validate({"servers": {"files": entry}}, strict=False).servers["files"].identity
        approvals.allow("files", identity, WRITE, Lifetime.ALWAYS, now)
        assert decided(WRITE, entry, {}, skill="", approvals=approvals) is ALLOW
        assert decided(WRITE, entry, {}, skill=ACTING, approvals=approvals) is ASK


def test_a_denied_tool_stays_denied_while_acting_on_a_skill() -> None:
    assert decided(READ, REMOTE | TRUSTED, {"deny": ["files:*"]}, skill=ACTING) is DENY
