"""Finds the authorization server of an MCP server, in the order that each revision of the specification gives.

Specification: authorization, server discovery, of 2025-03-26, 2025-06-18 and 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.challenge import Challenge
from mcphost.auth.flow.metadata import (
    AuthorizationServer,
    ProtectedResource,
    default_places,
    issuer_places,
    read_issuer,
    read_resource,
    resource_places,
)
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

_ABSENT: Final = range(400, 500)


def find_resource(url: str, challenge: Challenge, version: str) -> Flow[ProtectedResource | None]:
    """The protected resource metadata of a server; None if it publishes none, as before 2025-06-18."""
    answer = yield from _first(
        "Who protects this server?", "its protected-resource metadata", _places(url, challenge), version
    )
    return None if answer is None else read_resource(answer.content, url)


def find_issuer(resource: ProtectedResource, known: Iterable[str], url: str, version: str) -> Flow[AuthorizationServer]:
    """The metadata of the first authorization server that answers; those used before (``known``) are tried first."""
    before = set(known)
    failure = ""
    for issuer in sorted(resource.authorization_servers, key=lambda each: each not in before):
        try:
            answer = yield from _announced(issuer, version)
        except SignInFailed as error:  # another one may be up
            failure = str(error)
            continue
        if answer is not None:
            return read_issuer(answer.content, issuer, url)
        failure = f"{show_line(issuer, 120)} publishes no metadata at {' or '.join(issuer_places(issuer))}"
    raise SignInFailed(failure)


def find_old_issuer(url: str, version: str) -> Flow[AuthorizationServer]:
    """The authorization server of an MCP server of 2025-03-26: at its own origin, with default endpoints."""
    base = checked_url("server's address", origin_of(url), url)
    answer = yield from _announced(base, version)
    return default_places(url) if answer is None else read_issuer(answer.content, base, url)


def _is_page(answer: HttpAnswer) -> bool:
    """Many sites answer any path with 200 and a web page."""
    return answer.headers.get("content-type", "").lower().startswith("text/html")


def _announced(issuer: str, version: str) -> Flow[HttpAnswer | None]:
    return (yield from _first(f"Where does {host_of(issuer)} sign in?", "its metadata", issuer_places(issuer), version))


def _places(url: str, challenge: Challenge) -> tuple[str, ...]:
    named, usual = challenge.resource_metadata, resource_places(url)
    if not named:
        return usual
    checked_url("resource_metadata in the server's challenge", named, url)
    if origin_of(named) != origin_of(url):
        raise SignInFailed(f"the server's challenge points to metadata on another host, {host_of(named)}: not fetched")
    return (named, *(place for place in usual if place != named))


def _first(title: str, what: str, places: Iterable[str], version: str) -> Flow[HttpAnswer | None]:
    """The first of these documents that exists; None if none does. Raises SignInFailed for any other response."""
    for place in places:
        answer: HttpAnswer | Unreachable = yield HttpExchange(
            title, place, "metadata", {"Accept": "application/json", "MCP-Protocol-Version": version}
        )
        if isinstance(answer, Unreachable):
            raise SignInFailed(f"{host_of(place)} cannot be asked for {what}: {answer.reason}")
        if answer.status == 200 and not _is_page(answer):
            return answer
        if answer.status != 200 and answer.status not in _ABSENT:
            raise SignInFailed(f"{host_of(place)} answered HTTP {answer.status} when asked for {what}")
    return None
