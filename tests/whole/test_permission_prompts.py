"""Headless Claude Code asks mcphost for permission to run its own tools."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mcphost.host.consent.questions import Answer, ToolCallQuestion
from tests.conftest import Until
from tests.whole.agent_screen import Person, screen
from tests.whole.agents import AGENTS, FOLDER, SECONDS, SERVER, VARIABLE, Run, program_of
from tests.whole.scripted_model import PlannedCall, ScriptedModel, model

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} names no folder with agents; see tests/README.md"),
]

AGENT = "claude-code"
TOUCH = PlannedCall("Bash", {"command": "touch made && echo it ran", "description": "Make a file"})


class Asking:
    """A run of the agent that calls its shell; ``work`` is its folder."""

    def __init__(self, work: Path, made: ScriptedModel, process: asyncio.subprocess.Process) -> None:
        self.work, self.model, self._process = work, made, process

    async def ended(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self._process.wait()

    @property
    def files(self) -> Sequence[str]:
        return [path.name for path in self.work.iterdir() if not path.name.startswith(".")]


@asynccontextmanager
async def asking(folder: Path, call: PlannedCall = TOUCH) -> AsyncIterator[Asking]:
    """Run Claude Code on one call of its shell, which the tool of `mcphost serve --approve` has to permit."""
    agent = AGENTS[AGENT]
    program = program_of(agent.package)
    serve = [
        "/usr/bin/env", "MCPHOST_KEYCHAIN=off", sys.executable, "-m", "mcphost", "serve", "--approve", "--as", AGENT,
        "--config", str(folder / "config.toml"), "--state", str(folder / "state"),
    ]  # fmt: skip
    (folder / "config.toml").touch()
    async with AsyncExitStack() as stack:
        own = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        for each in ("home", "work"):
            (own / each).mkdir()
        made = await stack.enter_async_context(model(call))
        command, more = agent.start(Run(own, program, made.url, serve, None))
        command = [*command[: command.index("--allowedTools")], "--permission-prompt-tool", f"mcp__{SERVER}__approve"]
        kept = {each: os.environ[each] for each in ("PATH", "LANG", "TERM") if each in os.environ}
        with (folder / "agent.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command, env={**kept, "HOME": str(own / "home"), **more}, cwd=own / "work",
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            yield Asking(own / "work", made, process)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def answered(folder: Path, until: Until, answer: Answer) -> tuple[Sequence[str], str]:
    """The files that the call made, and the result that the model got, after this answer of the user."""
    person = Person()
    async with screen(folder, person), asking(folder) as run:
        await until(lambda: person.open, SECONDS)
        (question,) = person.open
        assert isinstance(question, ToolCallQuestion)
        assert (question.server, question.tool.name, question.own_tool) == ("agent", "Bash", True)
        assert question.arguments["command"] == TOUCH.arguments["command"]
        assert question.agent is not None
        assert question.agent.given == AGENT
        person.answer(answer)
        await run.ended()
        return run.files, run.model.results[0]


async def test_an_allowed_command_runs(tmp_path: Path, until: Until) -> None:
    files, result = await answered(tmp_path, until, Answer(allow=True))
    assert files == ["made"]
    assert "it ran" in result


async def test_a_denied_command_does_not_run(tmp_path: Path, until: Until) -> None:
    files, result = await answered(tmp_path, until, Answer(allow=False, reason="not today"))
    assert files == []
    assert "not today" in result


async def test_an_edited_command_is_the_one_that_runs(tmp_path: Path, until: Until) -> None:
    edited = Answer(allow=True, arguments={**TOUCH.arguments, "command": "touch other && echo changed"})
    files, result = await answered(tmp_path, until, edited)
    assert files == ["other"]
    assert "changed" in result


async def test_a_command_is_denied_if_nobody_is_there(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    async with asking(tmp_path) as run:
        await run.ended()
        assert run.files == []
        assert "mcphost allow" in run.model.results[0]
        assert "agent:Bash" in run.model.results[0]
