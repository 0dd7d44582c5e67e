"""The editor for arguments as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.form import FieldError, FieldKind, FormField, parse
from mcphost.tui.forms.text_boxes import JsonArea, escape

_ARGUMENTS = FormField(("arguments",), FieldKind.JSON, required=True)


class RawArea(JsonArea):
    DEFAULT_CSS = """
    RawArea, RawArea.-textual-compact { background: $surface; height: auto; min-height: 5; max-height: 100%; }
    """

    def __init__(self) -> None:
        super().__init__(compact=True, show_line_numbers=True, highlight_cursor_line=False)
        self.cursor_blink = False


class RawEditor(Vertical):
    """The editor, the reason why it is shown, and the problems of its text."""

    DEFAULT_CSS = """
    RawEditor {
        height: auto; max-height: 100%;
        & > #reason { dock: top; height: auto; max-height: 3; color: $foreground-muted; padding: 0 1; }
        & > #problems { dock: bottom; height: auto; max-height: 8; padding: 0 1; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._listed: Sequence[tuple[str, str]] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="reason", markup=False)
        yield RawArea()
        yield Static(id="problems", markup=False)

    @property
    def area(self) -> RawArea:
        return self.query_one(RawArea)

    @property
    def text(self) -> str:
        return self.area.text

    @text.setter
    def text(self, text: str) -> None:
        self.area.text = escape(text)

    def explain(self, reason: str) -> None:
        """Say why JSON is shown instead of fields."""
        self.query_one("#reason", Static).update(Content(show_line(reason)))

    def list_problems(self, problems: Sequence[tuple[str, str]]) -> None:
        if problems == self._listed:
            return  # an update lays out the whole screen
        self._listed = problems
        lines = [
            Content.assemble(("▲ ", "bold $text-error"), *_problem_line(place, words)) for place, words in problems[:7]
        ]
        if len(problems) > len(lines):
            lines.append(Content.styled(f"and {len(problems) - len(lines)} more", "$foreground-muted"))
        widget = self.query_one("#problems", Static)
        widget.update(Content("\n").join(lines))
        widget.display = bool(lines)


def read_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the object in ``text``, or None and the reason."""
    try:
        value = parse(_ARGUMENTS, text)
    except FieldError as error:
        return None, f"this {error}"
    if not isinstance(value, dict):
        return None, "the arguments must be an object: { … }"
    return value, ""


def _problem_line(place: str, words: str) -> tuple[Content, Content]:
    where = Content.styled(f"{show_line(place, 80)} " if place else "", "bold")
    return where, Content(show_line(words, 300))
