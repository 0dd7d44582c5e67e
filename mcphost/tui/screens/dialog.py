"""What every question has in common: it docks at the bottom, ignores the keys one was still typing, and may be parked.

Knows layout and guards; a subclass says what is asked and which keys answer it.
"""

from __future__ import annotations

import time
from typing import ClassVar, TypeVar

from textual import on
from textual.binding import Binding, BindingType
from textual.events import Mount
from textual.screen import ModalScreen

Result = TypeVar("Result")


class Dialog(ModalScreen[Result]):
    """A modal that leaves what is behind it readable."""

    HELP: ClassVar[str] = ""
    _shown_at = 0.0

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,p", "park", "leave it in the inbox", id="dialog.park", tooltip="Answer later; f2 lists it"),
    ]

    DEFAULT_CSS = """
    Dialog {
        align: center bottom;
        background: $background 40%;
        & > .dialog {
            width: 100%;
            max-width: 140;
            height: auto;
            max-height: 90%;
            border: round $accent;
            background: $surface;
            padding: 0 1;
        }
        &.-careful > .dialog { border: round $warning; }
        .row { height: auto; }
        .label { width: 14; color: $text-muted; padding-right: 1; }
        .value { width: 1fr; }
    }
    """

    @on(Mount)
    def start_guard(self) -> None:
        """Start the guard's clock."""
        self._shown_at = time.monotonic()

    def shown_for(self) -> float:
        """Seconds since the dialog appeared."""
        return time.monotonic() - self._shown_at if self.is_mounted else 0.0

    def action_park(self) -> None:
        """Close without an answer; the question stays in the inbox."""
        self.dismiss(None)
