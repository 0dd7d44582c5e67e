"""Finds out which revision a connection speaks, as a generator of attempts that holds all the rules.

It yields the attempt to make, is sent its outcome, and returns what was agreed or raises. Servers of 2026-07-28 and
later are asked with ``server/discover``; those before, and all that answer it with anything unexpected, are opened with
``initialize``.

Specification: basic/lifecycle, version negotiation; 2026-07-28 basic/versioning, basic/transports (backwards
compatibility).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from mcphost.errors import (
    PASSING,
    AuthorizationRequired,
    HttpStatusError,
    InvalidResult,
    McphostError,
    NoSharedRevision,
    RequestTimeout,
    ServerError,
    VersionRefused,
)
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
from mcphost.protocol.wire.jsonrpc import ErrorCode

Era = Literal["auto", "legacy", "modern"]
"""Which revisions a connection may use: those with a handshake (legacy), those without (modern), or both."""

PROBES: Final = 3
"""How often a server is asked with ``server/discover``, each time in another revision."""


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
    """How the server answered ``server/discover``, as a clause; empty if it was not asked."""


Attempt = DiscoverAttempt | InitializeAttempt
Outcome = Mapping[str, Any] | McphostError
"""The result that came, or what was raised instead of one."""
Negotiation = Generator[Attempt, Outcome, Agreed]


@dataclass(frozen=True, slots=True)
class _SpeaksHandshake:
    """What the probe showed: the server is to be opened with ``initialize``."""

    offer: Revision
    evidence: str
    refusal: AuthorizationRequired | None = None
    """The answer to the probe, where it may have been meant for an unknown method or for whoever asked."""


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
    except (ServerError, HttpStatusError):
        if found.refusal is not None:
            raise found.refusal from None
        raise
    return Agreed(agreed.revision, agreed.result, agreed.evidence or found.evidence)


# Without a handshake.


def _discover(
    revision: Revision, era: Era, minimum: Revision, *, insists: bool = True
) -> Generator[Attempt, Outcome, Agreed | _SpeaksHandshake]:
    """Ask in ``revision``, and in others that the server lists.

    ``insists``: where it lists nothing but what it refused, it is taken at its word, and asked once more.
    """
    asked: list[Revision] = []
    while True:
        asked.append(revision)
        outcome = yield DiscoverAttempt(revision)
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
    why_not = _no_verdict(outcome)
    if why_not is not None:
        raise why_not
    found = _fallback(f"{_asked_in(revision)}, {_answer_in_words(outcome)}", NEWEST_HANDSHAKE, era, minimum)
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


def _no_verdict(outcome: McphostError) -> McphostError | None:
    """What to raise for an outcome that says nothing about the server's revisions; None if it says something."""
    if isinstance(outcome, ServerError):
        ours = (ErrorCode.HEADER_MISMATCH, ErrorCode.MISSING_CLIENT_CAPABILITY)
        return outcome if outcome.code in ours else None
    if isinstance(outcome, HttpStatusError):
        return outcome if outcome.status in PASSING or outcome.status // 100 == 3 else None
    if isinstance(outcome, AuthorizationRequired):
        # Servers that allow each method apart forbid one that they do not know; some do so without any challenge.
        return outcome if outcome.status == 401 and outcome.www_authenticate else None
    return None if isinstance(outcome, InvalidResult | RequestTimeout) else outcome


def _answer_in_words(outcome: McphostError) -> str:
    if isinstance(outcome, ServerError):
        return f"answered {outcome.code}"
    if isinstance(outcome, HttpStatusError | AuthorizationRequired):
        return f"answered HTTP {outcome.status}"
    return "did not answer" if isinstance(outcome, RequestTimeout) else "answered nothing that can be read"


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

    If the server refuses the offer but lists its revisions, the best of them is tried once.
    """
    outcome = yield InitializeAttempt(offer)
    if isinstance(outcome, ServerError):
        second = _best_listed(outcome, offer, minimum, era)
        if second is None:
            raise outcome
        if second.modern:
            return (yield from _modern_after_all(second, outcome, minimum))
        offer, outcome = second, (yield InitializeAttempt(second))
    if isinstance(outcome, McphostError):
        raise outcome
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


def _best_listed(error: ServerError, offered: Revision, minimum: Revision, era: Era) -> Revision | None:
    if error.code not in (ErrorCode.INVALID_PARAMS, ErrorCode.UNSUPPORTED_PROTOCOL_VERSION):
        return None
    usable = HANDSHAKE_REVISIONS if era == "legacy" else REVISIONS
    best = _newest(usable, _listed(error.data, "supported"), but=[offered])
    return best if best is not None and best.version >= minimum.version else None


# Lists of versions.


def _listed(holder: object, key: str) -> list[str]:
    """The versions in the list under ``key``; none if there is no such list."""
    listed = holder.get(key) if isinstance(holder, Mapping) else None
    return [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []


def _newest(known: Sequence[Revision], listed: Sequence[str], *, but: Sequence[Revision] = ()) -> Revision | None:
    usable = [revision for revision in known if revision.version in listed and revision not in but]
    return max(usable, key=lambda revision: revision.version, default=None)


def _asked_in(revision: Revision) -> str:
    return f"asked in {revision.version}"
