"""The scenarios of the conformance suite in which the server asks: a whole host, and a person who says yes to all."""

from __future__ import annotations

import asyncio
import sys

from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.errors import McphostError
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS

NAME = "conformance"


class Agreeing:
    """Says yes, and leaves every form as it is."""

    async def ask(self, question: Question) -> Answer:
        print(f"asked: {question}", file=sys.stderr)
        return Answer(allow=True)


async def follow(url: str) -> None:
    """Call every tool without arguments. Raises McphostError."""
    config = Config.model_validate({"servers": {NAME: {"url": url}}, "policy": {"default": "allow"}}, strict=False)
    async with Host(config, dependencies(Agreeing(), Values({}), answers=DIALOG_KINDS)) as host:
        await host.servers.ready([NAME])
        if not host.servers[NAME].ready:
            raise McphostError(host.servers[NAME].reason)
        for tool in host.servers[NAME].tools:
            result = await host.tool_calls.call(NAME, tool.name, {}).result()
            print(f"result: {result.raw}", file=sys.stderr)


def run(url: str, seconds: float) -> None:
    """Follow the scenario. Raises McphostError, TimeoutError."""

    async def walk() -> None:
        async with asyncio.timeout(seconds):
            await follow(url)

    asyncio.run(walk())
