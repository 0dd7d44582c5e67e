"""Finds the authorization server of an MCP server, in the order that each revision of the specification gives.

Specification: authorization, server discovery, of 2025-03-26, 2025-06-18 and 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

import httpx

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.metadata import (
    AuthorizationServer,
    NotMetadata,
    ProtectedResource,
    default_places,
    issuer_places,
    read_issuer,
    read_resource,
    resource_places,
)
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.ports import OAuthSettings
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.challenge import Challenge
from mcphost.protocol.display import show_line

MOST_FAILURES: Final = 3
"""Authorization servers whose failure an error describes."""

_ABSENT: Final = range(400, 500)

_T = TypeVar("_T")


class _Found(NamedTuple, Generic[_T]):
    """A document and its place; ``tried`` says what the places before it answered."""

    document: _T | None
    place: str
    tried: tuple[str, ...]
    broken: bool
    """True if one of them failed for a reason other than a missing document."""
    failure: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """Where to look for metadata on behalf of the server at ``url``, and what its settings accept."""

    url: str
    settings: OAuthSettings
    version: str
    """The revision named in the requests."""

    def find_resource(self, challenge: Challenge) -> Flow[tuple[ProtectedResource | None, tuple[str, ...]]]:
        """The protected resource metadata, and why the challenge's own place was not used, where it was not.

        The metadata is None if the server publishes none, as before 2025-06-18.
        """
        usual, named, problem = resource_places(self.url), "", ""
        if challenge.resource_metadata:
            try:
                named = _challenged_place(challenge.resource_metadata, self.url)
            except SignInFailed as error:
                problem = str(error)
        places = (*filter(None, [named]), *(place for place in usual if place != named))
        found = yield from self._first(
            "Who protects this server?",
            "the server publishes no protected-resource metadata",
            places,
            lambda answer: read_resource(answer, self.url, self.settings.resource),
        )
        if found.document is None and (found.broken or problem):
            raise SignInFailed(problem or found.failure)
        if named and found.place != named and found.document is not None:
            problem = f"the place in the server's challenge holds no metadata: {found.tried[0]}"
        followed = f"{problem}; this plan follows the metadata at {show_line(found.place, 200)}"
        return found.document, (followed,) if problem else ()

    def find_issuer(self, issuers: Iterable[str], known: Iterable[str]) -> Flow[AuthorizationServer]:
        """The metadata of the first issuer that publishes it; those used before (``known``) are tried first."""
        before, failures = set(known), list[str]()
        for issuer in sorted(issuers, key=lambda each: each not in before):
            try:
                found = yield from self._announced(issuer)
            except SignInFailed as error:  # another one may be usable
                failures.append(str(error))
                continue
            if found.document is not None:
                return found.document
            failures.append(found.failure)
        more = f"; and {len(failures) - MOST_FAILURES} more" if len(failures) > MOST_FAILURES else ""
        raise SignInFailed("; ".join(failures[:MOST_FAILURES]) + more)

    def find_old_issuer(self) -> Flow[AuthorizationServer]:
        """The authorization server of an MCP server of 2025-03-26: at its own origin, with default endpoints."""
        found = yield from self._announced(checked_url("server's address", origin_of(self.url), self.url))
        if found.document is None and found.broken:
            raise SignInFailed(found.failure)
        return found.document or default_places(self.url)

    def _announced(self, issuer: str) -> Flow[_Found[AuthorizationServer]]:
        return (
            yield from self._first(
                f"Where does {host_of(issuer)} sign in?",
                f"{show_line(issuer, 120)} publishes no metadata",
                issuer_places(issuer),
                lambda answer: read_issuer(answer, issuer, self.url, self.settings),
            )
        )

    def _first(
        self, title: str, failure: str, places: Iterable[str], read: Callable[[HttpAnswer], _T]
    ) -> Flow[_Found[_T]]:
        """The first of these documents that can be read. Raises SignInFailed if it must not be used."""
        tried, broken = list[str](), False
        for place in places:
            answer: HttpAnswer | Unreachable = yield HttpExchange(
                title, place, "metadata", {"Accept": "application/json", "MCP-Protocol-Version": self.version}
            )
            problem, absent = _problem(answer)
            if not problem and isinstance(answer, HttpAnswer):
                try:
                    return _Found(read(answer), place, tuple(tried), broken, "")
                except NotMetadata as error:
                    problem = str(error)
            broken = broken or not absent
            tried.append(f"{show_line(place, 200)}: {problem}")
        return _Found(None, "", tuple(tried), broken, f"{failure} that can be used: {'; '.join(tried)}")


def _problem(answer: HttpAnswer | Unreachable) -> tuple[str, bool]:
    """Return why this response holds no metadata, or an empty text, and True if it says that none exists."""
    if isinstance(answer, Unreachable):
        return answer.reason, False
    if answer.status != 200:
        return f"HTTP {answer.status}", answer.status in _ABSENT
    is_page = answer.headers.get("content-type", "").lower().startswith("text/html")
    return "a web page" if is_page else "", is_page  # many sites answer any path with 200 and a page


def _challenged_place(named: str, url: str) -> str:
    """The URL of the metadata that a challenge names. Raises SignInFailed unless it is on the server's own origin."""
    what = "resource_metadata in the server's challenge"
    try:
        relative = not httpx.URL(named).scheme and not named.startswith("//")
        place = str(httpx.URL(url).join(named)) if relative and named[:1] == "/" else named
    except (httpx.InvalidURL, ValueError):
        place = named
    checked_url(what, place, url)
    if origin_of(place) != origin_of(url):
        raise SignInFailed(f"the server's challenge points to metadata on another host, {host_of(place)}: not fetched")
    return place
