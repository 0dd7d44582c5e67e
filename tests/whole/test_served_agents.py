"""Real agents have mcphost as their server: it decides their calls, answers for them, and shares servers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.host.consent.questions import Answer, FormQuestion
from mcphost.host.traffic.message import TrafficMessage
from tests.conftest import Until
from tests.whole.agent_screen import Person, Stage, screen
from tests.whole.agents import AGENTS, FOLDER, SECONDS, SERVER, VARIABLE, entry, played, serve, signal_agent
from tests.whole.scripted_model import AGAIN, PlannedCall

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} names no folder with agents; see tests/README.md"),
    pytest.mark.parametrize("agent", AGENTS),
]

YES = Answer(allow=True)
ECHO, GROWN, ASK = PlannedCall("echo", {"text": "hello"}), PlannedCall("grown", {}), PlannedCall("ask", {})
COUNT, SLEEP = PlannedCall("count", {}), PlannedCall("sleep", {"seconds": SECONDS})
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "May I?", "requestedSchema": OK}}
FILLED_IN = {"action": "accept", "content": {"ok": True}}
EITHER_ERA = pytest.mark.parametrize("era", ["legacy", "modern"])


def echo(era: str, script: str = "echo.py", *options: str) -> tuple[str, ...]:
    return (script, *(["--modern"] if era == "modern" else []), *options)


def asks(era: str) -> tuple[str, ...]:
    return "questions.py", "--era", "modern" if era == "modern" else "handshake", "--ask", json.dumps([FORM])


class ServedStage(Stage):
    """A turn of an agent that mcphost serves."""

    def exchanged(self, method: str, *, sent: bool) -> list[TrafficMessage]:
        """The agent's messages of this method; ``sent``: those that it wrote."""
        found = self.host.traffic.since(0)
        return [each for each in found if each.agent and each.sent is sent and each.facts.method == method]

    async def allow_and_fill_in(self) -> None:
        """Allow the call, and fill in the form that the server asks for."""
        await self.asked()
        self.person.answer(YES)
        await self.until(lambda: self.person.open and isinstance(self.person.open[0], FormQuestion), SECONDS)
        self.person.answer(Answer(allow=True, content={"ok": True}))
        await self.done()


StageOf = Callable[..., AbstractAsyncContextManager[ServedStage]]


@pytest.fixture
def stage(agent: str, tmp_path: Path, until: Until) -> StageOf:
    @asynccontextmanager
    async def open_stage(
        *plan: PlannedCall,
        server: tuple[str, ...] = ("echo.py",),
        options: tuple[str, ...] = (),
        config: Mapping[str, Any] = {},
    ) -> AsyncIterator[ServedStage]:
        whole = Config.model_validate({"servers": {SERVER: entry(tmp_path, server)}, **config}, strict=False)
        async with AsyncExitStack() as stack:
            person = Person()
            host = await stack.enter_async_context(screen(tmp_path, person, whole))
            command = serve(agent, tmp_path, options)
            run = await stack.enter_async_context(played(agent, tmp_path, command, *plan))
            try:
                yield ServedStage(run, host, person, until)
            finally:
                (tmp_path / "traffic.jsonl").write_bytes(host.traffic.export(host.traffic.since(0)))

    return open_stage


@EITHER_ERA
async def test_an_allowed_call_runs(stage: StageOf, era: str) -> None:
    async with stage(ECHO, server=echo(era)) as here:
        question = await here.asked()
        assert (question.server, question.tool.name, question.arguments) == (SERVER, "echo", {"text": "hello"})
        here.person.answer(YES)
        await here.done()
        assert [call["arguments"] for call in here.turn.calls] == [{"text": "hello"}]
        assert ("server/discover" in here.turn.methods, "initialize" in here.turn.methods) == (True, era == "legacy")
        assert "hello" in here.model.results[0]
        assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


