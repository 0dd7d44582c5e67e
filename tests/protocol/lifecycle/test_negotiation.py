from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mcphost.errors import InvalidResult, ServerError, VersionRefused
from mcphost.protocol.lifecycle.negotiation import Agreed, Attempt, InitializeAttempt, Outcome, negotiate
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, V2024_11_05, V2025_06_18, Revision

NEWEST = HANDSHAKE_REVISIONS[-1].version


def said(version: object, **more: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, **more}


def unsupported(data: Any, code: int = -32602) -> ServerError:
    return ServerError(code, "Unsupported protocol version", data, method="initialize")


def offered(attempt: Attempt) -> str:
    assert isinstance(attempt, InitializeAttempt)
    return attempt.offer.version


def settle(outcomes: Sequence[Outcome], minimum: Revision = V2024_11_05) -> tuple[list[str], Agreed]:
    """The versions offered, one for each outcome, and the agreement."""
    negotiation = negotiate(minimum=minimum)
    offers = [offered(next(negotiation))]
    for outcome in outcomes:
        try:
            offers += [offered(negotiation.send(outcome))]
        except StopIteration as end:
            return offers, end.value
    raise AssertionError("still negotiating")


@pytest.mark.requirement("LIFE-03", "LIFE-04", "LIFE-05", "LIFE-07")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)
def test_any_known_version_the_server_names_is_agreed(revision: Revision) -> None:
    result = said(revision.version)
    assert settle([result]) == ([NEWEST], Agreed(revision, result))


@pytest.mark.requirement("LIFE-11")
@pytest.mark.parametrize(
    ("listed", "second"),
    [
        (["2024-11-05"], "2024-11-05"),
        (["2024-11-05", "2025-06-18", "2025-03-26"], "2025-06-18"),
        (["1.0", None, 7, "2025-03-26"], "2025-03-26"),
        ([NEWEST, "2025-03-26"], "2025-03-26"),
    ],
)
def test_a_server_that_lists_its_versions_is_asked_once_more(listed: list[Any], second: str) -> None:
    offers, agreed = settle([unsupported({"supported": listed, "requested": NEWEST}), said(second)])
    assert offers == [NEWEST, second]
    assert agreed.revision.version == second


@pytest.mark.requirement("LIFE-08", "LIFE-11")
@pytest.mark.parametrize(
    "error",
    [
        ServerError(-32602, "Invalid params", {"supported": "2024-11-05"}),
        ServerError(-32603, "Invalid params", {"supported": ["2024-11-05"]}),
        ServerError(-32001, "No conversion of 2024-11-05"),
        unsupported({"supported": ["1.0"]}),
        unsupported({"supported": [NEWEST]}),
    ],
)
def test_an_error_without_a_way_on_is_the_answer(error: ServerError) -> None:
    with pytest.raises(ServerError) as caught:
        settle([error])
    assert caught.value is error


@pytest.mark.requirement("LIFE-11")
@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("Unsupported protocol version", [NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"]),
        ("Bad protocolVersion: use 2024-11-05 or 2025-03-26", [NEWEST, "2025-03-26", "2024-11-05"]),
        (f"version {NEWEST} is unknown, 2025-06-18 is not", [NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"]),
    ],
)
@pytest.mark.parametrize("code", [-32602, -32022, -32000])
def test_a_version_refused_in_words_leads_to_named_then_older_ones(words: str, offers: list[str], code: int) -> None:
    made, agreed = settle([*[ServerError(code, words)] * (len(offers) - 1), said(offers[-1])])
    assert made == offers
    assert agreed.revision.version == offers[-1]
    with pytest.raises(ServerError):
        settle([ServerError(code, words)] * 9)


@pytest.mark.hostile("J12")
def test_a_second_refusal_ends_it() -> None:
    error = unsupported({"supported": ["2024-11-05"]})
    with pytest.raises(ServerError):
        settle([error, error])


@pytest.mark.hostile("J12")
@pytest.mark.requirement("LIFE-06", "LIFE-20", "LIFE-28")
@pytest.mark.parametrize("version", ["1999-01-01", "2199-01-01", "", "2025-06-18 ", "v2", "x" * 999])
def test_an_unknown_version_is_refused_and_both_are_named(version: str) -> None:
    with pytest.raises(VersionRefused) as caught:
        settle([said(version)])
    assert NEWEST in str(caught.value)
    assert repr(version[:40]) in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.requirement("LIFE-20")
def test_a_version_below_the_configured_minimum_is_refused() -> None:
    with pytest.raises(VersionRefused, match=r"'2025-03-26', below .* minimum_version 2025-06-18"):
        settle([said("2025-03-26")], minimum=V2025_06_18)
    with pytest.raises(ServerError):
        settle([unsupported({"supported": ["2025-03-26"]})], minimum=V2025_06_18)
    assert settle([said("2025-06-18")], minimum=V2025_06_18)[1].revision is V2025_06_18


@pytest.mark.hostile("J12")
@pytest.mark.parametrize(
    "result", [{}, said(None), said(20251125), said(["2025-11-25"]), said(NEWEST, capabilities=["tools"])]
)
def test_a_result_of_the_wrong_shape_is_invalid(result: dict[str, Any]) -> None:
    with pytest.raises(InvalidResult, match="initialize result"):
        settle([result])


@pytest.mark.requirement("CAP-06")
@pytest.mark.parametrize("capabilities", [{}, {"zzz": {"a": 1}, "experimental": {"foo": {}}}])
def test_any_capabilities_object_is_a_connection(capabilities: dict[str, Any]) -> None:
    assert settle([said(NEWEST, capabilities=capabilities)])[1].result["capabilities"] == capabilities
