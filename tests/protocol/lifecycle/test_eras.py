"""Which era a connection speaks: every rule of the opening, and that no order of outcomes leads anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    MessageTooLarge,
    NoAnswerFound,
    NoSharedRevision,
    ProbeFailed,
    RequestTimeout,
    ServerError,
    VersionRefused,
)
from mcphost.protocol.lifecycle.negotiation import (
    Agreed,
    DiscoverAttempt,
    Era,
    InitializeAttempt,
    LateDiscovery,
    Outcome,
    negotiate,
)
from mcphost.protocol.lifecycle.revisions import V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28, Revision

MODERN: dict[str, Any] = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}}
SILENCE = RequestTimeout("server/discover", 1.0)


def refused(code: int, data: Any = None, message: str = "no") -> ServerError:
    return ServerError(code, message, data)


def unsupported(*versions: str) -> ServerError:
    return refused(-32022, {"supported": list(versions), "requested": "2026-07-28"})


def steps(
    outcomes: Sequence[Outcome | LateDiscovery], era: Era = "auto", minimum: Revision = V2024_11_05
) -> tuple[list[str], Agreed | McphostError | None]:
    """The attempts, and what came of them; None if another outcome is wanted."""
    negotiation, made, left = negotiate(era=era, minimum=minimum), list[str](), iter(outcomes)
    try:
        attempt = next(negotiation)
        while True:
            made.append(named(attempt))
            outcome = next(left, None)
            if outcome is None:
                return made, None
            attempt = negotiation.send(outcome)
    except StopIteration as end:
        return made, end.value
    except McphostError as error:
        return made, error


def named(attempt: DiscoverAttempt | InitializeAttempt) -> str:
    if isinstance(attempt, DiscoverAttempt):
        return f"discover {attempt.revision.version}"
    return f"initialize {attempt.offer.version}"


DISCOVER, INITIALIZE = "discover 2026-07-28", "initialize 2025-11-25"


@pytest.mark.requirement("MOD-08", "MOD-24")
def test_a_server_that_answers_the_probe_gets_no_handshake() -> None:
    made, agreed = steps([MODERN])
    assert made == [DISCOVER]
    assert isinstance(agreed, Agreed)
    assert (agreed.revision, agreed.result) == (V2026_07_28, MODERN)


LEGACY: list[Outcome] = [
    refused(-32601),
    refused(-32600),
    refused(-32000),
    refused(-32602),
    refused(1),
    HttpStatusError(400),
    HttpStatusError(404),
    HttpStatusError(405),
    HttpStatusError(403),
    HttpStatusError(418),
    HttpStatusError(200, "text/html"),
    AuthorizationRequired("", status=401),
    AuthorizationRequired('Bearer error="insufficient_scope"', status=403),
    InvalidResult("what came is no message"),
    MessageTooLarge("too large", 1),
    {},
    {"capabilities": {}},
    {"supportedVersions": "2026-07-28"},
]
"""Answers to the probe by older servers, or by anything else behind an address."""


@pytest.mark.requirement("MOD-09", "MOD-11", "MOD-12")
@pytest.mark.parametrize("outcome", LEGACY, ids=str)
def test_any_other_answer_to_the_probe_leads_to_the_handshake(outcome: Outcome) -> None:
    made, agreed = steps([outcome, GREETING])
    assert made == [DISCOVER, INITIALIZE]
    assert isinstance(agreed, Agreed)
    assert agreed.revision is V2025_11_25
    assert agreed.evidence.startswith("asked in 2026-07-28, ")
    assert agreed.proven


MODERN_ONLY: list[tuple[Era, Revision]] = [("modern", V2024_11_05), ("auto", V2026_07_28)]


@pytest.mark.requirement("MOD-32")
@pytest.mark.parametrize(("era", "minimum"), MODERN_ONLY)
@pytest.mark.parametrize("outcome", LEGACY, ids=str)
def test_where_only_the_modern_era_is_wanted_no_handshake_follows(
    outcome: Outcome, era: Era, minimum: Revision
) -> None:
    made, end = steps([outcome], era, minimum)
    assert made == [DISCOVER]
    assert isinstance(end, NoSharedRevision)


@pytest.mark.parametrize("data", [None, {}, "2025-11-25", {"supported": 5}, {"supported": [5]}])
def test_a_refusal_without_a_version_keeps_its_own_words(data: Any) -> None:
    made, ended = steps([refused(-32022, data, "use the gateway")])
    assert made == [DISCOVER]
    assert isinstance(ended, NoSharedRevision)
    assert "names no protocol version that it speaks; it says: use the gateway" in str(ended)


UNPROVEN: list[McphostError] = [
    SILENCE,
    ConnectionLost("gone"),
    HttpStatusError(302),
    HttpStatusError(408),
    HttpStatusError(425),
    HttpStatusError(429),
    HttpStatusError(500, "text/html", "<h1>"),
    HttpStatusError(503),
    NoAnswerFound("lines"),
]
"""Reactions of a server that the probe breaks, and those that any server may have once."""


@pytest.mark.requirement("MOD-09")
@pytest.mark.parametrize("outcome", UNPROVEN, ids=str)
def test_an_unanswered_probe_leads_to_the_handshake_unproven(outcome: McphostError) -> None:
    made, agreed = steps([outcome, GREETING])
    assert made == [DISCOVER, INITIALIZE]
    assert isinstance(agreed, Agreed)
    assert (agreed.revision, agreed.proven) == (V2025_11_25, False)


@pytest.mark.requirement("MOD-09")
@pytest.mark.parametrize(("era", "minimum"), MODERN_ONLY)
@pytest.mark.parametrize("outcome", UNPROVEN, ids=str)
def test_an_unanswered_probe_ends_a_modern_opening(outcome: McphostError, era: Era, minimum: Revision) -> None:
    assert steps([outcome], era, minimum) == ([DISCOVER], outcome)


def test_a_failed_handshake_names_another_failure_of_the_probe() -> None:
    _, end = steps([SILENCE, HttpStatusError(500)])
    assert isinstance(end, HttpStatusError)
    assert end.after_probe == "asked in 2026-07-28, did not answer"
    _, end = steps([HttpStatusError(503), HttpStatusError(503)])
    assert isinstance(end, HttpStatusError)
    assert end.after_probe == ""


@pytest.mark.parametrize(
    ("versions", "capabilities", "end"),
    [(["2026-07-28"], {}, Agreed), (["2026-07-28"], [], Agreed), (["2026-07-28"], "all", InvalidResult)],
)
def test_a_late_answer_to_the_probe_wins(versions: list[str], capabilities: Any, end: type[object]) -> None:
    late = LateDiscovery({"supportedVersions": versions, "capabilities": capabilities})
    made, ended = steps([SILENCE, late])
    assert made == [DISCOVER, INITIALIZE]
    assert isinstance(ended, end)
    if isinstance(ended, Agreed):
        assert (ended.revision, ended.evidence) == (V2026_07_28, "asked in 2026-07-28, answered late")


FINAL: list[McphostError] = [
    ConnectionLost("no certificate", lasting=True),
    ProbeFailed("exited"),
    AuthorizationRequired('Bearer resource_metadata="https://h"', status=401),
    refused(-32020),
    refused(-32021),
]


@pytest.mark.requirement("MOD-09", "MOD-10", "MOD-32")
@pytest.mark.parametrize("outcome", FINAL, ids=str)
def test_some_failures_of_the_probe_rule_out_a_handshake(outcome: McphostError) -> None:
    assert steps([outcome]) == ([DISCOVER], outcome)


@pytest.mark.parametrize("refusal", [AuthorizationRequired(""), AuthorizationRequired("Bearer x", status=403)])
def test_a_403_to_the_probe_without_a_handshake_wants_a_sign_in(refusal: AuthorizationRequired) -> None:
    assert steps([refusal, refused(-32601)]) == ([DISCOVER, INITIALIZE], refusal)
    again = AuthorizationRequired("Bearer y")
    assert steps([refusal, again]) == ([DISCOVER, INITIALIZE], again)


@pytest.mark.requirement("MOD-10", "MOD-13", "MOD-24")
@pytest.mark.parametrize(
    ("listed", "then", "end"),
    [
        (["2025-06-18", "2024-11-05"], ["initialize 2025-06-18"], None),
        (["2026-07-28", "2025-11-25"], ["initialize 2025-11-25"], None),  # it lists what it refused
        (["2099-01-01"], [], NoSharedRevision),
        ([], [], NoSharedRevision),
        (["2026-07-28"], ["discover 2026-07-28"], None),  # nothing else is left to try
    ],
)
def test_a_refused_version_leads_to_another_or_to_no_probe(
    listed: list[str], then: list[str], end: type[Exception] | None
) -> None:
    made, ended = steps([unsupported(*listed)])
    assert made == [DISCOVER, *then]
    assert ended is None if end is None else isinstance(ended, end)


@pytest.mark.requirement("MOD-24")
def test_refusing_the_only_listed_version_ends_the_probes() -> None:
    made, end = steps([unsupported("2026-07-28")] * 3)
    assert made == [DISCOVER, DISCOVER]
    assert isinstance(end, NoSharedRevision)
    made, agreed = steps([unsupported("2026-07-28"), MODERN])
    assert made == [DISCOVER, DISCOVER]
    assert isinstance(agreed, Agreed)


@pytest.mark.requirement("MOD-10", "MOD-24")
def test_the_newest_listed_older_version_opens_the_handshake() -> None:
    older = {"supportedVersions": ["2025-03-26", "2025-06-18"]}
    made, agreed = steps([older, {"protocolVersion": "2025-06-18"}])
    assert made == [DISCOVER, "initialize 2025-06-18"]
    assert isinstance(agreed, Agreed)
    assert agreed.revision is V2025_06_18


NAMES_MODERN: list[Outcome] = [unsupported("2026-07-28"), {"protocolVersion": "2026-07-28"}]


@pytest.mark.requirement("MOD-27")
@pytest.mark.parametrize("answer", NAMES_MODERN, ids=str)
def test_a_handshake_that_names_a_modern_revision_is_probed_again(answer: Outcome) -> None:
    made, agreed = steps([SILENCE, answer, MODERN])
    assert made == [DISCOVER, INITIALIZE, DISCOVER]
    assert isinstance(agreed, Agreed)
    assert agreed.revision is V2026_07_28


@pytest.mark.parametrize("answer", NAMES_MODERN, ids=str)
def test_a_second_probe_that_fails_ends_the_opening(answer: Outcome) -> None:
    made, end = steps([SILENCE, answer, refused(-32601)])
    assert made == [DISCOVER, INITIALIZE, DISCOVER]
    assert isinstance(end, ServerError | VersionRefused)


@pytest.mark.parametrize("answer", NAMES_MODERN, ids=str)
def test_in_the_legacy_era_nothing_modern_is_agreed_on(answer: Outcome) -> None:
    made, end = steps([answer], "legacy")
    assert made == [INITIALIZE]
    assert isinstance(end, ServerError | VersionRefused)


EVERYTHING: list[Outcome] = [
    MODERN,
    {},
    GREETING,
    {"protocolVersion": "2026-07-28"},
    {"supportedVersions": ["2025-11-25"]},
    refused(-32601),
    unsupported("2026-07-28"),
    unsupported("2025-06-18"),
    unsupported(),
    refused(-32602, {"supported": ["2025-03-26"]}),
    refused(-32020),
    HttpStatusError(404),
    HttpStatusError(500),
    SILENCE,
    ConnectionLost("gone"),
]


def runs(era: Era) -> Iterator[tuple[tuple[Outcome, ...], list[str], Agreed | McphostError | None]]:
    for outcomes in product(EVERYTHING, repeat=4):
        yield outcomes, *steps((*outcomes, refused(-32601)), era)


@pytest.mark.requirement("MOD-10", "MOD-22", "MOD-24", "MOD-32")
@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
def test_any_sequence_of_outcomes_ends_the_opening(era: Era) -> None:
    for outcomes, made, end in runs(era):
        assert end is not None, (outcomes, made)
        assert len(made) <= 5
        assert made.count(DISCOVER) <= 3
        assert made.count(INITIALIZE) <= 2
        if era == "legacy":
            assert not any(attempt.startswith("discover") for attempt in made)
        if era == "modern":
            assert not any(attempt.startswith("initialize") for attempt in made)
        if isinstance(end, Agreed) and end.revision.modern:
            assert made[-1].startswith("discover")
