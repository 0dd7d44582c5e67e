"""The interface of a sign-in: settings, the plan a person agrees to, recorded steps, and the two ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Final, Literal, Protocol

from mcphost.lazy_dataclass import dataclass

CALLBACK_SECONDS: Final = 300.0
"""Seconds that a sign-in waits for the browser to come back."""


@dataclass(frozen=True, slots=True)
class AssertionSource:
    """The place of a JWT that names this workload; one of its fields is set."""

    file: str = ""
    """A full path."""
    env: str = ""
    command: tuple[str, ...] = field(default=(), repr=False)
    """A program and its arguments; ``{audience}`` in them is replaced."""
    github: bool = False

    @property
    def words(self) -> str:
        """The source as the end of a sentence, without the arguments of a command; not safe to show."""
        if self.command:
            return f"the command {self.command[0]}"
        return f"the file {self.file}" if self.file else f"the variable {self.env}" if self.env else "GitHub Actions"


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """The claims of a JWT, not verified: foreign text, not made safe."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    expires_at: float | None
    """Seconds since 1970."""
    problem: str = ""
    """Why it would not be sent, as a predicate that is safe to show; empty if it would."""


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """``[identity.NAME]`` with its references resolved; "" is unset."""

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    """PEM; signs client assertions instead of a secret."""
    scopes: tuple[str, ...] = ("openid", "offline_access")
    redirect_host: Literal["127.0.0.1", "localhost"] = "127.0.0.1"
    redirect_port: int = 0
    id_token: AssertionSource | None = None
    """The source of an ID token, instead of a sign-in."""
    subject: Literal["auto", "id_token", "refresh_token"] = "auto"
    """The token that proves the identity; ``auto``: the refresh token where there is no valid ID token."""

    @property
    def client(self) -> OAuthSettings:
        """The settings of mcphost as a client of the identity provider."""
        return OAuthSettings(
            issuer=self.issuer,
            client_id=self.client_id,
            client_secret=self.client_secret,
            private_key=self.private_key,
            dpop="off",
        )


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """``[servers.NAME.oauth]`` of one server with its references resolved; "" is unset."""

    enabled: bool = True
    issuer: str = ""
    """The only authorization server that may be used, compared as text; empty: any that the server names."""
    issuer_slash: Literal["exact", "ignore"] = "exact"
    """With ``ignore`` the spellings of an issuer may differ by one slash at the end."""
    resource: str = ""
    """The resource that the server's metadata may name instead of its URL."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    """PEM; signs client assertions instead of a secret."""
    client_metadata_url: str = ""
    """The https URL of the client ID metadata document."""
    redirect_host: Literal["127.0.0.1", "localhost"] = "127.0.0.1"
    redirect_port: int = 0
    registration: Literal["auto", "cimd", "dcr", "static"] = "auto"
    scopes: tuple[str, ...] = ()
    grant: Literal["authorization_code", "client_credentials", "enterprise", "workload"] = "authorization_code"
    identity: IdentitySettings | None = None
    """The identity of the grant ``enterprise``."""
    assertion: AssertionSource | None = None
    """The source of the JWT of ``workload``."""
    audience: str = "issuer"
    """The audience to ask that source for: ``issuer``, ``token_endpoint``, or the audience itself."""
    token_endpoint: str = ""
    """The token endpoint on another origin than the issuer that may get the JWT."""
    dpop: Literal["auto", "require", "off"] = "auto"
    """Bind tokens to a key; ``auto``: if both the server and its authorization server show that they can."""
    without_pkce_metadata: bool = False
    """Continue if the metadata of the authorization server does not list PKCE with S256."""

    def takes(self, issuer: str) -> bool:
        """True if tokens of this authorization server may be used."""
        return not self.issuer or self.same_issuer(self.issuer, issuer)

    def same_issuer(self, one: str, other: str) -> bool:
        """True for the same authorization server; compared as text, without normalization."""
        slash = self.issuer_slash == "ignore" and (one == f"{other}/" or other == f"{one}/")
        return one == other or slash


class _Granted(Protocol):
    @property
    def grant(self) -> str: ...


def obtains_alone(settings: _Granted) -> bool:
    """True if no person is ever needed for a token."""
    return settings.grant in ("client_credentials", "workload")


BOUND: Final = "bound to a key of this machine"
NO_BROWSER: Final = "no browser is needed"


class ClientOrigin(Enum):
    """Where the client id comes from; the values are words for the screen."""

    CONFIGURED = "from your configuration"
    DOCUMENT = "by its metadata document"
    KNOWN = "registered by mcphost before"
    REGISTER = "mcphost registers itself now"
    ASKED = "to be entered by you"


@dataclass(frozen=True, slots=True)
class SignInPlan:
    """The steps of a sign-in; a person agrees to them before anything is registered or opened.

    Everything except ``server`` is foreign text: make it safe before it is shown.
    """

    server: str
    """The configured name."""
    url: str
    resource: str
    """The audience of the token."""
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    scopes: tuple[str, ...]
    """The scopes to request; a person may remove some."""
    scopes_from: str
    """The party that named the scopes; safe to show."""
    granted: tuple[str, ...]
    """The scopes that an earlier sign-in was granted."""
    client: ClientOrigin
    client_id: str
    """Empty until the client is registered."""
    redirect_uri: str
    warnings: tuple[str, ...] = ()
    """Sentences that are safe to show."""
    problem: str = ""
    """Why the person is asked again."""
    obtained: bool = False
    """True if a token was obtained already, so that the question is only whether to keep it."""
    grant: str = ""
    """The kind of grant in words; empty: a sign-in in the browser at the authorization server itself."""
    identity: str = ""
    """The configured name of the identity that signs in; empty without one."""
    identity_issuer: str = ""
    """Its identity provider."""
    account: str = ""
    """The account that is signed in there; empty if the person must sign in first."""
    identity_problem: str = ""
    """Why the person must sign in there; empty if not."""
    bound: bool = False
    """True if the token will be `BOUND`."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Every URL that this sign-in may contact or open."""
        parties = (self.url, self.resource, self.issuer, *filter(None, [self.identity_issuer]))
        return *parties, self.authorization_endpoint, self.token_endpoint, self.registration_endpoint


