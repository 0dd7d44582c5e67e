"""The order in which questions come to the screen: one at a time, oldest first, and never over something one reads.

Knows which question is asked now and which were left in the inbox. Refuses to know what is asked: the dialog does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from mcphost.host.questions import Answer, ToolCallQuestion
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import OpenQuestion, ScreenApprover
from mcphost.tui.screens.inbox import InboxScreen

if TYPE_CHECKING:
    from mcphost.tui.screens.tool_call import ToolCallScreen


class Questions:
    """What the approver holds open, brought before the user."""

    def __init__(self, app: App[None], approver: ScreenApprover) -> None:
        self._app, self._approver = app, approver
        self._parked: set[int] = set()
        self._dialog: ToolCallScreen | None = None

    @property
    def left(self) -> int:
        """How many wait besides the one that is being asked."""
        return sum(waiting is not self._asked for waiting in self._approver.open.values())

    def changed(self) -> None:
        """Some were asked, answered or withdrawn: close what is moot, ask what is next."""
        self._parked &= set(self._approver.open)
        self._withdraw()
        if isinstance(self._app.screen, InboxScreen):
            self._app.screen.show_waiting(list(self._approver.open.values()))
        self.ask_next()

    def ask_next(self) -> None:
        """Ask the oldest that was not left for later, unless something else is on screen."""
        if self._dialog is not None or len(self._app.screen_stack) > 1:
            return
        waiting = next((each for number, each in self._approver.open.items() if number not in self._parked), None)
        if waiting is not None:
            self._ask(waiting)

    def show_inbox(self) -> None:
        """List what waits."""
        if len(self._app.screen_stack) == 1:
            self._app.push_screen(InboxScreen(list(self._approver.open.values())), self._open)

    def decline(self, numbers: tuple[int, ...]) -> None:
        """Answer these with no."""
        for number in numbers:
            self._approver.answer(number, Answer(allow=False))

    @property
    def _asked(self) -> OpenQuestion | None:
        return self._dialog.waiting if self._dialog is not None else None

    def _ask(self, waiting: OpenQuestion) -> None:
        from mcphost.tui.screens.tool_call import ToolCallScreen

        if not isinstance(waiting.question, ToolCallQuestion):
            return
        self._dialog = ToolCallScreen(waiting, waiting.question)
        self._app.push_screen(self._dialog, lambda answer: self._take(waiting.number, answer))

    def _take(self, number: int, answer: Answer | None) -> None:
        self._dialog = None
        if answer is None:
            self._parked.add(number)
        else:
            self._approver.answer(number, answer)
        self._app.call_after_refresh(self.ask_next)

    def _withdraw(self) -> None:
        """Close the dialog, and what was opened from it, when its question no longer matters."""
        dialog, waiting = self._dialog, self._asked
        if dialog is None or waiting is None or waiting.number in self._approver.open:
            return
        while self._app.screen is not dialog and len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        dialog.dismiss(None)
        words = f"The question to {show_line(waiting.question.about, 64)} was withdrawn: nothing was sent."
        self._app.notify(words, severity="warning", markup=False)

    def _open(self, number: int | None) -> None:
        waiting = self._approver.open.get(number) if number is not None else None
        if waiting is None:
            self._app.call_after_refresh(self.ask_next)
        else:
            self._parked.discard(waiting.number)
            self._ask(waiting)
