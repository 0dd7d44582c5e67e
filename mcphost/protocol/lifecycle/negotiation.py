"""Negotiates the revision of a connection, as a generator of attempts.

It yields the attempt to make, is sent its outcome, and returns what was agreed or raises.

Specification: basic/lifecycle, version negotiation.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.errors import InvalidResult, ServerError, VersionRefused
from mcphost.protocol.lifecycle.revisions import REVISIONS, Revision, find_revision
from mcphost.protocol.wire.jsonrpc import ErrorCode


@dataclass(frozen=True, slots=True)
class InitializeAttempt:
    """Send ``initialize``, offering this revision."""

    offer: Revision


@dataclass(frozen=True, slots=True)
class Agreed:
    """The negotiated revision, and the server's initialize result."""

    revision: Revision
    result: Mapping[str, Any]


Outcome = Mapping[str, Any] | ServerError
Negotiation = Generator[InitializeAttempt, Outcome, Agreed]


def negotiate(*, newest: Revision = REVISIONS[-1], minimum: Revision = REVISIONS[0]) -> Negotiation:
    """Offer ``newest``; accept any known revision that the server names, down to ``minimum``.

    If the server refuses the offer but lists its revisions, the best of them is offered once. Raises VersionRefused,
    InvalidResult, or the ServerError that answered ``initialize``.
    """
    outcome = yield InitializeAttempt(newest)
    if isinstance(outcome, ServerError):
        second = _best_listed(outcome, newest, minimum)
        if second is None:
            raise outcome
        newest, outcome = second, (yield InitializeAttempt(second))
    if isinstance(outcome, ServerError):
        raise outcome
    return Agreed(_accepted(outcome, newest, minimum), outcome)


def _accepted(result: Mapping[str, Any], offered: Revision, minimum: Revision) -> Revision:
    version = result.get("protocolVersion")
    if type(version) is not str:
        raise InvalidResult("the initialize result has no protocolVersion string")
    revision = find_revision(version)
    if revision is None:
        known = ", ".join(each.version for each in REVISIONS)
        raise VersionRefused(offered.version, version[:40], f"which mcphost does not know (it knows {known})")
    if revision.version < minimum.version:
        raise VersionRefused(offered.version, version, f"below this server's minimum_version {minimum.version}")
    if not isinstance(result.get("capabilities", {}), dict):
        raise InvalidResult("the capabilities in the initialize result are not an object")
    return revision


def _best_listed(error: ServerError, offered: Revision, minimum: Revision) -> Revision | None:
    if error.code != ErrorCode.INVALID_PARAMS or not isinstance(error.data, Mapping):
        return None
    listed = error.data.get("supported")
    versions: Sequence[object] = listed if isinstance(listed, list) else ()
    known = [revision for revision in map(find_revision, versions) if revision is not None]
    usable = [r for r in known if r is not offered and r.version >= minimum.version]
    return max(usable, key=lambda revision: revision.version, default=None)
