"""The words of a server's card about its sign-in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from mcphost.auth.ports import SignInExchange, SignInStatus
from mcphost.config import ServerConfig
from mcphost.errors import AuthorizationRequired, HeldSignIn, SignInFailed
from mcphost.host.connections.state import ServerState
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.tui.sign_in.screen import _cause
from mcphost.tui.sign_in.status import SignInSummary, end_facts, sign_in_facts, status_facts
from mcphost.tui.sign_in.steps import step_text, steps_of
from tests.tui.sign_in.sign_ins import plan

PROBLEM = "as.example refused a token (HTTP 401): quota used up"


@dataclass
class Refused:
    """A connection that waits for a sign-in."""

    refusal: AuthorizationRequired
    config: ServerConfig
    state: ServerState = ServerState.NEEDS_SIGN_IN


def text(facts: Any) -> str:
    return "\n".join(f"{fact.label} {fact.value}" for fact in facts)


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (HeldSignIn(), "press S to sign in"),
        (HeldSignIn(True, (), 5_000.0), "press S to sign in"),
        (HeldSignIn(True, (), 5.0), "ask whoever runs the server, or press S to sign in with another account"),
    ],
)
def test_a_sign_in_that_is_refused_at_once_is_not_the_next_step_again(held: HeldSignIn, says: str) -> None:
    connection: Any = Refused(
        AuthorizationRequired("Bearer", held=held), ServerConfig.model_validate({"url": "https://h/mcp"})
    )
    assert f"next step {says}\n" in f"{text(sign_in_facts(connection, SignInSummary()))}\n"


def test_the_screen_of_a_sign_in_says_why_it_began() -> None:
    service: Any = None
    refused = SignIn(1, "web", AuthorizationRequired("Bearer x", status=403, reason="ask your administrator"), service)
    assert _cause(refused) == "after HTTP 403: ask your administrator"
    assert _cause(SignIn(1, "web", AuthorizationRequired("Bearer x"), service)) == "after HTTP 401"
    assert _cause(SignIn(1, "web", AuthorizationRequired(""), service)) == "wanted by you"


def test_a_token_that_could_not_be_renewed_is_not_said_to_be_renewed() -> None:
    status = SignInStatus(True, "https://as.example", expires_at=5.0, renewable=True)
    assert "renewed with the next request" in text(status_facts(status, 10.0))
    failed = SignInStatus(True, "https://as.example", expires_at=5.0, renewable=True, problem=PROBLEM)
    shown = text(status_facts(failed, 10.0))
    assert "expired: sign in again" in shown
    assert f"not renewed {PROBLEM}" in shown


class Silent:
    """A service that reports to no one."""

    def changed(self, sign_in: SignIn) -> None: ...


JWT = SignInExchange("Get this workload's JWT", "from", "the file /run/token", local=True)
TOKEN = SignInExchange("Present this workload's JWT", "POST", "https://as.example/token", status=400)


def test_a_workload_gets_its_jwt_here_in_a_step_of_its_own() -> None:
    service: Any = Silent()
    sign_in = SignIn(1, "ci", AuthorizationRequired("Bearer"), service)
    sign_in.step(1, JWT)
    [step] = steps_of(sign_in)
    assert (sign_in.state, step.host, step.result) == (SignInState.EXCHANGING, "here", "under way")
    sign_in.step(1, replace(JWT, status=200, seconds=0.002))
    [step] = steps_of(sign_in)
    assert (step.result, step_text(step).splitlines()[0]) == ("done", "from the file /run/token")
    assert "▏ done · after 2 ms; the JWT is not shown" in step_text(step)


@pytest.mark.parametrize(
    ("steps", "results", "code", "says"),
    [
        ([replace(JWT, problem="it is not there")], ["no answer"], "", "Correct the source or its audience"),
        ([replace(JWT, status=200)], ["not sent"], "", "Correct the source or its audience"),
        ([replace(JWT, status=200), TOKEN], ["done", "400"], "invalid_grant", "what they must agree on: tell whoever"),
    ],
)
def test_the_end_of_a_workloads_sign_in_names_no_browser(
    steps: list[SignInExchange], results: list[str], code: str, says: str
) -> None:
    service: Any = Silent()
    sign_in = SignIn(1, "ci", AuthorizationRequired("Bearer"), service)
    for number, each in enumerate(steps, 1):
        sign_in.step(number, each)
    sign_in.ended(SignInState.FAILED, SignInFailed("no token", code=code))
    shown = text(end_facts(sign_in))
    assert says in shown
    assert "browser" not in shown
    assert [each.result for each in steps_of(sign_in)] == results


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://idp.example/token", "the identity provider's, at idp.example"),
        ("https://auth.linear.example/token", "the authorization server's, at auth.linear.example"),
    ],
)
def test_the_end_of_a_sign_in_by_an_identity_names_the_party(url: str, says: str) -> None:
    service: Any = Silent()
    sign_in = SignIn(1, "docs", AuthorizationRequired("Bearer"), service)
    sign_in.plan = plan(identity="corp", identity_issuer="https://idp.example")
    sign_in.step(1, SignInExchange("Ask", "POST", url, status=400))
    sign_in.ended(SignInState.FAILED, SignInFailed("refused", code="invalid_grant"))
    assert says in text(end_facts(sign_in))
