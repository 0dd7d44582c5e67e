"""What runs without asking because the user said so, and taking it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.host.approvals import Lifetime, Sighting
from mcphost.protocol.display import show_line
from mcphost.tui.screens.dialog import KEYS
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.rows import RowList

EMPTY = "Nothing is allowed without asking.\nWhat you allow “until mcphost exits” or “always” is listed here."


class GrantsScreen(ModalScreen[None]):
    """Lists what ``grants`` returns; ``revoke`` takes one back by server and tool."""

    HELP = "What runs without asking because you said so. x takes it back; rules of the file's [policy] are not listed."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,g", "back", "back", id="grants.back", tooltip="Close"),
        Binding("x,delete", "revoke", "take back", id="grants.revoke", tooltip="Ask again from now on"),
        KEYS,
    ]

    DEFAULT_CSS = """
    GrantsScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 90%; max-width: 120; height: 60%; border: round $accent; background: $surface; }
    }
    """

    def __init__(self, grants: Callable[[], Sequence[Sighting]], revoke: Callable[[str, str], None]) -> None:
        super().__init__()
        self._grants, self._revoke = grants, revoke

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title = "Allowed without asking"
            frame.border_subtitle = "x take back · esc back"
            yield RowList(_row, empty=EMPTY)

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill()
        self.query_one(RowList).focus()

    def action_revoke(self) -> None:
        """Take back the one under the cursor."""
        grant: Sighting | None = self.query_one(RowList).item
        if grant is not None:
            self._revoke(grant.server, grant.tool)
            self._fill()

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)

    def _fill(self) -> None:
        self.query_one(RowList).set_items(list(self._grants()), keep=lambda grant: (grant.server, grant.tool))


def _row(grant: Sighting, width: int) -> Content:
    how_long = "until mcphost exits" if grant.lifetime is Lifetime.SESSION else "always"
    return columns(
        width,
        [
            Cell(grant.server, "bold", 6, 16),
            Cell(show_line(grant.tool, 60), "", 12),
            Cell(how_long, "", 6, 19),
            Cell(f"{grant.since:%-d %b %Y %H:%M}", "$foreground-muted", 0, 18, "right"),
        ],
    )
