"""The decisions of a gate's process, with a scripted gate and a scripted connection to the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.gate_decisions import GateDecisions, LocalConsent
from mcphost.config import Config
from mcphost.config.gated import GatedProgram
from mcphost.config.policy import Policy
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedServer
from mcphost.serving import link
from mcphost.serving.gate import Ask, AskInbox, Finished, GateAction, GateOptions, Overdue, Sent, Withdraw
from mcphost.serving.gate_pump import GatePump, answers_of
from mcphost.serving.ports import GatedCall, GateDecision
from tests.conftest import Until

ECHO = {"name": "echo", "inputSchema": {"type": "object"}}


class ScriptedGate:
    def __init__(self) -> None:
        self.decisions: dict[int, GateDecision] = {}
        self.replies: dict[int, object] = {}

    def decide(self, call: int, decision: GateDecision) -> None:
        assert call not in self.decisions
        self.decisions[call] = decision

    def reply(self, number: int, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None) -> None:
        assert number not in self.replies
        self.replies[number] = result or error


class ScriptedConnection:
    """A connection to a screen, while one runs."""

    def __init__(self) -> None:
        self.received: Callable[[bytes], None] = lambda line: None
        self.lost: Callable[[], None] = lambda: None
        self.runs = True
        self.heard: list[link.FromGate] = []

    def say(self, line: bytes) -> bool:
        if self.runs:
            self.heard.append(link.read_from_gate(line))
        return self.runs

    @property
    def connected(self) -> bool:
        return self.runs

    def connect(self) -> bool:
        return self.runs

    def kinds(self) -> list[str]:
        return [each.type for each in self.heard]


def asking(number: int, tool: str = "echo") -> Ask:
    return Ask(GatedCall(number, f"id-{number}", tool, {**ECHO, "name": tool}, {"n": number}, 50.0, False))


class Process:
    """The part of a gate's process that decides."""

    def __init__(self, state: Path, config: Config | None = None, socket: str = "") -> None:
        self.gate, self.screen, self.notes = ScriptedGate(), ScriptedConnection(), list[str]()
        self.actions: asyncio.Queue[GateAction | None] = asyncio.Queue()
        self.disconnected = 0
        self._audit = state / "audit.jsonl"
        settings, command = (config or Config(), list[Path]()), ["mcphost", "allow"]
        local = LocalConsent(lambda: settings, lambda: state, {}, command, str, self.notes.append)
        server = GatedServer("echo", GatedProgram(("echo",), folder="/w"))
        agent = AgentFacts("codex", given="codex")
        self.decisions = GateDecisions(self.gate, self.screen, state / socket, server, agent, local, self._disconnect)

    def _disconnect(self) -> None:
        self.disconnected += 1

    def take(self, *actions: GateAction | None) -> None:
        for each in actions:
            self.actions.put_nowait(each)

    def ask(self, number: int) -> None:
        self.take(asking(number))

    def hear(self, message: link.FromScreen) -> None:
        self.screen.received(message.line())

    def end_screen(self) -> None:
        self.screen.runs = False
        self.screen.lost()

    @property
    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._audit.read_text().splitlines()]


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    made = Process(tmp_path)
    running = asyncio.create_task(made.decisions.run(made.actions))
    yield made
    made.actions.put_nowait(None)
    await running
    assert made.notes == []


async def test_what_was_open_on_a_screen_is_decided_here(process: Process, until: Until) -> None:
    process.ask(1)
    process.ask(2)
    process.take(AskInbox(1, "elicitation/create", {}, 1), AskInbox(2, "sampling/createMessage", {}, None))
    await until(lambda: len(process.screen.heard) == 4)
    process.hear(link.CallDecided(call=1, allow=True, by="user"))
    await until(lambda: process.gate.decisions)
    process.end_screen()
    await until(lambda: len(process.gate.decisions) == 2)
    assert process.gate.decisions[1].allow
    assert "mcphost allow echo:echo" in process.gate.decisions[2].words
    assert process.gate.replies[1] == {"action": "cancel"}
    assert "does not run" in str(process.gate.replies[2])
    assert [(each["call"], each["allowed"]) for each in process.audit] == [(2, False)]


async def test_the_end_of_a_session_on_screen_decides_nothing(process: Process, until: Until) -> None:
    process.ask(1)
    process.take(AskInbox(1, "elicitation/create", {}, 1))
    await until(lambda: len(process.screen.heard) == 2)
    process.hear(link.EndSession())
    process.end_screen()
    await until(lambda: process.disconnected)
    process.ask(2)  # in order after all that went before
    await until(lambda: process.gate.decisions)
    assert ([*process.gate.decisions], process.gate.replies) == ([2], {})


