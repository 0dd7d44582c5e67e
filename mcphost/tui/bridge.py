"""Connects the host to Textual.

The host's events are collected and posted to the app as one message, at most once a frame. The approver keeps each
question until the app passes its answer back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, Protocol

from textual.message import Message

from mcphost.host.consent.questions import Answer, Question
from mcphost.host.events import Event, EventBus
from mcphost.lazy_dataclass import dataclass

FRAME: Final = 1 / 30
"""Seconds in which events are collected: too short to notice, and a flood causes at most thirty updates a second."""


class HostChanged(Message):
    """Something happened in the host; ``take`` returns the events, without duplicates.

    The app's queue holds at most one of these. Events that follow before it is handled are returned with the others.
    """

    def __init__(self, take: Callable[[], frozenset[Event]]) -> None:
        super().__init__()
        self.take = take


class QuestionsChanged(Message):
    """A question was asked, answered or withdrawn; `ScreenApprover.open` holds those that are left."""


class QuestionScreen(Protocol):
    """The app, as far as the bridge needs it."""

    def post_message(self, message: Message) -> bool:
        """Put a message into the app's queue."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer. ``asked_at`` is a monotonic time in seconds."""

    number: int
    question: Question
    asked_at: float
    answer: asyncio.Future[Answer]
    drafts: dict[str, Any] = field(default_factory=dict, compare=False)
    """State that its screen restores when it is opened again, by keys of the screen's choice."""

    @property
    def age(self) -> float:
        return time.monotonic() - self.asked_at


class ScreenApprover:
    """Lets the app answer the host's questions."""

    def __init__(self) -> None:
        self.open: dict[int, OpenQuestion] = {}
        """By number, oldest first."""
        self._front: QuestionScreen | None = None
        self._last = 0

    def attach(self, front: QuestionScreen) -> None:
        """Post changes to this app from now on."""
        self._front = front
        if self.open:
            front.post_message(QuestionsChanged())

    async def ask(self, question: Question) -> Answer:
        """Register the question and wait. See `mcphost.host.consent.questions.Approver`."""
        self._last += 1
        waiting = OpenQuestion(self._last, question, time.monotonic(), asyncio.get_running_loop().create_future())
        self.open[waiting.number] = waiting
        self._post_change()
        try:
            return await waiting.answer
        finally:
            self._close(waiting.number)

    def answer(self, number: int, answer: Answer) -> bool:
        """Answer a question; return False if it no longer waits."""
        waiting = self.open.get(number)
        if waiting is None or waiting.answer.done():
            return False
        waiting.answer.set_result(answer)
        self._close(number)
        return True

    def _close(self, number: int) -> None:
        if self.open.pop(number, None) is not None:
            self._post_change()

    def _post_change(self) -> None:
        if self._front is not None:
            self._front.post_message(QuestionsChanged())


class EventGatherer:
    """Collects the host's events for ``front``: one message a frame, and none before the last one was handled."""

    def __init__(self, bus: EventBus, front: QuestionScreen) -> None:
        self._front = front
        self._events: set[Event] = set()
        self._stop_observing = bus.observe(self._observe)
        self._timer: asyncio.TimerHandle | None = None
        self._posted = False
        self._posted_at = float("-inf")

    def close(self) -> None:
        self._stop_observing()
        if self._timer is not None:
            self._timer.cancel()

    def take(self) -> frozenset[Event]:
        """Return the events since the last call."""
        events, self._events, self._posted = frozenset(self._events), set(), False
        return events

    def _observe(self, event: Event) -> None:
        self._events.add(event)
        if self._timer is None and not self._posted:
            loop = asyncio.get_running_loop()  # the first event after a pause is posted at once
            self._timer = loop.call_at(max(loop.time(), self._posted_at + FRAME), self._post)

    def _post(self) -> None:
        self._timer = None
        self._posted_at = asyncio.get_running_loop().time()
        self._posted = self._front.post_message(HostChanged(self.take))
