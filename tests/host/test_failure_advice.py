"""What is said of errors beyond their own sentence, for every front."""

from __future__ import annotations

import pytest

from mcphost.config import ServerConfig
from mcphost.config.servers import CapabilitiesConfig
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    ConnectionLost,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    ServerError,
    SessionExpired,
    TaskExpired,
    TaskStopped,
)
from mcphost.host.failure_advice import advice_on, next_step
from mcphost.protocol.lifecycle.revisions import TASKS_EXTENSION

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
    (SessionExpired("canary"), "no longer knows this session", "mcphost opens a new session by itself"),
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


def test_what_says_it_all_by_itself_gets_nothing_added() -> None:
    for error in (ConnectionLost("gone"), ServerError(-32602, "no")):
        assert (advice_on(error, "web"), next_step(error, "web")) == (None, "")


def test_what_the_configuration_declares_is_missing_for_another_reason() -> None:
    error = ClientCapabilityMissing(REFUSED, "nothing", ["sampling", TASKS_EXTENSION])
    config = ServerConfig(command="x")
    assert "This run cannot provide it: sampling takes a configured model" in next_step(error, "web", config)
    off = config.model_copy(update={"capabilities": CapabilitiesConfig(extensions=())})
    assert f'put extensions = ["{TASKS_EXTENSION}"] into' in next_step(error, "web", off)
    assert "sampling" not in next_step(error, "web", off)
