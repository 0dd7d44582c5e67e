"""Signs a workload in by the JWT that its platform issues to it, without a person and mostly without a client.

Specification: ext-auth, workload identity federation; RFC 7523 section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcphost.auth.flow.discovered import OFFLINE, SignInRequest, check_same_issuer, find, kept_bound
from mcphost.auth.flow.jwt_bearer import AssertionRefused, check_endpoint, check_jwt_bearer, jwt_bearer
from mcphost.auth.flow.steps import Flow, GetAssertion, RefuseAssertion
from mcphost.auth.jwt_claims import audiences_of, claims_of, expiry_of, why_unfit
from mcphost.auth.ports import OAuthSettings, WorkloadIdentity
from mcphost.auth.storage.credentials import ClientRegistration, TokenGrant
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

TITLE: Final = "Present this workload's JWT"


def sign_in_workload(request: SignInRequest, now: Callable[[], float]) -> Flow[TokenGrant]:
    """Get a token for the JWT of the configured source, which is asked only once it is known where the JWT goes."""
    settings = request.settings
    if settings.assertion is None or not settings.issuer:
        raise SignInFailed('grant = "workload" needs oauth.assertion and oauth.issuer')
    found = kept_bound((yield from find(request)))
    issuer = found.issuer
    check_endpoint(found, "JWT")
    check_jwt_bearer(issuer)
    check_same_issuer(request, issuer)
    audience = audience_of(settings, issuer.token_endpoint)
    assertion = yield GetAssertion(audience)
    claims, source = claims_of(assertion), show_line(settings.assertion.words, 300)
    if problem := why_unfit(claims, {audience, issuer.issuer, issuer.token_endpoint}, now()):
        raise SignInFailed(f"the JWT of {source} {problem}; nothing was sent")
    scopes = tuple(scope for scope in found.scopes()[0] if scope != OFFLINE)
    client = ClientRegistration(client_id=settings.client_id)
    try:
        return (yield from jwt_bearer(found, client, assertion, scopes, now, TITLE))
    except AssertionRefused as error:
        yield RefuseAssertion(assertion)
        raise AssertionRefused(
            f"{error}; {_advice(error.code, claims, host_of(issuer.issuer))}", code=error.code
        ) from None


def audience_of(settings: OAuthSettings, token_endpoint: str) -> str:
    """The audience to ask the source for."""
    return {"issuer": settings.issuer, "token_endpoint": token_endpoint}.get(settings.audience, settings.audience)


def identity_in(jwt: str, settings: OAuthSettings, now: float) -> WorkloadIdentity:
    """The claims of a JWT, and what is wrong with it as far as the configuration alone tells."""
    claims = claims_of(jwt)
    audiences = audiences_of(claims)
    origin = origin_of(settings.issuer)
    at_issuer = {each for each in audiences if each == origin or each.startswith(f"{origin}/")}  # its token endpoint
    meant = at_issuer or {settings.issuer, audience_of(settings, settings.token_endpoint), settings.token_endpoint}
    return WorkloadIdentity(
        str(claims.get("iss", "")),
        str(claims.get("sub", "")),
        tuple(audiences),
        expiry_of(claims),
        why_unfit(claims, {*filter(None, meant)}, now),
    )


def _advice(code: str, claims: dict[str, Any], host: str) -> str:
    """The next step after a refusal."""
    if code == "invalid_scope":
        return "set oauth.scopes to what this workload may have"
    if code in ("invalid_client", "unauthorized_client") or code == "invalid_request":
        return f"{host} may know this workload by a client_id: set oauth.client_id, or ask whoever runs it"
    if code == "unsupported_grant_type":
        return f"{host} does not take JWTs of workloads: ask whoever runs it to allow the jwt-bearer grant"
    issuer, subject = (show_line(str(claims.get(each, "")), 200) for each in ("iss", "sub"))
    return f"{host} must trust the JWT's issuer {issuer!r}, and know its subject {subject!r}: ask whoever runs it"
