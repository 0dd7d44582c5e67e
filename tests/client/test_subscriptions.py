"""Listening for changes at a modern server: one stream for all that is wanted, opened again where it breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.client import subscriptions
from mcphost.client.subscriptions import (
    SUBSCRIPTION_ID,
    ChangeFilter,
    ListenState,
    ReopeningPauses,
    SubscriptionListener,
)
from mcphost.errors import CapabilityMissing, ConnectionLost, PeerError
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request
from tests.client.conftest import Draw, Line
from tests.conftest import Until

ANNOUNCES: dict[str, Any] = {
    "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True},
}  # fmt: skip
LISTEN = "subscriptions/listen"


class Stream:
    """The server's side of subscriptions/listen."""

    def __init__(self, acknowledges: Callable[[dict[str, Any]], Any] = lambda wanted: wanted) -> None:
        self.line: Line
        self.requests: list[Request] = []
        self.ends: list[asyncio.Future[Any]] = []
        self._acknowledges = acknowledges

    def __call__(self, request: Request) -> asyncio.Future[Any]:
        self.requests.append(request)
        self.ends.append(asyncio.get_running_loop().create_future())
        assert request.params is not None
        honoured = self._acknowledges(request.params["notifications"])
        if honoured is not None:
            self.tell("subscriptions/acknowledged", notifications=honoured)
        return self.ends[-1]

    def tell(self, method: str, subscription: Any = None, **params: Any) -> None:
        last = self.requests[-1].id if subscription is None else subscription
        self.line.server.says(f"notifications/{method}", {**params, "_meta": {SUBSCRIPTION_ID: last}})

    @property
    def filters(self) -> list[dict[str, Any]]:
        return [request.params["notifications"] for request in self.requests if request.params]


