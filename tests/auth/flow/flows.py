"""Works through a sign-in by hand: a small world of documents, a person who agrees, a browser that comes back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcphost.auth.flow.discovered import SignInRequest
from mcphost.auth.flow.grants import flow_of
from mcphost.auth.flow.steps import (
    PERSON,
    AskConsent,
    Flow,
    FlowStep,
    GetAssertion,
    GetIdentity,
    HttpAnswer,
    HttpExchange,
    IdentityToken,
    InThread,
    ListenForCallback,
    RefuseAssertion,
    SignInIdentity,
    Unreachable,
    VisitAuthorizationPage,
)
from mcphost.auth.ports import OAuthSettings, SignInConsent, SignInPlan
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.errors import SignInFailed

SERVER = "https://mcp.example.com/v1/mcp"
ISSUER = "https://as.example.com"
NOW = 1_000_000.0
PORT = 40_000

Answer = HttpAnswer | Unreachable
Say = Answer | Mapping[str, Any] | Callable[[HttpExchange], Any]


def document(content: Any, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status, {"content-type": "application/json"}, json.dumps(content).encode())


def issuer_document(issuer: str = ISSUER, **more: Any) -> dict[str, Any]:
    base = issuer.rstrip("/")
    found = {
        "issuer": issuer,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "registration_endpoint": f"{base}/register",
        "code_challenge_methods_supported": ["S256"],
    } | more
    return {name: value for name, value in found.items() if value is not None}


def resource_document(**more: Any) -> dict[str, Any]:
    return {"resource": SERVER, "authorization_servers": [ISSUER]} | more


def jwt(**claims: Any) -> str:
    """A JWT that is good for `ISSUER`, but for its signature; a claim of None is left out."""
    sound = {"iss": "https://platform.example", "sub": "job-1", "aud": ISSUER, "exp": NOW + 600} | claims
    given = {name: value for name, value in sound.items() if value is not None}
    return ".".join(
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
        for part in ('{"alg": "RS256"}', json.dumps(given), "signature")
    )


TOKEN = {"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1"}


@dataclass
class World:
    """Documents by their URL; everything else is 404. ``asked`` has every exchange, ``plan`` the last plan shown."""

    places: dict[str, Say] = field(default_factory=dict)
    choose: Callable[[SignInPlan], SignInConsent] = lambda plan: SignInConsent(plan.scopes)
    redirect: Callable[[dict[str, str]], dict[str, Any]] = lambda sent: {"code": "code-1", "state": sent["state"]}
    port: int | None = None
    """The port that is free; None: the wanted one, or PORT."""
    attended: bool = True
    """A person is there to agree and to sign in."""
    identity: Callable[[GetIdentity], IdentityToken] = lambda step: IdentityToken("id-token-1", "id_token", "ann")
    fresh: Callable[[SignInIdentity], IdentityToken] = lambda step: IdentityToken("id-token-new", "id_token", "ann")
    identities: list[GetIdentity | SignInIdentity] = field(default_factory=list)
    asked: list[HttpExchange] = field(default_factory=list)
    plans: list[SignInPlan] = field(default_factory=list)
    visits: list[dict[str, str]] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    assertion: str = ""
    """The JWT of the workload."""
    audiences: list[str] = field(default_factory=list)
    """The audiences that a JWT was asked for."""
    refused: list[str] = field(default_factory=list)

    @classmethod
    def usual(cls, **more: Any) -> World:
        """A server of 2025-11-25 with one authorization server."""
        return cls(
            {
                "https://mcp.example.com/.well-known/oauth-protected-resource/v1/mcp": resource_document(),
                f"{ISSUER}/.well-known/oauth-authorization-server": issuer_document(),
                f"{ISSUER}/register": lambda fetch: document({"client_id": "client-1", **(fetch.body or {})}, 201),
                f"{ISSUER}/token": TOKEN,
            },
            **more,
        )

    def sign_in(
        self,
        url: str = SERVER,
        challenge: str = "Bearer",
        *,
        settings: OAuthSettings | None = None,
        status: int = 401,
        known: Credentials | None = None,
    ) -> TokenGrant:
        request = SignInRequest("web", url, settings or OAuthSettings(), challenge, status, known or Credentials())
        grant: TokenGrant = self.work(flow_of(request.settings)(request, lambda: NOW))
        return grant

    def work(self, flow: Flow[Any]) -> Any:
        outcome: Any = None
        failure: SignInFailed | None = None
        try:
            while True:
                step = flow.send(outcome) if failure is None else flow.throw(failure)
                outcome, failure = None, None
                try:
                    outcome = self._do(step)
                except SignInFailed as error:
                    failure = error
        except StopIteration as end:
            return end.value

    def _do(self, step: FlowStep) -> Any:
        match step:
            case HttpExchange():
                self.asked.append(step)
                return self._answer(step)
            case InThread(work):
                return work()
            case GetAssertion(audience):
                self.audiences.append(audience)
                return self.assertion
            case RefuseAssertion(assertion):
                return self.refused.append(assertion)
            case ListenForCallback(path, port, _, host):
                return f"http://{host}:{self.port or port or PORT}{path}"
            case GetIdentity() | SignInIdentity():
                return self._identified(step)
            case AskConsent() if not self.attended:
                raise SignInFailed("a person is needed for this", code=PERSON)
            case AskConsent(plan):
                self.plans.append(plan)
                return self.choose(plan)
            case VisitAuthorizationPage(url, _):
                query = parse_qs(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)
                assert all(len(values) == 1 for values in query.values()), url
                self.endpoints.append(url.partition("?")[0])
                self.visits.append({name: values[0] for name, values in query.items()})
                back = self.redirect(self.visits[-1])
                return {name: value if isinstance(value, tuple) else (value,) for name, value in back.items()}

    def _identified(self, step: GetIdentity | SignInIdentity) -> IdentityToken:
        self.identities.append(step)
        if isinstance(step, GetIdentity):
            return self.identity(step)
        if not self.attended:
            raise SignInFailed("a person is needed for this", code=PERSON)
        return self.fresh(step)

    def _answer(self, fetch: HttpExchange) -> Answer:
        said = self.places.get(fetch.url, HttpAnswer(404, {}, b"not here"))
        if callable(said):
            said = said(fetch)
        return said if isinstance(said, HttpAnswer | Unreachable) else document(said)

    def warnings(self) -> str:
        """The warnings of the last plan."""
        return "\n".join(self.plans[-1].warnings)

    def urls(self) -> list[str]:
        return [fetch.url for fetch in self.asked]

    def bodies(self, end: str) -> list[Mapping[str, Any]]:
        """The bodies sent to the endpoint with this ending."""
        return [fetch.body or {} for fetch in self.asked if fetch.url.endswith(end)]
