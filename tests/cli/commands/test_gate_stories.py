"""A gate as a process of its own, between an agent, a small server and screens that come and go."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.agents import listen_for_agents
from mcphost.config import Config
from mcphost.config.state import StateStore
from mcphost.host.agents.session import AgentCallState, AgentSession
from mcphost.host.consent.questions import Answer, FormQuestion, Question, SamplingQuestion, ToolCallQuestion
from mcphost.host.dependencies import Dependencies
from mcphost.host.host import Host
from mcphost.host.sampling.request import SamplingReply
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.places import socket_path
from tests.conftest import Until
from tests.host.agents.person import Person
from tests.serving.agent_twins import CLAUDE_CODE, CODEX, AgentTwin
from tests.serving.gate_rig import META

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")]

SERVERS = Path(__file__).parents[2] / "servers"
FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
YES = Answer(True)


class GateProcess:
    """A gate, with the agent's end of its streams."""

    def __init__(self, process: asyncio.subprocess.Process, twin: AgentTwin, *, modern: bool) -> None:
        self.process, self._twin, self._modern = process, twin, modern
        self._answers: dict[object, dict[str, Any]] = {}

    def send(self, method: str, id: object = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if self._modern:
            envelope = {"protocolVersion": "2026-07-28", "clientInfo": self._twin.client}
            meta = {**envelope, "clientCapabilities": self._twin.capabilities}
            params["_meta"] = {f"{META}{name}": value for name, value in meta.items()} | params.get("_meta", {})
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message if id is None else {**message, "id": id}).encode() + b"\n")

    async def answer(self, id: object) -> dict[str, Any]:
        """Wait for the answer to this request."""
        assert self.process.stdout is not None
        while id not in self._answers:
            line = await self.process.stdout.readline()
            assert line, "the gate has ended"
            message = json.loads(line)
            if "method" not in message:
                assert message["id"] not in self._answers, "answered twice"
                self._answers[message["id"]] = message
        return self._answers[id]

    async def text(self, id: object) -> str:
        return str((await self.answer(id))["result"]["content"][0]["text"])

    async def open(self) -> None:
        if self._modern:
            self.send("server/discover", "server-discover-probe-1")
            await self.answer("server-discover-probe-1")
        else:
            opening = {"protocolVersion": self._twin.revision, "capabilities": self._twin.capabilities}
            self.send("initialize", 0, **opening, clientInfo=self._twin.client)
            await self.answer(0)
            self.send("notifications/initialized")
        self.send("tools/list", 1)
        await self.answer(1)

    def call(self, id: int, tool: str = "echo", *, again: Mapping[str, Any] = {}, **arguments: Any) -> None:
        meta = {**self._twin.call_meta, "progressToken": id}
        self.send("tools/call", id, name=tool, arguments=arguments, _meta=meta, **again)

    def cancel(self, id: int) -> None:
        self.send("notifications/cancelled", requestId=id)

    async def is_answered(self, id: object) -> bool:
        """True if the answer comes before that to a ping."""
        self.send("ping", f"after {id}")
        await self.answer(f"after {id}")
        return id in self._answers

    async def end(self) -> int:
        """Close its input, and wait until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.ended()

    async def ended(self) -> int:
        assert self.process.stdout is not None
        await self.process.stdout.read()
        return await self.process.wait()


class Screen:
    """The part of a running screen that agents meet."""

    def __init__(self, host: Host, person: Person) -> None:
        self.host, self.person = host, person

    @property
    def session(self) -> AgentSession:
        (session,) = self.host.agents.sessions
        return session

    @property
    def asked(self) -> list[Mapping[str, Any]]:
        """The arguments of the calls that wait."""
        return [question.arguments for question, _ in self.person.open if isinstance(question, ToolCallQuestion)]

    @property
    def question(self) -> Question:
        return self.person.open[0][0]


class Place:
    """A user's folders, with what was written down in them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.record = folder, folder / "state", folder / "record"
        self.env = {
            **os.environ,
            "HOME": str(folder),
            "MCPHOST_CONFIG": str(folder / "config.toml"),
            "MCPHOST_STATE_DIR": str(self.state),
            "MCPHOST_KEYCHAIN": "off",
        }
        self.state.mkdir()
        (folder / "config.toml").touch()

    @property
    def socket(self) -> Path:
        return socket_path(self.env)

    @property
    def decisions(self) -> list[tuple[str, bool]]:
        """The audited decisions: who decided, and what."""
        return [(each["by"], each["allowed"]) for each in self._audit if each["event"] == "decision"]

    @property
    def outcomes(self) -> list[str]:
        return [each["outcome"] for each in self._audit if each["event"] == "outcome"]

    @property
    def _audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.state / "audit.jsonl").read_text().splitlines()]

    @property
    def ran(self) -> list[Mapping[str, Any]]:
        """The arguments of the calls that the server got."""
        messages = [json.loads(line) for line in self.record.read_text().splitlines() if line.startswith("{")]
        return [each["params"]["arguments"] for each in messages if each.get("method") == "tools/call"]

    def command(self, script: str, *arguments: str) -> list[str]:
        return [sys.executable, "-S", "-E", str(SERVERS / script), *arguments, "--record", str(self.record)]

    def is_reachable(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.connect(str(self.socket))
            return True
        return False

    @asynccontextmanager
    async def screen(self, **config: Any) -> AsyncIterator[Screen]:
        """Run a screen, which may have to wait until another has ended."""

        async def no_transport(config: Config, name: str) -> Any:
            raise AssertionError

        person, alarms = Person(), list[str]()
        store, audit = StateStore(self.state, alarms.append), self.state / "audit.jsonl"
        parts = Dependencies(no_transport, person, "1", store=store, audit_path=audit, answers=SCREEN_KINDS)
        async with Host(Config.model_validate(config), parts) as host:
            listening = asyncio.create_task(listen_for_agents(host, self.socket, self.state))
            try:
                yield Screen(host, person)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        assert alarms == []

    @asynccontextmanager
    async def gate(
        self, *options: str, server: list[str] | None = None, twin: AgentTwin = CODEX, modern: bool = False
    ) -> AsyncIterator[GateProcess]:
        """Run a gate whose agent has opened a session."""
        words = ["gate", "--name", "echo", "--as", twin.name, *options, "--", *(server or self.command("echo.py"))]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mcphost", *words, env=self.env, cwd=self.folder, stdin=pipe, stdout=pipe
        )
        gate = GateProcess(process, twin, modern=modern)
        try:
            await gate.open()
            yield gate
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await gate.ended()