async def test_a_question_that_is_decided_here_leaves_the_next_screen(process: Process, until: Until) -> None:
    process.ask(1)
    process.take(AskInbox(1, "elicitation/create", {}, 1))
    await until(lambda: len(process.screen.heard) == 2)
    process.screen.lost()  # another screen is there at once
    await until(lambda: process.gate.decisions)
    assert process.screen.kinds()[2:] == ["withdraw", "request_gone"]
    process.hear(link.CallDecided(call=1, allow=True, by="user"))  # too late
    process.ask(2)
    await until(lambda: len(process.screen.heard) == 5)
    assert [each.allow for each in process.gate.decisions.values()] == [False]


async def test_a_call_that_cannot_be_asked_about_is_declined(process: Process, until: Until) -> None:
    broken: Any = object()  # stands for an error of mcphost
    process.take(Ask(GatedCall(1, broken, "echo", ECHO, {}, 50.0, False)))
    process.ask(2)
    await until(lambda: process.screen.heard)
    assert [each.allow for each in process.gate.decisions.values()] == [False]
    assert process.screen.kinds() == ["ask"]


async def test_what_is_too_long_for_the_screen_is_declined_as_such(process: Process, until: Until) -> None:
    text = "x" * link.LINE_BYTES
    process.take(Ask(asking(1).call._replace(arguments={"text": text})))
    process.take(AskInbox(1, "sampling/createMessage", {"text": text}, None))
    await until(lambda: process.gate.decisions and process.gate.replies)
    assert "the call takes more than 1 MiB" in process.gate.decisions[1].words
    assert "mcphost allow echo:echo" in process.gate.decisions[1].words
    assert "the question takes more than 1 MiB" in str(process.gate.replies[1])
    assert process.screen.kinds() == []


async def test_a_screen_learns_of_its_own_calls_only(process: Process, until: Until) -> None:
    for number in (1, 2):
        process.ask(number)
    await until(lambda: len(process.screen.heard) == 2)
    for number in (1, 2):
        process.hear(link.CallDecided(call=number, allow=True, by="user"))
    process.take(Sent(1), Sent(2), Finished(1, "done", 1.0))
    await until(lambda: len(process.screen.heard) == 5)
    process.screen.lost()  # another screen is there at once
    process.screen.heard.clear()
    process.take(Overdue(2), Withdraw(2, "never mind"), Sent(2), Finished(2, "done", 2.0))
    process.ask(3)
    await until(lambda: process.screen.heard)
    assert process.screen.kinds() == ["ask"]
    assert [(each["call"], each["outcome"]) for each in process.audit] == [(2, "done")]


async def test_a_call_that_a_rule_allows_is_decided_in_the_pump(tmp_path: Path, until: Until) -> None:
    process = Process(tmp_path, Config(policy=Policy(allow=("codex>echo:echo",))), "none.sock")
    process.screen.runs = False
    at_once = process.decisions.handle_at_once
    assert not at_once(asking(1))  # the rules must be read first
    running = asyncio.create_task(process.decisions.run(process.actions))
    process.ask(1)
    await until(lambda: process.gate.decisions)
    pump: list[GateAction] = [asking(2), Sent(2), Finished(2, "done", 1.0), asking(3, "other")]
    assert await asyncio.to_thread(lambda: [at_once(each) for each in pump]) == [True, True, True, False]
    assert [*process.gate.decisions] == [1, 2]
    assert [(each["event"], each["call"]) for each in process.audit] == [
        ("decision", 1),
        ("decision", 2),
        ("outcome", 2),
    ]
    process.screen.runs = True
    assert not at_once(asking(4))
    process.take(None)
    await running


def test_bytes_go_before_what_is_reported_of_them() -> None:
    done: list[object] = []

    class Decider:
        def take(self, action: GateAction) -> None:
            done.append(type(action))

    options = GateOptions("", None, "agent", answers_of("agent"))
    pump = GatePump(options, done.append, done.append, lambda *copy: None, done.append, Decider())
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}\n'
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    pump.from_agent(call, True)
    pump.decide(1, GateDecision(True))
    pump.from_server(answer, True)
    assert done == [Ask, call, Sent, answer, Finished]
