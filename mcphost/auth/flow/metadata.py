"""Finds and checks the metadata of MCP servers and of their authorization servers, in the order of each revision.

Also the canonical URI of an MCP server, and whether a token for one URI is valid for another.

Specification: authorization, server discovery (2025-03-26, 2025-06-18 and 2025-11-25) and canonical server URI;
RFC 8707 section 2; RFC 8414; RFC 9728; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import httpx

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.ports import OAuthSettings
from mcphost.errors import SignInFailed
from mcphost.json_values import texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.challenge import Challenge
from mcphost.protocol.display import show_line
from mcphost.redaction import mask_doubtful

MOST_SCOPES: Final = 100
MOST_SERVERS: Final = 10

MOST_FAILURES: Final = 3
"""Authorization servers whose failure an error describes."""

_ABSENT: Final = range(400, 500)
"""Statuses by which a server says that a document does not exist."""

RESOURCE_PLACE: Final = "/.well-known/oauth-protected-resource"
OAUTH_PLACE: Final = "/.well-known/oauth-authorization-server"
OPENID_PLACE: Final = "/.well-known/openid-configuration"

PROOF_ALGORITHMS: Final = "dpop_signing_alg_values_supported"
"""The member by which both kinds of server show that they know DPoP."""

_T = TypeVar("_T")


class NotMetadata(SignInFailed):
    """A document is not what was asked for; it may be at another place."""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """The metadata of an MCP server. ``resource`` is how it spells its own URL."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    proof_algorithms: tuple[str, ...] | None = None
    """Algorithms of DPoP proofs; None: not stated."""
    wants_bound: bool = False
    """True if it takes only tokens that are bound to a key."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The metadata of an authorization server. Endpoints are checked; an empty one is not offered."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] | None = None
    """Client authentication methods of the token endpoint; None: not stated."""
    challenge_methods: tuple[str, ...] | None = None
    """PKCE challenge methods; None: not stated."""
    odd_challenge_methods: bool = False
    """True if the PKCE challenge methods are stated, but not as a list."""
    takes_documents: bool = False
    """True if client ID metadata documents are supported."""
    sends_issuer: bool = False
    """True if every authorization response carries ``iss``."""
    grants: tuple[str, ...] | None = None
    """Grant types; None: not stated."""
    proof_algorithms: tuple[str, ...] | None = None
    """Algorithms of DPoP proofs; None: not stated."""
    grant_profiles: tuple[str, ...] | None = None
    """Profiles of grants that are supported; None: not stated."""
    spelled: str = ""
    """The issuer as the metadata spells it."""
    announced: bool = True
    """False: there is no metadata; the endpoints are the defaults of 2025-03-26."""

    def off_origin_endpoints(self) -> tuple[str, ...]:
        """Hosts of endpoints on other origins than the issuer's."""
        home = origin_of(self.issuer)
        return tuple(dict.fromkeys(host_of(url) for url in self.endpoints() if origin_of(url) != home))

    def endpoints(self) -> tuple[str, ...]:
        """Every endpoint that receives a secret or a registration."""
        every = (self.authorization_endpoint, self.token_endpoint, self.registration_endpoint, self.revocation_endpoint)
        return tuple(url for url in every if url)


def resource_places(url: str) -> tuple[str, ...]:
    """The well-known URLs of a server's protected resource metadata: for its path, then for the origin."""
    path = httpx.URL(url).path.rstrip("/")
    root = origin_of(url) + RESOURCE_PLACE
    return (root + path, root) if path else (root,)


def issuer_places(issuer: str) -> tuple[str, ...]:
    """The URLs of an issuer's metadata, in the specification's order; then where some servers with a path have it."""
    origin, path = origin_of(issuer), httpx.URL(issuer).path.rstrip("/")
    if not path:
        return (origin + OAUTH_PLACE, origin + OPENID_PLACE)
    inserted = (origin + OAUTH_PLACE + path, origin + OPENID_PLACE + path)
    return (*inserted, origin + path + OPENID_PLACE, origin + path + OAUTH_PLACE)


def read_document(what: str, answer: HttpAnswer, *, secret: bool = False) -> Mapping[str, Any]:
    """Parse a JSON object. Raises NotMetadata, which quotes nothing of a document that may hold a ``secret``."""
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        named = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        kind = show_line(mask_doubtful(named), 60) or "without a content type"
        start = show_line(mask_doubtful(answer.content[:80].decode("utf-8", "replace")), 80)
        quote = "" if secret else f"; it begins with {start!r}"
        raise NotMetadata(f"{what} is not JSON ({kind}){quote}") from None
    if not isinstance(found, dict):
        raise NotMetadata(f"{what} is not a JSON object")
    return found


