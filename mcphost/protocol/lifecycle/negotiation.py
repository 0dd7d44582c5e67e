"""Finds out which revision a connection speaks, as a generator of attempts that holds all the rules.

It yields the attempt to make, is sent its outcome, and returns what was agreed or raises. Servers of 2026-07-28 and
later are asked with ``server/discover``; those before, and all that answer it with anything unexpected or not at all,
are opened with ``initialize``.

Specification: basic/lifecycle, version negotiation; 2026-07-28 basic/versioning, basic/transports (backwards
compatibility).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from mcphost.errors import (
    AuthorizationRequired,
    ConnectionClosed,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    NoAnswerFound,
    NoSharedRevision,
    PeerError,
    ProbeFailed,
    RequestTimeout,
    ServerError,
    VersionRefused,
)
from mcphost.json_values import texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import (
    HANDSHAKE_REVISIONS,
    MODERN_REVISIONS,
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    REVISIONS,
    Revision,
    find_revision,
)
from mcphost.protocol.wire.error_codes import ErrorCode

Era = Literal["auto", "legacy", "modern"]
"""Which revisions a connection may use: those with a handshake (legacy), those without (modern), or both."""

MOST_WORDS: Final = 2000
"""Characters of a refusal that are searched for versions."""

PROBES: Final = 3
"""Most ``server/discover`` requests to one server, each in another revision."""


@dataclass(frozen=True, slots=True)
class DiscoverAttempt:
    """Send ``server/discover`` in this revision."""

    revision: Revision


@dataclass(frozen=True, slots=True)
class InitializeAttempt:
    """Send ``initialize``, offering this revision."""

    offer: Revision


@dataclass(frozen=True, slots=True)
class Agreed:
    """The negotiated revision, and the server's result: of ``initialize``, or of ``server/discover``."""

    revision: Revision
    result: Mapping[str, Any]
    evidence: str = ""
    """The server's reaction to ``server/discover``, as a clause; empty if it was not asked."""
    proven: bool = True
    """True if the evidence is an answer, which the same server will give again; silence and outages are not."""


@dataclass(frozen=True, slots=True)
class LateDiscovery:
    """The result of ``server/discover``, which came while ``initialize`` was waited for; `lists_modern` is true."""

    result: Mapping[str, Any]


Attempt = DiscoverAttempt | InitializeAttempt
Outcome = Mapping[str, Any] | McphostError
"""The result that came, or what was raised instead of one."""
Negotiation = Generator[Attempt, Outcome | LateDiscovery, Agreed]


@dataclass(frozen=True, slots=True)
class _SpeaksHandshake:
    """Result of the probe: the server is to be opened with ``initialize``."""

    offer: Revision
    evidence: str
    refusal: AuthorizationRequired | None = None
    """The answer to the probe, where it may have been meant for an unknown method or for whoever asked."""
    failure: McphostError | None = None
    """Why nothing is known, where the probe got no answer."""


def negotiate(*, era: Era = "legacy", minimum: Revision = HANDSHAKE_REVISIONS[0]) -> Negotiation:
    """Agree on a revision of this ``era``, not older than ``minimum``.

    Raises VersionRefused, NoSharedRevision, InvalidResult, or whatever else an attempt ended with.
    """
    if era == "legacy":
        return (yield from _initialize(NEWEST_HANDSHAKE, minimum, era))
    found = yield from _discover(NEWEST_MODERN, era, minimum)
    if isinstance(found, Agreed):
        return found
    try:
        agreed = yield from _initialize(found.offer, minimum, era)
    except McphostError as error:
        if found.refusal is not None and isinstance(error, ServerError | HttpStatusError):
            raise found.refusal from None
        if found.failure is not None and str(found.failure) != str(error) and not isinstance(error, NoAnswerFound):
            error.after_probe = found.evidence
        raise
    if agreed.evidence:
        return agreed
    return Agreed(agreed.revision, agreed.result, found.evidence, proven=found.failure is None)


# Without a handshake.


