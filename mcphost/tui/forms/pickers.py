"""Pickers: a choice by keys instead of typing, for booleans and enums.

An entry that is not one of the choices is kept, and shown as such, until the user chooses. Textual's Select cannot hold
such an entry, and opens a list over the fields below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.form import ABSENT, FormField
from mcphost.tui.forms.text_boxes import StepAway
from mcphost.tui.kit.rows import rows_around

LABEL: Final = 120


class Picked(Message):
    """The entry or the height of a picker changed."""


class Picker(Widget, can_focus=True):
    """The base of pickers: an entry, a height, and leaving."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "up", "step(-1)", "before", id="form.pick_up", show=False, tooltip="Previous item, or the previous field"
        ),
        Binding("down", "step(1)", "next", id="form.pick_down", show=False, tooltip="Next item, or next field"),
        Binding("left", "cycle(-1)", "choice before", id="form.pick_left", show=False, tooltip="Previous choice"),
        Binding("right", "cycle(1)", "next choice", id="form.pick_right", show=False, tooltip="The next choice"),
        Binding("space", "press", "choose", id="form.pick", tooltip="Choose, or open the list"),
        Binding("enter", "enter", "go on", id="form.pick_enter", show=False, tooltip="Open the list, choose, go on"),
        Binding("backspace,delete", "clear", "clear", id="form.pick_clear", show=False, tooltip="Choose nothing"),
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
        return self._entry

    @entry.setter
    def entry(self, entry: Any) -> None:
        self._entry = entry
        self.changed()

    def height_for(self, width: int) -> int:
        return 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.height_for(width)

    def changed(self) -> None:
        """Draw the entry, and post `Picked`."""
        self.refresh(layout=True)
        self.post_message(Picked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of lists are left to others."""
        return action not in ("page", "close")

    def action_step(self, direction: int) -> None:
        self.post_message(StepAway(self, direction))

    def action_enter(self) -> None:
        self.post_message(StepAway(self, 1, entered=True))

    def action_press(self) -> None:
        self.action_cycle(1)

    def action_cycle(self, direction: int) -> None:
        """Choose the next or previous option."""

    def action_clear(self) -> None:
        self.entry = ABSENT


class YesNo(Picker):
    """Yes, no, and "not set" where the field may be left out."""

    def __init__(self, field: FormField, entry: Any) -> None:
        super().__init__(field, entry)
        self._options: list[tuple[Any, str]] = [(True, "yes"), (False, "no")]
        if not field.required and (field.default is ABSENT or entry == "" or field.nullable):
            self._options.insert(0, ("", "null" if field.null_when_empty else "not set"))
        if field.nullable and not field.null_when_empty:
            self._options.append(("null", "null"))

    def render(self) -> Content:
        parts = [_radio(self._entry == entry, word) for entry, word in self._options]
        if all(self._entry != entry for entry, _ in self._options):
            nothing = "choose one" if self.field.required else "not set"
            parts.append(
                unknown_entry(self._entry) if self._entry != "" else Content.styled(nothing, "$foreground-muted")
            )
        return Content("  ").join(parts)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character in ("y", "n")

    def on_key(self, event: events.Key) -> None:
        if event.character in ("y", "n"):
            event.stop()
            self.entry = event.character == "y"

    def on_click(self, event: events.Click) -> None:
        start = 0
        for entry, word in self._options:
            if start <= event.x < start + len(word) + 2:
                self.entry = entry
            start += len(word) + 4

    def action_cycle(self, direction: int) -> None:
        """Choose the next or previous option."""
        entries = [entry for entry, _ in self._options]
        known = self._entry in entries
        index = entries.index(self._entry) + direction if known else (0 if direction > 0 else -1)
        self.entry = entries[index % len(entries)]

    def action_clear(self) -> None:
        self.entry = ""


def _radio(chosen: bool, word: str) -> Content:
    return Content.styled(f"{'●' if chosen else '○'} {word}", "bold" if chosen else "$foreground-muted")


def unknown_entry(entry: Any) -> Content:
    """Show an entry that is not one of the choices."""
    text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
    return Content.styled(f"▲ {show_line(text, LABEL)}", "$text-error")


class RowsBox(Picker):
    """The number of rows of a list or a map; space adds one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "press", "add a row", id="form.rows_add", tooltip="Add a row at the end"),
    ]

    class Added(Message):
        """The user wants another row."""

        def __init__(self, box: RowsBox) -> None:
            super().__init__()
            self.box = box

    def render(self) -> Content:
        count = self._entry if isinstance(self._entry, int) else 0
        rows = "1 row" if count == 1 else f"{count:,} rows" if count else "no rows"
        add = Content.styled("+ add", "$text-accent")
        key = Content.styled(" (space)", "$foreground-muted") if self.has_focus else Content("")
        return Content.assemble(add, key, "  ", (rows, "" if count else "$foreground-muted"))

    def on_click(self, event: events.Click) -> None:
        self.action_press()

    def action_press(self) -> None:
        self.post_message(self.Added(self))

    def action_clear(self) -> None:
        """Rows are deleted one by one."""


