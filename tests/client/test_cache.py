"""The cache of a modern server's results: used while they are fresh, and never after a change."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule

from mcphost.client.cache import Fetch, ResultCache, lies_below
from mcphost.errors import AuthorizationRequired, ConnectionLost, McphostError, ResourceMissing, ServerError
from mcphost.protocol.limits import CACHE_SECONDS
from mcphost.protocol.wire.jsonrpc import ErrorObject
from tests.client.conftest import Draw, Line
from tests.client.handlers import Answers, needs
from tests.client.scripted import Answer
from tests.conftest import Until

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
}
ANNOUNCED = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
MINUTE = 60_000


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def page(*names: str, ttl: object = MINUTE, **more: Any) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return {"resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": "public", **more}


def contents(text: str = "x", ttl: object = MINUTE) -> dict[str, Any]:
    return {"resultType": "complete", "contents": [{"uri": "a:", "text": text}], "ttlMs": ttl, "cacheScope": "private"}


async def modern(draw: Draw, clock: Clock, script: dict[str, Answer], **more: Any) -> Line:
    line = draw({"server/discover": DISCOVERED, **script}, era="auto", clock=clock, **more)
    await line.client.connect(5)
    return line


def sent(line: Line, method: str) -> int:
    return len(line.server.requests(method))


async def names(line: Line, *, again: bool = False) -> list[str]:
    return [tool.name for tool in (await line.client.list_tools(again=again)).items]


# For how long, and for which requests.


@pytest.mark.requirement("CACHE-01", "CACHE-09")
@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [
        (1_500, 1.5),
        (10**18, CACHE_SECONDS),
        (1e300, CACHE_SECONDS),
        (math.inf, CACHE_SECONDS),
        (0, 0.0),
        (-1, 0.0),
        (math.nan, 0.0),
        (True, 0.0),
        ("60000", 0.0),
        (None, 0.0),
        ([60_000], 0.0),
    ],
)
async def test_a_result_is_served_until_its_ttl_is_over(draw: Draw, ttl: object, seconds: float) -> None:
    clock = Clock()
    line = await modern(draw, clock, {"tools/list": lambda _: page("t", ttl=ttl)})
    assert await names(line) == ["t"]
    clock.now += seconds * 0.99
    assert await names(line) == ["t"]
    assert sent(line, "tools/list") == (1 if seconds else 2)
    clock.now += seconds * 0.02
    await names(line)
    assert sent(line, "tools/list") == (2 if seconds else 3)


@pytest.mark.requirement("CACHE-01")
async def test_a_result_without_a_ttl_is_fetched_each_time(draw: Draw) -> None:
    line = await modern(draw, Clock(), {"tools/list": lambda _: {"resultType": "complete", "tools": []}})
    await names(line)
    await names(line)
    assert sent(line, "tools/list") == 2


@pytest.mark.requirement("CACHE-02")
async def test_another_uri_or_another_list_is_another_entry(draw: Draw) -> None:
    texts = {"a:1": "one", "a:2": "two"}
    script = {
        "resources/read": lambda request: contents(texts[request.params["uri"]]),
        "resources/list": lambda _: {"resources": [], "ttlMs": MINUTE},
        "resources/templates/list": lambda _: {"resourceTemplates": [], "ttlMs": MINUTE},
        "prompts/list": lambda _: {"prompts": [{"name": "p"}], "ttlMs": MINUTE},
    }
    line = await modern(draw, Clock(), script)
    for _ in range(2):
        for uri, text in texts.items():
            assert (await line.client.resources.read(uri)).contents[0].text == text  # type: ignore[union-attr]
        await line.client.resources.list()
        await line.client.resources.templates()
        assert [prompt.name for prompt in (await line.client.prompts.list()).items] == ["p"]
    assert [sent(line, method) for method in script] == [2, 1, 1, 1]


async def test_listing_again_asks_the_server(draw: Draw) -> None:
    answers = [page("old"), page("new")]
    line = await modern(draw, Clock(), {"tools/list": answers})
    assert await names(line) == ["old"]
    assert await names(line, again=True) == ["new"]
    assert await names(line) == ["new"]


@pytest.mark.requirement("CACHE-06")
async def test_nothing_is_fetched_by_the_clock(draw: Draw) -> None:
    clock = Clock()
    line = await modern(draw, clock, {"tools/list": lambda _: page("t", ttl=1)})
    await names(line)
    clock.now += 10
    for _ in range(20):
        await asyncio.sleep(0)
    assert sent(line, "tools/list") == 1


async def test_a_hit_is_told_with_its_age(draw: Draw) -> None:
    clock = Clock()
    line = await modern(draw, clock, {"resources/read": contents()})
    first = await line.client.resources.read("a:")
    clock.now += 20
    second = await line.client.resources.read("a:")
    assert first.freshness is not None
    assert second.freshness is not None
    assert (first.freshness.cached, second.freshness.cached) == (False, True)
    assert (second.freshness.received, second.freshness.until) == (clock.now - 20, clock.now + 40)
    ((method, params, freshness),) = line.notes.all("cached")
    assert (method, params, freshness) == ("resources/read", {"uri": "a:"}, second.freshness)


async def test_a_server_with_a_handshake_is_asked_each_time(draw: Draw) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    line = draw({"initialize": hello, "tools/list": lambda _: page("t")}, clock=Clock())
    await line.client.connect(5)
    await names(line)
    await names(line)
    assert sent(line, "tools/list") == 2


# What must not be kept.


@pytest.mark.requirement("CACHE-04")
async def test_an_answer_that_took_input_is_not_kept(draw: Draw) -> None:
    script: dict[str, Answer] = {
        "resources/read": [needs("s", form="elicitation/create"), contents("1"), contents("2")]
    }
    line = await modern(draw, Clock(), script, capabilities={"elicitation": {}}, handler=Answers())
    first, second = await line.client.resources.read("a:"), await line.client.resources.read("a:")
    assert [each.raw["contents"][0]["text"] for each in (first, second)] == ["1", "2"]
    assert sent(line, "resources/read") == 3


@pytest.mark.requirement("CACHE-04")
@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
def test_the_answer_to_a_retry_is_not_kept(member: str) -> None:
    cache = ResultCache(Clock())
    params = {"uri": "a:", member: "x"}
    cache.keep(cache.begin("resources/read", params), {"ttlMs": MINUTE})
    assert cache.fresh("resources/read", params) is None


@pytest.mark.requirement("CACHE-03", "MOD-33")
async def test_other_credentials_or_capabilities_empty_the_cache(draw: Draw) -> None:
    declared: dict[str, Any] = {"roots": {}}
    script = {"tools/list": lambda _: page("t"), "resources/read": lambda _: contents()}
    line = await modern(draw, Clock(), script, capabilities=lambda _: dict(declared))
    await names(line)
    await line.client.resources.read("a:")
    line.client.forget_fetched()
    await line.client.resources.read("a:")
    assert sent(line, "resources/read") == 2
    assert set(line.notes.all("changed")) == {"tools", "prompts", "resources"}
    declared["elicitation"] = {}
    await line.client.resources.read("a:")
    await names(line)
    assert (sent(line, "resources/read"), sent(line, "tools/list")) == (3, 2)
    assert len(line.notes.all("changed")) == 6


# What makes it stale.


@pytest.mark.requirement("CACHE-05")
async def test_a_notification_makes_what_it_is_about_stale_at_once(draw: Draw, until: Until) -> None:
    listening: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    reads: list[str] = []

    def read(request: Any) -> dict[str, Any]:
        reads.append(request.params["uri"])
        return contents()

    script: dict[str, Answer] = {
        "server/discover": {**DISCOVERED, "capabilities": ANNOUNCED},
        "subscriptions/listen": listening,
        "tools/list": lambda _: page("t"),
        "resources/list": lambda _: {"resources": [], "ttlMs": MINUTE},
        "resources/templates/list": lambda _: {"resourceTemplates": [], "ttlMs": MINUTE},
        "resources/read": read,
    }
    line = draw(script, era="auto", clock=Clock())
    opening = asyncio.create_task(line.client.connect(5))
    await until(lambda: bool(line.server.requests("subscriptions/listen")))
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": line.server.requests("subscriptions/listen")[0].id}}
    honoured = {"toolsListChanged": True, "resourcesListChanged": True}
    line.server.says("notifications/subscriptions/acknowledged", {**meta, "notifications": honoured})
    await opening

    async def use() -> None:
        await names(line)
        await line.client.resources.list()
        await line.client.resources.templates()
        for uri in ("file:///a", "file:///a/b", "file:///ab"):
            await line.client.resources.read(uri)

    lists = ("tools/list", "resources/list", "resources/templates/list")
    await use()
    line.server.says("notifications/tools/list_changed", meta)
    await use()
    assert [sent(line, method) for method in lists] == [2, 1, 1]
    line.server.says("notifications/resources/list_changed", meta)
    await use()
    assert [sent(line, method) for method in lists] == [2, 2, 2]
    assert reads == ["file:///a", "file:///a/b", "file:///ab"]
    line.server.says("notifications/resources/updated", {**meta, "uri": "file:///a/b"})
    await use()
    assert reads[3:] == ["file:///a", "file:///a/b"]
    line.server.says("notifications/tools/list_changed", {})  # of no subscription
    await use()
    assert sent(line, "tools/list") == 2


@pytest.mark.requirement("CACHE-10")
async def test_a_result_requested_before_a_change_arrives_stale(draw: Draw, until: Until) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    line = await modern(draw, Clock(), {"tools/list": [answer, page("new")]})
    listing = asyncio.create_task(names(line))
    await until(lambda: sent(line, "tools/list") == 1)
    line.client.forget_fetched()
    answer.set_result(page("old"))
    assert await listing == ["old"]
    assert await names(line) == ["new"]


# Pages.


@pytest.mark.requirement("CACHE-07")
async def test_pages_expire_one_by_one(draw: Draw) -> None:
    clock = Clock()

    def answer(request: Any) -> dict[str, Any]:
        if "cursor" in request.params:
            return page("b", ttl=MINUTE, cacheScope="private")
        return page("a", ttl=1_000, nextCursor="2")

    line = await modern(draw, clock, {"tools/list": answer})
    await names(line)
    clock.now += 2
    listed = await line.client.list_tools()
    assert [tool.name for tool in listed.items] == ["a", "b"]
    cursors = [(request.params or {}).get("cursor") for request in line.server.requests("tools/list")]
    assert cursors == [None, "2", None]
    assert listed.freshness is not None
    assert (listed.freshness.received, listed.freshness.until) == (clock.now - 2, clock.now + 1)


@pytest.mark.requirement("CACHE-07")
async def test_an_invalid_cursor_discards_all_pages(draw: Draw) -> None:
    clock = Clock()
    script: dict[str, Answer] = {
        "tools/list": [
            page("a", nextCursor="2"),
            page("b", ttl=1_000),
            ErrorObject(-32602, "invalid cursor"),
            page("c", nextCursor="3"),
            page("d"),
        ]
    }
    line = await modern(draw, clock, script)
    assert await names(line) == ["a", "b"]
    clock.now += 2
    assert await names(line) == ["c", "d"]
    assert await names(line) == ["c", "d"]
    assert sent(line, "tools/list") == 5


@pytest.mark.requirement("PAGE-07")
async def test_an_empty_cursor_is_a_cursor_and_has_its_own_entry(draw: Draw) -> None:
    line = await modern(draw, Clock(), {"tools/list": [page("a", nextCursor=""), page("b")]})
    for _ in range(2):
        assert await names(line) == ["a", "b"]
    assert [(request.params or {}).get("cursor") for request in line.server.requests("tools/list")] == [None, ""]


# When fetching fails.


@pytest.mark.requirement("CACHE-08")
@pytest.mark.parametrize(
    ("failure", "stands_in"),
    [
        (ConnectionLost("gone"), True),
        (ErrorObject(-32603, "out of order"), True),
        (ErrorObject(-32602, "Resource not found", {"uri": "a:"}), False),
        (ErrorObject(-32000, "no"), False),
        (AuthorizationRequired(""), False),
    ],
)
async def test_a_stale_resource_stands_in_while_the_server_fails(draw: Draw, failure: Any, stands_in: bool) -> None:
    clock = Clock()
    line = await modern(draw, clock, {"resources/read": [contents("kept"), failure]})
    await line.client.resources.read("a:")
    clock.now += 70
    if not stands_in:
        with pytest.raises(McphostError):
            await line.client.resources.read("a:")
        return
    read = await line.client.resources.read("a:")
    assert read.raw["contents"][0]["text"] == "kept"
    assert read.freshness is not None
    assert read.freshness.problem
    assert read.freshness.until < clock.now


@pytest.mark.requirement("RES-12", "RES-13")
@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (ErrorObject(-32602, "Invalid params", {"uri": "a:1"}), True),
        (ErrorObject(-32602, "Resource not found: a:1"), True),
        (ErrorObject(-32602, "Unknown resource"), True),
        (ErrorObject(-32002, "nope"), True),
        (ErrorObject(-32602, "missing _meta"), False),
        (ErrorObject(-32603, "not found"), False),
    ],
)
async def test_either_error_code_reports_a_missing_resource(draw: Draw, error: ErrorObject, missing: bool) -> None:
    line = await modern(draw, Clock(), {"resources/read": error})
    with pytest.raises(ServerError) as caught:
        await line.client.resources.read("a:1")
    assert isinstance(caught.value, ResourceMissing) is missing


# Bounds.


@pytest.mark.requirement("CACHE-09")
def test_a_flood_of_results_takes_bounded_memory() -> None:
    cache = ResultCache(Clock(), entries=100, most_bytes=100_000)
    for number in range(5_000):
        params = {"uri": f"a:{number}"}
        cache.keep(cache.begin("resources/read", params), contents("x" * (number % 2_000)))
        assert len(cache) <= 100
        assert cache.bytes <= 100_000
    assert cache.fresh("resources/read", {"uri": "a:4999"}) is not None
    large = cache.begin("resources/read", {"uri": "a:large"})
    cache.keep(large, contents("x" * 50_000))
    assert cache.fresh("resources/read", {"uri": "a:large"}) is None
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)


# Against a model.

URIS = ["f:/a", "f:/a/", "f:/a/b", "f:/ab"]
REQUESTS = st.one_of(
    st.tuples(st.just("resources/read"), st.sampled_from(URIS).map(lambda uri: {"uri": uri})),
    st.tuples(
        st.sampled_from(["tools/list", "resources/list", "resources/templates/list"]),
        st.sampled_from([{}, {"cursor": ""}, {"cursor": "2"}]),
    ),
)
TTLS = st.sampled_from([None, 0, -5, 1, 1_000, 5_000, 10**18, math.nan, "1000", True])


class CacheMachine(RuleBasedStateMachine):
    """Every hit has the same key, is fresh, and was not invalidated since its fetch began.

    The model keeps what was fetched, with the time of the last event that concerned it.
    """

    fetches = Bundle("fetches")

    @initialize()
    def start(self) -> None:
        self.clock, self.steps = Clock(), 0
        self.cache = ResultCache(self.clock)
        self.kept: dict[tuple[str, str], tuple[int, float, object]] = {}
        self.invalidated: dict[tuple[str, str], int] = {}
        self.cleared = 0

    def tick(self) -> int:
        self.steps += 1
        return self.steps

    @rule(target=fetches, request=REQUESTS)
    def begin(self, request: tuple[str, dict[str, Any]]) -> tuple[Fetch, int]:
        return self.cache.begin(*request), self.tick()

    @rule(fetch=consumes(fetches), ttl=TTLS)
    def keep(self, fetch: tuple[Fetch, int], ttl: object) -> None:
        result = {"ttlMs": ttl, "n": self.tick()}
        seconds = min(ttl / 1000, CACHE_SECONDS) if type(ttl) is int and ttl > 0 else 0.0
        self.cache.keep(fetch[0], result)
        key = fetch[0].method, json.dumps(fetch[0].params)
        if fetch[1] > max(self.invalidated.get(key, 0), self.cleared):
            self.kept[key] = fetch[1], self.clock.now + seconds, result

    @rule(fetch=consumes(fetches))
    def fail(self, fetch: tuple[Fetch, int]) -> None:
        self.cache.drop(fetch[0])

    @rule(seconds=st.sampled_from([0.0005, 1.0, 3.0, CACHE_SECONDS]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(kind=st.sampled_from(["tools", "resources", "prompts", "bogus"]))
    def list_changed(self, kind: str) -> None:
        step = self.tick()
        self.cache.list_changed(kind)
        for method in ("tools/list", "resources/list", "resources/templates/list"):
            if method.startswith(kind):
                for params in ({}, {"cursor": ""}, {"cursor": "2"}):
                    self.invalidated[method, json.dumps(params)] = step

    @rule(uri=st.sampled_from(URIS))
    def resource_updated(self, uri: str) -> None:
        step = self.tick()
        self.cache.resource_updated(uri)
        for each in URIS:
            if lies_below(uri, each):
                self.invalidated["resources/read", json.dumps({"uri": each})] = step

    @rule()
    def another_credential(self) -> None:
        self.cleared = self.tick()
        self.cache.clear()

    @rule(request=REQUESTS)
    def look(self, request: tuple[str, dict[str, Any]]) -> None:
        key = request[0], json.dumps(request[1])
        began, until, result = self.kept.get(key, (0, 0.0, None))
        valid = began > max(self.invalidated.get(key, 0), self.cleared) and self.clock.now < until
        hit = self.cache.fresh(*request)
        assert (hit is not None) == valid
        if hit is not None:
            assert hit.result is result
            assert hit.freshness.until == until


CacheMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestCacheAgainstAModel = CacheMachine.TestCase
