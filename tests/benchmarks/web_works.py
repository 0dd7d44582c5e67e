"""`Client` over Streamable HTTP against bare httpx, httpx-sse and json posting the same bodies to the same server."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import httpx_sse

from mcphost.client.client import Client, Identity
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from tests.benchmarks import web_server
from tests.benchmarks.measure import Row, Sample, clocked, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.wire_works import CallTool, Counting, one_after_the_other, side_by_side

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


class BareWeb:
    """The alternative: one POST a call, the answer looked for, everything else counted. It checks nothing."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self.notified = 0
        self._client, self._url, self._ids = client, url, count(1)

    async def call_by_json(self, name: str, arguments: dict[str, Any]) -> Any:
        _, body = self._request(name, arguments)
        response = await self._client.post(self._url, content=body, headers=HEADERS)
        return json.loads(response.content)["result"]

    async def call_by_events(self, name: str, arguments: dict[str, Any]) -> Any:
        number, body = self._request(name, arguments)
        async with httpx_sse.aconnect_sse(self._client, "POST", self._url, content=body, headers=HEADERS) as source:
            async for event in source.aiter_sse():
                message = json.loads(event.data)
                if message.get("id") == number:
                    return message["result"]
                self.notified += 1
        raise RuntimeError("the stream ended before the answer")

    def _request(self, name: str, arguments: dict[str, Any]) -> tuple[int, bytes]:
        number = next(self._ids)
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": number}}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return number, json.dumps(request).encode()


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """A server of its own process, at this URL."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-E", web_server.__file__, stdout=PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def opened(path: str) -> AsyncIterator[tuple[Client, BareWeb, Counting]]:
    """A client and bare httpx, both at one server that answers as ``path`` says."""
    async with served() as server, httpx.AsyncClient() as bare:
        counting = Counting()
        client = Client(HttpTransport(f"{server}{path}", TransportLimits()), counting, Identity("0"))
        try:
            await client.connect(30)
            yield client, BareWeb(bare, f"{server}{path}"), counting
        finally:
            await client.aclose()


async def web_calls(sizes: Sizes, runs: int) -> list[Row]:
    total = sizes.web_calls

    async def take(call: CallTool) -> Sample:
        return await clocked(one_after_the_other(call, total), total)

    async with opened("/json") as (client, bare, _):
        ours, theirs = lambda: take(client.call_tool), lambda: take(bare.call_by_json)
        by_json = await compare("HTTP call answered by JSON, one at a time", ours, theirs, runs, 0.8)
    async with opened("/sse") as (client, bare, _):
        ours, theirs = lambda: take(client.call_tool), lambda: take(bare.call_by_events)
        by_events = await compare("HTTP call answered by an event, one at a time", ours, theirs, runs, 0.8)
    return [by_json, by_events]


async def web_calls_in_flight(sizes: Sizes, runs: int) -> list[Row]:
    width = sizes.web_flights
    total = sizes.web_calls // width * width
    name = f"HTTP call, {width} in flight; beside it: "

    async def take(call: CallTool, at_once: int) -> Sample:
        return await clocked(side_by_side(call, total, at_once), total)

    async with opened("/json") as (client, bare, _):
        ours, single = lambda: take(client.call_tool, width), lambda: take(client.call_tool, 1)
        against_single = await compare(f"{name}one at a time", ours, single, runs, 0.8)
        theirs = lambda: take(bare.call_by_json, width)  # noqa: E731 - as the others
        return [against_single, await compare(f"{name}bare httpx", ours, theirs, runs)]


async def web_events(sizes: Sizes, runs: int) -> list[Row]:
    events = sizes.web_logs

    async def take(call: CallTool, counter: Counting | BareWeb) -> Sample:
        before = counter.notified
        sample = await clocked(call("log", {"count": events}), events)
        assert counter.notified == before + events
        return sample

    async with opened("/sse") as (client, bare, counting):
        ours, theirs = lambda: take(client.call_tool, counting), lambda: take(bare.call_by_events, bare)
        row = await compare(f"log message in an HTTP answer, of {events:,}", ours, theirs, runs, 1.0)
    return [row]
