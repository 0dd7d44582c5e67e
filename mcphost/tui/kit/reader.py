"""A text to read in full: a definition, a log line, the help of something."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.protocol.display import show
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.modal import KEYS
from mcphost.tui.kit.text_view import Spans, TextView


class ReaderScreen(ErrorBoundary, ModalScreen[bool]):
    """Shows ``text`` from outside, marked; ``is_json`` or ``spans`` colour it.

    Dismissed with whether its end was on screen.
    """

    HELP = "A text to read. The arrow keys and page keys scroll, z wraps or not, y copies, esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="reader.back", tooltip="Close"),
        Binding("y", "copy", "copy", id="reader.copy", tooltip="Copy the text"),
        KEYS,
    ]

    DEFAULT_CSS = """
    ReaderScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 92%; height: 88%; border: round $border; background: $surface; padding: 0 1; }
    }
    """

    def __init__(
        self, title: str, text: str, *, is_json: bool = False, spans: Callable[[str], Spans] | None = None
    ) -> None:
        super().__init__()
        self._title, self._text = title, text
        self._spans = json_spans if is_json else spans
        self._read_to_the_end = False

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = "y copy · esc back"
            yield TextView(show(self._text).split("\n"), spans=self._spans)

    def on_mount(self) -> None:
        """Notice when the end is reached."""
        view = self.query_one(TextView)
        view.focus()
        self.watch(view, "scroll_y", self._check_end, init=False)
        self.watch(view, "virtual_size", self._check_end, init=False)
        self.call_after_refresh(self._check_end)

    def action_back(self) -> None:
        self.dismiss(self._read_to_the_end)

    def _check_end(self) -> None:
        view = self.query_one(TextView)
        if view.size.height and view.scroll_offset.y >= view.max_scroll_y:
            self._read_to_the_end = True

    def action_copy(self) -> None:
        """Put the text, as it came, on the clipboard."""
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.")
