"""Opens questions one at a time, oldest first, and never over another screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from textual.app import App
from textual.message import Message

from mcphost.host.consent.questions import Answer
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.tui.bridge import OpenQuestion, QuestionsChanged, ScreenApprover
from mcphost.tui.consent.origin import agent_call, is_limited, wait_words
from mcphost.tui.inbox.question_kinds import asks_words, kind_of
from mcphost.tui.inbox.screen import InboxRow, InboxScreen, RowKind, rows_of
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.messages import QuestionsDeclined, RootsShared, WithdrawnRemoved
from mcphost.tui.kit.modal_screen import QuestionDialog

IDLE: Final = 1.0
"""Seconds without a key after which the user counts as idle: a server's question may then open."""


@dataclass
class UrlElicitationChosen(Message):
    """The user chose this URL elicitation in the inbox."""

    number: int


@dataclass
class SamplingChosen(Message):
    """The user chose this sampling request in the inbox."""

    number: int


class QuestionQueue:
    """Opens the approver's questions as dialogs."""

    def __init__(self, app: App[None], host: Host, approver: ScreenApprover) -> None:
        self._app, self._host, self._approver = app, host, approver
        self._parked: set[int] = set()
        self._dialog: QuestionDialog | None = None
        self.idle_seconds = IDLE
        self._typed_at = float("-inf")
        self._retry_pending = self._held = False
        self._seen_withdrawn = -1

    def typed(self) -> None:
        """A key was pressed: questions of servers wait a moment."""
        self._typed_at = time.monotonic()

    def hold(self, held: bool) -> None:
        """Open no question until this is called with False, as while another program has the terminal."""
        self._held = held
        if not held:
            self.typed()  # the user comes from elsewhere, and may go on typing
            self.ask_next()

    def typing_done(self) -> None:
        """Let a question open at once: the user has typed a complete entry."""
        self._typed_at = float("-inf")

    @property
    def oldest(self) -> str:
        """The oldest waiting question in a few words; foreign text."""
        oldest = self._oldest
        if oldest is None:
            return ""
        call, words = agent_call(self._host, oldest.question), asks_words(oldest.question)
        return words if call is None else f"{words} · {wait_words(call)}"

    @property
    def counts_down(self) -> bool:
        """True if `oldest` holds a time that runs."""
        call = None if self._oldest is None else agent_call(self._host, self._oldest.question)
        return call is not None and is_limited(call)

    @property
    def _oldest(self) -> OpenQuestion | None:
        return next((each for each in self._approver.open.values() if each is not self._open_question), None)

    @property
    def unseen(self) -> int:
        """The number of questions that wait besides the one that is open."""
        return sum(waiting is not self._open_question for waiting in self._approver.open.values())

    @property
    def given_up(self) -> int:
        """The number of questions that ended unanswered since the inbox was last open."""
        return sum(each.number > self._seen_withdrawn for each in self._host.pending_requests.withdrawn)

    def changed(self) -> None:
        """Questions were asked, answered or withdrawn: close and open dialogs accordingly."""
        if not self._app.screen_stack:  # the app ends
            return
        self._parked &= set(self._approver.open)
        self._withdraw()
        if isinstance(self._app.screen, InboxScreen):
            self._app.screen.refresh_rows()
        elif isinstance(self._app.screen, QuestionDialog):
            self._app.screen.show_others(
                [each for each in self._approver.open.values() if each is not self._open_question]
            )
        self.ask_next()

    def ask_next(self) -> None:
        """Open the oldest question that was not parked, unless another screen is open.

        What a server asks unprompted waits in the inbox until the user opens it.
        """
        if self._held or not self._app.screen_stack:
            return
        if self._open_question is not None or self._taken_over_by(self._app.screen):
            return
        due = (each for each in self._next() if not _unprompted(each))
        screen = self._app.screen
        free = len(self._app.screen_stack) == 1 or (isinstance(screen, FramedScreen) and screen.QUESTIONS_ABOVE)
        if free and (waiting := next(due, None)) is not None:
            if (wait := self._seconds_to_wait(waiting)) > 0:
                self._ask_in(wait)
            else:
                self._ask(waiting)

    def show_inbox(self) -> None:
        if len(self._app.screen_stack) == 1:
            self._app.push_screen(InboxScreen(self._rows), self._close_inbox)

    def _close_inbox(self, row: InboxRow | None) -> None:
        withdrawn = self._host.pending_requests.withdrawn
        self._seen_withdrawn = max((each.number for each in withdrawn), default=self._seen_withdrawn)
        self._open(row)

    def on_questions_declined(self, event: QuestionsDeclined) -> None:
        for number in event.numbers:
            self._approver.answer(number, Answer(allow=False, cancelled=event.cancelled))

    def on_roots_shared(self, event: RootsShared) -> None:
        for number in event.numbers:
            self._approver.answer(number, Answer(allow=True, content=()))  # the folders are chosen already

    def on_withdrawn_removed(self, event: WithdrawnRemoved) -> None:
        self._host.pending_requests.forget_withdrawn(event.number)
        if isinstance(self._app.screen, InboxScreen):
            self._app.screen.refresh_rows()

    def on_sampling_screen_resumed(self, _: object) -> None:
        self.ask_next()

    def on_question_dialog_answered(self, event: QuestionDialog.Answered) -> None:
        self.take(event.number, event.answer)

    def take(self, number: int, answer: Answer | None) -> None:
        """Pass this answer on; with None the question is parked."""
        if self._open_question is None or self._open_question.number == number:
            self._dialog = None
        if answer is None:
            self._parked.add(number)
        else:
            self._approver.answer(number, answer)
            self._typed_at = float("-inf")  # who has just answered is ready for the next question
        self._app.call_after_refresh(self.ask_next)

    def unpark(self, numbers: set[int]) -> None:
        """Ask these parked questions again."""
        self._parked -= numbers
        self.ask_next()

    @property
    def _open_question(self) -> OpenQuestion | None:
        return self._dialog.waiting if self._dialog is not None else None

    def _next(self) -> Iterator[OpenQuestion]:
        """The questions that can be asked now, oldest first."""
        for number, waiting in self._approver.open.items():
            if number not in self._parked and kind_of(waiting.question) is not None:
                yield waiting

    def _taken_over_by(self, screen: object) -> bool:
        """True if the screen in front takes over one of the questions."""
        if not isinstance(screen, QuestionDialog):
            return False
        question = next((waiting for waiting in self._next() if screen.adopt_question(waiting)), None)
        if question is not None:
            self._dialog = screen
        return question is not None

    def _ask(self, waiting: OpenQuestion) -> None:
        kind = kind_of(waiting.question)
        if kind is None:
            self._app.notify("This version of mcphost has no dialog for it: n in the inbox declines it.")
            return
        self._dialog = kind.screen(self._host, waiting, waiting.question)
        self._app.push_screen(self._dialog, lambda answer: self.take(waiting.number, answer))
        self._app.post_message(QuestionsChanged())  # one question less waits unseen

    def _withdraw(self) -> None:
        """Close the dialog if its question was withdrawn."""
        dialog, waiting = self._dialog, self._open_question
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
        elif row is not None and row.kind is RowKind.URL:
            self._app.post_message(UrlElicitationChosen(row.number))
        elif row is not None and row.kind is RowKind.ANSWER:
            self._app.post_message(SamplingChosen(row.number))
        else:
            self._app.call_after_refresh(self.ask_next)

    def _seconds_to_wait(self, waiting: OpenQuestion) -> float:
        """Seconds until this question may interrupt the user; none if it results from the user's last action."""
        if waiting.question.origin == "you" or self._follows_user_call(waiting):
            return 0.0
        return self._typed_at + self.idle_seconds - time.monotonic()

    def _follows_user_call(self, waiting: OpenQuestion) -> bool:
        """True if it belongs to a call that the user started, with no key pressed since."""
        call = self._host.tool_calls.calls.get(getattr(waiting.question, "call", None) or 0)
        return call is not None and call.request.origin == "you" and call.asked_at >= self._typed_at

    def _ask_in(self, seconds: float) -> None:
        if not self._retry_pending:
            self._retry_pending = True
            self._app.set_timer(seconds, self._ask_later)

    def _ask_later(self) -> None:
        self._retry_pending = False
        self.ask_next()


def _unprompted(waiting: OpenQuestion) -> bool:
    """True if a server asks outside of any call."""
    question = waiting.question
    return question.origin == question.server and getattr(question, "call", None) is None
