"""Words for a server that is refused: a line, which may stay empty."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from mcphost.tui.faults import ErrorBoundary


class WordsScreen(ErrorBoundary, ModalScreen[str | None]):
    """Dismissed with what shall be said to ``server`` (safe to show), or with None: then it is not refused."""

    HELP = "Say why, if you like: whoever asked gets these words with your no. enter refuses, esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="words.back", tooltip="Go back without refusing"),
    ]

    DEFAULT_CSS = """
    WordsScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 120; height: auto; border: round $warning; background: $surface; padding: 0 1;
        }
        Input { background: $panel; }
    }
    """

    def __init__(self, server: str) -> None:
        super().__init__()
        self._server = server

    def compose(self) -> ComposeResult:
        """A field in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Refuse · what shall {self._server} be told?")
            frame.border_subtitle = "enter refuse · esc back"
            yield Input(placeholder="nothing but no", compact=True, max_length=1000)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())

    def action_back(self) -> None:
        """Close; it is not refused."""
        self.dismiss(None)