LIST_LINES: Final = 8


class _ListPicker(Picker):
    """A list with a cursor and a filter; only visible lines are made."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # For the footer, and for a click on it; no key has this name.
        Binding("type", "search", "to search", id="form.pick_search", tooltip="Letters search in the list"),
    ]

    def __init__(self, field: FormField, entry: Any, extra: Sequence[tuple[Any, str]] = ()) -> None:
        super().__init__(field, entry)
        self.options: list[tuple[Any, str]] = [*extra, *field.choices]
        self.filter = ""
        self.cursor = 0
        self._matches: Sequence[int] = range(len(self.options))
        self._casefolded: list[str] | None = None

    @property
    def at_cursor(self) -> int | None:
        """The index of the option under the cursor; None in an empty list."""
        return self._matches[self.cursor] if self._matches else None

    @property
    def rows(self) -> int:
        return max(1, min(LIST_LINES, len(self._matches)))

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Letters are typed into the filter, so that none of them is offered as a key."""
        return key == "slash" or (character is not None and character.isprintable() and character != " ")

    def action_search(self) -> None:
        """Make ready for letters."""

    def chosen(self, index: int) -> bool:
        return False

    def index_of(self, value: Any) -> int | None:
        return next((index for index, (each, _) in enumerate(self.options) if same(each, value)), None)

    def narrow(self, text: str) -> None:
        """List the options that contain ``text``; the cursor stays on its option if that is still listed."""
        if self._casefolded is None:
            self._casefolded = [label.casefold() for _, label in self.options]
        before = self.at_cursor
        needle = text.casefold()
        self.filter = text
        self._matches = [index for index, label in enumerate(self._casefolded) if needle in label]
        self.cursor = self._matches.index(before) if before in self._matches else 0
        self.refresh(layout=True)
        self.post_message(Picked())

    def list_lines(self, width: int) -> Iterator[Content]:
        """The lines around the cursor."""
        if not self._matches:
            yield Content.styled("  nothing matches; backspace", "$foreground-muted")
        for place in rows_around(self.cursor, len(self._matches), self.rows):
            index = self._matches[place]
            here = place == self.cursor and self.has_focus
            line = Content.assemble("▸" if here else " ", self.mark(index), " ", self.label(index))
            yield line.truncate(width, ellipsis=True).stylize("bold" if here else "")

    def mark(self, index: int) -> str:
        return "●" if self.chosen(index) else "○"

    def label(self, index: int) -> str:
        return show_line(self.options[index][1], LABEL) or '""'

    def count(self) -> str:
        """``8 of 10,000``."""
        return f"{len(self._matches):,} of {len(self.options):,}"

    def move(self, step: int) -> None:
        self.cursor = max(0, min(self.cursor + step, len(self._matches) - 1))
        self.refresh()

    def action_page(self, direction: int) -> None:
        self.move(direction * LIST_LINES)


