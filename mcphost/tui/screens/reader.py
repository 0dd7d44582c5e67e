"""A text to read in full: a definition, a log line, the help of something."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.highlight import highlight
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.protocol.display import show

HIGHLIGHTED: int = 100_000
"""Characters up to which colouring is quick enough."""


class ReaderScreen(ModalScreen[None]):
    """Shows ``text`` from outside, marked, with colours for ``language`` where it is small enough."""

    HELP = "A text to read. The arrow keys and page keys scroll, y copies, esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="reader.back", tooltip="Close"),
        Binding("y", "copy", "copy", id="reader.copy", tooltip="Copy the text"),
    ]

    DEFAULT_CSS = """
    ReaderScreen {
        align: center middle;
        background: $background 40%;
        & > VerticalScroll { width: 92%; height: 88%; border: round $accent; background: $surface; padding: 0 1; }
    }
    """

    def __init__(self, title: str, text: str, language: str | None = None) -> None:
        super().__init__()
        self._title, self._text, self._language = title, text, language

    def compose(self) -> ComposeResult:
        """A scrolling text."""
        shown = show(self._text, limit=400_000)
        coloured = self._language and len(shown) <= HIGHLIGHTED
        content = highlight(shown, language=self._language) if coloured else Content(shown)
        with VerticalScroll() as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = "y copy · esc back"
            yield Static(content, markup=False)

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Put the text, as it came, on the clipboard."""
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.")
