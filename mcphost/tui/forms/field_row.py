"""One row of a form: the label, the box, the limits, the description, and what is wrong.

A row draws everything except the box itself, so that a form of two hundred fields stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, TextArea

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import TAB, show, show_line, unindented
from mcphost.protocol.forms.form import GROWING, FieldKind, FormField
from mcphost.tui.forms.pickers import OneOf, Picked, RowsBox, SeveralOf, YesNo
from mcphost.tui.forms.suggestions import SuggestingBox
from mcphost.tui.forms.text_boxes import JsonBox, LineBox, LinesBox, NeedsLines

Box = LineBox | LinesBox | JsonBox | YesNo | OneOf | SeveralOf | RowsBox

MOST_LINES = 10
"""Lines of a description that are shown while its field is focused."""

WIDEST = 130
"""Cells of a row; wider ones are hard to read."""

_NARROW = 72
_TINY = 34


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of a row's columns in cells. If ``note`` is 0 the note is below the box, if ``label`` is 0 the label
    above it.
    """

    label: int
    note: int

    @classmethod
    def fit(cls, fields: list[FormField], width: int) -> Columns:
        width = min(width, WIDEST)
        if width < _TINY:
            return cls(0, 0)
        longest = max((label_of(field).cell_length for field in fields), default=0)
        label = min(longest + 2, max(12, width // 3), 32)
        if width < _NARROW:
            return cls(label, 0)
        note = max((Content(note_of(field)).cell_length for field in fields), default=0)
        return cls(label, min(note + 2, width // 3))


def label_of(field: FormField) -> Content:
    """The label, indented by its depth, with a star if the field is required."""
    is_row = bool(field.path) and isinstance(field.path[-1], int)  # whose own fields have stars
    star = ("*", "bold $text-warning") if field.required and not is_row else ""
    return Content.assemble("  " * field.depth, show_line(field.label, 80), " " if star else "", star)


def note_of(field: FormField) -> str:
    """The limits of the value."""
    secret = "looks secret" if field.secret_looking else ""
    hidden = (
        ", ctrl+t shows it" if secret and field.kind in (FieldKind.STRING, FieldKind.INTEGER, FieldKind.NUMBER) else ""
    )
    return ", ".join(filter(None, [secret + hidden, field.constraints]))


def cut_at_word(content: Content, width: int) -> Content:
    """The content in at most ``width`` cells, cut between two words if it is longer."""
    if content.cell_length <= width:
        return content
    first = content.wrap(max(width - 1, 1))[0].rstrip()
    return Content.assemble(first, ("…", "$foreground-muted"))


def box_for(field: FormField, entry: Any) -> Box:
    return box_type(field, entry)(field, entry)


def box_type(field: FormField, entry: Any) -> type[Box]:
    """The type of the box for an entry of the field: JSON text has a box for JSON, text of several lines has lines."""
    if isinstance(entry, str) and field.kind in GROWING:
        return JsonBox
    if field.kind is FieldKind.STRING and isinstance(entry, str) and "\n" in entry and not field.secret_looking:
        return LinesBox
    return _BOXES.get(field.kind, LineBox)


_BOXES: dict[FieldKind, type[Box]] = {
    FieldKind.TEXT: LinesBox,
    FieldKind.LIST: LinesBox,
    FieldKind.JSON: JsonBox,
    FieldKind.BOOLEAN: YesNo,
    FieldKind.CHOICE: OneOf,
    FieldKind.CHOICES: SeveralOf,
    FieldKind.ROWS: RowsBox,
    FieldKind.MAP: RowsBox,
    FieldKind.BRANCH: OneOf,
}


class FieldRow(Widget):
    DEFAULT_CSS = """
    FieldRow { height: auto; width: 100%; max-width: 130; }
    """

    @dataclass
    class Edited(Message):
        """The user changed the entry."""

        row: FieldRow

    def __init__(self, field: FormField, entry: Any, columns: Columns, *, suggests: bool = False) -> None:
        """``suggests``: values are suggested for a line of text."""
        super().__init__()
        self.field = field
        self.columns = columns
        self.problem = ""
        self.touched = False
        suggests = suggests and box_type(field, entry) is LineBox and not field.secret_looking
        self.box: Box = SuggestingBox(field, entry) if suggests else box_for(field, entry)
        self._last_entry = self.box.entry
        self._height = 0
        self._place_box()

    def compose(self) -> ComposeResult:
        yield self.box

    @property
    def entry(self) -> Any:
        """The entry, as `mcphost.protocol.forms.form.parse` takes it."""
        return self.box.entry

    def put(self, entry: Any) -> None:
        """Set the entry; this is not an edit by the user."""
        if isinstance(self.box, LineBox) and isinstance(box_for(self.field, entry), LinesBox):
            self._swap(entry)
        else:
            self.box.entry = entry
            self._last_entry = self.box.entry

    def draws(self, field: FormField, entry: Any) -> bool:
        """True if this row can show the field with this entry."""
        mine = self.field
        same = (mine.kind, mine.choices, mine.required, mine.nullable) == (
            field.kind,
            field.choices,
            field.required,
            field.nullable,
        )
        return same and (isinstance(self.box, box_type(field, entry)) or mine.kind is FieldKind.STRING)

    def become(self, field: FormField, entry: Any) -> None:
        """Show another row of the same kind, as after a move."""
        self.field = self.box.field = field
        if self.box.entry is not entry and self.box.entry != entry:
            self.put(entry)
        self.refresh(layout=True)

    def show_problem(self, problem: str) -> None:
        """Show what is wrong; ``""`` removes it."""
        if problem != self.problem:
            self.problem = problem
            self._redraw()

    def fit(self, columns: Columns) -> None:
        """Use these column widths."""
        if columns != self.columns:
            self.columns = columns
            self._place_box()
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        height = self.rows_at(width)
        if height != self._height and self.is_mounted:
            self.call_after_refresh(self._show_focused)  # the focused row moves with this one
        self._height = height
        return height

    def rows_at(self, width: int) -> int:
        return self._above + self._box_height(width) + len(list(self._below(width)))

    def render(self) -> Content:
        width = max(self.size.width, 8)
        height = self._box_height(width)
        lines = [self._label(width)] if self._above else []
        for line in range(height):
            first = self._label(self.columns.label) if line == 0 and not self._above else Content("")
            edge = Content.styled("▏", "$text-accent" if self.focused else "$foreground-muted")
            lines.append(Content.assemble(first.pad_right(max(0, self._left - 1 - first.cell_length)), edge))
        if not self._note_is_below and (note := note_of(self.field)):
            shown = Content.styled(note, "$foreground-muted")
            lines[0] = Content.assemble(lines[0].pad_right(width - lines[0].cell_length - shown.cell_length), shown)
        return Content("\n").join([*lines, *self._below(width)])

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._redraw()
        self.call_after_refresh(self.scroll_visible, animate=False)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        self._redraw()

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Picked)
    def box_changed(self, event: Message) -> None:
        """Post edits by the user only: a box also reports what it was set to."""
        event.stop()
        entry = self.box.entry
        self._redraw()
        if entry is not self._last_entry and not (type(entry) is type(self._last_entry) and entry == self._last_entry):
            self._last_entry = entry
            self.touched = True
            self.post_message(self.Edited(self))

    @on(SuggestingBox.Updated)
    def suggestions_updated(self, event: SuggestingBox.Updated) -> None:
        event.stop()
        self._redraw()

    def on_click(self, event: events.Click) -> None:
        """Take the suggestion that was clicked."""
        if isinstance(self.box, SuggestingBox):
            chosen = self.box.suggestions.at_line(event.y - self._above - self._box_height(self.size.width))
            if chosen is not None:
                self.box.accept(chosen)

    @on(NeedsLines)
    def needs_lines(self, event: NeedsLines) -> None:
        """Change to a box of several lines, so that a pasted text is kept."""
        event.stop()
        self._swap(event.text).initial = None  # it was typed, and is not selected
        self.box.focus()
        self.touched = True
        self.post_message(self.Edited(self))

    @property
    def focused(self) -> bool:
        return self.box.has_focus

    @property
    def _above(self) -> int:
        return 0 if self.columns.label else 1

    @property
    def _left(self) -> int:
        return self.columns.label + 3 if self.columns.label else 3

    @property
    def _note_is_below(self) -> bool:
        """True if the limits are below the box: all of them are, or these are too long for their column."""
        return Content(note_of(self.field)).cell_length >= self.columns.note

    @property
    def _right(self) -> int:
        return self.columns.note if note_of(self.field) else 0

    def _redraw(self) -> None:
        """Draw the row; lay out the form only if the row's height changes."""
        before = self._height
        self.refresh(layout=self.get_content_height(self.size, self.size, self.size.width) != before)

    def _show_focused(self) -> None:
        if not self.is_attached:  # the form was closed meanwhile
            return
        focused = self.screen.focused
        row = next((each for each in focused.ancestors if isinstance(each, FieldRow)), None) if focused else None
        if row is not None:
            row.scroll_visible(animate=False)

    def _swap(self, entry: Any) -> LinesBox:
        old, self.box = self.box, (box := LinesBox(self.field, entry))
        self._last_entry = self.box.entry
        self._place_box()
        old.remove()
        self.mount(box)
        return box

    def _place_box(self) -> None:
        self.box.styles.margin = (self._above, self._right, 0, self._left)

    def _box_height(self, width: int) -> int:
        return self.box.height_for(max(width - self._left - self._right, 1))

    def _label(self, width: int) -> Content:
        mark = Content.styled("▸ " if self.focused else "  ", "bold $text-accent")
        label = Content.assemble(mark, label_of(self.field)).truncate(width + 1, ellipsis=True)
        return label.stylize("bold" if self.focused else "")

    def _below(self, width: int) -> Iterator[Content]:
        room = max(width - self._left, 8)
        if isinstance(self.box, SuggestingBox):
            for line in self.box.suggestions.lines(room):
                yield Content.assemble(" " * self._left, line)
        for line in self._description_lines(room):
            yield Content.assemble(" " * self._left, line)
        if self.problem:
            content = Content.styled(f"▲ {show_line(self.problem, 400)}", "bold $text-error")
            for line in content.wrap(room)[:MOST_LINES]:
                yield Content.assemble(" " * self._left, line)

    def _description_lines(self, room: int) -> list[Content]:
        """The name, limits and description: all of it while focused, else one line, two if the limits need them."""
        field, focused = self.field, self.focused
        note = note_of(field) if self._note_is_below else ""
        named = isinstance((*field.path, 0)[-2:][0], str) and field.title not in ("", field.name)
        name = show_line(field.name, 80) if focused and named else ""
        about = unindented(field.description)
        description = show(about, limit=4000) if focused else show_line(about, 200)
        text = " · ".join(filter(None, [name, note, description.strip()]))
        if not text:
            return []
        content = Content.styled(text, "$foreground-muted")
        lines = content.expand_tabs(TAB).wrap(room)
        if not focused:
            beside = bool(self.columns.note) and content.cell_length > room  # limits that did not fit there
            shown = 2 if note and (beside or Content(note).cell_length > room) else 1
            return [*lines[: shown - 1], cut_at_word(Content(" ").join(lines[shown - 1 :]), room)]
        return lines[:MOST_LINES] + [Content.styled("…", "$foreground-muted")] * (len(lines) > MOST_LINES)


class GroupTitle(Widget):
    """The title above the fields of a nested object."""

    DEFAULT_CSS = """
    GroupTitle { height: auto; width: 100%; max-width: 130; }
    """

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field

    def become(self, field: FormField) -> None:
        """Show another group of the same kind, as after a move."""
        if field != self.field:
            self.field = field
            self.refresh()

    def render(self) -> Content:
        width = max(self.size.width, 8)
        indent = "  " * (self.field.depth + 1)
        title = Content.assemble(indent, label_of(self.field).plain.strip(), " ").truncate(width, ellipsis=True)
        rule = Content.styled("─" * max(0, width - title.cell_length), "$foreground-muted")
        lines = [Content.assemble(title.stylize("bold"), rule)]
        if self.field.description:
            content = Content.styled(show_line(unindented(self.field.description), 400), "$foreground-muted")
            lines.append(Content.assemble(indent, content).truncate(width, ellipsis=True))
        return Content("\n").join(lines)