class OneOf(_ListPicker):
    """One choice: left and right change it, enter opens the list, letters filter the list."""

    def __init__(self, field: FormField, entry: Any) -> None:
        extra: list[tuple[Any, str]] = []
        if not field.required:
            extra.append((ABSENT, "null" if field.null_when_empty else "not set"))
        if field.nullable and not field.null_when_empty and all(value is not None for value, _ in field.choices):
            extra.append((None, "null"))
        super().__init__(field, entry, extra)
        self.open = False

    def height_for(self, width: int) -> int:
        return 1 + self.rows if self.open else 1

    def chosen(self, index: int) -> bool:
        return same(self.options[index][0], self._entry)

    def render(self) -> Content:
        width = max(self.size.width, 4)
        if not self.open:
            return self._choice().truncate(width, ellipsis=True)
        search = Content.assemble(("/ ", "$foreground-muted"), show_line(self.filter, 40), ("▏", "bold"))
        head = Content.assemble(search, " ", (self.count(), "$foreground-muted"))
        return Content("\n").join([head.truncate(width, ellipsis=True), *self.list_lines(width)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.open or action not in ("page", "close")

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character and (event.character != " " or self.filter):
            event.stop()
            event.prevent_default()
            self._show()
            self.narrow(self.filter + event.character)

    def on_blur(self) -> None:
        self.action_close()

    def action_search(self) -> None:
        self._show()

    def on_click(self, event: events.Click) -> None:
        self._show()

    def action_step(self, direction: int) -> None:
        """Move in the open list, else go to another field."""
        if self.open:
            self.move(direction)
        else:
            super().action_step(direction)

    def action_cycle(self, direction: int) -> None:
        if not self.options or self.open:
            return
        index = self.index_of(self._entry)
        index = (-1 if direction > 0 else 0) if index is None else index
        self.entry = self.options[(index + direction) % len(self.options)][0]

    def action_press(self) -> None:
        """Open the list, or choose from it."""
        if self.open:
            self._choose()
        else:
            self._show()

    def action_enter(self) -> None:
        """Open the list, or choose from it and go on."""
        if not self.open:
            self._show()
        elif self._choose():
            self.post_message(StepAway(self, 1))

    def action_close(self) -> None:
        """Close the list without choosing."""
        if self.open:
            self.open = False
            self.changed()

    def action_clear(self) -> None:
        """Delete a letter of the filter, or choose nothing."""
        if self.open and self.filter:
            self.narrow(self.filter[:-1])
        elif not self.open:
            self.entry = ABSENT

    def _show(self) -> None:
        if not self.open and self.options:
            self.open = True
            self.narrow("")
            self.cursor = self.index_of(self._entry) or 0

    def _choose(self) -> bool:
        if self.at_cursor is None:
            return False
        self._entry = self.options[self.at_cursor][0]
        self.action_close()
        return True

    def _choice(self) -> Content:
        index = self.index_of(self._entry)
        if index is None:
            nothing = self._entry is ABSENT
            middle = Content.styled("choose one", "$foreground-muted") if nothing else unknown_entry(self._entry)
        else:
            middle = Content.styled(self.label(index), "$foreground-muted" if self._entry is ABSENT else "")
        place = Content.styled(
            f"  {len(self.field.choices):,} choices" if len(self.field.choices) > 1 else "", "$foreground-muted"
        )
        return Content.assemble(("◂ ", "$text-accent"), middle, (" ▸", "$text-accent"), place)


class SeveralOf(_ListPicker):
    """Several choices: space toggles one, letters filter the list."""

    def __init__(self, field: FormField, entry: Any) -> None:
        super().__init__(field, entry)
        self._picked: dict[int, None] = {}
        self._read()

    @property
    def entry(self) -> Any:
        """The chosen values in the order they were chosen; the original entry until something is chosen."""
        return self._entry

    @entry.setter
    def entry(self, entry: Any) -> None:
        self._entry = entry
        self._read()
        self.changed()

    def height_for(self, width: int) -> int:
        return 1 + self.rows

    def chosen(self, index: int) -> bool:
        return index in self._picked

    def mark(self, index: int) -> str:
        return "[x]" if self.chosen(index) else "[ ]"

    def render(self) -> Content:
        width = max(self.size.width, 4)
        head = Content.styled(f"{len(self._picked):,} chosen of {len(self.options):,}", "$foreground-muted")
        if self.filter:
            head = Content.assemble(head, " · / ", show_line(self.filter, 40), ("▏", "bold"))
        if self._entry not in (ABSENT, "") and not self._is_known():
            head = Content.assemble(head, " ", unknown_entry(self._entry))
        return Content("\n").join([head.truncate(width, ellipsis=True), *self.list_lines(width)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is left to others unless there is a filter."""
        return action != "close" or bool(self.filter)

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character and event.character != " ":
            event.stop()
            event.prevent_default()
            self.narrow(self.filter + event.character)

    def on_focus(self) -> None:
        self.refresh()

    def action_step(self, direction: int) -> None:
        """Move in the list, and leave it at its ends."""
        if 0 <= self.cursor + direction < len(self._matches):
            self.move(direction)
        else:
            self.post_message(StepAway(self, direction))

    def action_press(self) -> None:
        index = self.at_cursor
        if index is None:
            return
        if self.chosen(index):
            del self._picked[index]
        else:
            self._picked[index] = None
        self._entry = [self.options[each][0] for each in self._picked]
        self.changed()

    def action_close(self) -> None:
        self.narrow("")

    def action_clear(self) -> None:
        if self.filter:
            self.narrow(self.filter[:-1])

    def _is_known(self) -> bool:
        return isinstance(self._entry, list) and len(self._picked) == len(self._entry)

    def _read(self) -> None:
        values = self._entry if isinstance(self._entry, list) else []
        places = {_key(value): index for index, (value, _) in reversed(list(enumerate(self.options)))}
        found = (places.get(_key(value)) for value in values)
        self._picked = {index: None for index in found if index is not None}


def same(one: Any, other: Any) -> bool:
    """True if they are the same choice. Unlike in Python, true is not 1."""
    return one is other or (isinstance(one, bool) == isinstance(other, bool) and bool(one == other))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
