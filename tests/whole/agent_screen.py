"""The screen at which agents' calls are decided: its host and its socket, without anything to see.

    python -m tests.whole.agent_screen FOLDER

shows one that never answers, and writes ``asked`` for each question.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcphost.composition import dependencies
from mcphost.composition.agents import listen_for_agents
from mcphost.config import Config, Values
from mcphost.host.agents.session import AgentSession
from mcphost.host.consent.questions import Answer, Approver, Question, ToolCallQuestion
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.places import socket_path
from tests.conftest import Until
from tests.whole.agents import SECONDS, Turn


class Person:
    """Takes questions, which wait until the test answers them."""

    def __init__(self) -> None:
        self._open: list[tuple[Question, asyncio.Future[Answer]]] = []
        self.asked = 0

    @property
    def open(self) -> list[Question]:
        """The questions that wait, the oldest first."""
        return [question for question, _ in self._open]

    async def ask(self, question: Question) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        entry = question, answer
        self._open.append(entry)
        self.asked += 1
        try:
            return await answer
        finally:
            if entry in self._open:
                self._open.remove(entry)

    def answer(self, answer: Answer) -> None:
        """Answer the oldest question."""
        self._open.pop(0)[1].set_result(answer)


@asynccontextmanager
async def screen(folder: Path, approver: Approver, config: Config | None = None) -> AsyncIterator[Host]:
    """A host whose socket and files are in the state folder of ``folder``; without ``config``, it has no servers."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    path = socket_path({"MCPHOST_STATE_DIR": str(state)})
    parts = dependencies(approver, Values({}), state=state, answers=SCREEN_KINDS)
    async with Host(config or Config(), parts) as host:
        listening = asyncio.create_task(listen_for_agents(host, path, state))
        try:
            while not path.exists():  # noqa: ASYNC110  # `listen_for_agents` does not say when
                await asyncio.sleep(0.005)
            yield host
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


class Stage:
    """A turn of an agent before a screen."""

    def __init__(self, played: Turn, host: Host, person: Person, until: Until) -> None:
        self.turn, self.host, self.person, self.until = played, host, person, until
        self.model = played.model

    @property
    def session(self) -> AgentSession:
        (session,) = self.host.agents.sessions
        return session

    async def asked(self) -> ToolCallQuestion:
        """The person is asked about a call."""
        await self.until(lambda: self.person.open, SECONDS)
        (question,) = self.person.open
        assert isinstance(question, ToolCallQuestion)
        return question

    async def withdrawn(self) -> None:
        await self.until(lambda: not self.person.open, SECONDS)

    async def done(self) -> None:
        """The turn has ended, and the server with it."""
        await self.turn.ended()
        await self.until(lambda: not self.host.agents.sessions)


class _Silent:
    async def ask(self, question: Question) -> Answer:
        print("asked", flush=True)
        await asyncio.Event().wait()
        raise AssertionError


async def _main(folder: Path) -> None:
    async with screen(folder, _Silent()):
        print("listening", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
