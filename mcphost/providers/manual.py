"""A person as the model: a request waits until somebody answers it.

Knows who waits. Refuses to know how a person is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from mcphost.errors import Declined, ModelUnreachable
from mcphost.providers.base import IMAGES, AnswerFinished, ModelCapabilities, ModelRequest, ProviderEvent, TextDelta

CAPABILITIES: Final = ModelCapabilities(images=IMAGES)
"""A person sees what the screen shows, and writes text."""


class ManualAnswer:
    """One request that waits for a person; the first word counts, later ones do nothing."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self._given: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def waiting(self) -> bool:
        """Is an answer still wanted?"""
        return not self._given.done()

    def give(self, text: str) -> None:
        """Answer."""
        if self.waiting:
            self._given.set_result(text)

    def refuse(self) -> None:
        """Do not answer: whoever asked meets Declined."""
        self.fail(Declined("nobody wanted to answer for the model", by="user"))

    def fail(self, error: Exception) -> None:
        """There is no answer, for this reason."""
        if self.waiting:
            self._given.set_exception(error)

    async def text(self) -> str:
        """What was given. Raises Declined; withdrawn when the wait is cancelled."""
        return await self._given


class ManualProvider:
    """Answers are typed by a person; see `Provider`. ``ask`` is called with each request that waits, and must return.

    An answer is ended by who gives it, so `ModelRequest.max_tokens` and the like bind nobody.
    """

    def __init__(self, entry: str, ask: Callable[[ManualAnswer], None], *, model: str = "human") -> None:
        self.entry, self.capabilities = entry, CAPABILITIES
        self._ask, self._model = ask, model
        self._waiting: set[ManualAnswer] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """See `Provider.stream`. Raises Declined where the person refuses."""
        answer = ManualAnswer(request)
        self._waiting.add(answer)
        try:
            self._ask(answer)
            text = await answer.text()
        finally:
            self._waiting.discard(answer)
        if text:
            yield TextDelta(text)
        yield AnswerFinished("endTurn", self._model)

    async def aclose(self) -> None:
        """Nobody answers any more: see `Provider.aclose`."""
        for answer in tuple(self._waiting):
            answer.fail(ModelUnreachable(self.entry, "mcphost is ending, and nobody answers any more"))
