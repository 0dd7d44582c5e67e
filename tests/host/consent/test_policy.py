from __future__ import annotations

import itertools
from typing import Any

import pytest

from mcphost.host.consent.policy import PolicyDecision, decide
from tests.host.conftest import echo, settings

ALLOW, ASK, DENY = PolicyDecision
OWN = {"tools": {"t": {"approval": "allow"}}}


@pytest.mark.hostile("P07")
@pytest.mark.parametrize(
    ("policy", "entry", "known", "verdict", "rule"),
    [
        ({}, {}, {}, ASK, "policy.default = 'ask'"),
        ({"default": "allow"}, {}, {}, ALLOW, "policy.default = 'allow'"),
        ({"default": "deny"}, {}, {}, DENY, "policy.default = 'deny'"),
        ({"allow": ["s:*"]}, {}, {}, ALLOW, "policy.allow has 's:*'"),
        ({"allow": ["s:*"], "ask": ["*:t"]}, {}, {}, ASK, "policy.ask has '*:t'"),
        ({"allow": ["S:t"]}, {}, {}, ASK, "policy.default = 'ask'"),
        ({"ask": ["s:t"]}, OWN, {}, ALLOW, "servers.s.tools.t.approval = 'allow'"),
        ({"deny": ["s:t"]}, OWN, {"remembered": "always"}, DENY, "policy.deny has 's:t'"),
        ({"allow": ["s:t"]}, {"tools": {"t": {"approval": "deny"}}}, {}, DENY, "servers.s.tools.t.approval = 'deny'"),
        ({"default": "deny"}, {}, {"remembered": "always"}, ALLOW, "always"),
        ({"ask": ["s:t"]}, {}, {"remembered": "always"}, ASK, "policy.ask has 's:t'"),
        ({}, {}, {"claims_read_only": True}, ASK, "policy.default = 'ask'"),
        ({}, {"trust_hints": True}, {}, ASK, "policy.default = 'ask'"),
        ({}, {"trust_hints": True}, {"claims_read_only": True}, ALLOW, "trust_hints"),
        ({"ask": ["s:*"]}, {"trust_hints": True}, {"claims_read_only": True}, ASK, "policy.ask"),
    ],
)
@pytest.mark.requirement("TOOLS-19", "HOST-04")
def test_the_strongest_rule_decides_and_is_named(
    policy: dict[str, Any], entry: dict[str, Any], known: dict[str, Any], verdict: PolicyDecision, rule: str
) -> None:
    """A server's claims count only where the user trusts them."""
    config = settings(policy=policy, s=echo(**entry))
    result = decide(config, "s", "t", **{"remembered": None, "claims_read_only": False, **known})
    assert result.decision is verdict
    assert rule in result.rule


STRENGTH: list[tuple[str, PolicyDecision, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("servers.s.tools.t.approval = 'deny'", DENY, {}, {"approval": "deny"}, {}),
    ("policy.deny", DENY, {"deny": ["s:t"]}, {}, {}),
    ("servers.s.tools.t.allow_when", ALLOW, {}, {"allow_when": {"a": "^x$"}}, {}),
    ("servers.s.tools.t.approval = 'allow'", ALLOW, {}, {"approval": "allow"}, {}),
    ("servers.s.tools.t.approval = 'ask'", ASK, {}, {"approval": "ask"}, {}),
    ("policy.ask", ASK, {"ask": ["s:t"]}, {}, {}),
    ("policy.allow", ALLOW, {"allow": ["s:t"]}, {}, {}),
    ("allowed by you", ALLOW, {}, {}, {"remembered": "allowed by you"}),
    ("trust_hints", ALLOW, {}, {}, {"claims_read_only": True}),
    ("policy.default", DENY, {"default": "deny"}, {}, {}),
]
"""Each rule, the strongest first: its name, what it says, and where it is written."""


@pytest.mark.hostile("P07")
@pytest.mark.requirement("TOOLS-19")
@pytest.mark.parametrize(("strong", "weak"), [*itertools.combinations(STRENGTH, 2)], ids=lambda rule: rule[0])
def test_the_stronger_of_every_two_rules_decides(strong: Any, weak: Any) -> None:
    rule, verdict, *places = strong
    policy, tool, known = ({**before, **after} for before, after in zip(weak[2:], places, strict=True))
    trusted = {"trust_hints": True} if known.get("claims_read_only") else {}
    config = settings(policy=policy, s=echo(tools={"t": tool}, **trusted))
    result = decide(
        config, "s", "t", **{"remembered": None, "claims_read_only": False, "arguments": {"a": "x"}, **known}
    )
    assert (result.decision, rule in result.rule) == (verdict, True), result.rule


def test_a_server_nobody_configured_falls_under_the_default() -> None:
    assert decide(settings(), "gone", "t", remembered=None, claims_read_only=True).decision is ASK


SELECT = {"tools": {"t": {"allow_when": {"sql": "^SELECT "}, "approval": "ask"}}}


@pytest.mark.hostile("P10")
@pytest.mark.parametrize(
    ("entry", "arguments", "verdict"),
    [
        (SELECT, {"sql": "SELECT 1", "more": 1}, ALLOW),
        (SELECT, {"sql": "DROP; SELECT 1"}, ASK),
        (SELECT, {"sql": "x\nSELECT 1"}, ASK),
        (SELECT, {"sql": ["SELECT 1"]}, ASK),
        (SELECT, {}, ASK),
        (SELECT, {"sql": "SELECT " + "x" * 10_000_000}, ASK),  # too long to be tried here
        ({"tools": {"t": {"allow_when": {"sql": "(a+)+$"}}}}, {"sql": "a" * 50_000 + "!"}, ASK),
        ({"tools": {"t": {"allow_when": {"a": "x", "b": "y"}}}}, {"a": "x"}, ASK),
        ({"tools": {"t": {"allow_when": {"sql": "^SELECT "}, "approval": "deny"}}}, {"sql": "SELECT 1"}, DENY),
    ],
)
def test_a_call_may_run_by_what_its_arguments_are(
    entry: dict[str, Any], arguments: dict[str, Any], verdict: PolicyDecision
) -> None:
    config = settings(s=echo(**entry))
    result = decide(config, "s", "t", remembered=None, claims_read_only=False, arguments=arguments)
    assert result.decision is verdict
    assert (verdict is ALLOW) == ("allow_when: sql matches '^SELECT '" in result.rule)
