"""The steps that a flow yields, and their outcomes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from typing import Any, Final, Literal, TypeVar

from mcphost.auth.ports import OAuthSettings, SignInPlan
from mcphost.lazy_dataclass import dataclass

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """Send one HTTP request. The outcome is a `HttpAnswer`, or an `Unreachable` if no response came."""

    title: str
    url: str
    kind: Literal["metadata", "registration", "token"]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    """None: GET. A registration is sent as JSON, a token request as a form."""
    home: str = ""
    """The URL on whose behalf it is sent; empty: the server's."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No response came. ``reason`` is safe to show."""

    reason: str


@dataclass(frozen=True, slots=True)
class ListenForCallback:
    """Listen for the browser on this machine. The outcome is the redirect URI."""

    path: str
    port: int
    """0: any free port."""
    insist: bool
    """Fail if the port is taken, instead of choosing another one?"""
    host: str = "127.0.0.1"
    """This machine in the redirect URI."""


@dataclass(frozen=True, slots=True)
class AskConsent:
    """Ask the person. The outcome is a `SignInConsent`."""

    plan: SignInPlan


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """The values that the authorization response must match; made before the browser opens."""

    issuer: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    sends_issuer: bool
    settings: OAuthSettings = OAuthSettings()

    def is_answered_by(self, callback: Mapping[str, tuple[str, ...]]) -> bool:
        """True if this callback carries exactly our state, exactly once."""
        state = callback.get("state", ())
        return len(state) == 1 and hmac.compare_digest(state[0].encode("utf-8", "surrogatepass"), self.state.encode())


@dataclass(frozen=True, slots=True)
class VisitAuthorizationPage:
    """Open a page and wait for the redirect. The outcome is the parameters of a callback that answers `pending`."""

    url: str
    pending: PendingAuthorization


@dataclass(frozen=True, slots=True)
class GetAssertion:
    """Get the JWT that names this workload from its source. The outcome is the JWT."""

    audience: str


@dataclass(frozen=True, slots=True)
class RefuseAssertion:
    """Remember that the authorization server refused this JWT."""

    assertion: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class InThread:
    """Do work that takes too long for the event loop, such as the first that imports cryptography.

    The outcome is its result; it may raise SignInFailed.
    """

    work: Callable[[], Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class StepUp:
    """The demands of an identity provider on a new sign-in. RFC 9470."""

    acr_values: str = ""
    max_age: int | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the authorization request."""
        acr = {"acr_values": self.acr_values} if self.acr_values else {}
        return acr if self.max_age is None else {**acr, "max_age": str(self.max_age)}


@dataclass(frozen=True, slots=True)
class IdentityToken:
    """A token that proves an identity to its provider."""

    token: str = field(repr=False)
    kind: Literal["id_token", "refresh_token"]
    account: str = ""
    """The account as people know it; foreign text."""


@dataclass(frozen=True, slots=True)
class GetIdentity:
    """Get the token of the server's identity. The outcome is an `IdentityToken`, other than a ``rejected`` one.

    Fails with code `LOGIN` if a person must sign in at the identity provider.
    """

    rejected: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SignInIdentity:
    """Let the person sign in at the identity provider. The outcome is an `IdentityToken`, not a ``rejected`` one."""

    rejected: str = field(default="", repr=False)
    step_up: StepUp = StepUp()


PERSON: Final = "person"
"""The code of a failure because a step needs a person."""

LOGIN: Final = "login_required"
"""The code of a failure because a person must sign in at the identity provider."""

FlowStep = (
    HttpExchange
    | GetAssertion
    | RefuseAssertion
    | InThread
    | GetIdentity
    | SignInIdentity
    | ListenForCallback
    | AskConsent
    | VisitAuthorizationPage
)

_T = TypeVar("_T")

Flow = Generator[FlowStep, Any, _T]
"""A generator of steps that is sent their outcomes; may raise SignInFailed."""
