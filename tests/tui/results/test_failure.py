"""Failures in place of a result: words of mcphost, and quotes of others."""

from __future__ import annotations

import pytest

from mcphost import errors
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    ServerError,
    SessionExpired,
    TaskStopped,
)
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.tui.results.failure import Failure, Quote, failure_of

GONE = ResourceMissing("x:/\x1b[2J", ServerError(-32002, "gone for good", {"uri": "x:/"}))

FAILURES: list[tuple[McphostError, str, str, str, list[Quote]]] = [
    (
        GONE,
        "✖",
        "The server has no such resource",
        "the list of resources",
        [Quote("which", "x:/\x1b[2J"), Quote("web says", "gone for good"), Quote("data from web", '{"uri": "x:/"}')],
    ),
    (
        ClientCapabilityMissing(ServerError(-32021, "no", {"x": 1}), "clientCapabilities: roots", ["sampling"]),
        "✖",
        "The server needs a capability that mcphost did not declare",
        "put sampling = true into [servers.web.capabilities]",
        [
            Quote("web says", "no"),
            Quote("data from web", '{"x": 1}'),
            Quote("mcphost sent", "clientCapabilities: roots"),
        ],
    ),
    (
        CapabilityWithheld("tasks/get", "io.modelcontextprotocol/tasks"),
        "✖",
        "This capability is off for the server",
        "into [servers.web.capabilities]",
        [Quote("why", "mcphost does not use io.modelcontextprotocol/tasks with this server, which tasks/get needs")],
    ),
    (
        TaskStopped("t1", "out of oil"),
        "✖",
        "The server stopped the task",
        "run it again to go on",
        [Quote("why", "the server cancelled the task: out of oil")],
    ),
    (
        HttpStatusError(502, "text/html", "<h1>Bad gateway"),
        "✖",
        "HTTP 502 came instead of an answer",
        "Whether anything was done is not known",
        [Quote("why", "the server answered HTTP 502 (text/html): <h1>Bad gateway")],
    ),
    (
        SessionExpired("the server no longer knows this session (HTTP 404)"),
        "✖",
        "The server no longer knows this session",
        "Whether anything was done is not known",
        [Quote("why", "the server no longer knows this session (HTTP 404)")],
    ),
    (
        AuthorizationRequired('Bearer scope="all"'),
        "▲",
        "The server wants a sign-in",
        "into [servers.web]",
        [Quote("web asks for", 'Bearer scope="all"')],
    ),
    (
        AuthorizationRequired("Bearer", reason="the token is revoked"),
        "▲",
        "The server wants a sign-in",
        "into [servers.web]",
        [
            Quote("why", "the server wants a sign-in (HTTP 401): the token is revoked"),
            Quote("web asks for", "Bearer"),
        ],
    ),
    (
        AuthorizationRequired("", status=403),
        "▲",
        "The server wants more than this sign-in allows",
        "The token in [servers.web]",
        [Quote("web asks for", "(nothing)")],
    ),
]


def explained(error: McphostError) -> Failure:
    call = ToolCall(1, CallRequest("web", "t", {}), lambda: 0.0)
    call.failed(error)
    failure = failure_of(call)
    assert failure is not None
    return failure


@pytest.mark.parametrize(("error", "mark", "headline", "advice", "quotes"), FAILURES, ids=lambda value: str(value)[:30])
def test_a_failure_has_a_headline_and_advice_of_its_own(
    error: McphostError, mark: str, headline: str, advice: str, quotes: list[Quote]
) -> None:
    failure = explained(error)
    assert (failure.mark, failure.headline, list(failure.quotes)) == (mark, headline, quotes)
    assert advice in failure.advice
    assert failure.level == ("warning" if mark == "▲" else "error")


def test_no_error_is_without_words() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, McphostError)]
    plain = [kind for kind in kinds if kind.__init__ is McphostError.__init__]  # the others need more than a sentence
    assert len(plain) > 8
    for kind in plain:
        assert explained(kind("what happened")).headline
