"""The cost of recording: the same calls of the same client with the traffic captured and without."""

from __future__ import annotations

import os

from mcphost.client.client import Client, Identity
from mcphost.host.traffic.book import TrafficBook
from mcphost.transports.base import MessageObserver, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.benchmarks.measure import Row, Sample, clocked, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.wire_works import ECHO_COMMAND, Counting, one_after_the_other


async def captured_calls(sizes: Sizes, runs: int) -> list[Row]:
    transport = StdioTransport(Command(ECHO_COMMAND[0], ECHO_COMMAND[1:]), TransportLimits(), os.environ)
    client, book = Client(transport, Counting(), Identity("0")), TrafficBook()
    captured = book.tap("echo")

    async def take(tap: MessageObserver | None) -> Sample:
        transport.observer = tap
        return await clocked(one_after_the_other(client.call_tool, sizes.calls), sizes.calls)

    try:
        await client.connect(30)
        name = "capture: echo call, traffic kept; beside it: not kept"
        row = await compare(name, lambda: take(captured), lambda: take(None), runs, 1.15)
    finally:
        await client.aclose()
    assert book.since(0)
    return [row]
