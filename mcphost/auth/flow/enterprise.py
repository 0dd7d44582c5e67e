"""Signs in by an identity: its provider makes an assertion for the server's authorization server, which gives a token.

The person is never sent to a page of that authorization server, which would go round the provider's policy.

Specification: ext-auth, enterprise-managed authorization; RFC 8693; RFC 7523 section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final

from mcphost.auth.flow.discovered import (
    OFFLINE,
    DiscoveredServer,
    SignInRequest,
    check_same_issuer,
    find,
    kept_bound,
    scope_form,
    warnings_of,
)
from mcphost.auth.flow.identity import ID_JAG, IdentityProvider, authentication, find_provider
from mcphost.auth.flow.jwt_bearer import AssertionRefused, check_endpoint, check_jwt_bearer, jwt_bearer
from mcphost.auth.flow.metadata import canonical, read_document
from mcphost.auth.flow.registration import given_client
from mcphost.auth.flow.steps import (
    LOGIN,
    PERSON,
    AskConsent,
    Flow,
    GetIdentity,
    HttpAnswer,
    HttpExchange,
    IdentityToken,
    SignInIdentity,
    StepUp,
    Unreachable,
)
from mcphost.auth.flow.token_endpoint import LATER, TokenResponse, read_token, token_document
from mcphost.auth.flow.token_request import token_request
from mcphost.auth.masking import quoted, secrets_of
from mcphost.auth.ports import ClientOrigin, IdentitySettings, SignInConsent, SignInPlan
from mcphost.auth.storage.credentials import ClientRegistration, TokenGrant
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of
from mcphost.protocol.display import show_line

TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
SUBJECT_TYPE: Final = "urn:ietf:params:oauth:token-type:"
PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"

GRANT: Final = "by your company's identity provider"
"""The kind of grant in words."""

STEP_UPS: Final = ("insufficient_user_authentication", "interaction_required", "login_required")
"""Codes by which an identity provider asks for another sign-in."""

POLICY: Final = ("access_denied", "unauthorized_client", "invalid_target", "invalid_scope")
"""Codes by which it says that its policy does not allow this."""


class FreshSignInNeeded(SignInFailed):
    """The identity provider wants the person to sign in once more."""

    def __init__(self, error: SignInFailed, step_up: StepUp) -> None:
        super().__init__(str(error), code=error.code)
        self.step_up = step_up


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The exchange of the identity's token for an assertion to the authorization server of ``found``."""

    identity: IdentitySettings
    provider: IdentityProvider
    found: DiscoveredServer
    scopes: tuple[str, ...]
    now: Callable[[], float] = field(repr=False)

    def assertion(self, token: IdentityToken) -> Flow[str]:
        """A new assertion, to be used once. Raises SignInFailed, FreshSignInNeeded."""
        issuer = self.found.issuer
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": issuer.spelled or issuer.issuer,
            "resource": self.found.resource,
            **scope_form(self.scopes),
            "subject_token": token.token,
            "subject_token_type": SUBJECT_TYPE + token.kind,
        }
        client, endpoint = authentication(self.identity, self.provider), self.provider.token_endpoint
        title = f"Ask {host_of(self.identity.issuer)} to vouch for you"
        answer = yield from token_request(client, title, endpoint, form, self.now, read=_read_assertion)
        if answer.access_token == token.token:
            host = host_of(self.identity.issuer)
            raise SignInFailed(f"{host} gave back the token of your identity as an assertion; it is not sent on")
        return answer.access_token


def sign_in_enterprise(request: SignInRequest, now: Callable[[], float]) -> Flow[TokenGrant]:
    """Get a token by the identity. Without a person only where one agreed before, or the issuer is configured."""
    identity = request.settings.identity
    if identity is None:
        raise SignInFailed('grant = "enterprise" needs oauth.identity')
    found = yield from find(request)
    check_endpoint(found, "assertion of your identity provider")
    _check_profile(found)
    check_same_issuer(request, found.issuer)
    provider = yield from find_provider(identity)
    _check_parties(found, provider)
    token, problem = yield from _held_token()
    scopes, attended = yield from _agreed(_plan(found, identity, provider, token, problem), found)
    exchange = _Exchange(identity, provider, found if attended else kept_bound(found), scopes, now)
    if token is None:
        token = yield from _signed_in("", StepUp(), problem)
    grant = yield from _granted(exchange, token)
    signed_in_at = now() if attended else found.before and found.before.signed_in_at
    made_by = {"identity": identity.name, "identity_issuer": identity.issuer}
    return grant.model_copy(update={**made_by, "signed_in_at": signed_in_at})


