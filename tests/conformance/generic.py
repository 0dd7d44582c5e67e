"""Any scenario of the conformance suite, known or not: a whole host that uses all the server offers, and says yes.

It signs in where that is wanted, by a browser that is one GET, and lists everything. It calls each tool with arguments
made from its schema and the scenario's context, gets each prompt, reads each resource, and loads each skill with its
files. What fails is said, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from mcphost.auth.ports import SignInConsent
from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import Answer, Question, SignInQuestion
from mcphost.host.events import Event, Logged, SignInChanged
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS, WRITING
from mcphost.host.skills.service import LoadedSkill
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.models.tools import Tool
from tests.conformance.signing_in import NAME, identities, oauth_settings, say, variables

MODERN = "2026-07-28"
SIGN_INS = 3
"""The number of sign-ins to connect: the authorization server may change in between."""

LISTED_ALONE = ("sep-2640-client-no-prefetch",)
"""Scenarios whose skills are listed, and never loaded."""

DEPTH = 5
"""Levels of objects for which arguments are made."""


class Agreeing:
    """Accepts every question unchanged."""

    async def ask(self, question: Question) -> Answer:
        say(f"asked: {question}")
        if isinstance(question, SignInQuestion):
            return Answer(allow=True, content=SignInConsent(question.plan.scopes))
        return Answer(allow=True)


class Visitor:
    """Follows what one server offers."""

    def __init__(self, url: str, context: Mapping[str, Any]) -> None:
        self._context = context
        wanted = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
        era = "modern" if wanted >= MODERN else "auto"
        server = {"url": url, "oauth": oauth_settings(context), "protocol": era, "roots": [os.getcwd()]}
        made = {
            "servers": {NAME: server},
            "identity": identities(context),
            "models": {"script": {"provider": "demo", "model": "demo-script"}},
            "policy": {"default": "allow"},
        }
        os.environ["MCPHOST_KEYCHAIN"] = "off"
        config = Config.model_validate(made, strict=False)
        answers = SCREEN_KINDS - {WRITING}
        self.host = Host(
            config, dependencies(Agreeing(), Values(variables(context)), open_url=self._visit, answers=answers)
        )

    async def _visit(self, url: str) -> str:
        """The browser: what it is sent back to is pasted, and a page to visit is done with at once."""
        import httpx

        say(f"browser: {url}")
        sign_ins = list(self.host.sign_ins.all.values())
        if not sign_ins:
            asyncio.get_running_loop().call_soon(self._go_on)
            return ""
        async with httpx.AsyncClient(trust_env=False) as browser:
            page = await browser.get(url)
        sign_ins[-1].paste(page.headers.get("location", ""))
        return ""

    def _go_on(self) -> None:
        for page in self.host.elicitation.all.values():
            page.go_on()

    async def follow(self) -> None:
        """Raises McphostError if the server cannot be connected to."""
        async with self.host as host:
            host.bus.observe(self.tell)
            await host.servers.ready([NAME])
            for _ in range(SIGN_INS):
                if host.servers[NAME].state is ServerState.NEEDS_SIGN_IN:
                    await host.sign_ins.begin(NAME).result()
                    await host.servers.ready([NAME])
            if not host.servers[NAME].ready:
                raise McphostError(f"{host.servers[NAME].state.value}: {host.servers[NAME].reason}")
            for kind in CatalogKind:
                await self._tried(f"list {kind.value}", host.resources.current(NAME, kind))
            if not host.servers[NAME].tools:  # the list itself may be what is refused
                await self._tried("list tools again", host.resources.relist(NAME, CatalogKind.TOOLS))
            await self._call_tools()
            for prompt in (each.prompt for each in host.catalog.prompts(NAME)):
                given = {argument.name: self._text(argument.name) for argument in prompt.arguments or ()}
                await self._tried(f"get {prompt.name}", host.resources.get_prompt(NAME, prompt.name, given))
            for resource in (each.resource for each in host.catalog.resources(NAME)):
                await self._tried(f"read {resource.uri}", host.resources.read(NAME, resource.uri))
            if os.environ.get("MCP_CONFORMANCE_SCENARIO") not in LISTED_ALONE:
                for skill in (each.skill for each in host.catalog.skills(NAME)):
                    await self._tried(f"load {skill.uri}", self._load(skill))

    async def _load(self, skill: Skill) -> LoadedSkill:
        loaded = await self.host.skills.load(NAME, skill.uri)
        for file in skill.files:
            if file.uri != skill.uri:
                await loaded.window.read(skill.path_of(file.uri), origin="model")
        return loaded

    async def _call_tools(self) -> None:
        calls: Sequence[Mapping[str, Any]] = self._context.get("toolCalls") or self._context.get("tool_calls") or ()
        tools = self.host.servers[NAME].tools
        if not calls:
            calls = [{"name": tool.name, "arguments": self._arguments(tool, tools)} for tool in tools]
        for call in calls:
            name, given = str(call.get("name")), call.get("arguments") or {}
            arguments = {key: value for key, value in given.items() if value is not None}
            await self._tried(f"call {name}", self.host.tool_calls.call(NAME, name, arguments).result())

    def _arguments(self, tool: Tool, tools: Sequence[Tool]) -> dict[str, Any]:
        schema = tool.input_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        made = {name: self._value(name, each, 0) for name, each in (properties or {}).items()}
        if "schema" in made:  # an echo of definitions wants one back as it came
            others = (each.definition()["inputSchema"] for each in tools if each is not tool)
            made["schema"] = next(others, made["schema"])
        return made

    def _value(self, name: str, schema: Any, depth: int) -> Any:
        """A value that the schema takes, as far as its simple keywords tell."""
        if name in self._context:
            return self._context[name]
        if not isinstance(schema, dict) or depth > DEPTH:
            return self._text(name)
        for keyword in ("const", "default", "enum", "examples", "anyOf", "oneOf", "allOf"):
            found = schema.get(keyword)
            if keyword in ("const", "default") and keyword in schema:
                return found
            if isinstance(found, list) and found:
                return self._value(name, found[0], depth + 1) if keyword.endswith("Of") else found[0]
        return self._of_type(name, schema, depth)

    def _of_type(self, name: str, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object":
            inner = schema.get("properties") or {}
            return {key: self._value(key, each, depth + 1) for key, each in inner.items()}
        if kind == "array":
            return [self._value(name, schema.get("items"), depth + 1)] * max(1, int(schema.get("minItems", 1)))
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        simple: Mapping[Any, Any] = {"boolean": True, "null": None}
        return simple.get(kind, self._text(name))

    def _text(self, name: str) -> str:
        given = self._context.get(name)
        return given if isinstance(given, str) else "test"

    def tell(self, event: Event) -> None:
        if isinstance(event, SignInChanged):
            sign_in = self.host.sign_ins.all[event.sign_in]
            say(f"sign-in {event.sign_in}: {sign_in.state.value} {sign_in.steps[-1] if sign_in.steps else ''}")
        elif isinstance(event, Logged):
            say(f"log: {next(reversed(list(self.host.logs.of_server(NAME)))).text}")

    @staticmethod
    async def _tried(what: str, work: Awaitable[Any]) -> None:
        try:
            say(f"{what}: {await work}")
        except McphostError as error:
            say(f"{what}: {type(error).__name__}: {error}")


def run(url: str, context: Mapping[str, Any], seconds: float) -> None:
    """Follow the scenario. Raises McphostError, TimeoutError."""

    async def walk() -> None:
        async with asyncio.timeout(seconds):
            await Visitor(url, context).follow()

    asyncio.run(walk())


if __name__ == "__main__":
    sys.exit("run tests/conformance/client.py")
