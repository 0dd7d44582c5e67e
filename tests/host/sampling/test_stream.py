"""A model's answer while it comes: what is seen of it, and every way in which it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ModelAnswerCut, ModelUnreachable
from mcphost.host.consent.questions import Answer
from mcphost.host.events import SamplingChanged
from mcphost.host.sampling.request import SamplingReply, SamplingState
from mcphost.providers.base import AnswerFinished, RetryScheduled, TextDelta, ThoughtDelta, TokenUsage
from tests.conftest import Until
from tests.host.sampling.sampling_host import Attempt, LendingHost, create, for_ever, lending_host
from tests.host.server_requests.pending import NEVER, NO, YES, told

pytestmark = pytest.mark.slow

HALF: Attempt = (TextDelta("Hel"), TokenUsage(10, 1), for_ever, TextDelta("lo"), AnswerFinished("endTurn", "m"))
ALLOW = {"policy": "allow"}


async def half_way(host: LendingHost, until: Until) -> Any:
    """A call whose server waits for an answer that has come half the way."""
    await host.servers.ready()
    call = host.ask(create())
    await until(lambda: host.sampling.all and host.last_sampling.text == "Hel")
    assert host.last_sampling.state is SamplingState.STREAMING
    return call


@pytest.mark.requirement("SAMP-03")
async def test_an_answer_is_seen_while_it_comes(until: Until) -> None:
    go_on = asyncio.Event()
    attempt: Attempt = (
        RetryScheduled(2.0, 1, 3, "too many requests"),
        go_on.wait,
        ThoughtDelta("Hm. "),
        TextDelta("Hel"),
        TextDelta("lo"),
        TokenUsage(10, 2),
        AnswerFinished("maxTokens", "m"),
    )
    async with lending_host(YES, YES, attempts={"claude": [attempt]}) as host:
        await host.servers.ready()
        call = host.ask(create())
        await until(lambda: host.sampling.all and host.last_sampling.waiting)
        sampling = host.last_sampling
        assert sampling.waiting == attempt[0]
        go_on.set()
        (reply,) = await told(call)
        assert reply["result"]["stopReason"] == "maxTokens"
        assert (sampling.text, sampling.thought, sampling.usage.output_tokens) == ("Hello", "Hm. ", 2)
        assert attempt[0] != sampling.waiting
        changes = [event for event in host.events if isinstance(event, SamplingChanged)]
        assert set(changes) == {SamplingChanged("a", sampling.number)}
        assert len(changes) >= 8


@pytest.mark.parametrize(
    ("steps", "text"),
    [((YES, YES), "Hel"), ((YES, Answer(True, content=SamplingReply.of("Enough"))), "Enough"), ((YES, NO), None)],
)
async def test_what_came_until_it_was_stopped_is_reviewed(steps: Any, text: str | None, until: Until) -> None:
    async with lending_host(*steps, attempts={"claude": [HALF]}) as host:
        call = await half_way(host, until)
        host.last_sampling.stop()
        (reply,) = await told(call)
        assert host.port.providers["claude"].closed == 1
        assert host.sampling.usage("a").tokens == 11
        if text is None:
            assert reply["error"]["code"] == -1
        else:
            assert reply["result"]["content"]["text"] == text
            assert (host.last_sampling.stopped, host.last_sampling.error) == (True, None)


async def test_a_stopped_answer_is_always_reviewed(until: Until) -> None:
    async with lending_host(NO, sampling=ALLOW, attempts={"claude": [HALF]}) as host:
        call = await half_way(host, until)
        host.last_sampling.stop()
        assert [reply["error"]["code"] for reply in await told(call)] == [-1]


async def test_a_refusal_stops_the_model_and_gives_the_server_a_reason(until: Until) -> None:
    async with lending_host(YES, attempts={"claude": [HALF]}) as host:
        call = await half_way(host, until)
        host.last_sampling.refuse("not this way")
        (reply,) = await told(call)
        assert reply["error"] == {"code": -1, "message": "User rejected sampling request: not this way"}
        assert host.port.providers["claude"].closed == 1
        host.last_sampling.stop()  # nothing happens to what has ended
        assert host.last_sampling.state is SamplingState.REFUSED


def muted(host: LendingHost, call: Any) -> None:
    host.pending_requests.mute("a")


def stopped(host: LendingHost, call: Any) -> None:
    host.servers["a"].stop()


def call_ended(host: LendingHost, call: Any) -> None:
    call.cancel()


# What ends it while the model answers; what the server gets, and where the handle ends.
ENDINGS: list[tuple[Callable[[LendingHost, Any], None], int, SamplingState]] = [
    (muted, -1, SamplingState.REFUSED),
    (stopped, -1, SamplingState.REFUSED),
    (call_ended, -1, SamplingState.REFUSED),
]


@pytest.mark.parametrize("asking", [True, False])
@pytest.mark.parametrize(("end", "code", "state"), ENDINGS)
async def test_the_server_has_one_answer_whatever_ends_it(
    end: Callable[[LendingHost, Any], None],
    code: int,
    state: SamplingState,
    asking: bool,
    tmp_path: Path,
    until: Until,
) -> None:
    log = tmp_path / "replies"
    steps, attempts = ((NEVER,), []) if asking else ((YES,), [HALF])
    async with lending_host(*steps, attempts={"claude": attempts}, args=("--log", log)) as host:
        await host.servers.ready()
        call = host.ask(create())
        await until(lambda: host.sampling.all and (host.person.asked if asking else host.last_sampling.text == "Hel"))
        end(host, call)
        await until(lambda: host.sampling.all[1].state is state)
        await until(lambda: log.exists() and '"error"' in log.read_text())
        replies = [json.loads(line) for line in log.read_text().splitlines() if '"error"' in line]
        assert [reply["error"]["code"] for reply in replies] == [code]
        assert not any(provider.closed < len(provider.requests) for provider in host.port.providers.values())
        assert host.pending_requests.waiting("a") == 0


@pytest.mark.parametrize("asking", [True, False])
async def test_a_server_that_takes_it_back_gets_nothing(asking: bool, until: Until) -> None:
    steps, attempts = ((NEVER,), []) if asking else ((YES,), [HALF])
    async with lending_host(*steps, attempts={"claude": attempts}) as host:
        await host.servers.ready()
        call = host.ask(create())
        await until(lambda: host.sampling.all and (host.person.asked if asking else host.last_sampling.text == "Hel"))
        assert await host.use("take_back") == "taken back"
        assert await told(call) == [], "no reply came"
        assert host.last_sampling.state is SamplingState.WITHDRAWN
        assert sum(provider.closed for provider in host.port.providers.values()) == (not asking)


async def test_a_connection_that_drops_stops_the_model(until: Until) -> None:
    async with lending_host(YES, attempts={"claude": [HALF]}) as host:
        call = await half_way(host, until)
        process = host.servers["a"].process.pid
        assert process is not None
        os.kill(process, signal.SIGKILL)
        await host.end_of(call)
        await until(lambda: host.sampling.all[1].state.ended)
        assert host.port.providers["claude"].closed == 1


async def test_who_quits_stops_the_model_and_the_server_hears_of_it(tmp_path: Path, until: Until) -> None:
    log = tmp_path / "replies"
    async with lending_host(YES, attempts={"claude": [HALF]}, args=("--log", log)) as host:
        await half_way(host, until)
    assert host.port.providers["claude"].closed == 1
    replies = [json.loads(line) for line in log.read_text().splitlines() if '"error"' in line]
    assert [reply["error"]["message"] for reply in replies] == ["User rejected sampling request"]


async def test_nobody_is_hurried_by_the_time_limit_of_the_call(until: Until) -> None:
    go_on = asyncio.Event()
    attempt: Attempt = (go_on.wait, TextDelta("Hello"), AnswerFinished("endTurn", "m"))
    entry = {"tool_timeout_sec": 1}
    async with lending_host(sampling=ALLOW, attempts={"claude": [attempt]}, entry=entry) as host:
        await host.servers.ready()
        call = host.ask(create())
        await until(lambda: host.port.providers)
        ended, _ = await asyncio.wait({asyncio.ensure_future(call.result())}, timeout=1.3)
        assert not ended
        go_on.set()
        assert "result" in (await told(call))[0]


@pytest.mark.parametrize(
    "attempt", [(ModelUnreachable("claude", "away"),), (TextDelta("x"), ModelAnswerCut("c", "cut"))]
)
async def test_a_model_failure_without_a_user_is_a_plain_error(attempt: Attempt) -> None:
    async with lending_host(sampling=ALLOW, attempts={"claude": [attempt]}) as host:
        await host.servers.ready()
        (reply,) = await host.replies(create())
        assert reply["error"] == {"code": -32603, "message": "the language model gave no answer"}
        assert host.last_sampling.state is SamplingState.FAILED
        assert any("its request for a language model failed: model c" in line for line in host.said("a"))


async def test_requests_at_once_do_not_get_each_others_answers() -> None:
    attempts = {"claude": [(TextDelta(str(n)), AnswerFinished("endTurn", "m")) for n in range(5)]}
    async with lending_host(sampling=ALLOW, attempts=attempts) as host:
        await host.servers.ready()
        replies = await host.replies(*(create(str(n)) for n in range(5)))
        assert [reply["result"]["content"]["text"] for reply in replies] == list("01234")
        assert [request.messages[0].text for _, request in host.port.requests] == list("01234")


async def test_old_requests_are_forgotten_by_their_size_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.host.sampling.service.KEPT", 3)
    monkeypatch.setattr("mcphost.host.sampling.service.KEPT_BYTES", 50_000)
    async with lending_host(sampling=ALLOW) as host:
        await host.servers.ready()
        for _ in range(5):
            await host.replies(create())
        assert list(host.sampling.all) == [3, 4, 5]
        await host.replies(create("x" * 60_000))
        assert list(host.sampling.all) == [6]
