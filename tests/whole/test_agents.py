"""Real agents meet a gate: each has an answer before its limit, and what was refused never reaches the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.consent.questions import Answer, FormQuestion
from tests.conftest import Until
from tests.whole.agent_screen import Person, Stage, screen
from tests.whole.agents import AGENTS, FOLDER, SECONDS, VARIABLE, signal_agent, turn
from tests.whole.scripted_model import AGAIN, PlannedCall

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} names no folder with agents; see tests/README.md"),
    pytest.mark.parametrize("agent", AGENTS),
]

YES = Answer(allow=True)
ECHO = PlannedCall("echo", {"text": "hello"})
GROWN = PlannedCall("grown", {})
ASK = PlannedCall("ask", {})
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "May I?", "requestedSchema": OK}}
FILLED_IN = {"action": "accept", "content": {"ok": True}}
LEGACY, MODERN = (("questions.py", "--era", era, "--ask", json.dumps([FORM])) for era in ("handshake", "modern"))


StageOf = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(agent: str, tmp_path: Path, until: Until) -> StageOf:
    @asynccontextmanager
    async def open_stage(*plan: PlannedCall, **more: Any) -> AsyncIterator[Stage]:
        async with AsyncExitStack() as stack:
            person = Person()
            host = await stack.enter_async_context(screen(tmp_path, person))
            made = Stage(await stack.enter_async_context(turn(agent, tmp_path, *plan, **more)), host, person, until)
            try:
                yield made
            finally:
                (tmp_path / "traffic.jsonl").write_bytes(host.traffic.export(host.traffic.since(0)))

    return open_stage


async def test_an_allowed_call_runs(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        question = await here.asked()
        assert (question.tool.name, question.arguments) == ("echo", {"text": "hello"})
        here.person.answer(YES)
        await here.done()
        assert [call["arguments"] for call in here.turn.calls] == [{"text": "hello"}]
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
        assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


@pytest.mark.parametrize("seconds", [45, 75, 100])
async def test_an_agent_waits_for_the_decision(stage: StageOf, seconds: int) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        await asyncio.sleep(seconds)  # the limit of another program cannot be moved
        await here.asked()
        here.person.answer(YES)
        await here.done()
        (result,) = here.model.results
        assert "hello" in result
        assert len(here.turn.calls) == here.person.asked == 1
        assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


async def test_a_repeated_call_joins_the_open_question(stage: StageOf) -> None:
    async with stage(ECHO, options=["--answer-within", "3"]) as here:
        await here.asked()
        await here.until(lambda: here.model.results, SECONDS)
        here.person.answer(YES)
        await here.done()
        *early, last = here.model.results
        assert all(AGAIN in each for each in early)
        assert "hello" in last
        assert len(here.turn.calls) == here.person.asked == 1
        assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


@pytest.mark.parametrize("everybody", [False, True], ids=["alone", "foreground"])
async def test_an_interrupted_agent_takes_its_call_back(stage: StageOf, everybody: bool) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        if everybody:
            here.turn.interrupt()
        else:
            signal_agent(here.session, signal.SIGINT)
        await here.withdrawn()
        await here.done()
        assert (here.turn.calls, here.turn.outcomes) == ([], ["withdrawn"])


async def test_a_call_that_an_agent_gives_up_is_withdrawn(stage: StageOf) -> None:
    async with stage(ECHO, patience=5) as here:
        await here.asked()
        await here.withdrawn()
        await here.done()
        assert (here.turn.calls, here.turn.outcomes) == ([], ["withdrawn"])


async def test_a_killed_agent_leaves_no_question(stage: StageOf) -> None:
    async with stage(ECHO) as here:
        await here.asked()
        signal_agent(here.session, signal.SIGKILL)
        await here.withdrawn()
        await here.done()
        assert (here.turn.calls, here.turn.outcomes) == ([], ["withdrawn"])


async def test_a_killed_screen_leaves_the_rules(agent: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.whole.agent_screen", str(tmp_path)]
    root, pipe = Path(__file__).parents[2], asyncio.subprocess.PIPE
    killed = await asyncio.create_subprocess_exec(*command, cwd=root, stdout=pipe)
    assert killed.stdout is not None
    try:
        assert await killed.stdout.readline() == b"listening\n"
        async with turn(agent, tmp_path, ECHO) as played:
            async with asyncio.timeout(SECONDS):
                assert await killed.stdout.readline() == b"asked\n"
            killed.send_signal(signal.SIGKILL)
            await played.ended()
            assert played.calls == []
            assert f"mcphost allow --agent {agent} probe:echo" in played.model.results[0]
            assert played.decisions == [False]
    finally:
        if killed.returncode is None:
            killed.kill()
        await killed.wait()


async def test_a_list_that_changes_while_a_call_is_held(agent: str, stage: StageOf) -> None:
    async with stage(ECHO, GROWN, server=("echo.py", "--grows")) as here:
        await here.asked()
        child = here.session.child
        assert child is not None
        os.kill(child, signal.SIGUSR1)
        relists = AGENTS[agent].relists
        lists = 2 if relists == "after the call" else 3  # the first, the gate's, and the agent's
        await here.until(lambda: here.turn.methods.count("tools/list") == lists)
        assert (await here.asked()).tool.name == "echo"
        here.person.answer(YES)
        await here.until(lambda: here.person.open or here.turn.is_over, SECONDS)
        if here.person.open or relists != "for a later request":
            assert (await here.asked()).tool.name == "grown"
            here.person.answer(YES)
        await here.done()
        assert [call["name"] for call in here.turn.calls] == ["echo", "grown"][: here.person.asked]


async def answer_form(here: Stage) -> None:
    """Allow the call, and fill in the form that the server asks for."""
    await here.asked()
    here.person.answer(YES)
    await here.until(lambda: here.person.open and isinstance(here.person.open[0], FormQuestion))
    here.person.answer(Answer(allow=True, content={"ok": True}))
    await here.done()
    assert len(here.model.results) == 1
    assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


async def test_a_question_of_the_server_is_answered_here(stage: StageOf) -> None:
    async with stage(ASK, server=LEGACY, options=["--questions", "here"]) as here:
        await answer_form(here)
        assert [each["result"] for each in here.turn.received if "method" not in each] == [FILLED_IN]


def modern(agent: str) -> None:
    if not AGENTS[agent].modern:
        pytest.skip(f"{agent} speaks only revisions with a handshake")


async def test_a_second_round_is_no_second_question(agent: str, stage: StageOf) -> None:
    modern(agent)
    async with stage(ASK, server=MODERN) as here:
        await here.asked()
        here.person.answer(YES)
        await here.done()
        assert here.person.asked == 1
        assert len(here.turn.calls) == 2
        assert (here.turn.decisions, here.turn.outcomes) == ([True], ["done"])


async def test_a_round_of_input_is_answered_here(agent: str, stage: StageOf) -> None:
    modern(agent)
    async with stage(ASK, server=MODERN, options=["--questions", "here"]) as here:
        await answer_form(here)
        assert here.turn.calls[-1]["inputResponses"] == {"answer": FILLED_IN}