def _discover(
    revision: Revision, era: Era, minimum: Revision, *, insists: bool = True
) -> Generator[Attempt, Outcome | LateDiscovery, Agreed | _SpeaksHandshake]:
    """Ask in ``revision``, and in others that the server lists.

    ``insists``: where it lists nothing but what it refused, it is taken at its word, and asked once more.
    """
    asked: list[Revision] = []
    while True:
        asked.append(revision)
        outcome = yield DiscoverAttempt(revision)
        assert not isinstance(outcome, LateDiscovery)
        if isinstance(outcome, ServerError) and outcome.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            listed = _listed(outcome.data, "supported")
            another = _newest(MODERN_REVISIONS, listed, but=asked)
            if another is None and insists and not _newest(HANDSHAKE_REVISIONS, listed):
                another, insists = _newest([revision], listed), False
            if another is not None and len(asked) < PROBES:
                revision = another
                continue
            if not listed:
                raise NoSharedRevision(
                    f"the server refuses {revision.version}, and names no protocol version that it speaks; it says: "
                    f"{outcome.message or 'nothing'}"
                )
            return _older(listed, f"{_asked_in(revision)}, which it does not speak", era, minimum)
        return _read_probe(outcome, revision, era, minimum)


def _read_probe(outcome: Outcome, revision: Revision, era: Era, minimum: Revision) -> Agreed | _SpeaksHandshake:
    if isinstance(outcome, Mapping):
        return _read_discovery(outcome, revision, era, minimum)
    if _forbids_handshake(outcome):
        raise outcome
    evidence = f"{_asked_in(revision)}, {_answer_in_words(outcome)}"
    if not _is_proof(outcome):
        if no_handshake(era, minimum):
            raise outcome
        return _SpeaksHandshake(NEWEST_HANDSHAKE, evidence, failure=outcome)
    found = _fallback(evidence, NEWEST_HANDSHAKE, era, minimum)
    return replace(found, refusal=outcome) if isinstance(outcome, AuthorizationRequired) else found


def _read_discovery(
    result: Mapping[str, Any], revision: Revision, era: Era, minimum: Revision
) -> Agreed | _SpeaksHandshake:
    if not isinstance(result.get("supportedVersions"), list):
        evidence = f"{_asked_in(revision)}, answered without a list of versions"
        return _fallback(evidence, NEWEST_HANDSHAKE, era, minimum)
    listed = _listed(result, "supportedVersions")
    agreed = _newest(MODERN_REVISIONS, listed)
    if agreed is None:
        return _older(listed, f"{_asked_in(revision)}, listed only older versions", era, minimum)
    if not isinstance(result.get("capabilities") or {}, dict):
        raise InvalidResult("the capabilities in the server/discover result are not an object")
    return Agreed(agreed, result, f"{_asked_in(revision)}, answered")


def _forbids_handshake(outcome: McphostError) -> bool:
    """True for an error that only modern servers send, a demand for a sign-in, or an impossible connection."""
    if isinstance(outcome, ServerError):
        return outcome.code in (ErrorCode.HEADER_MISMATCH, ErrorCode.MISSING_CLIENT_CAPABILITY)
    if isinstance(outcome, AuthorizationRequired):
        # Servers that allow each method apart forbid one that they do not know; some do so without any challenge.
        return outcome.status == 401 and bool(outcome.www_authenticate)
    if isinstance(outcome, ConnectionLost):
        return outcome.lasting or isinstance(outcome, ProbeFailed | ConnectionClosed)
    return not isinstance(outcome, HttpStatusError | PeerError | RequestTimeout)


def _is_proof(outcome: McphostError) -> bool:
    """True if the same server will give the same answer again."""
    if isinstance(outcome, HttpStatusError):
        return outcome.lasting and outcome.status // 100 != 3
    return not isinstance(outcome, ConnectionLost | RequestTimeout | NoAnswerFound)


def _answer_in_words(outcome: McphostError) -> str:
    if isinstance(outcome, ServerError):
        return f"answered {outcome.code}"
    if isinstance(outcome, HttpStatusError | AuthorizationRequired):
        return f"answered HTTP {outcome.status}"
    if isinstance(outcome, ConnectionLost):
        return "broke off the connection"
    return "did not answer" if isinstance(outcome, RequestTimeout) else "answered nothing that can be read"


def lists_modern(result: Mapping[str, Any]) -> bool:
    """True if this result of ``server/discover`` lists a modern revision."""
    return _newest(MODERN_REVISIONS, _listed(result, "supportedVersions")) is not None


def no_handshake(era: Era, minimum: Revision) -> bool:
    """True if no ``initialize`` may follow the probe."""
    return era == "modern" or minimum.modern


def _older(listed: Sequence[str], evidence: str, era: Era, minimum: Revision) -> _SpeaksHandshake:
    """The fallback to the newest handshake revision that the server lists. Raises NoSharedRevision."""
    offer = _newest(HANDSHAKE_REVISIONS, listed)
    if offer is None:
        named = ", ".join(version[:20] for version in listed[:8]) or "none"
        known = ", ".join(each.version for each in REVISIONS)
        raise NoSharedRevision(f"the server speaks other protocol versions ({named}) than mcphost ({known})")
    return _fallback(evidence, offer, era, minimum)


