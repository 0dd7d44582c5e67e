from __future__ import annotations

from typing import Any

import pytest

from mcphost.protocol.extensions import ENTERPRISE_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities, modes_of
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS

BOTH = frozenset({"form", "url"})
ROOTS = {"listChanged": True}


@pytest.mark.requirement("ELIC-01", "ELIC-11", "ROOT-01")
@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (ClientCapabilities(), [{}, {}, {}, {}]),
        (ClientCapabilities(roots=True), [{"roots": ROOTS}] * 4),
        (ClientCapabilities(elicitation=BOTH), [{}, {}, {"elicitation": {}}, {"elicitation": {"form": {}, "url": {}}}]),
        (ClientCapabilities(elicitation=frozenset({"url"})), [{}, {}, {}, {"elicitation": {"url": {}}}]),
        (ClientCapabilities(sampling={"tools": {}}), [{"sampling": {"tools": {}}}] * 4),
        (
            ClientCapabilities(extensions=frozenset({ENTERPRISE_EXTENSION, TASKS_EXTENSION})),
            [{"extensions": {ENTERPRISE_EXTENSION: {}}}] * 4,  # those of sign-ins alone are declared in a handshake
        ),
    ],
)
def test_each_revision_has_its_own_words(declared: ClientCapabilities, said: list[dict[str, Any]]) -> None:
    assert [declared.under(revision) for revision in HANDSHAKE_REVISIONS] == said


@pytest.mark.parametrize(
    ("capabilities", "modes"),
    [
        ({}, set()),
        ({"elicitation": {}}, {"form"}),
        ({"elicitation": {"url": {}}}, {"url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"form", "url"}),
    ],
)
def test_an_empty_declaration_means_forms(capabilities: dict[str, Any], modes: set[str]) -> None:
    assert modes_of(capabilities) == modes
