"""What the flow asks its runner to do, one step at a time, and what it gets back.

Values only. A runner carries them out and knows time limits, sizes and forbidden addresses.
"""

from __future__ import annotations

import hmac
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from mcphost.auth.ports import SignInPlan

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """One HTTP exchange. The answer is a `HttpAnswer` or, where none came, an `Unreachable`."""

    title: str
    url: str
    kind: Literal["metadata", "registration", "token"]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    """None: GET. A registration is sent as JSON, a token request as a form."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No answer came; the reason is safe to show."""

    reason: str


@dataclass(frozen=True, slots=True)
class ListenForCallback:
    """Be ready on this machine for the browser. The answer is the redirect URI."""

    path: str
    port: int
    """0 is any."""
    insist: bool
    """Must it be this port, or will another do where it is taken?"""


@dataclass(frozen=True, slots=True)
class AskConsent:
    """Ask a person. The answer is a `SignInConsent`."""

    plan: SignInPlan


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """What an answer through the browser is checked against, kept in one place before the browser opens."""

    issuer: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    sends_issuer: bool

    def is_answered_by(self, callback: Mapping[str, tuple[str, ...]]) -> bool:
        """Does this callback carry our state, once?"""
        state = callback.get("state", ())
        return len(state) == 1 and hmac.compare_digest(state[0].encode("utf-8", "surrogatepass"), self.state.encode())


@dataclass(frozen=True, slots=True)
class VisitAuthorizationPage:
    """Open a page and wait until the browser comes back. The answer is a callback's parameters that `pending` takes."""

    url: str
    pending: PendingAuthorization


FlowStep = HttpExchange | ListenForCallback | AskConsent | VisitAuthorizationPage

_T = TypeVar("_T")

Flow = Generator[FlowStep, Any, _T]
"""Something that is worked through step by step; it raises SignInFailed."""
