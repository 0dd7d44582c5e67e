"""The one place where the host's world and Textual's touch.

Facts: the host's events are gathered and handed to the app as one message, at most once a frame. Questions: the
approver registers each one, tells the app, and waits for the one answer it is owed, however the app gets it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, Protocol

from textual.message import Message

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.events import Event, EventBus

FRAME: Final = 1 / 30
"""Seconds in which events are gathered. Below what an eye tells apart; a flood costs thirty updates a second."""


class HostChanged(Message):
    """Something happened in the host; ``take`` hands over what, each kind of fact once.

    There is never more than one of these in the app's queue: what happens until it is read comes with it.
    """

    def __init__(self, take: Callable[[], frozenset[Event]]) -> None:
        super().__init__()
        self.take = take


class QuestionsChanged(Message):
    """A question was asked, answered or withdrawn; `ScreenApprover.open` says which are left."""


class Front(Protocol):
    """What the bridge needs of the app."""

    def post_message(self, message: Message) -> bool:
        """Put a message into the app's queue."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer. ``asked_at`` is a monotonic time in seconds."""

    number: int
    question: Question
    asked_at: float
    answer: asyncio.Future[Answer]
    kept: dict[str, Any] = field(default_factory=dict, compare=False)
    """What its screen wants to find again when it is opened anew; gone with the question."""

    @property
    def age(self) -> float:
        """Seconds since it was asked."""
        return time.monotonic() - self.asked_at


class ScreenApprover:
    """The approver whose answers come from the screen."""

    def __init__(self) -> None:
        self.open: dict[int, OpenQuestion] = {}
        """Oldest first."""
        self._front: Front | None = None
        self._last = 0

    def attach(self, front: Front) -> None:
        """Tell this app about questions from now on."""
        self._front = front
        if self.open:
            front.post_message(QuestionsChanged())

    async def ask(self, question: Question) -> Answer:
        """Register the question and wait. See `mcphost.host.consent.questions.Approver`."""
        self._last += 1
        waiting = OpenQuestion(self._last, question, time.monotonic(), asyncio.get_running_loop().create_future())
        self.open[waiting.number] = waiting
        self._tell()
        try:
            return await waiting.answer
        finally:
            self._close(waiting.number)

    def answer(self, number: int, answer: Answer) -> bool:
        """Answer a question; False when it no longer waits."""
        waiting = self.open.get(number)
        if waiting is None or waiting.answer.done():
            return False
        waiting.answer.set_result(answer)
        self._close(number)
        return True

    def _close(self, number: int) -> None:
        if self.open.pop(number, None) is not None:
            self._tell()

    def _tell(self) -> None:
        if self._front is not None:
            self._front.post_message(QuestionsChanged())


class EventGatherer:
    """Gathers the host's events for ``front``, at most one message a frame, and none before the last was taken."""

    def __init__(self, bus: EventBus, front: Front) -> None:
        self._front = front
        self._events: set[Event] = set()
        self._stop_observing = bus.observe(self._observe)
        self._timer: asyncio.TimerHandle | None = None
        self._posted = False
        self._posted_at = float("-inf")

    def close(self) -> None:
        """Stop handing on events."""
        self._stop_observing()
        if self._timer is not None:
            self._timer.cancel()

    def take(self) -> frozenset[Event]:
        """What happened since the last time."""
        events, self._events, self._posted = frozenset(self._events), set(), False
        return events

    def _observe(self, event: Event) -> None:
        self._events.add(event)
        if self._timer is None and not self._posted:
            loop = asyncio.get_running_loop()  # the first after a pause is told at once: somebody waits for it
            self._timer = loop.call_at(max(loop.time(), self._posted_at + FRAME), self._post)

    def _post(self) -> None:
        self._timer = None
        self._posted_at = asyncio.get_running_loop().time()
        self._posted = self._front.post_message(HostChanged(self.take))