def _check_profile(found: DiscoveredServer) -> None:
    """Raise SignInFailed if the authorization server says that it takes no such assertions. Many say nothing."""
    issuer = found.issuer
    check_jwt_bearer(issuer)
    if issuer.grant_profiles is not None and PROFILE not in issuer.grant_profiles:
        raise SignInFailed(
            f"{host_of(issuer.issuer)} lists the profiles of grants that it takes, and that of identity providers "
            "(id-jag) is not among them: ask whoever runs it"
        )


def _check_parties(found: DiscoveredServer, provider: IdentityProvider) -> None:
    """Raise SignInFailed if the server names the identity provider as its authorization server."""
    issuer, home = found.issuer, provider.server
    if canonical(issuer.issuer) == canonical(home.issuer) or (
        canonical(issuer.token_endpoint) == canonical(home.token_endpoint)
    ):
        raise SignInFailed(
            f"{host_of(found.request.url)} names your identity provider {host_of(home.issuer)} as its own "
            "authorization server, which needs no assertion; nothing was sent: choose another oauth.grant for it"
        )


def _held_token(rejected: str = "") -> Flow[tuple[IdentityToken | None, str]]:
    """The token of the identity, or None and the reason why a person must sign in for it."""
    try:
        return (yield GetIdentity(rejected)), ""
    except SignInFailed as error:
        if error.code != LOGIN:
            raise
        return None, str(error)


def _agreed(plan: SignInPlan, found: DiscoveredServer) -> Flow[tuple[tuple[str, ...], bool]]:
    """The scopes to ask for, and whether a person agreed to them just now."""
    try:
        choice: SignInConsent = yield AskConsent(plan)
    except SignInFailed as error:
        before = _accepted(found)
        if error.code != PERSON or (before is None and not found.request.settings.issuer):
            raise
        return plan.scopes if before is None else before.asked, False
    return tuple(scope for scope in choice.scopes if scope in plan.scopes), True


def _accepted(found: DiscoveredServer) -> TokenGrant | None:
    """The present grant, if it was made with this identity, so that its plan was accepted."""
    before, identity = found.before, found.request.settings.identity
    if before is None or identity is None:
        return None
    return before if (before.identity, before.identity_issuer) == (identity.name, identity.issuer) else None


def _plan(
    found: DiscoveredServer,
    identity: IdentitySettings,
    provider: IdentityProvider,
    token: IdentityToken | None,
    problem: str,
) -> SignInPlan:
    request, issuer = found.request, found.issuer
    scopes, scopes_from = found.scopes()
    origin = _origin(found)
    return SignInPlan(
        server=request.server,
        url=request.url,
        resource=found.resource,
        issuer=issuer.issuer,
        authorization_endpoint=provider.server.authorization_endpoint if token is None else "",
        token_endpoint=issuer.token_endpoint,
        registration_endpoint="",
        scopes=tuple(scope for scope in scopes if scope != OFFLINE),
        scopes_from=scopes_from,
        granted=found.before.scopes if found.before else (),
        client=origin,
        client_id=_client_id(found),
        redirect_uri="",
        warnings=tuple(warnings_of(found)),
        grant=GRANT,
        identity=identity.name,
        identity_issuer=identity.issuer,
        account="" if token is None else token.account,
        identity_problem=problem,
        bound=found.prover is not None,
    )


def _granted(exchange: _Exchange, token: IdentityToken) -> Flow[TokenGrant]:
    """The grant for a new assertion; if the authorization server does not take it, for one more."""
    client, host = _client(exchange.found), host_of(exchange.found.issuer.issuer)
    refused: AssertionRefused | None = None
    for _ in range(2):
        assertion, token = yield from _vouched(exchange, token)
        title = "Present the assertion of the identity provider"
        try:
            return (yield from jwt_bearer(exchange.found, client, assertion, exchange.scopes, exchange.now, title))
        except AssertionRefused as error:
            refused = error
            if error.code != "invalid_grant":
                break
    assert refused is not None
    raise SignInFailed(f"{refused}; {_refusal(refused.code, host, exchange)}", code=refused.code)


