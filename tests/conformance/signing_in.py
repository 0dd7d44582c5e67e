"""The scenarios of the conformance suite in which the client signs in: a whole host, and a browser that is one GET.

Nothing listens for the browser: where it would be sent back to is pasted, as a person does over ssh.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import httpx

from mcphost.auth.ports import SignInConsent
from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import Answer, Question, SignInQuestion
from mcphost.host.events import Event, Logged, SignInChanged
from mcphost.host.host import Host

NAME = "conformance"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite knows."""


class Agreeing:
    """Agrees to each sign-in as it is planned."""

    async def ask(self, question: Question) -> Answer:
        if not isinstance(question, SignInQuestion):
            return Answer(allow=True)
        say(f"plan: {question.plan}")
        return Answer(allow=True, content=SignInConsent(question.plan.scopes))


class Walk:
    """Signs in where it is wanted, lists the tools and calls the first."""

    def __init__(self, url: str, context: Mapping[str, Any]) -> None:
        server = {"url": url, "oauth": oauth_settings(context)}
        config = Config.model_validate({"servers": {NAME: server}, "policy": {"default": "allow"}}, strict=False)
        os.environ["MCPHOST_KEYCHAIN"] = "off"
        self.host = Host(config, dependencies(Agreeing(), Values({}), open_url=self.visit))

    async def visit(self, url: str) -> str:
        """The browser: it goes to the page, and where it is sent back to is pasted."""
        async with httpx.AsyncClient(trust_env=False) as browser:
            page = await browser.get(url)
        say(f"browser: {url} -> {page.status_code} {page.headers.get('location', '')}")
        list(self.host.sign_ins.all.values())[-1].paste(page.headers.get("location", ""))
        return ""

    async def follow(self) -> None:
        async with self.host as host:
            host.bus.observe(self.tell)
            await host.servers.ready([NAME])
            if host.servers[NAME].state is ServerState.NEEDS_SIGN_IN:
                await host.sign_ins.begin(NAME).result()
                await host.servers.ready([NAME])
            if not host.servers[NAME].ready:
                raise McphostError(f"{host.servers[NAME].state.value}: {host.servers[NAME].reason}")
            if not host.servers[NAME].tools:  # the list itself may be what is refused
                await host.resources.relist(NAME, CatalogKind.TOOLS)
            for tool in host.servers[NAME].tools[:1]:
                call = host.tool_calls.call(NAME, tool.name, {})
                try:
                    say(f"result: {(await call.result()).raw}")
                except McphostError as error:
                    say(f"call: {error}")

    def tell(self, event: Event) -> None:
        if isinstance(event, SignInChanged):
            sign_in = self.host.sign_ins.all[event.sign_in]
            say(f"sign-in {event.sign_in}: {sign_in.state.value} {sign_in.steps[-1] if sign_in.steps else ''}")
        elif isinstance(event, Logged):
            say(f"log: {next(reversed(list(self.host.logs.of_server(NAME)))).text}")


def oauth_settings(context: Mapping[str, Any]) -> dict[str, Any]:
    if "private_key_pem" in context:
        return {
            "grant": "client_credentials",
            "client_id": context["client_id"],
            "private_key": context["private_key_pem"],
        }
    known = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    machine = "client-credentials" in os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    return {"client_metadata_url": DOCUMENT, **known, **({"grant": "client_credentials"} if machine else {})}


def say(text: str) -> None:
    print(text, file=sys.stderr)


def run(url: str, seconds: float) -> None:
    """Follow the scenario. Raises McphostError, TimeoutError."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")

    async def walk() -> None:
        async with asyncio.timeout(seconds):
            await Walk(url, context).follow()

    asyncio.run(walk())
