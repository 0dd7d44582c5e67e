"""Lists and resources of modern servers, kept for as long as they say: over real servers."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.errors import ResourceMissing
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections import listings
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import MessageKind
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.host.conftest import SCRIPTS, HostOf, RecordingHost
from tests.whole.peers import sdk_runs

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
HOUR, NO_TIME = 3_600_000, 1
LISTS = "tools/list", "prompts/list", "resources/list", "resources/templates/list"
COUNT = "count://reads"
DEMO: dict[str, Any] = {"command": sys.executable, "args": ["-m", "mcphost.demo"]}


def serve(ttl: int) -> dict[str, Any]:
    """A server on the official SDK whose results are fresh for ``ttl`` milliseconds."""
    command, *args = sdk_runs(SCRIPTS / "sdk_ttl.py", str(ttl))
    return {"command": command, "args": args, "startup_timeout_sec": 60}


@pytest.fixture
def tapped(host: HostOf) -> HostOf:
    """`host(a=serve(HOUR))`, whose traffic is recorded."""
    book = TrafficBook()

    async def opened(config: Config, name: str) -> Transport:
        server = config.servers[name]
        assert server.command is not None
        command = Command(server.command, server.args, server.env)
        return StdioTransport(command, TransportLimits(exit_grace=0.15), os.environ, observer=book.tap(name))

    return partial(host, dependencies={"traffic": book, "open_transport": opened})


def requests(running: RecordingHost, method: str) -> int:
    messages = running.traffic.since(0)
    return sum(each.sent and each.kind is MessageKind.REQUEST and each.method == method for each in messages)


def hits(running: RecordingHost) -> list[str]:
    """The lines in the traffic that stand for a request that was not sent."""
    return [each.raw() for each in running.traffic.since(0) if each.kind is MessageKind.CACHE]


async def read(running: RecordingHost, *, again: bool = False) -> str | None:
    (contents,) = (await running.resources.read("a", COUNT, again=again)).contents
    return contents.text  # type: ignore[union-attr]


@pytest.mark.requirement("CACHE-01", "CACHE-02")
async def test_a_fresh_resource_is_read_once_and_the_traffic_says_so(tapped: HostOf) -> None:
    async with tapped(a=serve(HOUR)) as running:
        await running.servers.ready()
        assert await read(running) == "1"
        assert await read(running) == "1"
        assert requests(running, "resources/read") == 1
        (line,) = hits(running)
        assert line.startswith(f"resources/read {COUNT} from the cache, ")
        assert line.endswith(" left")
        assert await read(running, again=True) == "2"
        assert await read(running) == "2"


@pytest.mark.requirement("CACHE-06")
async def test_an_expired_list_is_listed_again_when_it_is_used(
    tapped: HostOf, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr(listings, "LEAST_FRESH", 0.0)
    async with tapped(a=serve(NO_TIME), policy=ALLOW) as running:
        await running.servers.ready()
        tools = running.servers["a"].listings.tools
        await until(lambda: tools.expired)
        await asyncio.sleep(0)
        assert requests(running, "tools/list") == 1
        await running.run("a", "where")
        assert requests(running, "tools/list") > 1
        before = requests(running, "tools/list")
        await until(lambda: tools.expired)
        await running.servers.refresh_lists()
        assert requests(running, "tools/list") == before + 1


async def test_a_fresh_list_serves_every_use(tapped: HostOf) -> None:
    async with tapped(a=serve(HOUR), policy=ALLOW) as running:
        await running.servers.ready()
        for _ in range(3):
            await running.run("a", "where")
            await running.resources.current("a", CatalogKind.TOOLS)
        await running.servers.refresh_lists()
        assert requests(running, "tools/list") == 1
        await running.resources.relist("a", CatalogKind.TOOLS)
        assert requests(running, "tools/list") == 2


async def test_everything_can_be_listed_again_from_the_server(tapped: HostOf) -> None:
    async with tapped(a=serve(HOUR)) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        await connection.relist_all()
        before = [requests(running, method) for method in LISTS]
        for kind in CatalogKind:
            await connection.current(kind)
        assert [requests(running, method) for method in LISTS] == before
        await connection.relist_all()
        assert [requests(running, method) for method in LISTS] == [count + 1 for count in before]


async def test_a_list_without_a_lifetime_serves_the_uses_of_one_call(tapped: HostOf) -> None:
    async with tapped(a=serve(0), policy=ALLOW) as running:
        await running.servers.ready()
        await running.run("a", "where")
        assert requests(running, "tools/list") == 1


@pytest.mark.requirement("CACHE-03", "TOOLS-31")
async def test_a_sign_in_has_everything_fetched_again(tapped: HostOf, until: Until) -> None:
    async with tapped(a=serve(HOUR)) as running:
        await running.servers.ready()
        await read(running)
        await running.resources.current("a", CatalogKind.PROMPTS)
        running.servers["a"].signed_in()
        await until(lambda: requests(running, "tools/list") == requests(running, "prompts/list") == 2)
        assert await read(running) == "2"


async def test_lists_and_resources_of_the_demo_server_are_kept(tapped: HostOf) -> None:
    async with tapped(a=DEMO) as running:
        await running.servers.ready()
        for kind in CatalogKind:
            await running.resources.current("a", kind)
        first = "lighthouse://handbook"
        for uri in (first, "lighthouse://logbook"):  # the logbook changes with each entry
            await running.resources.read("a", uri)
            await running.resources.read("a", uri)
        assert [line.split()[1] for line in hits(running)] == [first]
        running.servers["a"].listings.mark_stale("tools")
        await running.resources.current("a", CatalogKind.TOOLS)
        assert hits(running)[1].startswith("tools/list from the cache, ")
        with pytest.raises(ResourceMissing):
            await running.resources.read("a", f"{first}-that-is-missing")
