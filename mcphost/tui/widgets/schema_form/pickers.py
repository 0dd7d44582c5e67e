"""What one chooses with instead of typing: what all pickers have in common, and yes or no.

An entry that is no choice is kept, and shown as such, until one chooses.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from mcphost.protocol.display import show_line
from mcphost.protocol.forms import ABSENT, FormField
from mcphost.tui.widgets.schema_form.lines import StepAway

LABEL: Final = 120
"""Characters of a label that are shown."""


class Picked(Message):
    """A picker's entry, or its height, changed."""


class Picker(Widget, can_focus=True):
    """What all pickers have in common: an entry, a height, and leaving."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "before", id="form.pick_up", show=False, tooltip="Before, or the field before"),
        Binding("down", "step(1)", "next", id="form.pick_down", show=False, tooltip="Next, or the next field"),
        Binding("left", "cycle(-1)", "choice before", id="form.pick_left", show=False, tooltip="The choice before"),
        Binding("right", "cycle(1)", "next choice", id="form.pick_right", show=False, tooltip="The next choice"),
        Binding("space", "press", "choose", id="form.pick", tooltip="Choose, or open the list"),
        Binding("enter", "enter", "go on", id="form.pick_enter", show=False, tooltip="Open the list, choose, go on"),
        Binding("backspace,delete", "clear", "leave out", id="form.pick_clear", show=False, tooltip="Choose nothing"),
        Binding("pageup", "page(-1)", "page up", id="form.pick_pageup", show=False, tooltip="A page up"),
        Binding("pagedown", "page(1)", "page down", id="form.pick_pagedown", show=False, tooltip="A page down"),
        Binding(
            "escape", "close", "close the list", id="form.pick_close", show=False, tooltip="Close without choosing"
        ),
    ]

    DEFAULT_CSS = """
    Picker { height: auto; background: $surface; &:focus { background: $boost; } }
    """

    def __init__(self, field: FormField, entry: Any) -> None:
        super().__init__()
        self.field = field
        self._entry = entry

    @property
    def entry(self) -> Any:
        """What is chosen."""
        return self._entry

    @entry.setter
    def entry(self, entry: Any) -> None:
        self._entry = entry
        self.changed()

    def height_for(self, width: int) -> int:
        """One line."""
        return 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See `height_for`."""
        return self.height_for(width)

    def changed(self) -> None:
        """Show the entry, and tell."""
        self.refresh(layout=True)
        self.post_message(Picked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys for lists are someone else's while there is none."""
        return action not in ("page", "close")

    def action_step(self, direction: int) -> None:
        """Go to another field."""
        self.post_message(StepAway(self, direction))

    def action_enter(self) -> None:
        """Go on."""
        self.post_message(StepAway(self, 1, entered=True))

    def action_press(self) -> None:
        """Choose the next one."""
        self.action_cycle(1)

    def action_cycle(self, direction: int) -> None:
        """Choose the next or the one before."""

    def action_clear(self) -> None:
        """Choose nothing."""
        self.entry = ABSENT


class YesNo(Picker):
    """Yes, no and, where it may be left out, not set."""

    def __init__(self, field: FormField, entry: Any) -> None:
        super().__init__(field, entry)
        self._options: list[tuple[Any, str]] = [(True, "yes"), (False, "no")]
        if not field.required and (field.default is ABSENT or entry == "" or field.nullable):
            self._options.insert(0, ("", "null" if field.null_when_empty else "not set"))
        if field.nullable and not field.null_when_empty:
            self._options.append(("null", "null"))

    def render(self) -> Content:
        """All of them on a line."""
        parts = [_radio(self._entry == entry, word) for entry, word in self._options]
        if all(self._entry != entry for entry, _ in self._options):
            nothing = "choose one" if self.field.required else "not set"
            parts.append(stray(self._entry) if self._entry != "" else Content.styled(nothing, "$foreground-muted"))
        return Content("  ").join(parts)

    def on_key(self, event: events.Key) -> None:
        """Letters choose."""
        if event.character in ("y", "n"):
            event.stop()
            self.entry = event.character == "y"

    def on_click(self, event: events.Click) -> None:
        """A click chooses what stands there."""
        start = 0
        for entry, word in self._options:
            if start <= event.x < start + len(word) + 2:
                self.entry = entry
            start += len(word) + 4

    def action_cycle(self, direction: int) -> None:
        """Choose the next or the one before."""
        entries = [entry for entry, _ in self._options]
        known = self._entry in entries
        index = entries.index(self._entry) + direction if known else (0 if direction > 0 else -1)
        self.entry = entries[index % len(entries)]

    def action_clear(self) -> None:
        """Choose nothing."""
        self.entry = ""


def _radio(chosen: bool, word: str) -> Content:
    return Content.styled(f"{'●' if chosen else '○'} {word}", "bold" if chosen else "$foreground-muted")


def stray(entry: Any) -> Content:
    """Show an entry that is no choice."""
    told = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
    return Content.styled(f"▲ {show_line(told, LABEL)}", "$text-error")
