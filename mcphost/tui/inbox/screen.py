"""The inbox: every question that waits for an answer, oldest first, and what else one is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.protocol.display import show_line
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.inbox.rows import InboxRow, RowKind
from mcphost.tui.kit.messages import MuteToggled, QuestionsDeclined
from mcphost.tui.kit.modal import KEYS
from mcphost.tui.kit.rows import Cell, RowList, columns

EMPTY: Final = (
    "Nothing waits for you.\nWhat servers ask comes up by itself when you are idle; what you leave with p is kept here."
)
NARROW: Final = 100
"""Columns below which why a question is asked stands below the list only."""


class InboxScreen(ErrorBoundary, ModalScreen[InboxRow | None]):
    """Lists what ``read`` returns; dismissed with the row to open."""

    HELP = (
        "Every question that waits for you, oldest first; answer them in any order. enter opens one, n says no to it,\n"
        "x neither yes nor no, N no to all of its server, M no to all that its server will ever ask in this run, and\n"
        "on a server that is muted so: listen again. ◐ goes on: a page that was opened, an answer that you left.\n"
        "While it waits for an answer no call times out; a page that a call needs at once has a time, which is told."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "decline", "decline", id="inbox.decline", tooltip="Say no to this one"),
        Binding("x", "cancel", "cancel", id="inbox.cancel", tooltip="Say neither yes nor no to this one"),
        Binding("N", "decline_all", "decline all of it", id="inbox.all", tooltip="Say no to all of this server"),
        Binding("M", "mute", "mute", id="inbox.mute", tooltip="Decline all this server asks until exit, or listen"),
        Binding("escape,f2", "back", "back", id="inbox.back", tooltip="Close the inbox"),
        KEYS,
    ]

    DEFAULT_CSS = """
    InboxScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 96%; max-width: 140; height: 70%; border: round $border; background: $surface; }
        Static { height: auto; max-height: 4; padding: 0 1; border-top: solid $border-blurred; }
    }
    """

    def __init__(self, read: Callable[[], Iterable[InboxRow]]) -> None:
        super().__init__()
        self._read = read
        self._rows = RowList[InboxRow](_row, empty=EMPTY)
        self._about = Static(markup=False)

    def compose(self) -> ComposeResult:
        """A list in a frame, and all of what is under its cursor."""
        with Vertical() as frame:
            frame.border_title = "Inbox · waiting for you"
            yield self._rows
            yield self._about

    def on_mount(self) -> None:
        """Fill the list, and keep its times right."""
        self.refresh_rows()
        self._rows.focus()
        self.set_interval(1.0, self.refresh_rows)

    def refresh_rows(self) -> None:
        """Something waits, or no longer; or time has passed."""
        self._rows.set_items(self._read(), keep=lambda row: row.key)
        self._tell()

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        self._tell()

    @on(RowList.Selected)
    def open_question(self, event: RowList.Selected[InboxRow]) -> None:
        """Open the chosen one."""
        if event.item.kind is RowKind.MUTED:
            self.action_mute()
        else:
            self.dismiss(event.item)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what is asked can be declined, only who asks can be muted."""
        row = self._rows.item if self.is_mounted else None
        if action in ("decline", "cancel", "decline_all"):
            return row is not None and row.kind is RowKind.QUESTION
        return action != "mute" or (row is not None and (row.by_server or row.kind is RowKind.MUTED))

    def action_decline(self) -> None:
        """Say no to the question under the cursor."""
        if self._rows.item is not None:
            self.post_message(QuestionsDeclined((self._rows.item.number,)))

    def action_cancel(self) -> None:
        """Say neither yes nor no to it."""
        if self._rows.item is not None:
            self.post_message(QuestionsDeclined((self._rows.item.number,), cancelled=True))

    def action_decline_all(self) -> None:
        """Say no to all questions of its server."""
        chosen = self._rows.item
        if chosen is not None:
            same = (row for row in self._rows.items if (row.kind, row.server) == (chosen.kind, chosen.server))
            self.post_message(QuestionsDeclined(tuple(row.number for row in same)))

    def action_mute(self) -> None:
        """Decline everything the server asks, or take that back."""
        if self._rows.item is not None:
            self.post_message(MuteToggled(self._rows.item.server, self._rows.item.kind is not RowKind.MUTED))

    def action_back(self) -> None:
        """Close without opening one."""
        self.dismiss(None)

    def _tell(self) -> None:
        row = self._rows.item
        self._about.display = row is not None
        if row is not None:
            asked = " · ".join(filter(None, [f"asked {row.because}" if row.because else "", row.age, row.limit]))
            self._about.update(
                Content.assemble(f"{show_line(row.server, 60)}: {row.words}", f"\n{asked}" if asked else "")
            )
        self.query_one(Vertical).border_subtitle = _keys(row)
        self.refresh_bindings()


def _keys(row: InboxRow | None) -> str:
    if row is None:
        return "esc back"
    if row.kind is RowKind.MUTED:
        return "M listen again · esc back"
    if row.kind in (RowKind.PAGE, RowKind.ANSWER):
        return "enter open · esc back"
    mute = " · M mute" if row.by_server else ""
    return f"enter open · n decline · x cancel · N decline all{mute} · esc back"


def _row(row: InboxRow, width: int) -> Content:
    wide = width >= NARROW
    why = Cell(row.because, "$foreground-muted", 0, 44 if wide else 0)
    limit = Cell(row.limit, "$foreground-muted", 0, 14 if wide else 0)
    return columns(
        width,
        [
            Cell(row.mark, "$text-warning", 1, 1),
            Cell(show_line(row.server, 40), "bold", 6, 16 if wide else 10),
            Cell(row.words, "", 12),
            why,
            limit,
            Cell(row.limit if row.limited and not wide else row.age, "$foreground-muted", 8, 14, "right"),
        ],
    )