Listening = Callable[..., Any]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses."""
    monkeypatch.setattr(subscriptions, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(subscriptions, "GATHER_SECONDS", 0.01)


@pytest.fixture
def listening(draw: Draw, hasty: None) -> Listening:
    async def connect(stream: Any, capabilities: dict[str, Any] = ANNOUNCES) -> tuple[Line, SubscriptionListener]:
        discovered = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        line = draw({"server/discover": discovered, LISTEN: stream}, era="auto")
        if isinstance(stream, Stream):
            stream.line = line
        await line.client.connect(5)
        assert line.client.listener is not None
        return line, line.client.listener

    return connect


@pytest.mark.requirement("SUB-01", "SUB-10")
async def test_offered_changes_and_subscribed_uris_are_requested(listening: Listening) -> None:
    stream = Stream()
    line, listener = await listening(stream)
    assert listener.state is ListenState.LISTENING
    await line.client.resources.subscribe("memo://a")
    await line.client.resources.subscribe("memo://b")
    lists = {"toolsListChanged": True, "promptsListChanged": True}
    assert stream.filters == [
        lists,
        {**lists, "resourceSubscriptions": ["memo://a"]},
        {**lists, "resourceSubscriptions": ["memo://a", "memo://b"]},
    ]
    assert [
        message.params["requestId"] for message in line.server.sent if message.method == "notifications/cancelled"
    ] == [request.id for request in stream.requests[:2]]


@pytest.mark.requirement("SUB-10")
async def test_nothing_is_sent_where_nothing_can_be_heard(listening: Listening, until: Until) -> None:
    stream = Stream()
    line, listener = await listening(stream, {"tools": {}, "resources": {"subscribe": True, "listChanged": False}})
    assert (listener.state, stream.requests) == (ListenState.OFF, [])
    await line.client.resources.subscribe("memo://a")
    await line.client.resources.unsubscribe("memo://a")
    await until(lambda: listener.state is ListenState.OFF)
    assert stream.filters == [{"resourceSubscriptions": ["memo://a"]}]


async def test_a_server_that_lets_nothing_be_watched_is_not_asked(listening: Listening) -> None:
    line, _ = await listening(Stream(), {"resources": {}})
    with pytest.raises(CapabilityMissing):
        await line.client.resources.subscribe("memo://a")


@pytest.mark.requirement("SUB-02")
async def test_unacknowledged_changes_are_reported_or_refused(listening: Listening) -> None:
    line, listener = await listening(Stream(lambda wanted: {"toolsListChanged": True}))
    assert str(listener.missing) == "the lists of prompts"
    assert line.notes.all("noted") == ["the server does not announce changes of the lists of prompts"]
    with pytest.raises(PeerError, match="does not announce changes of this resource"):
        await line.client.resources.subscribe("memo://a")


@pytest.mark.requirement("SUB-03", "SUB-12", "RES-06")
async def test_announcements_count_only_with_the_id_of_an_open_subscription(listening: Listening) -> None:
    stream = Stream()
    line, listener = await listening(stream)
    known: Any = stream.requests[-1].id
    for stray in (str(known), float(known), known + 1, True, [known]):
        stream.tell("tools/list_changed", stray)
        stream.tell("resources/updated", stray, uri="memo://a")
    line.server.says("notifications/tools/list_changed")
    assert listener.strays == 11
    assert line.notes.all("changed") == line.notes.all("updated") == []
    stream.tell("tools/list_changed")
    stream.tell("resources/updated", uri="memo://a/below")
    assert (line.notes.all("changed"), line.notes.all("updated")) == (["tools"], ["memo://a/below"])


@pytest.mark.requirement("SUB-05", "SUB-06", "SUB-08")
@pytest.mark.parametrize("end", ["result", "cancelled", "lost"])
async def test_after_a_reopened_stream_all_counts_as_changed(listening: Listening, until: Until, end: str) -> None:
    stream = Stream()
    line, listener = await listening(stream)
    await line.client.resources.subscribe("memo://a")
    if end == "result":
        stream.ends[-1].set_result({"resultType": "complete"})
    elif end == "cancelled":
        line.server.says("notifications/cancelled", {"requestId": stream.requests[-1].id})
    else:
        stream.ends[-1].set_exception(ConnectionLost("cut"))
    await until(lambda: listener.state is ListenState.LOST)
    assert listener.reason == ("cut" if end == "lost" else "the server ended it")
    await until(lambda: len(stream.requests) == 3 and listener.state is ListenState.LISTENING)
    assert line.notes.all("changed") == ["prompts", "tools"]
    assert line.notes.all("updated") == ["memo://a"]
    assert line.notes.all("lost") == []


@pytest.mark.requirement("SUB-09", "SUB-11")
async def test_refused_subscriptions_are_not_repeated_for_ever(listening: Listening, until: Until) -> None:
    line, listener = await listening(ErrorObject(-32601, "no such method"))
    await until(lambda: len(line.server.requests(LISTEN)) == subscriptions.MOST_REFUSALS)
    await until(lambda: line.notes.all("noted"))
    assert (listener.state, listener.reason) == (ListenState.REFUSED, "no such method (-32601)")
    assert line.notes.all("noted") == ["the server does not announce changes: no such method (-32601)"]
    assert line.notes.all("lost") == []
    await line.client.ping()
    with pytest.raises(PeerError, match="no such method"):
        await line.client.resources.subscribe("memo://a")
    await until(lambda: not listener._changed.is_set())  # what is wanted now was considered
    assert len(line.server.requests(LISTEN)) == subscriptions.MOST_REFUSALS


@pytest.mark.requirement("SUB-11")
def test_pauses_grow_to_a_cap_and_begin_anew_after_a_quiet_time() -> None:
    pauses = ReopeningPauses(lambda: 0.5)
    assert [pauses.after(1) for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]
    assert [pauses.after(30), pauses.after(1)] == [0.5, 1]
    assert ReopeningPauses(lambda: 0.0).after(1) == 0.4
    assert ReopeningPauses(lambda: 1.0).after(1) == 0.6


@pytest.mark.requirement("SUB-07")
async def test_a_quiet_stream_is_no_timeout(listening: Listening) -> None:
    stream = Stream()
    _, listener = await listening(stream)
    await asyncio.sleep(0.6)  # longer than any request of this client may take
    assert listener.state is ListenState.LISTENING
    assert len(stream.requests) == 1


@pytest.mark.requirement("SUB-04")
async def test_closing_the_client_ends_the_stream(listening: Listening) -> None:
    line, _ = await listening(Stream())
    await line.client.aclose()
    assert line.server.waiting == 0


def test_a_filter_is_told_as_a_sentence_would_have_it() -> None:
    one, three = ChangeFilter(frozenset({"tools"})), ChangeFilter(frozenset({"tools", "prompts", "resources"}))
    assert str(one) == "the lists of tools"
    assert str(three) == "the lists of prompts, resources and tools"
    assert str(ChangeFilter(resources=frozenset({"a:b"}), tasks=frozenset({"1"}))) == "a:b, task 1"