@pytest.fixture
def place() -> Iterator[Place]:
    folder = tempfile.mkdtemp()  # a socket's path must be short
    yield Place(Path(folder))
    shutil.rmtree(folder)


async def test_screens_come_and_go_while_an_agent_works(place: Place, until: Until) -> None:
    async with AsyncExitStack() as first_screen, place.gate() as gate:
        gate.call(2, text="two")
        assert "mcphost allow --agent codex echo:echo" in await gate.text(2)
        first = await first_screen.enter_async_context(place.screen())
        await until(place.is_reachable)
        async with place.screen() as second:
            gate.call(3, text="three")
            await until(lambda: first.asked)
            assert (first.session.agent.label, first.session.agent.claimed) == ("codex", "codex-mcp-client")
            first.person.answer(YES)
            assert await gate.text(3) == "three"
            gate.call(4, text="four")
            await until(lambda: first.asked)
            await first_screen.aclose()
            assert "mcphost allow" in await gate.text(4)
            await until(place.is_reachable)
            gate.call(5, text="five")
            await until(lambda: second.asked)
            assert (second.asked, len(second.person.seen)) == ([{"text": "five"}], 1)
            second.host.agents.disconnect(second.session.number)
            await gate.ended()
            await until(lambda: not second.host.agents.sessions)
    assert place.ran == [{"text": "three"}]
    assert place.decisions == [("policy", False), ("user", True), ("policy", False)]


