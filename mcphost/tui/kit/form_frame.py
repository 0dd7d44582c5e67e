"""The frame around a form above its result: as tall as its parts, within the pane."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from textual import on
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message

from mcphost.tui.textual_private.corrections import SizedByContent


@runtime_checkable
class TellsRows(Protocol):
    """A part of the frame that fills its room, and reports the height that it needs."""

    def rows_for(self, width: int) -> int:
        """The rows that show all of it at this width."""


class NeedsRows(Message):
    """A part of the frame needs another number of rows."""


class FormFrame(Vertical, SizedByContent):
    DEFAULT_CSS = """
    FormFrame {
        border: round $border-blurred; border-title-color: $foreground-muted;
        height: auto; min-height: 9; max-height: 50%;
        &:focus-within { border: round $border; }
    }
    """

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return sum(
            part.rows_for(width)
            if isinstance(part, TellsRows)
            else part.get_content_height(container, viewport, width - part.gutter.width) + part.gutter.height
            for part in self.children
            if part.display
        )

    @on(NeedsRows)
    def fit(self, event: NeedsRows) -> None:
        event.stop()
        self.refresh(layout=True)
