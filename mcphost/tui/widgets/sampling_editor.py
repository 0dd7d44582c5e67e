"""A box in which a part of a request or an answer is changed, or an answer written; what is unseen is marked in it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.tui.widgets.sampling_parts import PartDraft
from mcphost.tui.widgets.schema_form.lines import JsonArea, SafeArea
from mcphost.tui.widgets.schema_form.typed import conceal, escape, reveal


class PartEditor(Vertical):
    """Empty until `edit`; `text` is what stands in it."""

    DEFAULT_CSS = """
    PartEditor {
        height: 1fr;
        & > TextArea, & > TextArea:focus { height: 1fr; border: round $accent; padding: 0 1; background: $surface; }
        & > .problem { height: auto; max-height: 3; color: $text-error; padding: 0 1; display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._area: SafeArea = SafeArea()
        self._problem = Static(classes="problem", markup=False)
        self._before = ""

    def compose(self) -> ComposeResult:
        """The box is made when something is edited."""
        yield self._problem

    async def edit(self, title: str, draft: PartDraft, hint: str = "") -> None:
        """Begin with this; ``title`` and ``hint`` (for an empty box) are safe to show."""
        self.say("")
        await self.query(SafeArea).remove()
        kind = JsonArea if draft.is_json else SafeArea
        self._before = escape(draft.text) if draft.is_json else conceal(draft.text, lines=True)
        self._area = kind(self._before, compact=False, highlight_cursor_line=False, placeholder=hint)
        self._area.cursor_blink = False
        self._area.border_title = Content(title)
        await self.mount(self._area, before=self._problem)
        self._area.move_cursor(self._area.document.end)
        self._area.focus()

    @property
    def text(self) -> str:
        """What stands there, with what was marked as it is."""
        return self._area.text if isinstance(self._area, JsonArea) else reveal(self._area.text)

    @property
    def changed(self) -> bool:
        """Is it another text than at the beginning?"""
        return self._area.text != self._before

    def say(self, problem: str) -> None:
        """Why it will not do; nothing with ``""``."""
        self._problem.update(Content(problem))
        self._problem.display = bool(problem)
