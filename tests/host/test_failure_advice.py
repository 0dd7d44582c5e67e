"""Advice on errors, for every front end."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.config import ComparedServer, GivenServer, ServerConfig
from mcphost.config.servers import CapabilitiesConfig
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    ConnectionLost,
    HeldSignIn,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    ServerError,
    SessionExpired,
    TaskExpired,
    TaskStopped,
)
from mcphost.host.failure_advice import advice_on, next_step
from mcphost.protocol.extensions import TASKS_EXTENSION

GONE = ResourceMissing("x:/canary", ServerError(-32002, "canary", {"canary": 1}))
REFUSED = ServerError(-32021, "canary")

ADVICE: list[tuple[McphostError, str, str]] = [
    (GONE, "has no such resource", "the list of resources says what there is"),
    (
        ClientCapabilityMissing(REFUSED, "canary", ["elicitation", "roots"]),
        "needs a capability that mcphost did not declare",
        'put roots = true and elicitation = ["form", "url"] into [servers.web.capabilities]',
    ),
    (
        ClientCapabilityMissing(REFUSED, "canary", ["canary"]),
        "needs a capability that mcphost did not declare",
        "mcphost has no such capability",
    ),
    (
        CapabilityWithheld("canary", TASKS_EXTENSION),
        "is off for the server",
        f'put extensions = ["{TASKS_EXTENSION}"] into [servers.web.capabilities]',
    ),
    (TaskStopped("canary", "canary"), "stopped the task", "part of the work may be done. Its log may say why"),
    (TaskExpired("canary", 5), "did not end in time", "keeps its result no longer"),
    (SessionExpired("canary"), "no longer knows this session", "is not known. Run it again: that uses a new session"),
    (SessionExpired("canary", refused=True), "no longer knows this session", "Nothing was done. Run it again"),
    (AuthorizationRequired("canary"), "wants a sign-in", "into [servers.web]: bearer_token_env_var or http_headers"),
    (
        AuthorizationRequired("canary", status=403),
        "more than this sign-in allows",
        "The token in [servers.web] must be",
    ),
    (HttpStatusError(200, "canary", "canary"), "HTTP 200 came", "Something answers at this address"),
    (HttpStatusError(302), "HTTP 302 came", "put the address that is meant into [servers.web]"),
    (HttpStatusError(400, reason="canary"), "HTTP 400 came", "what it says may tell why"),
    (HttpStatusError(403), "HTTP 403 came", "check the token and the headers in [servers.web]"),
    *((HttpStatusError(each), f"HTTP {each} came", "check url and transport in [servers.web]") for each in (404, 405)),
    (HttpStatusError(413), "HTTP 413 came", "send less"),
    (HttpStatusError(418), "HTTP 418 came", "the traffic shows the request"),
    (HttpStatusError(429), "HTTP 429 came", "wait a little"),
    (HttpStatusError(503), "HTTP 503 came", "is in trouble"),
    (HttpStatusError(999), "HTTP 999 came", "is in trouble"),
]


@pytest.mark.parametrize(("error", "headline", "step"), ADVICE, ids=lambda value: str(value)[:30])
def test_each_says_what_happened_and_what_to_do_in_no_words_but_ours(
    error: McphostError, headline: str, step: str
) -> None:
    advice = advice_on(error, "web")
    assert advice is not None
    assert headline in advice.headline
    assert step in advice.next_step
    assert advice.next_step == next_step(error, "web")
    assert advice.next_step.endswith(".")
    assert not {"canary", "{}"} & {*advice.headline.split(), *advice.next_step.split()}


WEB = {"url": "https://h/mcp"}
FRESH, OLD = HeldSignIn(True, ("a",), 5.0), HeldSignIn(True, ("a",), 5_000.0)


def test_a_403_is_about_the_account_where_mcphost_signs_in() -> None:
    assert "refuses this to everyone or to you" in next_step(
        HttpStatusError(403), "web", ServerConfig.model_validate(WEB)
    )
    own = ServerConfig.model_validate(WEB | {"bearer_token_env_var": "TOKEN"})
    assert "check the token and the headers in [servers.web]" in next_step(HttpStatusError(403), "web", own)


@pytest.mark.parametrize(
    ("challenge", "status", "held", "says"),
    [
        ("Bearer", 401, None, "Sign in with: mcphost login web"),
        ('Bearer scope="a b"', 401, None, "Sign in with: mcphost login web --scope a --scope b"),
        ("Bearer scope=a", 401, HeldSignIn(problem="x"), "Sign in again with: mcphost login web --scope a"),
        ("Bearer", 401, OLD, "Sign in again with: mcphost login web"),
        ("Bearer", 401, HeldSignIn(True, ("a",)), "Sign in again with: mcphost login web"),
        ('Bearer scope="a b"', 401, FRESH, "Sign in for more with: mcphost login web --scope b"),
        (r'Bearer scope="-a $(x) b\\"', 403, FRESH, "mcphost login web --scope=-a --scope '$(x)'"),
        ("Bearer", 401, FRESH, "You are signed in, and the server still refuses: ask whoever runs it, or use another"),
        ('Bearer scope="a"', 401, FRESH, "You signed in for a, and the server still refuses"),
        ('Bearer scope="a"', 403, OLD, "You signed in for a, and the server still refuses"),
        ("Bearer", 403, OLD, "account: mcphost logout web, then mcphost login web"),
        ("Bearer", 403, HeldSignIn(), "Sign in for more with: mcphost login web"),
        ("DPoP", 401, OLD._replace(proof_refused=True), 'or set dpop = "off" in [servers.web.oauth].'),
    ],
)
def test_no_sign_in_is_advised_that_only_repeats_the_last_one(
    challenge: str, status: int, held: HeldSignIn | None, says: str
) -> None:
    error = AuthorizationRequired(challenge, status=status, held=held)
    step = next_step(error, "web", ServerConfig.model_validate(WEB))
    assert f"{step}\n".count(says) == 1, step
    if " with: " in says:
        assert step.endswith(says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"bearer_token_env_var": "WEB_TOKEN"}, "does not take the token in WEB_TOKEN: put a newer one there"),
        ({"http_headers": {"authorization": "Basic x"}}, "header of [servers.web]: change it in http_headers"),
        ({"env_http_headers": {"Authorization": "X"}}, "change it in env_http_headers"),
        ({"oauth": {"enabled": False}}, "Set oauth.enabled = true in [servers.web] to sign in"),
        (
            {"oauth": {"grant": "client_credentials", "client_id": "x", "client_secret": "y"}},
            "mcphost signs in there by itself: check client_id, its secret or key, and scopes in [servers.web.oauth]",
        ),
        (
            {"oauth": {"grant": "workload", "issuer": "https://as.example", "assertion": {"env": "CI_JWT"}}},
            "mcphost signs in there by itself: check issuer, assertion and scopes in [servers.web.oauth]",
        ),
    ],
)  # fmt: skip
def test_a_refused_token_is_named_by_the_key_that_holds_it(more: dict[str, Any], says: str) -> None:
    step = next_step(AuthorizationRequired("Bearer"), "web", ServerConfig.model_validate(WEB | more))
    assert says in step
    assert "mcphost login" not in step


def test_only_what_is_missing_is_named() -> None:
    config = ServerConfig(command="x")
    step = next_step(ClientCapabilityMissing(REFUSED, "nothing", ["sampling"]), "web", config)
    assert "provide it; sampling takes a model in [models]" in step
    assert "elicitation" not in step
    assert "sampling" not in next_step(ClientCapabilityMissing(REFUSED, "nothing", ["elicitation"]), "web", config)


UNSUPPORTED = ServerError(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]}, method="initialize")
OLDER = ServerError(-32600, "elicitation is unavailable on 2026-07-28 connections", method="tools/call")


@pytest.mark.parametrize(
    ("error", "protocol", "says"),
    [
        (UNSUPPORTED, "legacy", 'It speaks 2026-07-28: use protocol = "auto" in [servers.web].'),
        (UNSUPPORTED, "modern", ""),
        (ServerError(-32022, "no", {"supported": "2026-07-28"}), "legacy", ""),
        (OLDER, "auto", 'lacks this, protocol = "legacy" in [servers.web] uses an older one.'),
        (OLDER, "legacy", ""),
        (ServerError(-32600, "unavailable on Tuesdays"), "auto", ""),
    ],
)
def test_the_protocol_setting_that_helps_is_named(error: ServerError, protocol: str, says: str) -> None:
    step = next_step(error, "web", ServerConfig.model_validate({"command": "x", "protocol": protocol}))
    assert step.endswith(says)
    assert bool(step) is bool(says)


def test_a_failure_after_a_failed_probe_names_the_setting() -> None:
    error = HttpStatusError(500)
    error.after_probe = "asked in 2026-07-28, did not answer"
    for config, entry in ((None, "[servers.web]"), (GivenServer(url="https://h/"), "an entry for it")):
        step = next_step(error, "web", config)
        assert step.endswith(f'did not answer, before this; protocol = "legacy" in {entry} leaves that out.')


def test_a_copy_for_a_comparison_is_called_as_its_entry() -> None:
    copy = ComparedServer(url="https://h/", entry="web")
    assert "in [servers.web]" in next_step(HttpStatusError(404), "web-legacy", copy)


def test_what_says_it_all_by_itself_gets_nothing_added() -> None:
    for error in (ConnectionLost("gone"), ServerError(-32602, "no")):
        assert (advice_on(error, "web"), next_step(error, "web")) == (None, "")


def test_a_declared_capability_is_missing_for_another_reason() -> None:
    error = ClientCapabilityMissing(REFUSED, "nothing", ["sampling", TASKS_EXTENSION])
    config = ServerConfig(command="x")
    advice = next_step(error, "web", config)
    assert "This run cannot provide it; sampling takes a model in [models], or" in advice
    assert "--answers" in advice
    assert "elicitation" not in advice
    off = config.model_copy(update={"capabilities": CapabilitiesConfig(extensions=())})
    assert f'put extensions = ["{TASKS_EXTENSION}"] into' in next_step(error, "web", off)
    assert "sampling" not in next_step(error, "web", off)


@pytest.mark.parametrize("seconds", [0, -0.001])
def test_a_task_that_is_kept_for_no_time_has_no_negative_time(seconds: float) -> None:
    assert str(TaskExpired("x", seconds)) == "the task did not end before the server dropped it"