async def test_calls_that_an_agent_gives_up_never_reach_its_server(place: Place, until: Until) -> None:
    async with place.screen() as screen, place.gate(twin=CLAUDE_CODE) as gate:
        gate.call(2, text="two")
        await until(lambda: screen.asked)
        gate.cancel(2)
        gate.cancel(2)
        await until(lambda: not screen.asked)
        assert not await gate.is_answered(2)
        gate.call(3, text="three")
        gate.call(4, text="four")
        await until(lambda: len(screen.asked) == 2)
        screen.host.agents.decline_all(screen.session.number)
        gate.call(5, text="five")
        for number in (3, 4, 5):
            assert "declines everything" in await gate.text(number)
        screen.host.agents.decline_all(screen.session.number, on=False)
        gate.call(6, text="six")
        await until(lambda: screen.asked)
        assert await gate.end() == 0
        await until(lambda: not screen.asked and not screen.host.agents.sessions)
    assert place.ran == []
    assert place.decisions == [("policy", False)] * 3
    assert place.outcomes == ["withdrawn"] * 2


async def test_a_late_yes_is_for_one_repeat_of_exactly_that_call(place: Place, until: Until) -> None:
    async with place.screen() as screen, place.gate("--answer-within", "0.3") as gate:
        gate.call(2, text="two")
        assert "Call again with the same arguments" in await gate.text(2)
        await until(lambda: screen.asked)
        screen.person.answer(YES)
        await until(lambda: screen.session.calls[1].state is AgentCallState.ALLOWED)
        gate.call(3, text="another")
        await until(lambda: len(screen.person.seen) == 2)
        gate.call(4, text="two")
        assert await gate.text(4) == "two"
        gate.call(5, text="two")
        await until(lambda: len(screen.person.seen) == 3)
    assert place.ran == [{"text": "two"}]
    assert place.decisions == [("user", True)]


async def test_a_modern_server_gets_its_input_from_the_agent(place: Place, until: Until) -> None:
    asks = json.dumps([{"method": "elicitation/create", "params": {"mode": "form", **FORM}}])
    server = place.command("questions.py", "--era", "modern", "--ask", asks)
    async with place.screen() as screen, place.gate(server=server, twin=CLAUDE_CODE, modern=True) as gate:
        gate.call(2, "ask", x=1)
        await until(lambda: screen.asked)
        assert screen.session.revision == "2026-07-28"
        screen.person.answer(YES)
        needed = (await gate.answer(2))["result"]
        assert (needed["resultType"], [*needed["inputRequests"]]) == ("input_required", ["answer"])
        again = {"inputResponses": {"answer": {"action": "cancel"}}, "requestState": needed["requestState"]}
        gate.call(3, "ask", again=again, x=1)
        assert json.loads(await gate.text(3)) == [{"result": {"action": "cancel"}}]
    assert (place.ran, place.decisions, place.outcomes) == ([{"x": 1}] * 2, [("user", True)], ["done"])


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_the_user_answers_what_the_server_asks(place: Place, era: str, until: Until) -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": "Hello"}}]
    asks = [
        {"method": "elicitation/create", "params": {"mode": "form", **FORM}},
        {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}},
        {"method": "roots/list", "params": {}},
    ]
    command, *words = server = place.command("questions.py", "--era", era, "--ask", json.dumps(asks))
    entry = {"command": command, "args": words, "roots": [str(place.folder)], "start": "manual"}
    modern = era == "modern"
    gate_runs = place.gate("--questions", "here", server=server, twin=CLAUDE_CODE, modern=modern)
    async with place.screen(servers={"echo": entry}) as screen, gate_runs as gate:
        gate.call(2, "ask")
        await until(lambda: screen.asked)
        screen.person.answer(YES)
        await until(lambda: screen.person.open and isinstance(screen.question, FormQuestion))
        assert isinstance(screen.question, FormQuestion)
        assert screen.question.call == 1
        screen.person.answer(Answer(True, content={"name": "x"}))
        await until(lambda: screen.person.open and isinstance(screen.question, SamplingQuestion))
        screen.person.answer(Answer(True, content=SamplingReply.of("Hi")))
        form, sampling, roots = json.loads(await gate.text(2))
        assert form["result"] == {"action": "accept", "content": {"name": "x"}}
        assert sampling["result"]["content"]["text"] == "Hi"
        assert [each["uri"] for each in roots["result"]["roots"]] == [place.folder.as_uri()]
