"""The frame around a form above its result: as tall as the form, as far as the pane has the rows."""

from __future__ import annotations

from textual.containers import Vertical


class FormFrame(Vertical):
    DEFAULT_CSS = """
    FormFrame {
        border: round $border-blurred; border-title-color: $foreground-muted;
        height: auto; min-height: 9; max-height: 50%;
        &:focus-within { border: round $border; }
    }
    """
