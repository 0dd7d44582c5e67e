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
from typing import Any

from mcphost.composition.agents import listen_for_agents
from mcphost.config import Config
from mcphost.host.consent.questions import Answer, Approver, Question
from mcphost.host.dependencies import Dependencies
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.places import socket_path


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


async def _no_transport(config: Config, name: str) -> Any:
    raise AssertionError("this host has no servers")


@asynccontextmanager
async def screen(folder: Path, approver: Approver) -> AsyncIterator[Host]:
    """A host whose socket and audit log are in the state folder of ``folder``."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    path = socket_path({"MCPHOST_STATE_DIR": str(state)})
    parts = Dependencies(_no_transport, approver, "1", audit_path=state / "audit.jsonl", answers=SCREEN_KINDS)
    async with Host(Config(), parts) as host:
        listening = asyncio.create_task(listen_for_agents(host, path, state))
        try:
            while not path.exists():  # noqa: ASYNC110  # `listen_for_agents` does not say when
                await asyncio.sleep(0.005)
            yield host
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


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
