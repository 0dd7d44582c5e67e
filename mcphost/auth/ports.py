"""What a sign-in looks like from outside: its settings, the plan a person agrees to, the steps, and both ports.

Knows values and protocols only. Refuses to know how a step is carried out and how a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, Protocol

CALLBACK_SECONDS: Final = 300.0
"""How long a sign-in waits for the browser to come back."""


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """How one server is signed in to, its references resolved. See ``[servers.NAME.oauth]``."""

    enabled: bool = True
    issuer: str = ""
    """The only authorization server that may be used, exactly as the server spells it; empty: any that it names."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    """PEM; signs client assertions instead of a secret."""
    client_metadata_url: str = ""
    """The https URL of the document that describes this client, for servers that take one as client id."""
    redirect_port: int = 0
    registration: Literal["auto", "cimd", "dcr", "static"] = "auto"
    scopes: tuple[str, ...] = ()
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    without_pkce_metadata: bool = False
    """Go on where the authorization server does not say that it checks PKCE."""

    def takes(self, issuer: str) -> bool:
        """May a token of this authorization server be asked for and sent?"""
        return self.issuer in ("", issuer)


class ClientOrigin(Enum):
    """How this client is known to the authorization server."""

    CONFIGURED = "from your configuration"
    DOCUMENT = "by its metadata document"
    KNOWN = "registered by mcphost before"
    REGISTER = "mcphost registers itself now"
    ASKED = "to be entered by you"


@dataclass(frozen=True, slots=True)
class SignInPlan:
    """What a sign-in will do, for a person to agree to before anything is registered or opened.

    Everything here came from outside, except ``server``: make it safe before it is shown.
    """

    server: str
    """The configured name."""
    url: str
    resource: str
    """What the token will be for."""
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    scopes: tuple[str, ...]
    """What will be asked for; a person may take some away."""
    scopes_from: str
    """Who named them, in words of ours."""
    granted: tuple[str, ...]
    """What an earlier sign-in was granted."""
    client: ClientOrigin
    client_id: str
    """Empty until there is one."""
    redirect_uri: str
    warnings: tuple[str, ...] = ()
    """What a careful person should know, in words of ours, safe to show."""
    problem: str = ""
    """Why it is asked again."""
    obtained: bool = False
    """Is there a token already, so that only keeping it is asked about?"""

    @property
    def urls(self) -> tuple[str, ...]:
        """Every address that this sign-in may lead to."""
        parties = self.url, self.resource, self.issuer
        return *parties, self.authorization_endpoint, self.token_endpoint, self.registration_endpoint


@dataclass(frozen=True, slots=True)
class SignInConsent:
    """What a person agreed to. ``client_id`` is needed where the plan's client is `ClientOrigin.ASKED`."""

    scopes: tuple[str, ...]
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One step over HTTP as it may be shown: secrets are masked, the rest is as it came, and not made safe."""

    title: str
    method: str
    url: str
    request_headers: Mapping[str, str] = field(default_factory=dict)
    request_body: str = ""
    status: int | None = None
    """None while it is under way, and where no answer came."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response_body: str = ""
    problem: str = ""
    """Why no answer came."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationLink:
    """The page to open in a browser. ``url`` holds no secret but one that ends with this attempt."""

    url: str
    redirect_uri: str
    expires: float
    """Seconds from now in which the browser must come back."""


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """Who is signed in at a server, without any secret."""

    signed_in: bool
    issuer: str = ""
    resource: str = ""
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    """What was granted."""
    asked: tuple[str, ...] = ()
    """What was asked for; without the scope for a refresh token where there is one, since few servers name it then."""
    expires_at: float | None = None
    """Seconds since 1970; None: unknown."""
    renewable: bool = False
    problem: str = ""
    """Why the token could not be renewed the last time; empty where it could."""
    kept_in: str = ""
    """Where the tokens are, in words; empty where there are none."""


class SignInUser(Protocol):
    """Whoever agrees to a sign-in and goes to the browser, and is shown each step. A host stands in for them."""

    async def agree(self, plan: SignInPlan) -> SignInConsent:
        """The person's choice. Raises Declined."""

    async def visit(self, link: AuthorizationLink, problem: str) -> str:
        """Show the link; the redirect URL that the person pasted, once they did. May be cancelled at any time.

        ``problem`` says why the URL pasted before would not do.
        """

    def turned_away(self, problem: str) -> None:
        """A browser came back with an answer that is not this sign-in's; the right one is still waited for.

        ``problem`` says so in a sentence; each is told once.
        """

    def step(self, number: int, exchange: RecordedExchange) -> None:
        """A step began, or got its answer; ``number`` counts from 1."""


class SignInPort(Protocol):
    """Signs one server in and out."""

    async def sign_in(self, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        """Run the whole flow. ``challenge`` is the header of the refusal, which was a 401 or 403 (``status``).

        Raises SignInFailed, Declined, ConfigError. May be cancelled at any point: nothing is then half done.
        """

    async def status(self) -> SignInStatus:
        """Who is signed in. Raises SignInFailed if nobody can be."""

    async def sign_out(self) -> str:
        """Forget every token and client of the server, and revoke the tokens if it offers that; return what happened.

        Raises SignInFailed if the keychain did not forget them.
        """
