"""A screen to read a text in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from mcphost.protocol.display import show
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.markdown import Line, MarkdownView
from mcphost.tui.kit.messages import PagerRequested
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.text_view import Spans, TextView


class ReaderScreen(FramedScreen[bool]):
    """Shows foreign ``text`` with marks; ``is_json`` or ``spans`` colour it, ``markdown`` is it as rendered.

    Dismissed with whether the end was on screen.
    """

    HELP = "A text to read."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="reader.back", tooltip="Close"),
        Binding("y", "copy", "copy", id="reader.copy", tooltip="Copy the text"),
        Binding("P", "page", "pager", show=False, id="reader.page", tooltip="Read it in your $PAGER"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ReaderScreen {
        & > .frame { width: 92%; height: 88%; padding: 0 1; }
    }
    """

    def __init__(
        self,
        title: str,
        text: str,
        *,
        is_json: bool = False,
        spans: Callable[[str], Spans] | None = None,
        markdown: Sequence[Line] | None = None,
    ) -> None:
        super().__init__()
        self._title, self._text = title, text
        self._spans, self._markdown = json_spans if is_json else spans, markdown
        self._read_to_the_end = False

    def compose(self) -> ComposeResult:
        with self.framed(self._title, "y copy · esc back"):
            if self._markdown is None:
                yield TextView(show(self._text).split("\n"), spans=self._spans)
            else:
                yield MarkdownView(self._markdown, fit=False)

    def on_mount(self) -> None:
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
        """Copy the text as it came."""
        self.app.copy_to_clipboard(self._text)

    def action_page(self) -> None:
        self.post_message(PagerRequested(self._text))
