from __future__ import annotations

from typing import Any

import pytest

from mcphost.host.comparison.sides import ERAS, EraName
from mcphost.host.server_rules import sessions
from mcphost.host.server_rules.checking import look_at
from mcphost.host.server_rules.judging import RULES, RuleFinding, judge
from mcphost.host.server_rules.requirements import requirements
from tests.host.server_rules.peers import DemoTarget, PeerTarget

SELF = {"name": "mcphost", "version": "1"}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right answer of a peer of this process comes at once, if it comes after a wrong one."""
    monkeypatch.setattr(sessions, "AFTER_A_WRONG_ANSWER", 0.01)


async def findings(era: EraName, mode: str, **options: Any) -> dict[str, RuleFinding]:
    """The rows that a server in this mode breaks in one era."""
    (looked,) = await look_at(PeerTarget(mode, **options), [era], SELF, lambda probe: None)
    assert looked.seen is not None, looked.words
    return {each.row.id: each for each in judge(looked.seen) if each.outcome in ("failed", "warning")}


LIST = "tools/list"

LEGACY: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("garbage-first", {"at": "initialize"}, "SSTDIO-02"),
    ("wrong-id", {"at": LIST}, "SMSG-06"),
    ("next-id", {"at": LIST}, "SMSG-06"),
    ("string-id", {"at": LIST}, "SMSG-06"),
    ("float-id", {"at": LIST}, "SMSG-01"),
    ("bool-id", {"at": LIST}, "SMSG-01"),
    ("null-id", {"at": LIST}, "SMSG-06"),
    ("list-id", {"at": LIST}, "SMSG-01"),
    ("both", {"at": LIST}, "SMSG-11"),
    ("neither", {"at": LIST}, "SMSG-10"),
    ("error-string", {"at": LIST}, "SMSG-15"),
    ("error-null", {"at": LIST}, "SMSG-15"),
    ("bad-code", {"at": LIST}, "SMSG-16"),
    ("no-message", {"at": LIST}, "SMSG-15"),
    ("result-list", {"at": LIST}, "SMSG-12"),
    ("result-null", {"at": LIST}, "SMSG-12"),
    ("result-string", {"at": LIST}, "SMSG-12"),
    ("jsonrpc-1", {"at": LIST}, "SMSG-01"),
    ("no-jsonrpc", {"at": LIST}, "SMSG-01"),
    ("answer-with-method", {"at": LIST}, "SMSG-01"),
    ("nan", {"at": LIST}, "SSTDIO-02"),
    ("raw-control", {"at": LIST}, "SSTDIO-02"),
    ("trailing-comma", {"at": LIST}, "SSTDIO-02"),
    ("invalid-utf8", {"at": LIST}, "SMSG-26"),
    ("utf-16", {"at": LIST}, "SSTDIO-02"),
    ("batch", {"at": LIST, "kind": "good", "protocol": "2025-11-25"}, "SBATCH-08"),
    ("version-unknown", {"kind": "number"}, "SLIFE-03"),
    ("version-unknown", {"kind": "null"}, "SLIFE-03"),
    ("version-none", {}, "SLIFE-01"),
    ("bare-greeting", {}, "SLIFE-01"),
    ("bad-capabilities", {"kind": "list"}, "SMSG-39"),
    ("bad-capabilities", {"kind": "tools-true"}, "SMSG-39"),
    ("initialize-silent", {"at": LIST}, "STOOL-08"),
    ("same-cursor", {}, "SPAGE-02"),
    ("abca-cursor", {}, "SPAGE-02"),
    ("bad-cursor", {"kind": "number"}, "SPAGE-01"),
    ("bad-cursor", {"kind": "object"}, "SPAGE-01"),
    ("one-bad-tool", {"kind": "null-schema"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "no-schema"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "list-schema"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "string-schema"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "invalid-schema"}, "STOOL-13"),
    ("one-bad-tool", {"kind": "no-name"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "number-name"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "empty-name"}, "STOOL-16"),
    ("one-bad-tool", {"kind": "number-description"}, "STOOL-10"),
    ("one-bad-tool", {"kind": "bad-annotations"}, "STOOL-40"),
    ("one-bad-tool", {"kind": "string"}, "STOOL-09"),
    ("one-bad-tool", {"kind": "null"}, "STOOL-09"),
    ("odd-names", {}, "STOOL-15"),
    ("odd-names", {}, "STOOL-17"),
    ("server-requests", {"at": LIST, "kind": "sampling"}, "SLIFE-11"),
    ("server-requests", {"at": LIST, "kind": "roots"}, "SLIFE-11"),
    ("server-requests", {"at": LIST, "kind": "null-id"}, "SMSG-03"),
    ("server-requests", {"at": LIST, "kind": "float-id"}, "SMSG-02"),
    ("server-requests", {"at": LIST}, "SMSG-04"),
    ("request-flood", {"at": LIST, "count": 3}, "SLIFE-11"),
    ("escapes", {"at": "ping"}, "SLOG-02"),
    ("notification-flood", {"at": "ping", "count": 10}, "SLOG-02"),
)
"""A mode, its options, and the row that it breaks."""

MODERN: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("modern-asks", {"at": LIST}, "SMSG-34"),
    ("modern-asks", {"at": LIST}, "SSTDIO-04"),
    ("modern-needs", {"at": LIST}, "SMRTR-02"),
    ("modern-state", {"at": LIST}, "SMSG-06"),
    ("speaks-modern", {}, "SMSG-32"),
    ("speaks-modern", {}, "SCACHE-01"),
    ("speaks-modern", {}, "SMETA-09"),
    ("speaks-modern", {}, "SVER-01"),
)


@pytest.mark.parametrize(("mode", "options", "row"), LEGACY)
async def test_a_hostile_server_is_named_with_the_row_it_breaks(mode: str, options: dict[str, Any], row: str) -> None:
    found = await findings("legacy", mode, **options)
    assert row in found
    assert found[row].seen


@pytest.mark.parametrize(("mode", "options", "row"), MODERN)
async def test_a_hostile_modern_server_is_named_with_its_row(mode: str, options: dict[str, Any], row: str) -> None:
    assert row in await findings("modern", mode, **options)


ALLOWED = ("bom", "deep-json", "huge-integer", "duplicate-keys", "extra-members", "empty-page")
"""Modes that are odd, and break no row that is seen without a call."""

OWN = {"SLOG-06", "STOOL-20", "STOOL-21", "STOOL-23", "SPAGE-05", "SPAGE-06"}
"""The rows that every scripted server breaks: it looks at no names, levels or cursors."""


@pytest.mark.parametrize("mode", ALLOWED)
async def test_what_is_only_odd_gives_no_finding(mode: str) -> None:
    at = {} if mode in ("extra-members", "empty-page") else {"at": LIST}
    assert {*await findings("legacy", mode, **at)} <= OWN


def test_every_rule_belongs_to_a_row_that_can_be_judged() -> None:
    rows = requirements()
    assert RULES.keys() <= rows.keys()
    assert not [name for name in RULES if rows[name].kind == "hidden" or rows[name].level == "MAY"]


@pytest.mark.parametrize("eras", [ERAS, ERAS[:1], ERAS[1:]])
async def test_the_demo_server_keeps_every_rule_in_its_eras(eras: tuple[EraName, ...]) -> None:
    for looked in await look_at(DemoTarget(), eras, SELF, lambda probe: None):
        assert looked.seen is not None, looked.words
        found = [*judge(looked.seen)]
        assert [each for each in found if each.outcome in ("failed", "warning")] == []
        assert sum(each.outcome == "passed" for each in found) > 100