async def test_a_declined_call_does_not_run(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        here.person.answer(Answer(allow=False, reason="not today"))
        await here.done()
        assert not {"tools/call", "notifications/cancelled"} & {*here.turn.methods}
        assert "the user declined this call of echo in mcphost: not today" in here.model.results[0]
        assert here.turn.decisions == [False]


async def test_the_model_learns_of_changed_arguments(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        here.person.answer(Answer(allow=True, arguments={"text": "edited"}))
        await here.done()
        assert [call["arguments"] for call in here.turn.calls] == [{"text": "edited"}]
        assert "The user changed the arguments of this call" in here.model.results[0]
        assert "edited" in here.model.results[0]


@EITHER_ERA
async def test_a_question_of_the_server_is_answered_here(stage: StageOf, era: str) -> None:
    async with stage(ASK, server=asks(era), options=("--questions", "here")) as here:
        await here.allow_and_fill_in()
        assert len(here.model.results) == 1
        if era == "modern":
            assert here.turn.calls[-1]["inputResponses"] == {"answer": FILLED_IN}
        else:
            assert [each["result"] for each in here.turn.received if "method" not in each] == [FILLED_IN]


@EITHER_ERA
async def test_an_agent_without_a_person_refuses_the_question(agent: str, stage: StageOf, era: str) -> None:
    if era == "modern" and not AGENTS[agent].elicits:
        pytest.skip("a shared server asks mcphost instead")
    async with stage(ASK, server=asks(era)) as here:
        await here.asked()
        here.person.answer(YES)
        await here.done()
        assert here.person.asked == 1
        assert here.model.results
        assert "accept" not in here.model.results[0]


async def test_a_shared_server_asks_here_if_the_agent_takes_no_questions(agent: str, stage: StageOf) -> None:
    if AGENTS[agent].elicits:
        pytest.skip("it takes the question itself")
    async with stage(ASK, server=asks("modern")) as here:
        await here.allow_and_fill_in()
        assert here.turn.calls[-1]["inputResponses"] == {"answer": FILLED_IN}


async def test_an_agent_hears_that_the_user_decides(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        await asyncio.sleep(45)  # the limit of another program cannot be moved
        await here.asked()
        here.person.answer(YES)
        await here.done()
        (result,) = here.model.results
        assert "hello" in result
        assert len(here.turn.calls) == here.person.asked == 1
        assert len(here.exchanged("notifications/progress", sent=False)) == 4


async def test_a_repeated_call_joins_the_open_question(stage: StageOf) -> None:
    async with stage(ECHO, config={"serve": {"answer_within": 3}}) as here:
        await here.asked()
        await here.until(lambda: here.model.results, SECONDS)
        here.person.answer(YES)
        await here.done()
        *early, last = here.model.results
        assert all(AGAIN in each for each in early)
        assert "hello" in last
        assert len(here.turn.calls) == here.person.asked == 1


async def test_an_interrupted_agent_takes_its_question_back(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        signal_agent(here.session, signal.SIGINT)
        await here.withdrawn()
        await here.done()
        assert here.turn.calls == []


@EITHER_ERA
async def test_an_interrupted_agent_cancels_its_call(stage: StageOf, era: str) -> None:
    async with stage(SLEEP, server=echo(era)) as here:
        await here.asked()
        here.person.answer(YES)
        await here.until(lambda: here.turn.calls, SECONDS)
        signal_agent(here.session, signal.SIGINT)
        await here.until(lambda: {"notifications/cancelled"} & {*here.turn.methods}, SECONDS)
        await here.done()


async def test_a_list_that_changes_while_a_call_waits(agent: str, stage: StageOf) -> None:
    async with stage(ECHO, GROWN, server=("echo.py", "--grows")) as here:
        await here.asked()
        listed = len(here.exchanged("tools/list", sent=True))
        (server,) = here.session.servers.values()
        child = here.host.servers[server].process.pid
        assert child is not None
        os.kill(child, signal.SIGUSR1)
        await here.until(lambda: here.exchanged("notifications/tools/list_changed", sent=False))
        if AGENTS[agent].relists != "after the call":
            await here.until(lambda: len(here.exchanged("tools/list", sent=True)) > listed, SECONDS)
        here.person.answer(YES)
        await here.until(lambda: here.person.open or here.turn.is_over, SECONDS)
        if here.person.open or AGENTS[agent].relists != "for a later request":
            assert (await here.asked()).tool.name == "grown"
            here.person.answer(YES)
        await here.done()
        assert [call["name"] for call in here.turn.calls] == ["echo", "grown"][: here.person.asked]


@pytest.mark.parametrize(("era", "processes"), [("modern", 1), ("legacy", 2)])
async def test_two_agents_at_once(agent: str, stage: StageOf, tmp_path: Path, era: str, processes: int) -> None:
    async with stage(COUNT, server=echo(era, "counts.py")) as here:
        await here.asked()
        async with played(agent, tmp_path, serve(agent, tmp_path, ()), COUNT) as other:
            await here.until(lambda: len(here.person.open) == 2, SECONDS)
            here.person.answer(YES)
            here.person.answer(YES)
            await here.until(lambda: len(here.turn.calls) == 2, SECONDS)
            used = {server for each in here.host.agents.sessions for server in each.servers.values()}
            assert len(used) == processes
            await other.ended()
        await here.done()
        outcomes = [call.outcome for call in here.host.tool_calls.calls.values()]
        pids = {outcome.raw["structuredContent"]["pid"] for outcome in outcomes if outcome is not None}
        assert len(pids) == processes
        assert sorted(outcome.raw["content"][0]["text"] for outcome in outcomes if outcome is not None) == (
            ["1", "2"] if processes == 1 else ["1", "1"]
        )


def configure(folder: Path, **policy: Any) -> None:
    """Configure mcphost for a turn without a screen."""
    server = entry(folder, ("echo.py",))
    lines = [f"[servers.{SERVER}]", *(f"{key} = {json.dumps(value)}" for key, value in server.items()), "[policy]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in policy.items()]
    (folder / "config.toml").write_text("\n".join(lines))
    (folder / "state").mkdir()


async def test_a_rule_allows_a_call_without_a_screen(agent: str, tmp_path: Path) -> None:
    configure(tmp_path, allow=[f"{agent}>{SERVER}:echo"])
    async with played(agent, tmp_path, serve(agent, tmp_path, ()), ECHO) as turn:
        await turn.ended()
        assert "hello" in turn.model.results[0]
        assert len(turn.calls) == 1


async def test_a_call_is_declined_without_a_rule_and_a_screen(agent: str, tmp_path: Path) -> None:
    configure(tmp_path, allow=["another>*:*"])
    async with played(agent, tmp_path, serve(agent, tmp_path, ()), ECHO) as turn:
        await turn.ended()
        assert f"mcphost allow --agent {agent} {SERVER}:echo" in turn.model.results[0]
        assert turn.calls == []
