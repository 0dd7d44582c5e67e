"""The inbox: every question that waits for an answer, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen

from mcphost.protocol.display import age_text, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.question_kinds import kind_of, words_of
from mcphost.tui.screens.dialog import KEYS
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.rows import RowList


class InboxScreen(ModalScreen[int | None]):
    """Lists what waits; dismissed with the number of the question to open."""

    HELP = (
        "Every question that waits for you, oldest first. enter opens one, n declines it, N declines all of its\n"
        "server, esc goes back."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "decline", "decline", id="inbox.decline", tooltip="Say no to this one"),
        Binding("N", "decline_all", "decline all of it", id="inbox.all", tooltip="Say no to all of this server"),
        Binding("escape,f2", "back", "back", id="inbox.back", tooltip="Close the inbox"),
        KEYS,
    ]

    DEFAULT_CSS = """
    InboxScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 90%; max-width: 120; height: 60%; border: round $accent; background: $surface; }
    }
    """

    @dataclass
    class DeclineWanted(Message):
        """Say no to these questions."""

        numbers: tuple[int, ...]

    def __init__(self, waiting: Sequence[OpenQuestion]) -> None:
        super().__init__()
        self._waiting = waiting

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title = "Inbox · waiting for you"
            frame.border_subtitle = "enter open · n decline · N all of its server · esc back"
            yield RowList(_row, empty="Nothing waits for you.\nQuestions you leave with p are kept here.")

    def on_mount(self) -> None:
        """Fill the list."""
        self.show_waiting(self._waiting)
        self._rows.focus()

    @property
    def _rows(self) -> RowList[OpenQuestion]:
        return self.query_one(RowList)

    def show_waiting(self, waiting: Sequence[OpenQuestion]) -> None:
        """These wait now."""
        self._rows.set_items(list(waiting), keep=lambda each: each.number)

    @on(RowList.Selected)
    def open_question(self, event: RowList.Selected[OpenQuestion]) -> None:
        """Open the chosen question."""
        self.dismiss(event.item.number)

    def action_decline(self) -> None:
        """See `DeclineWanted`."""
        waiting = self._rows.item
        if waiting is not None:
            self.post_message(self.DeclineWanted((waiting.number,)))

    def action_decline_all(self) -> None:
        """See `DeclineWanted`."""
        chosen = self._rows.item
        if chosen is not None:
            same = (each.number for each in self._rows.items if each.question.server == chosen.question.server)
            self.post_message(self.DeclineWanted(tuple(same)))

    def action_back(self) -> None:
        """Close without opening one."""
        self.dismiss(None)


def _row(waiting: OpenQuestion, width: int) -> Content:
    question, kind = waiting.question, kind_of(waiting.question)
    return columns(
        width,
        [
            Cell("?" if kind is None else kind.mark, "$text-warning", 1, 1),
            Cell(question.server, "bold", 6, 16),
            Cell(show_line(words_of(question), 64), "", 12),
            Cell(f"asked by {show_line(question.origin, 20)}", "$foreground-muted", 0, 20),
            Cell(age_text(waiting.age), "$foreground-muted", 8, 12, "right"),
        ],
    )
