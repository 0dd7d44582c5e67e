"""Builds token requests with client authentication, and validates token responses.

Specification: authorization, token request; OAuth 2.1 sections 2.4 and 3.2; RFC 7523 section 2.2.
"""

from __future__ import annotations

import base64
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import quote_plus

from mcphost.auth.accounts import subject_of
from mcphost.auth.flow.metadata import read_document, sound_scopes
from mcphost.auth.flow.steps import JSON, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.masking import quoted, secrets_of
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.storage.credentials import AuthMethod, ClientRegistration, TokenType
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of
from mcphost.protocol.display import show_line

LONGEST_TOKEN: Final = 16_384
LONGEST_LIFE: Final = 86_400.0
"""Seconds; a token that claims a longer lifetime is renewed after a day."""

ASSERTION_SECONDS: Final = 120
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS: Final = {"EC": {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}, "RSA": {"": "RS256"}}


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """A token response. ``lifetime`` is in seconds; ``scopes`` is None if not stated."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    lifetime: float | None
    scopes: tuple[str, ...] | None
    subject: str = ""
    token_type: TokenType = "Bearer"
    id_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ClientAuthentication:
    """Authenticates this client at one authorization server."""

    client: ClientRegistration
    issuer: str
    settings: OAuthSettings
    home: str = ""
    """The URL on whose behalf requests are sent; empty: the server's."""

    def request(
        self, title: str, endpoint: str, form: Mapping[str, str], now: float, headers: Mapping[str, str] | None = None
    ) -> HttpExchange:
        """A token request with ``form``. Raises SignInFailed if the private key cannot be used."""
        own, proof = self._proof(now)
        every = {"Accept": JSON, **own, **(headers or {})}
        return HttpExchange(title, endpoint, "token", every, {**form, **proof}, self.home)

    def _proof(self, now: float) -> tuple[Mapping[str, str], Mapping[str, str]]:
        client = self.client
        named = {"client_id": client.client_id} if client.client_id else {}  # a workload needs no client
        if client.method == "client_secret_basic":
            return {"Authorization": f"Basic {_basic(client.client_id, self._secret())}"}, {}
        if client.method == "client_secret_post":
            return {}, {**named, "client_secret": self._secret()}
        if client.method == "private_key_jwt":
            assertion = _assertion(client.client_id, self.issuer, self.settings.private_key, now)
            return {}, {**named, "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
        return {}, named

    def _secret(self) -> str:
        # The configured secret is never stored: the configuration holds it, and it may change.
        configured = self.client.client_id == self.settings.client_id
        return self.settings.client_secret if configured else self.client.client_secret


def method_for(offered: tuple[str, ...] | None, *, secret: bool, key: bool) -> AuthMethod:
    """The method for a client with a secret, a key or neither, among ``offered``. Raises SignInFailed if none fits."""
    able: list[AuthMethod] = ["private_key_jwt"] if key else []
    able += ["client_secret_basic", "client_secret_post"] if secret else []
    able += [] if able else ["none"]
    if not offered:  # RFC 8414: the default is Basic, for clients with a secret
        return able[0]
    for method in able:
        if method in offered:
            return method
    if able == ["none"]:
        return "none"  # many servers accept public clients without listing this
    raise SignInFailed(
        f"the authorization server takes {', '.join(show_line(each, 40) for each in offered)}, "
        f"and what is configured allows {' or '.join(able)}"
    )


def read_tokens(answer: HttpAnswer | Unreachable, fetch: HttpExchange) -> TokenResponse:
    """The tokens in the response to ``fetch``. Raises SignInFailed, whose text holds no secret."""
    what, document = token_document(answer, fetch)
    kind = document.get("token_type")
    token_type = _TOKEN_TYPES.get(str(kind).lower())
    if token_type is None:
        named = quoted(kind, 60, secrets_of(fetch, document)) if isinstance(kind, str) else ""
        raise SignInFailed(f"{what} holds no Bearer token, but one {f'of type {named}' if named else 'without a type'}")
    token = read_token(document.get("access_token"))
    if not token:
        raise SignInFailed(f"{what} holds no token, or one that no header may carry")
    subject = subject_of(document.get("id_token"), token)
    refresh, life = read_token(document.get("refresh_token")), _life(document.get("expires_in"))
    return TokenResponse(
        token, refresh, life, _scopes(document), subject, token_type, read_token(document.get("id_token"))
    )


def token_document(answer: HttpAnswer | Unreachable, fetch: HttpExchange) -> tuple[str, Mapping[str, Any]]:
    """The successful answer to ``fetch``, after its name in words. Raises SignInFailed, whose text holds no secret."""
    host = host_of(fetch.url)
    if isinstance(answer, Unreachable):
        raise SignInFailed(f"{host} cannot be asked for a token: {answer.reason}")
    what = f"{host}'s token answer (HTTP {answer.status})"
    if answer.status >= 500 or 300 <= answer.status < 400:
        raise SignInFailed(f"{host} gave no token (HTTP {answer.status}){_reason(answer, fetch)}{LATER}")
    document = read_document(what, answer, secret=True)
    if has_error(document) or answer.status != 200:
        raise refusal(document, answer.status, "a token", fetch)
    return what, document


def error_code(answer: HttpAnswer | Unreachable) -> str:
    """The error code of a refusal; empty for any other outcome."""
    if isinstance(answer, Unreachable) or answer.status not in (400, 401):
        return ""
    try:
        return str(read_document("", answer, secret=True).get("error"))
    except SignInFailed:
        return ""


def why_not_revoked(answer: HttpAnswer | Unreachable, fetch: HttpExchange) -> str:
    """Why the response to ``fetch`` is not a revocation, without any secret; empty if it is one."""
    host = host_of(fetch.url)
    if isinstance(answer, Unreachable):
        return f"{host} cannot be asked: {answer.reason}"
    return "" if answer.status == 200 else f"{host} answered HTTP {answer.status}{_reason(answer, fetch)}"


def has_error(document: Mapping[str, Any]) -> bool:
    """True for an OAuth error object; some servers write every member, also in a success."""
    return bool(document.get("error"))


def refusal(document: Mapping[str, Any], status: int, what: str, fetch: HttpExchange) -> SignInFailed:
    """The exception for an OAuth error object, or for what other servers send in its place; it holds no secret."""
    named = document.get("error")
    code = named if isinstance(named, str) and re.fullmatch(_CODE, named) else ""
    secrets = secrets_of(fetch, document)
    shown = quoted(code, 60, secrets) or f"HTTP {status}"
    reason = quoted(_described(document), 200, secrets)
    return SignInFailed(f"{host_of(fetch.url)} refused {what} ({shown}){f': {reason}' if reason else ''}", code=code)


LATER: Final = "; try again later"
"""The end of a sentence to which no other advice is added."""

_TOKEN_TYPES: Final[Mapping[str, TokenType]] = {"bearer": "Bearer", "dpop": "DPoP"}

_CODE: Final = r"[A-Za-z]+(?:[_.-][A-Za-z]+){0,8}"
"""An error code; a word with other characters may be a token."""

_DESCRIPTIONS: Final = ("error_description", "message", "detail", "details", "title", "reason", "msg")
"""Members in which servers say why: OAuth's own, and those of common web frameworks and gateways."""


def _described(document: object, depth: int = 3) -> str:
    """Return the first explanation in a refusal, or an empty text."""
    if isinstance(document, str):
        return document
    if isinstance(document, list) and document and depth:
        return _described(document[0], depth - 1)
    if not isinstance(document, Mapping) or not depth:
        return ""
    error = document.get("error")
    named = None if isinstance(error, str) and re.fullmatch(_CODE, error) else error
    members = (*map(document.get, _DESCRIPTIONS), named, document.get("errors"))
    return next(filter(None, (_described(each, depth - 1) for each in members)), "")


def _reason(answer: HttpAnswer, fetch: HttpExchange) -> str:
    try:
        document = read_document("", answer, secret=True)
    except SignInFailed:
        return ""
    reason = quoted(_described(document), 200, secrets_of(fetch, document))
    return f": {reason}" if reason else ""


def read_token(value: object) -> str:
    """A token that a header may carry; empty for anything else."""
    if not isinstance(value, str) or len(value) > LONGEST_TOKEN:
        return ""
    return value if all("\x21" <= each <= "\x7e" for each in value) else ""


def _life(value: object) -> float | None:
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_LIFE)


def _scopes(document: Mapping[str, Any]) -> tuple[str, ...] | None:
    scope = document.get("scope")
    return sound_scopes(scope.replace(",", " ").split()) if isinstance(scope, str) else None  # some separate by commas


def _basic(client_id: str, secret: str) -> str:
    # OAuth form-encodes both first, so that a colon or a plus in either is not misread.
    return base64.b64encode(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()).decode()


def _assertion(client_id: str, audience: str, pem: str, now: float) -> str:
    from joserfc import jwt  # late: few clients use this, and the library imports cryptography
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, RSAKey

    claims: dict[str, Any] = {"iss": client_id, "sub": client_id, "aud": audience, "jti": secrets.token_urlsafe(16)}
    claims |= {"iat": int(now), "exp": int(now) + ASSERTION_SECONDS}
    for kind in (ECKey, RSAKey):
        try:
            key = kind.import_key(pem)
        except (JoseError, ValueError, TypeError):
            continue
        algorithm = ALGORITHMS[key.key_type].get(str(key.as_dict().get("crv", "")), "")
        if algorithm:
            return jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])
    raise SignInFailed("the private_key configured for this server is not an EC or RSA key in PEM")
