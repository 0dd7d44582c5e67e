"""The order in which questions come to the screen: one at a time, oldest first, and never over something one reads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from textual.app import App
from textual.message import Message

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import Answer
from mcphost.host.host import Host
from mcphost.tui.bridge import OpenQuestion, QuestionsChanged, ScreenApprover
from mcphost.tui.inbox.question_kinds import kind_of
from mcphost.tui.inbox.rows import InboxRow, RowKind, rows_of
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.modal import QuestionDialog

IDLE: Final = 1.0
"""Seconds without a key after which one is taken to be idle: what a server asks then comes up by itself."""


@dataclass
class PageChosen(Message):
    """The user chose this page in the inbox."""

    number: int


@dataclass
class AnswerChosen(Message):
    """The user chose this sampling request in the inbox."""

    number: int


class QuestionQueue:
    """What the approver holds open, brought before the user."""

    def __init__(self, app: App[None], host: Host, approver: ScreenApprover) -> None:
        self._app, self._host, self._approver = app, host, approver
        self._parked: set[int] = set()
        self._dialog: QuestionDialog | None = None
        self.idle_seconds = IDLE
        self._typed_at = float("-inf")
        self._later = False

    def typed(self) -> None:
        """A key was pressed: what a server asks should wait a moment."""
        self._typed_at = time.monotonic()

    def rested(self) -> None:
        """What was typed is done: what comes of it may ask at once."""
        self._typed_at = float("-inf")

    @property
    def line(self) -> str:
        """The oldest that waits, in a few words; foreign text."""
        oldest = next((each for each in self._approver.open.values() if each is not self._asked), None)
        return "" if oldest is None else f"{oldest.question.server}: {oldest.question.about}"

    @property
    def left(self) -> int:
        """How many wait besides the one that is being asked."""
        return sum(waiting is not self._asked for waiting in self._approver.open.values())

    def changed(self) -> None:
        """Some were asked, answered or withdrawn: close what is moot, ask what is next."""
        self._parked &= set(self._approver.open)
        self._withdraw()
        if isinstance(self._app.screen, InboxScreen):
            self._app.screen.refresh_rows()
        elif isinstance(self._app.screen, QuestionDialog):
            self._app.screen.show_others([each for each in self._approver.open.values() if each is not self._asked])
        self.ask_next()

    def ask_next(self) -> None:
        """Ask the oldest that was not left for later, unless something else is on screen."""
        if not self._app.screen_stack or self._asked is not None or self._taken_by(self._app.screen):
            return
        if len(self._app.screen_stack) == 1 and (waiting := next(self._next(), None)) is not None:
            if (wait := self._not_now(waiting)) > 0:
                self._ask_in(wait)
            else:
                self._ask(waiting)

    def show_inbox(self) -> None:
        if len(self._app.screen_stack) == 1:
            self._app.push_screen(InboxScreen(self._rows), self._open)

    def decline(self, numbers: tuple[int, ...], *, cancelled: bool = False) -> None:
        """Answer these with no, or with neither yes nor no."""
        for number in numbers:
            self._approver.answer(number, Answer(allow=False, cancelled=cancelled))

    def take(self, number: int, answer: Answer | None) -> None:
        """Here is an answer; with None the question stays in the inbox."""
        if self._asked is None or self._asked.number == number:
            self._dialog = None
        if answer is None:
            self._parked.add(number)
        else:
            self._approver.answer(number, answer)
            self._typed_at = float("-inf")  # who answers one is ready for the next
        self._app.call_after_refresh(self.ask_next)

    def unpark(self, numbers: set[int]) -> None:
        """Ask these again, though they were left for later."""
        self._parked -= numbers
        self.ask_next()

    @property
    def _asked(self) -> OpenQuestion | None:
        return self._dialog.waiting if self._dialog is not None else None

    def _next(self) -> Iterator[OpenQuestion]:
        """What was not left for later and can be asked, oldest first."""
        for number, waiting in self._approver.open.items():
            if number not in self._parked and kind_of(waiting.question) is not None:
                yield waiting

    def _taken_by(self, screen: object) -> bool:
        """Does what is in front ask one of them by itself?"""
        if not isinstance(screen, QuestionDialog):
            return False
        taken = next((waiting for waiting in self._next() if screen.takes(waiting)), None)
        if taken is not None:
            self._dialog = screen
        return taken is not None

    def _ask(self, waiting: OpenQuestion) -> None:
        kind = kind_of(waiting.question)
        if kind is None:
            self._app.notify("This version of mcphost has no dialog for it: n in the inbox declines it.")
            return
        self._dialog = kind.screen(self._host, waiting, waiting.question)
        self._app.push_screen(self._dialog, lambda answer: self.take(waiting.number, answer))
        self._app.post_message(QuestionsChanged())  # one less waits unseen

    def _withdraw(self) -> None:
        """Tell the dialog when its question no longer matters."""
        dialog, waiting = self._dialog, self._asked
        if dialog is not None and waiting is not None and waiting.number not in self._approver.open:
            self._dialog = None
            dialog.withdrawn()

    def _rows(self) -> list[InboxRow]:
        return list(rows_of(self._host, self._approver.open.values()))

    def _open(self, row: InboxRow | None) -> None:
        waiting = self._approver.open.get(row.number) if row and row.kind is RowKind.QUESTION else None
        if waiting is not None:
            self._parked.discard(waiting.number)
            self._ask(waiting)
        elif row is not None and row.kind is RowKind.PAGE:
            self._app.post_message(PageChosen(row.number))
        elif row is not None and row.kind is RowKind.ANSWER:
            self._app.post_message(AnswerChosen(row.number))
        else:
            self._app.call_after_refresh(self.ask_next)

    def _not_now(self, waiting: OpenQuestion) -> float:
        """Seconds until one may be interrupted by it: what comes of what one did last interrupts nothing."""
        if waiting.question.origin == "you" or self._awaited(waiting):
            return 0.0
        return self._typed_at + self.idle_seconds - time.monotonic()

    def _awaited(self, waiting: OpenQuestion) -> bool:
        """Is it asked for a call that the user began, and pressed no key since?"""
        call = self._host.tool_calls.calls.get(getattr(waiting.question, "call", None) or 0)
        return call is not None and call.request.origin == "you" and call.asked_at >= self._typed_at

    def _ask_in(self, seconds: float) -> None:
        if not self._later:
            self._later = True
            self._app.set_timer(seconds, self._ask_later)

    def _ask_later(self) -> None:
        self._later = False
        self.ask_next()
