"""One script, said to a server and said to mcphost in front of it, brings the same: in all four pairs of eras."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from mcphost.composition import dependencies
from mcphost.config import Values
from mcphost.config.models import ProfileConfig
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.endpoint.context import EndpointOptions
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.protocol.wire.jsonrpc import encode_value
from mcphost.serving.session import ServerSession
from tests.conftest import SERVERS
from tests.host.conftest import RecordingHost, ScriptedApprover, settings
from tests.whole.peers import everything, example, fastmcp, sdk, sdk_runs
from tests.whole.scripted_agent import LISTS, MODERN, Message, Outcome, ScriptedAgent

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]  # a first run installs

LEGACY = "2025-11-25"
LINE_BYTES = 1 << 24
READS = 8
"""Resources that are read of each server."""


def scripted(name: str, *options: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(SERVERS / name), *options]


FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
REQUESTS: list[Message] = [
    {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}},
    {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Where?"}}],
            "maxTokens": 20,
            "modelPreferences": {"hints": [{"name": "small"}]},
        },
    },
    {"method": "roots/list"},
]
"""The requests that a server makes during a call."""


class Case(NamedTuple):
    """A server, and the tools that are called there, each with arguments whose result is always the same."""

    command: Callable[[], list[str]]
    eras: tuple[str, ...]
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    left_out: frozenset[str] = frozenset()
    """Names of what mcphost reads from no list: what is there twice, or cannot be used."""
    asks_early: tuple[str, str] = ("", "\0")
    """The method that the server asks for once a session is open, in whatever request, and what it logs then."""


CASES: Mapping[str, Case] = {
    "demo": Case(
        lambda: [sys.executable, "-m", "mcphost.demo"],
        (LEGACY, MODERN),
        (
            ("ships_in_sight", {"kind": "brig"}),
            ("read_instruments", {}),
            ("climb_tower", {"seconds": 0.2}),
            ("sound_foghorn", {"blasts": "many"}),
            ("sound_foghorn", {"blasts": 2}),
            ("fetch_chart", {"how": "link"}),
            ("sign_guest_book", {}),
            ("look_at_charts", {}),
            ("write_verse", {"about": "gulls"}),
        ),
    ),
    "offers": Case(
        lambda: scripted("offers.py"),
        (LEGACY,),
        (
            ("echo", {"text": "\u202e<b>\x1b[31m\u00e9"}),
            ("add", {"a": 1, "b": 2}),
            ("progress", {"steps": 3, "interval": 0.01}),
            ("log", {"count": 3, "text": "said", "level": "warning", "logger": "l"}),
            ("fail", {"text": "broken"}),
            ("big", {"bytes": 300_000}),
            ("link", {}),
            ("maybe", {}),
        ),
        frozenset({"again", "broken"}),
    ),
    "asks": Case(lambda: scripted("asks.py"), (LEGACY,), (("ask", {"requests": REQUESTS}),)),
    "everything": Case(
        lambda: everything("stdio", 0),
        (LEGACY,),
        (
            ("echo", {"message": "hello"}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
            ("get-structured-content", {"location": "New York"}),
            ("get-sum", {"a": 1, "b": 2}),
            ("get-sum", {"a": "x"}),
            ("get-tiny-image", {}),
            ("trigger-long-running-operation", {"duration": 0.4, "steps": 4}),
            ("trigger-elicitation-request", {}),
            ("trigger-sampling-request", {"prompt": "p", "maxTokens": 10}),
        ),
        asks_early=("roots/list", "Roots updated"),
    ),
    "sdk": Case(
        lambda: sdk("stdio", 0),
        (LEGACY, MODERN),
        (
            ("weather", {"city": "Rome"}),
            ("count", {"steps": 3}),
            ("say", {"text": "hi"}),
            ("show", {}),
            ("fail", {}),
        ),
    ),
    "sdk-modern": Case(
        lambda: sdk_runs(SERVERS / "sdk_modern.py", "stdio", "0"),
        (MODERN,),
        (("plan_trip", {"days": 3}), ("wait_a_while", {}), ("locate", {"place": "Z\u00fcrich"})),
    ),
    "example": Case(
        lambda: example("2.3.0", "simple-pagination", "stdio", 0),
        (LEGACY, MODERN),
        (("tool_1", {}), ("tool_25", {})),
    ),
    "older-example": Case(
        lambda: example("1.30.0", "simple-pagination", "stdio", 0), (LEGACY,), (("tool_1", {}), ("tool_25", {}))
    ),
    "fastmcp": Case(
        lambda: fastmcp("stdio", 0),
        (LEGACY, MODERN),
        (
            ("weather", {"city": "Rome"}),
            ("weather", {}),
            ("count", {"steps": 3}),
            ("say", {"text": "hi"}),
            ("show", {}),
            ("fail", {}),
        ),
    ),
}
PAIRS = [(name, era) for name, case in CASES.items() for era in case.eras]


@asynccontextmanager
async def direct(command: list[str], revision: str) -> AsyncIterator[ScriptedAgent]:
    """An agent that started the server itself."""
    server = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, limit=LINE_BYTES,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    agent, output = ScriptedAgent(server.stdin.write, revision), server.stdout

    async def pump() -> None:
        async for line in output:
            agent.receive(line)

    pumping = asyncio.create_task(pump())
    try:
        await agent.open()
        yield agent
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await pumping
        await server.wait()


@asynccontextmanager
async def served(host: RecordingHost, revision: str, *servers: str) -> AsyncIterator[ScriptedAgent]:
    """An agent to which this host is the server of these entries, or of all."""
    facts = AgentFacts("scripted-agent", given="scripted-agent")
    options = EndpointOptions(facts, servers, profile="agent", alone=True)
    endpoint = host.endpoint.open(options)
    session = ServerSession(endpoint, lambda message, about: agent.receive(encode_value(message)))
    agent = ScriptedAgent(session.receive, revision)
    endpoint.attach(session)
    try:
        await agent.open()
        yield agent
    finally:
        session.close()
        endpoint.closed()


async def told(agent: ScriptedAgent, case: Case) -> Message:
    """All that the agent learns of a server, by what it asked for."""

    async def say(method: str, params: Message) -> Outcome:
        outcome = await agent.say(method, params)
        early, words = case.asks_early
        outcome.asked = [each for each in outcome.asked if each["method"] != early]
        outcome.logged = [each for each in outcome.logged if words not in str(each["data"])]
        return outcome

    found: Message = {"instructions": agent.introduction.get("instructions", "")}
    for member in LISTS:
        found[member] = [each for each in await agent.listed(member) if each["name"] not in case.left_out]
        for each in found[member]:
            each.pop("execution", None)  # only one revision has it
    for each in found["resources"][:READS]:
        found[f"read {each['uri']}"] = await say("resources/read", {"uri": each["uri"]})
    if found["resources"]:
        missing = await say("resources/read", {"uri": "nowhere:such"})
        code = missing.answer["error"].pop("code")  # each era has its own
        found["read nothing"] = missing, code in (-32002, -32602)
    for prompt in found["prompts"]:
        given = {argument["name"]: "1" for argument in prompt.get("arguments") or []}
        found[f"get {prompt['name']}"] = await say("prompts/get", {"name": prompt["name"], "arguments": given})
    for number, (tool, arguments) in enumerate(case.calls):
        found[f"{number} {tool}"] = await say("tools/call", {"name": tool, "arguments": dict(arguments)})
    return found


@asynccontextmanager
async def hosting(**entries: Mapping[str, Any]) -> AsyncIterator[RecordingHost]:
    """A host whose servers are ready."""
    config = settings(policy={"default": "allow"}, **entries)
    config = config.model_copy(update={"profiles": {"agent": ProfileConfig(roots="agent")}})
    made = dependencies(ScriptedApprover(), Values({}))
    async with RecordingHost(config, open_transport=made.open_transport, answers=SCREEN_KINDS) as host:
        await host.servers.ready()
        yield host


class Met(NamedTuple):
    case: Case
    era: str
    direct: Message
    host: RecordingHost


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
async def met(request: pytest.FixtureRequest) -> AsyncIterator[Met]:
    """The outcome of the script at the server itself, and a host that opened the same server."""
    name, era = request.param
    case = CASES[name]
    command = case.command()
    async with direct(command, era) as agent:
        found = await told(agent, case)
    entry = {"command": command[0], "args": command[1:], "startup_timeout_sec": 60}
    entry["protocol"] = "modern" if era == MODERN else "legacy"
    async with hosting(e=entry) as host:
        yield Met(case, era, found, host)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_an_agent_gets_the_same_through_mcphost(met: Met, revision: str) -> None:
    async with served(met.host, revision) as agent:
        found = await told(agent, met.case)
    assert list(found) == list(met.direct)
    wrong = {name: (found[name], met.direct[name]) for name in found if found[name] != met.direct[name]}
    assert not wrong


HOSTILE = (
    "escapes",
    "extra-members",
    "meta-everywhere",
    "wrong-structured",
    "answer-twice",
    "string-id",
    "cancels-ours",
    *(f"odd-content --kind {kind}" for kind in ("is-error-string", "items", "missing", "null", "object", "empty")),
)
"""Servers whose answers to calls a client can read; an agent gets what they are, however odd."""


async def test_odd_answers_of_servers_reach_agents_as_they_are() -> None:
    call, wanted = {"name": "act", "arguments": {}}, dict[str, Message]()
    commands = {mode.replace(" ", "_"): scripted("hostile.py", *mode.split()) for mode in HOSTILE}
    for name, command in commands.items():
        async with direct(command, LEGACY) as agent:
            wanted[name] = (await agent.say("tools/call", call)).answer
    entries = {name: {"command": words[0], "args": words[1:], "protocol": "legacy"} for name, words in commands.items()}
    async with hosting(**entries) as host:
        for revision in (LEGACY, MODERN):
            found = {}
            for name in commands:
                async with served(host, revision, name) as agent:
                    found[name] = (await agent.say("tools/call", call)).answer
            assert found == wanted
