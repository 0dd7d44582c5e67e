"""The text of a sampling dialog: to read, while it streams, or to edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.forms.text_boxes import SafeArea
from mcphost.tui.kit.answers import ReadToEnd
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.results import content
from mcphost.tui.results.blocks import BlockView
from mcphost.tui.sampling.request_parts import PartsText

GROWING: Final = 14
"""Rows for what is written or streamed, whose end is not known."""

WINDOW: Final = 20_000
"""Characters that are shown while the answer grows; up to twice as many, so that each update costs the same."""


class _Picture(BlockView):
    """A picture of a prompt. The keys of other blocks do not work here."""

    def _footnote(self) -> str:
        return ""


class _Editor(SafeArea):
    def action_undo(self) -> None:
        """Undo without the selection of then: the next key would replace it, and with it the whole text."""
        super().action_undo()
        self.move_cursor(self.selection.end)


class TextPane(Vertical):
    """Shows a text to read or the editor; both while an answer is written, for which one reads the prompt."""

    DEFAULT_CSS = """
    TextPane {
        height: 1fr;
        & > ReadToEnd { height: 1fr; }
        & > SafeArea, & > SafeArea:focus { height: 1fr; border: round $border; padding: 0 1; background: $surface; }
        & > SafeArea { display: none; }
        & > .problem { height: auto; max-height: 3; color: $text-error; padding: 0 1; display: none; }
        &.-editing > ReadToEnd { display: none; }
        &.-editing > SafeArea { display: block; }
        &.-writing > ReadToEnd { display: block; height: auto; max-height: 50%; }
        &.-writing > SafeArea { min-height: 6; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.read, self.stream = ReadToEnd(), TextView(fit=True)
        self.area = _Editor("", compact=False, highlight_cursor_line=False)
        self.area.cursor_blink = False
        self._problem = Static(classes="problem", markup=False)
        self.shown: object = None
        """The key of the text to read; None while an answer streams."""

    def compose(self) -> ComposeResult:
        yield self.read
        yield self.area
        yield self._problem

    @property
    def growing(self) -> bool:
        """True while something is written or streamed, so that the rows it will need are not known."""
        return self.has_class("-editing") or self.stream.is_attached

    @property
    def needed(self) -> int:
        """The rows to show all that is in view."""
        return GROWING if self.growing else max((each.virtual_region.bottom for each in self.read.children), default=1)

    async def show_text(self, key: object, text: PartsText, head: Sequence[Widget] = ()) -> None:
        """Show this text below ``head``."""
        await self._show(key, [*head, *(_widget(piece, text) for piece in text.to_read())])

    async def show_stream(self, text: str, title: str) -> None:
        """Show the end of a growing text, and follow it until the user scrolls back."""
        if not self.stream.is_attached:
            self.stream = TextView(fit=True)
            await self._show(None, [self.stream])
            # Not by a comparison with the end before each text: on a slow machine the last one is not laid out yet.
            self.read.call_after_refresh(self.read.anchor)  # after a new text is scrolled to its top
        start = max(0, len(text) // WINDOW - 1) * WINDOW
        notice = [f"⟨the first {size_text(start)} are shown when it is done⟩"] if start else [title][: bool(title)]
        self.stream.load([*notice, *show(text[start:]).split("\n")], home=False)

    async def _show(self, key: object, widgets: Sequence[Widget]) -> None:
        before, self.shown = self.read, key
        # Another container, since the old one may have been scrolled to its end: the new text is not read yet.
        self.read = ReadToEnd(*widgets)
        await before.remove()
        await self.mount(self.read, before=self.area)

    def edit(self, title: str, text: str, hint: str = "") -> None:
        """Edit this text, with the cursor at its end and nothing selected, so that the first key replaces nothing.

        ``title``, ``text`` and the placeholder ``hint`` are safe to show.
        """
        self.show_problem("")
        self.area.border_title, self.area.placeholder = Content(title), hint
        self.area.load_text(text)
        self.area.move_cursor(self.area.document.end)
        self.area.focus()

    def show_problem(self, problem: str) -> None:
        """Show why the text is not accepted; ``""`` hides it."""
        self._problem.update(Content(f"✖ {show_line(problem, 200)}" if problem else ""))
        self._problem.display = bool(problem)


def _widget(piece: list[str] | content.Block, text: PartsText) -> Widget:
    return TextView(piece, spans=text.spans, fit=True) if isinstance(piece, list) else _Picture(piece)
