"""The table of extensions."""

from __future__ import annotations

from mcphost.protocol.extensions import EXTENSIONS


def test_each_identifier_occurs_once() -> None:
    assert len({each.identifier for each in EXTENSIONS}) == len(EXTENSIONS)


def test_the_drafts_are_dpop_and_workload_identity() -> None:
    assert [each.name for each in EXTENSIONS if each.draft] == ["DPoP", "workload identity"]