@dataclass(frozen=True, slots=True)
class SignInConsent:
    """A person's choice. ``client_id`` is needed where the plan's client is `ClientOrigin.ASKED`."""

    scopes: tuple[str, ...]
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SignInExchange:
    """One HTTP exchange of a sign-in. Secrets are masked; the rest is foreign text, not made safe."""

    title: str
    method: str
    url: str
    request_headers: Mapping[str, str] = field(default_factory=dict)
    request_body: str = ""
    status: int | None = None
    """None while the exchange is under way, and if no response came."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response_body: str = ""
    problem: str = ""
    """Why no response came."""
    seconds: float | None = None
    local: bool = False
    """True for a step on this machine: ``url`` names the place, and a status of 200 says that it is done."""


@dataclass(frozen=True, slots=True)
class AuthorizationLink:
    """The page to open in a browser. The only secrets in ``url`` are valid for this attempt alone."""

    url: str
    redirect_uri: str
    expires: float
    """Seconds until the sign-in stops waiting for the browser."""


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """The state of the sign-in to one server. Holds no secret."""

    signed_in: bool
    issuer: str = ""
    resource: str = ""
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    """The scopes that were granted."""
    asked: tuple[str, ...] = ()
    """The scopes that were requested, without ``offline_access`` once there is a refresh token: few servers list it."""
    expires_at: float | None = None
    """Seconds since 1970; None: unknown."""
    renewable: bool = False
    problem: str = ""
    """Why the last renewal failed; empty if it did not."""
    kept_in: str = ""
    """The place of the tokens, in words; empty without tokens."""
    identity: str = ""
    """The identity that it was made with; empty without one."""
    binding: str = ""
    """`BOUND`, or why the token is not; empty if the sign-in has no key."""


@dataclass(frozen=True, slots=True)
class IdentityStatus:
    """The state of the sign-in at an identity provider. Holds no secret."""

    name: str
    issuer: str
    signed_in: bool = False
    account: str = ""
    """The account as people know it; foreign text."""
    expires_at: float | None = None
    """Expiry of the ID token, in seconds since 1970."""
    renewable: bool = False
    servers: tuple[str, ...] = ()
    """The servers with grants that were made with it."""
    problem: str = ""
    kept_in: str = ""
    """The place of the tokens, in words."""
    given: bool = False
    """True if a configured source gives the ID token, so that no one signs in."""


class SignInUser(Protocol):
    """The person who signs in, as the flow sees them: asked, sent to the browser, shown each step."""

    @property
    def began(self) -> bool:
        """True if the person asked for this sign-in, false if a refused operation did."""

    async def agree(self, plan: SignInPlan) -> SignInConsent:
        """Ask; return the person's choice. Raises Declined."""

    async def visit(self, link: AuthorizationLink, problem: str) -> str:
        """Show the link, and return the redirect URL that the person pastes. May be cancelled at any time.

        ``problem`` says why the previously pasted URL was rejected.
        """

    def turned_away(self, problem: str) -> None:
        """A browser came back with the answer to another sign-in; the right one is still awaited.

        ``problem`` is a sentence; each is reported once.
        """

    def step(self, number: int, exchange: SignInExchange) -> None:
        """A step began or ended; ``number`` counts from 1."""


class IdentityPort(Protocol):
    """Signs one identity in and out."""

    async def sign_in(self, person: SignInUser) -> SignInStatus:
        """Sign in at the identity provider. Raises SignInFailed, Declined, ConfigError."""

    async def status(self) -> IdentityStatus: ...

    async def sign_out(self) -> tuple[str, Sequence[str]]:
        """Forget the sign-in, and the tokens of servers that were got with it; return what happened, and their names.

        Raises SignInFailed, ConfigError.
        """


class SignInPort(Protocol):
    """Signs one server in and out."""

    async def sign_in(self, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        """Run the whole flow. ``challenge`` is the header of the refusal, which was a 401 or 403 (``status``).

        Raises SignInFailed, Declined, ConfigError. May be cancelled at any point: nothing is then half done.
        """

    async def status(self) -> SignInStatus:
        """Raises SignInFailed if the server has no sign-in."""

    async def sign_out(self) -> str:
        """Forget every token and client of the server, and revoke the tokens if it offers that; return what happened.

        Raises SignInFailed if the keychain did not forget them.
        """