def read_resource(answer: HttpAnswer, url: str, accepted: str = "") -> ProtectedResource:
    """The metadata of the resource at ``url``, or of the one that the configuration accepts in its place.

    Raises NotMetadata, or SignInFailed if it is about another resource.
    """
    document = read_document("it", answer)
    what = "the server's protected-resource metadata"
    resource = document.get("resource")
    if not isinstance(resource, str) or not resource:
        raise NotMetadata("it names no resource")
    if resource != accepted and not is_for(resource, url):
        named = show_line(resource, 120)
        raise SignInFailed(
            f"{what} is about {named}, and not about {show_line(url, 120)}: the server's mistake; if you know that "
            f'they are the same, set oauth.resource = "{named}" for this server'
        )
    servers = document.get("authorization_servers")
    if servers is not None and not isinstance(servers, list):
        raise SignInFailed(f"{what} gives authorization_servers that are not a list: the server's mistake")
    issuers = [checked_url("authorization server named by the server", each, url) for each in _texts(servers)]
    if servers and not issuers:
        raise SignInFailed(f"{what} names no authorization server that can be used: the server's mistake")
    return ProtectedResource(
        resource,
        tuple(issuers[:MOST_SERVERS]),
        _texts(document.get("scopes_supported"))[:MOST_SCOPES],
        _stated(document, PROOF_ALGORITHMS),
        document.get("dpop_bound_access_tokens_required") is True,
    )


def read_issuer(answer: HttpAnswer, issuer: str, home: str, settings: OAuthSettings) -> AuthorizationServer:
    """The metadata of ``issuer``, for an MCP server at ``home``.

    Raises NotMetadata, or SignInFailed if it must not be used.
    """
    what = f"the metadata of {host_of(issuer)}"
    document = read_document("it", answer)
    named = document.get("issuer")
    if not isinstance(named, str) or not named:
        raise NotMetadata("it names no issuer")
    if not document.get("token_endpoint"):
        raise NotMetadata("it names no token_endpoint")
    if not settings.same_issuer(named, issuer):  # compared as text: a trailing slash makes another issuer
        raise SignInFailed(
            f"{what} is of issuer {show_line(named, 120)!r}, and {show_line(issuer, 120)!r} was asked"
            f"{slash_advice(named, issuer)}"
        )

    def endpoint(name: str, *, needed: bool = False) -> str:
        url = document.get(name)
        return checked_url(f"{name} of {host_of(issuer)}", url, home) if needed or url else ""

    return AuthorizationServer(
        issuer,
        endpoint("authorization_endpoint"),
        endpoint("token_endpoint", needed=True),
        endpoint("registration_endpoint"),
        endpoint("revocation_endpoint"),
        _texts(document.get("scopes_supported")),
        _stated(document, "token_endpoint_auth_methods_supported"),
        _stated(document, "code_challenge_methods_supported"),
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        odd_challenge_methods=not isinstance(document.get("code_challenge_methods_supported") or [], list),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        grants=_stated(document, "grant_types_supported"),
        proof_algorithms=_stated(document, PROOF_ALGORITHMS),
        grant_profiles=_stated(document, "authorization_grant_profiles_supported"),
        spelled=named,
    )


def default_places(home: str) -> AuthorizationServer:
    """The default endpoints of an MCP server of 2025-03-26 without metadata."""
    base = origin_of(home)
    authorize, token, register = (
        checked_url("default endpoint", f"{base}/{name}", home) for name in ("authorize", "token", "register")
    )
    return AuthorizationServer(base, authorize, token, register, announced=False)


def slash_advice(one: str, other: str) -> str:
    """The setting that lets two issuers pass that differ by one slash at the end; empty if they do not."""
    differ = one == f"{other}/" or other == f"{one}/"
    return '; if you trust it all the same, set oauth.issuer_slash = "ignore" for this server' if differ else ""


def sound_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """The valid scopes among these, each once (RFC 6749 section 3.3)."""
    good = [
        scope for scope in scopes if scope and all("\x21" <= each <= "\x7e" and each not in '"\\' for each in scope)
    ]
    return tuple(dict.fromkeys(good))[:MOST_SCOPES]


def _stated(document: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return None if document.get(name) is None else _texts(document[name])


def _texts(value: object) -> tuple[str, ...]:
    return tuple(filter(None, texts_in(value)))


def canonical(url: str) -> str:
    """The server's URL as a resource: lower-case scheme and host, no fragment, no trailing slash after the host."""
    parsed = httpx.URL(url).copy_with(fragment=None)
    path = parsed.raw_path.decode("ascii")
    return origin_of(url) + ("" if path == "/" else path)


def is_for(resource: str, url: str) -> bool:
    """True if a token for ``resource`` is valid at ``url``: for the same URL, its origin or a path above it."""
    try:
        mine, other = httpx.URL(canonical(url)), httpx.URL(canonical(resource))
    except (httpx.InvalidURL, ValueError):
        return False
    if origin_of(mine) != origin_of(other):
        return False
    if mine.query or other.query:
        return mine.raw_path == other.raw_path or (not other.query and _covers(other.path, mine.path))
    return _covers(other.path, mine.path)


def _covers(folder: str, path: str) -> bool:
    folder = folder.rstrip("/")
    return path.rstrip("/") == folder or path.startswith(f"{folder}/")


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