def _fallback(evidence: str, offer: Revision, era: Era, minimum: Revision) -> _SpeaksHandshake:
    if era == "modern":
        raise NoSharedRevision(f'{evidence}; protocol = "modern" forbids the handshake of older versions')
    if minimum.modern:
        raise NoSharedRevision(f"{evidence}; minimum_version {minimum.version} forbids the handshake of older versions")
    return _SpeaksHandshake(offer, evidence)


# With a handshake.


def _initialize(offer: Revision, minimum: Revision, era: Era) -> Negotiation:
    """Offer a revision; accept any known one that the server names, down to ``minimum``.

    If the server refuses the version, the best of those it names is offered, else the next older one.
    """
    offered = [offer]
    while isinstance(outcome := (yield InitializeAttempt(offer)), ServerError):
        another = _another_offer(outcome, offered, minimum, era)
        if another is None:
            raise outcome
        if another.modern:
            return (yield from _modern_after_all(another, outcome, minimum))
        offer = another
        offered.append(offer)
    if isinstance(outcome, McphostError):
        raise outcome
    if isinstance(outcome, LateDiscovery):
        found = _read_discovery(outcome.result, NEWEST_MODERN, era, minimum)
        assert isinstance(found, Agreed)
        return replace(found, evidence=f"{found.evidence} late")
    named = find_revision(outcome.get("protocolVersion"))
    if era == "auto" and named is not None and named.modern:
        refused = VersionRefused(offer.version, named.version, "which has no initialize")
        return (yield from _modern_after_all(named, refused, minimum))
    return Agreed(_accepted(outcome, offer, minimum), outcome)


def _modern_after_all(revision: Revision, refusal: McphostError, minimum: Revision) -> Negotiation:
    """Ask a server that answered ``initialize`` with a revision that has none."""
    found = yield from _discover(revision, "auto", minimum, insists=False)
    if isinstance(found, Agreed):
        return found
    raise refusal


def _accepted(result: Mapping[str, Any], offered: Revision, minimum: Revision) -> Revision:
    version = result.get("protocolVersion")
    if type(version) is not str:
        raise InvalidResult("the initialize result has no protocolVersion string")
    revision = find_revision(version)
    if revision is None:
        known = ", ".join(each.version for each in HANDSHAKE_REVISIONS)
        raise VersionRefused(offered.version, version[:40], f"which mcphost does not know (it knows {known})")
    if revision.modern:
        raise VersionRefused(offered.version, version, "which has no initialize")
    if revision.version < minimum.version:
        raise VersionRefused(offered.version, version, f"below this server's minimum_version {minimum.version}")
    if not isinstance(result.get("capabilities") or {}, dict):
        raise InvalidResult("the capabilities in the initialize result are not an object")
    return revision


def _another_offer(error: ServerError, offered: Sequence[Revision], minimum: Revision, era: Era) -> Revision | None:
    """The revision to offer after this refusal; None if it is not about the version, or no revision is left."""
    usable = HANDSHAKE_REVISIONS if era == "legacy" else REVISIONS
    codes = (ErrorCode.INVALID_PARAMS, ErrorCode.UNSUPPORTED_PROTOCOL_VERSION)
    listed = _listed(error.data, "supported") if error.code in codes else []
    if listed:
        another = _newest(usable, listed, but=offered)
    elif re.search(r"(?i)\bversion|protocol_?version", error.message[:MOST_WORDS]):
        named = re.findall(r"20\d\d-\d\d-\d\d", error.message[:MOST_WORDS])
        older = [revision.version for revision in HANDSHAKE_REVISIONS if revision.version < offered[-1].version]
        another = _newest(usable, named, but=offered) or _newest(HANDSHAKE_REVISIONS, older, but=offered)
    else:
        return None
    return another if another is not None and another.version >= minimum.version else None


# Lists of versions.


def _listed(holder: object, key: str) -> list[str]:
    """The versions in the list under ``key``; none if there is no such list."""
    listed = holder.get(key) if isinstance(holder, Mapping) else None
    return texts_in(listed)


def _newest(known: Sequence[Revision], listed: Sequence[str], *, but: Sequence[Revision] = ()) -> Revision | None:
    usable = [revision for revision in known if revision.version in listed and revision not in but]
    return max(usable, key=lambda revision: revision.version, default=None)


def _asked_in(revision: Revision) -> str:
    return f"asked in {revision.version}"
