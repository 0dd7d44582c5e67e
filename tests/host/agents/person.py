"""An approver whose questions wait until the test answers them."""

from __future__ import annotations

import asyncio

from mcphost.host.consent.questions import Answer, Question


class Person:
    def __init__(self) -> None:
        self.open: list[tuple[Question, asyncio.Future[Answer]]] = []
        """The questions that wait, oldest first."""
        self.seen: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        entry = question, answered
        self.seen.append(question)
        self.open.append(entry)
        try:
            return await answered
        finally:
            self.open.remove(entry)

    def answer(self, answer: Answer) -> None:
        """Answer the oldest question."""
        self.open[0][1].set_result(answer)
