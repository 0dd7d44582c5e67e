from __future__ import annotations

from typing import Any

import pytest

from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.revisions import (
    ASKS_FOR,
    HANDSHAKE_REVISIONS,
    NEEDED_CAPABILITY,
    NEWEST_HANDSHAKE,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    Revision,
    find_revision,
    missing_capability,
    serves,
)


@pytest.mark.requirement("LIFE-03", "LIFE-04", "BATCH-04")
def test_four_revisions_have_a_handshake_and_one_has_batches() -> None:
    versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    assert [revision.version for revision in HANDSHAKE_REVISIONS] == versions
    assert [revision for revision in HANDSHAKE_REVISIONS if revision.batches] == [V2025_03_26]
    assert NEWEST_HANDSHAKE.version == "2025-11-25"
    assert [find_revision(version) for version in versions] == list(HANDSHAKE_REVISIONS)


@pytest.mark.requirement("LIFE-28")
@pytest.mark.parametrize(
    "version", ["2025-06-18 ", "v2", "", "2025-06-19", "2024-10-07", None, 20251125, ["2025-11-25"]]
)
def test_a_version_that_is_only_like_one_is_unknown(version: object) -> None:
    assert find_revision(version) is None


@pytest.mark.requirement("CAP-02", "CAP-03", "CAP-04", "CAP-05")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)
@pytest.mark.parametrize(
    ("method", "capabilities", "missing"),
    [
        ("ping", {}, None),
        ("tools/list", {}, "tools"),
        ("tools/list", {"tools": {}}, None),
        ("tools/call", {"tools": None}, "tools"),
        ("tools/call", {"tools": True}, "tools"),
        ("logging/setLevel", {"tools": {}}, "logging"),
        ("resources/templates/list", {"resources": {}}, None),
        ("resources/subscribe", {"resources": {}}, "resources.subscribe"),
        ("resources/subscribe", {"resources": {"subscribe": False}}, "resources.subscribe"),
        ("resources/subscribe", {"resources": {"subscribe": "yes"}}, "resources.subscribe"),
        ("resources/subscribe", {"resources": {"subscribe": True}}, None),
        ("prompts/get", {"resources": {}}, "prompts"),
        ("zzz/unknown", {}, None),
    ],
)
def test_a_method_needs_the_capability_that_was_declared(
    method: str, capabilities: dict[str, Any], missing: str | None, revision: Revision
) -> None:
    assert missing_capability(method, capabilities, revision) == missing


@pytest.mark.requirement("SKILL-01")
@pytest.mark.parametrize("revision", REVISIONS, ids=lambda revision: revision.version)
@pytest.mark.parametrize(
    ("declared", "listed", "folders"),
    [
        (None, False, False),
        (True, False, False),
        ({}, True, False),
        ({"directoryRead": "yes"}, True, False),
        ({"directoryRead": True}, True, True),
    ],
)
def test_skills_need_the_extension_in_every_revision(
    declared: Any, listed: bool, folders: bool, revision: Revision
) -> None:
    capabilities = {"extensions": {SKILLS_EXTENSION: declared}}
    assert serves("skills/list", capabilities, revision) is serves("skills/get", capabilities, revision) is listed
    assert serves("resources/directory/read", capabilities, revision) is folders


def test_completion_needs_no_word_where_the_revision_has_none() -> None:
    assert missing_capability("completion/complete", {}, V2024_11_05) is None
    assert missing_capability("completion/complete", {}, V2025_03_26) == "completions"
    assert missing_capability("completion/complete", {"completions": {}}, V2025_03_26) is None


def test_no_method_goes_both_ways() -> None:
    assert not ASKS_FOR.keys() & NEEDED_CAPABILITY.keys()
