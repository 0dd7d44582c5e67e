"""What runs without asking because the user said so, and taking it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.host.consent.approvals import Approval
from mcphost.protocol.display import show_line
from mcphost.tui.kit.modal import KEYS
from mcphost.tui.kit.rows import Cell, RowList, columns

EMPTY = "Nothing is allowed without asking.\nWhat you allow “until mcphost exits” or “always” is listed here."


class GrantsScreen(ModalScreen[None]):
    """Lists what ``grants`` returns; ``revoke`` takes one back by server, tool and the patterns it is bound to."""

    HELP = (
        "What runs without asking because you said so: a tool whatever its arguments are, or where they match a\n"
        "pattern. x takes it back, enter shows a long one whole. Rules of the file's [policy] are not listed."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,g", "back", "back", id="grants.back", tooltip="Close"),
        Binding("x,delete", "revoke", "take back", id="grants.revoke", tooltip="Ask again from now on"),
        KEYS,
    ]

    DEFAULT_CSS = """
    GrantsScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 94%; max-width: 140; height: 60%; border: round $border; background: $surface; }
        Static { height: auto; max-height: 5; padding: 0 1; border-top: solid $border-blurred; }
    }
    """

    def __init__(
        self, grants: Callable[[], Sequence[Approval]], revoke: Callable[[str, str, Mapping[str, str]], None]
    ) -> None:
        super().__init__()
        self._grants, self._revoke = grants, revoke
        self._rows, self._about = RowList[Approval](_row, empty=EMPTY), Static(markup=False)

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title = "Allowed without asking"
            frame.border_subtitle = "x take back · esc back"
            yield self._rows
            yield self._about

    def on_mount(self) -> None:
        self._fill()
        self._rows.focus()

    def action_revoke(self) -> None:
        """Take back the one under the cursor."""
        grant = self._rows.item
        if grant is not None:
            self._revoke(grant.server, grant.tool, grant.when)
            self._fill()

    def action_back(self) -> None:
        self.dismiss(None)

    @on(RowList.Highlighted)
    def _tell(self, event: RowList.Highlighted[Approval]) -> None:
        event.stop()
        self._about.display = event.item is not None
        self._about.update("" if event.item is None else _words(event.item))

    @on(RowList.Selected)
    def _show_whole(self, event: RowList.Selected[Approval]) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        event.stop()
        self.app.push_screen(ReaderScreen("Allowed without asking", _words(event.item)))

    def _fill(self) -> None:
        def key(grant: Approval) -> object:
            return grant.server, grant.tool, *grant.when.items()

        self._rows.set_items(list(self._grants()), keep=key)


def _words(grant: Approval) -> str:
    return f"{grant.server} › {show_line(grant.tool, 200)}: {grant.words}, {grant.lifetime.words}"


def _row(grant: Approval, width: int) -> Content:
    return columns(
        width,
        [
            Cell(grant.server, "bold", 6, 16),
            Cell(show_line(grant.tool, 60), "", 10, 24),
            Cell(grant.words.removeprefix("where "), "" if grant.when else "$foreground-muted", 20),
            Cell(grant.lifetime.words, "", 19, 19),
            Cell(f"{grant.since:%-d %b %Y %H:%M}", "$foreground-muted", 0, 18, "right"),
        ],
    )