def _refusal(code: str, host: str, exchange: _Exchange) -> str:
    """The party at fault where the authorization server refuses, and what to do."""
    if code == "invalid_grant":
        return f"{host} does not take the word of {host_of(exchange.identity.issuer)}: ask whoever runs the server"
    if code == "unsupported_grant_type":
        return f"{host} is not set up for identity providers: ask whoever runs the server"
    if code in ("invalid_client", "unauthorized_client"):
        server = show_line(exchange.found.request.server, 60)
        return f"{host} does not know the client: check client_id and its secret in [servers.{server}.oauth]"
    return "ask whoever runs the server"


def _vouched(exchange: _Exchange, token: IdentityToken) -> Flow[tuple[str, IdentityToken]]:
    """An assertion, and the token that was good for it.

    A refused token is renewed once, and a person signs in at most once.
    """
    may_renew = may_sign_in = True
    while True:
        try:
            return (yield from exchange.assertion(token)), token
        except FreshSignInNeeded as error:
            if not may_sign_in:
                raise _explained(error, exchange) from None
            may_sign_in = False
            token = yield from _signed_in(token.token, error.step_up, str(_explained(error, exchange)))
        except SignInFailed as error:
            if error.code != "invalid_grant" or not (may_renew or may_sign_in):
                raise _explained(error, exchange) from None
            renewed, problem = (yield from _held_token(token.token)) if may_renew else (None, str(error))
            may_renew = False
            if renewed is None:
                may_sign_in = False
                renewed = yield from _signed_in(token.token, StepUp(), problem)
            token = renewed


def _signed_in(rejected: str, step_up: StepUp, problem: str) -> Flow[IdentityToken]:
    """The token after a sign-in of the person. Raises SignInFailed with ``problem`` without a person."""
    try:
        token: IdentityToken = yield SignInIdentity(rejected, step_up)
    except SignInFailed as error:
        if error.code != PERSON:
            raise
        raise SignInFailed(problem, code=LOGIN) from None
    return token


def _explained(error: SignInFailed, exchange: _Exchange) -> SignInFailed:
    """The refusal of the identity provider, with the party at fault and what to do."""
    host, name = host_of(exchange.identity.issuer), exchange.identity.name
    if str(error).endswith(LATER):
        return SignInFailed(f"the identity provider {error}")
    if error.code in POLICY:
        about = f"{host_of(exchange.found.request.url)} for {' '.join(exchange.scopes) or 'no scope'}"
        advice = f"its policy does not give you {show_line(about, 200)}: ask whoever runs the identity provider"
    elif error.code == "invalid_client":
        advice = f"{host} does not know the client: check client_id and its secret in [identity.{name}]"
    elif error.code in STEP_UPS or error.code == "invalid_grant":
        advice = "it is not content with your sign-in there: ask whoever runs the identity provider"
    else:
        advice = "ask whoever runs the identity provider"
    return SignInFailed(f"the identity provider {error}; {advice}", code=error.code)


def _read_assertion(answer: HttpAnswer | Unreachable, fetch: HttpExchange) -> TokenResponse:
    """The assertion in the response to a token exchange, in the member for the access token."""
    try:
        what, document = token_document(answer, fetch)
    except SignInFailed as error:
        if error.code not in STEP_UPS or isinstance(answer, Unreachable):
            raise
        raise FreshSignInNeeded(error, _step_up(answer)) from None
    kind = document.get("issued_token_type")
    if kind != ID_JAG:
        shown = quoted(kind, 80, secrets_of(fetch, document)) if isinstance(kind, str) else ""
        named = f"of type {shown}" if shown else "without a type"
        raise SignInFailed(f"{what} holds no assertion for another authorization server, but a token {named}")
    if not (assertion := read_token(document.get("access_token"))):
        raise SignInFailed(f"{what} holds no assertion, or one that no header may carry")
    return TokenResponse(assertion, "", None, None)


def _step_up(answer: HttpAnswer) -> StepUp:
    document = read_document("", answer, secret=True)
    values, age = document.get("acr_values"), document.get("max_age")
    good = isinstance(age, int) and not isinstance(age, bool) and 0 <= age < 10**9
    return StepUp(show_line(values, 200) if isinstance(values, str) else "", age if good else None)


def _origin(found: DiscoveredServer) -> ClientOrigin:
    return ClientOrigin.CONFIGURED if found.request.settings.client_id else ClientOrigin.DOCUMENT


def _client_id(found: DiscoveredServer) -> str:
    return found.request.settings.client_id or found.request.settings.client_metadata_url


def _client(found: DiscoveredServer) -> ClientRegistration:
    """The client at the server's authorization server, which is another one than that at the identity provider."""
    return given_client(_origin(found), found.request.settings, found.issuer, SignInConsent(()), "")
