"""What stands at the end of a form: its keys, to be clicked too, and what there is when there are no fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from mcphost.tui.widgets.schema_form.lines import StepAway


class NoFields(Static, can_focus=True):
    """Stands where there is nothing to fill in, and takes the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "run", id="form.empty", show=False, tooltip="Submit the form"),
    ]

    DEFAULT_CSS = """
    NoFields { height: auto; padding: 0 1; color: $text-muted; &:focus { color: $text; } }
    """

    def action_enter(self) -> None:
        """Go on."""
        self.post_message(StepAway(self, 1, entered=True))


class FormKeys(Static):
    """The buttons at the end, as a line."""

    DEFAULT_CSS = """
    FormKeys { height: 1; padding: 0 1; text-align: right; color: $text-muted; }
    """

    @dataclass
    class Pressed(Message):
        """A button was clicked."""

        action: str

    def action_press(self, action: str) -> None:
        """Tell the form."""
        self.post_message(self.Pressed(action))

    def offer(self, submit_label: str, other: str) -> None:
        """Show what submitting is called, and what ``ctrl+j`` leads to; nothing does with ``""``."""
        action = "fields" if other == "fields" else "raw"
        toggle = f" · [@click=press('{action}')]ctrl+j {other}[/]" if other else ""
        keys = f"[@click=press('submit')]ctrl+r $label[/]{toggle}"
        self.update(Content.from_markup(keys, label=submit_label))
