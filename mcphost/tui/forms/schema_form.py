"""The form made from a JSON Schema: the rows, the raw editor, and what is wrong.

It makes the checks of `mcphost.protocol.forms.form` once a frame, and those of the whole schema when typing pauses and
before it is submitted. Its parent may add errors with `SchemaForm.set_errors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static, TextArea
from textual.worker import Worker

from mcphost.host.tool_calls.validation import ValidationResult, validate, validate_at_once
from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.protocol.forms.form import (
    ABSENT,
    GROWING,
    FieldKind,
    FieldPath,
    Form,
    FormField,
    RowsChanged,
    add_row,
    choose,
    collect,
    drawn,
    fill,
    move_row,
    place_of,
    place_text,
    read_form,
    remove_row,
    renumbered,
    row_of,
)
from mcphost.protocol.models.prompts import Completion
from mcphost.tui.forms.draft import Entries, first_object, from_object, path_at, place_within, to_object
from mcphost.tui.forms.field_row import Columns, FieldRow, GroupTitle
from mcphost.tui.forms.pickers import RowsBox
from mcphost.tui.forms.raw_json import RawArea, RawEditor, read_object
from mcphost.tui.forms.suggestions import SuggestingBox
from mcphost.tui.forms.text_boxes import JsonBox, LineBox, StepAway, dump
from mcphost.tui.kit.bindings import hint_key
from mcphost.tui.kit.json_text import json_spans, json_text
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.textual_private.corrections import ScrolledColumn


class NoFields(Static, can_focus=True):
    """Shown if there is nothing to fill in; takes the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "run", id="form.empty", show=False, tooltip="Submit the form"),
    ]

    DEFAULT_CSS = """
    NoFields { height: auto; padding: 0 1; color: $foreground-muted; &:focus { color: $foreground; } }
    """

    def action_enter(self) -> None:
        self.post_message(StepAway(self, 1, entered=True))


class FormKeys(Static):
    """The keys of the form as clickable text."""

    DEFAULT_CSS = """
    FormKeys { height: 1; padding: 0 1; text-align: right; color: $foreground-muted; }
    """

    @dataclass
    class Pressed(Message):
        action: str

    def action_press(self, action: str) -> None:
        self.post_message(self.Pressed(action))

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[tuple[str, str, str], ...] = ()

    def offer(self, *keys: tuple[str, str, str]) -> None:
        """Show these keys: the key, what it does, and the action for a click."""
        if keys != self._keys:
            self._keys = keys
            words = {f"word{place}": word for place, (_, word, _) in enumerate(keys)}
            texts = [f"[@click=press('{action}')]{key} $word{place}[/]" for place, (key, _, action) in enumerate(keys)]
            self.update(Content.from_markup(" · ".join(texts), **words))


RAW_KEYS: Final = "ctrl+j,alt+j,f7"
"""Toggles raw JSON; more than one key, since some terminals send ctrl+j as enter."""

MOST_PROBLEMS: Final = 3
"""Problems that are shown of one field, and of the whole."""

WIDE: Final = 200
"""Columns from which the schema is shown beside the fields."""

PAUSE: Final = 0.15
"""Seconds without a key before the whole schema is checked."""

Problems = Sequence[tuple[str | Sequence[str | int], str]]
"""A place (``items[2].name`` or its parts; empty for the whole), and a sentence that continues from there."""


@dataclass(frozen=True, slots=True)
class FormState:
    """The typed entries, to restore them in a form of the same schema."""

    entries: Entries
    base: Mapping[str, Any] | None
    raw: str
    raw_shown: bool
    raw_before: Mapping[str, Any] = field(default_factory=dict)


SETTLED: Final = 0.05
"""Seconds between two checks that the focused row is in view: three frames, so that a layout is done in between."""

CHECKS: Final = 6
"""Checks after a change. Rows move in several layouts: a box wraps its lines once it has its width, which may add a
scrollbar, which takes a column from all others. Under load these layouts take 0.2 seconds.
"""


class FieldScroll(ScrolledColumn):
    """The fields, of which the focused one stays in view: whenever rows or the room for them change their height."""

    _settling: Timer | None = None
    _checks = 0

    def on_mount(self) -> None:
        self.watch(self, "virtual_size", self._scroll_again, init=False)

    def on_resize(self) -> None:
        self._scroll_again()

    def on_descendant_focus(self) -> None:
        self._scroll_again()

    def _scroll_again(self) -> None:
        """Scroll once all layouts of this change are done: one in between may have put the row elsewhere."""
        self._checks = 0
        self._check_soon()

    def _check_soon(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLED, self._show_focused)

    def _show_focused(self) -> None:
        row = next((row for row in self.query(FieldRow) if row.focused), None)
        if row is None:
            return
        shown, view = row.region, self.region
        if not (view.y <= shown.y and (shown.bottom <= view.bottom or shown.y == view.y)):
            row.scroll_visible(animate=False)
        self._checks += 1
        if self._checks < CHECKS:  # rows may still move without changing their height in all
            self._check_soon()


class SchemaForm(Vertical):
    HELP = (
        "* marks what is required. What is left empty is not sent. enter goes to the next field and submits on "
        "the last; in a box of several lines it begins a line. tab and shift+tab move. Nothing typed is lost."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,ctrl+enter", "submit", "run", id="form.submit", priority=True, tooltip="Submit the form"),
        Binding(RAW_KEYS, "raw", "raw JSON", id="form.raw", priority=True, tooltip="The same as raw JSON"),
        Binding(RAW_KEYS, "fields", "fields", id="form.fields", priority=True, tooltip="Back to the fields"),
        Binding("ctrl+n", "add_row", "add row", id="form.add", priority=True, tooltip="Add a row below this one"),
        Binding("ctrl+d", "remove_row", "delete row", id="form.remove", priority=True, tooltip="Delete this row"),
        Binding(
            "alt+up,ctrl+up",
            "move_row(-1)",
            "move up",
            id="form.row_up",
            show=False,
            priority=True,
            tooltip="Move this row up",
        ),
        Binding(
            "alt+down,ctrl+down",
            "move_row(1)",
            "move down",
            id="form.row_down",
            show=False,
            priority=True,
            tooltip="Move this row down",
        ),
        Binding(
            "f6",
            "schema",
            "schema",
            id="form.schema",
            show=False,
            priority=True,
            tooltip="The schema, as its server wrote it",
        ),
        Binding("ctrl+o", "skeleton", "skeleton", id="form.skeleton", tooltip="Write what this JSON needs"),
    ]

    DEFAULT_CSS = """
    SchemaForm {
        height: auto; max-height: 100%;
        & > #beside { height: auto; max-height: 100%; }
        & > #beside > #fields { height: auto; max-height: 100%; width: 1fr; scrollbar-size-vertical: 1; }
        & > .below { dock: bottom; height: auto; }
        & > #beside > TextView { display: none; height: 1fr; width: 40%; border-left: solid $border-blurred; }
        &.-schema > #beside > TextView { display: block; }
        & > RawEditor { display: none; }
        &.-raw > RawEditor { display: block; }
        &.-raw > #beside { display: none; }
        #status { height: auto; max-height: 4; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    }
    """

    @dataclass
    class Submitted(Message):
        """The user submitted these arguments."""

        form: SchemaForm
        arguments: dict[str, Any]

    @dataclass
    class Changed(Message):
        """The user changed something; ``valid``: the form holds valid arguments now."""

        form: SchemaForm
        valid: bool

    class Grown(Message):
        """The fields have more rows: `rows_wanted`."""

    @dataclass
    class SuggestionsRequested(Message):
        """The field ``name`` has another ``value``; ``others`` holds the values of the other fields."""

        form: SchemaForm
        name: str
        value: str
        others: Mapping[str, Any]

    def __init__(self, *, submit_label: str = "run", suggests: bool = False, id: str | None = None) -> None:
        """``suggests``: the form asks for suggestions for its lines of text."""
        super().__init__(id=id)
        self._submit_label, self._suggests = submit_label, suggests
        self._form = Form()
        self._schema: Any = {}
        self._source: Any = {}
        self._rows: dict[FieldPath, FieldRow] = {}
        self._titles: dict[FieldPath, GroupTitle] = {}
        self._kept: Entries = {}
        """Entries that no row shows: numbers of rows, and what was typed into branches that are not chosen now."""
        self._base: Mapping[str, Any] | None = None
        self._raw_before: Mapping[str, Any] = {}
        self._raw_text = ""
        self._schema_problems: Problems = ()
        self._checked: Mapping[str, Any] | None = None
        """The arguments to which the schema's problems belong."""
        self._parent_problems: Problems = ()
        self._was_submitted = False
        self._check_due = False
        self._pause: Timer | None = None
        self._status = Static(id="status", markup=False)
        self._status_lines: list[str] = []
        self._last: Widget | None = None
        self.left = False
        """True while a focus here is not the user's: Textual sets one when it removes a focused widget elsewhere."""
        self._columns = Columns(12, 0)
        self._tallest = 0
        self._loading = asyncio.Lock()

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield FieldScroll(id="fields", can_focus=False)
            yield TextView(spans=json_spans)
        yield RawEditor()
        with Vertical(classes="below"):
            yield self._status
            yield FormKeys()

    async def load(self, schema: Any, arguments: Mapping[str, Any] | None = None, *, source: Any = None) -> None:
        """Replace the form, and fill it with ``arguments``, or without them with the schema's defaults. ``source`` is
        what the server wrote instead of a schema.
        """
        form, self._schema = read_form(schema), schema
        self._source = schema if source is None else source
        self._form = form
        self._base, self._was_submitted, self._last = arguments, False, None
        self._forget_height()
        self._schema_problems = self._parent_problems = ()
        self._show_status([])
        self.remove_class("-schema")
        entries = self._kept = fill(form, arguments)
        fields = list(drawn(form.fields, entries))
        self._columns = Columns.fit([each for each in fields if each.kind is not FieldKind.GROUP], self._room)
        self._rows = {each.path: self._row(each, entries) for each in fields if each.kind is not FieldKind.GROUP}
        self._titles = {each.path: GroupTitle(each) for each in fields if _has_title(each)}
        self._set_raw(dump(first_object(schema, arguments)), {})
        self._show_raw(form.raw_only is not None)
        widgets: list[Widget] = [*self._in_order(fields)] or [self._no_fields()]
        async with self._loading:
            if form is self._form:  # else another form was loaded meanwhile
                container = self.query_one("#fields", FieldScroll)
                with self.app.batch_update():
                    await container.remove_children()
                    await container.mount_all(widgets)
                container.scroll_home(animate=False)

    @property
    def schema(self) -> Any:
        return self._schema

    @property
    def source(self) -> Any:
        """The definition that the server wrote instead of a schema, or the schema."""
        return self._source

    @property
    def raw_shown(self) -> bool:
        """True while raw JSON is edited."""
        return self.has_class("-raw")

    def values(self) -> dict[str, Any] | None:
        """Return the arguments, or None while they are invalid; raw JSON need only be an object."""
        if self.raw_shown:
            return read_object(self._raw.text)[0]
        arguments, errors = self._collect()
        return None if errors else arguments

    def values_so_far(self) -> dict[str, Any] | None:
        """Return the arguments without what is invalid; None while the raw JSON is not an object."""
        return read_object(self._raw.text)[0] if self.raw_shown else self._collect()[0]

    @property
    def unfit(self) -> tuple[str, ...]:
        """The places of the fields that are required and empty, or invalid."""
        if self.raw_shown:
            return ()
        entries = self._entries()
        return tuple(place_text(place_of(path, entries)) for path in self._collect()[1])

    def state(self) -> FormState:
        return FormState(self._entries(), self._base, self._raw.text, self.raw_shown, self._raw_before)

    async def restore(self, state: FormState) -> None:
        """Restore what was typed, as far as the form still has these fields."""
        self._base = state.base
        await self._draw({**self._entries(), **state.entries})
        self._set_raw(state.raw, state.raw_before)
        self._show_raw(state.raw_shown or self._form.raw_only is not None)
        self._show_errors()

    def focus_first(self) -> None:
        first = self.first_row(list(self._rows.values()))
        target = self._raw.area if self.raw_shown else first.box if first else self.query_one(NoFields)
        target.focus()

    def first_row(self, rows: Sequence[FieldRow]) -> FieldRow | None:
        return next(iter(rows), None)

    def focus_again(self, *, replacing: bool = False) -> None:
        """Focus the field that had the focus last; with ``replacing``, the next letter replaces its line."""
        if self.raw_shown or self._last is None or not self._last.is_attached:
            self.focus_first()
            return
        if replacing and isinstance(self._last, LineBox):
            self._last.replace_next()
        self._last.focus()

    def submit(self) -> None:
        """Post `Submitted` if the arguments fit the schema, else focus the first field that is wrong."""
        self._was_submitted = True
        if self._focused_row is not None:
            self._last = self.screen.focused
        arguments = self.values()
        if arguments is None:
            if self._checked != self.values_so_far():  # they are about what stood here before
                self._schema_problems = ()
            self._focus_error()
            return
        result = validate_at_once(self._schema, arguments)
        if result is None:
            _: Worker[None] = self.run_worker(self._submit_checked(arguments), exclusive=True, group="submit")
        else:
            self._submit(arguments, result)

    async def _submit_checked(self, arguments: dict[str, Any]) -> None:
        result = await validate(self._schema, arguments)
        if self.values() == arguments:  # else it was edited meanwhile
            self._submit(arguments, result)

    def _submit(self, arguments: dict[str, Any], result: ValidationResult) -> None:
        """Submit what fits; what cannot be validated is left to whoever gets it."""
        self._take_problems(arguments, result)
        if result.problems:
            self._focus_error()
        else:
            self._show_errors()
            self.post_message(self.Submitted(self, arguments))

    def _focus_error(self) -> None:
        """Focus the first field that is wrong; the problem is shown below it."""
        self._show_errors()
        wrong = next((row for row in self._rows.values() if row.problem), None)
        if self.raw_shown:
            self._raw.area.focus()
        elif wrong is not None:
            wrong.box.focus()

    def set_errors(self, problems: Problems) -> None:
        """Mark errors beyond the form's own checks; a mark goes away when its field is edited."""
        self._parent_problems = problems
        self._show_errors()

    def on_mount(self) -> None:
        self._show_raw(self.raw_shown)
        self.watch(self.query_one("#fields"), "virtual_size", self._keep_height, init=False)

    def _keep_height(self) -> None:
        """Let the fields keep their height: a field shows more while it is focused, and nothing may move."""
        fields = self.query_one("#fields")
        rows = fields.virtual_size.height
        if rows > self._tallest:
            self._tallest = rows
            fields.styles.min_height = rows
            self.post_message(self.Grown())

    @property
    def rows_wanted(self) -> int:
        """The rows of all fields and the line of keys."""
        return self.query_one("#fields").virtual_size.height + 1

    def _forget_height(self) -> None:
        self._tallest = 0
        if self.is_mounted:
            self.query_one("#fields").styles.min_height = None

    def on_resize(self, event: events.Resize) -> None:
        columns = Columns.fit([row.field for row in self._rows.values()], self._room)
        if columns != self._columns:
            self._columns = columns
            self._forget_height()
            for row in self._rows.values():
                row.fit(columns)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Remember the focused field, to return to it from raw JSON."""
        if not isinstance(event.widget, RawArea) and not self.left:
            self._last = event.widget
        self._offer_keys()
        self.refresh_bindings()

    @on(FormKeys.Pressed)
    async def key_line_pressed(self, event: FormKeys.Pressed) -> None:
        event.stop()
        await self.run_action(event.action)

    @on(SuggestingBox.Requested)
    def suggestions_requested(self, event: SuggestingBox.Requested) -> None:
        event.stop()
        name = event.box.field.name
        others = {each: value for each, value in self._collect()[0].items() if each != name}
        self.post_message(self.SuggestionsRequested(self, name, event.value, others))

    def suggest(self, name: str, value: str, found: Completion) -> None:
        """Show the suggestions for ``value`` of the field ``name``."""
        row = self._rows.get((name,))
        if row is not None and isinstance(row.box, SuggestingBox):
            row.box.suggest(value, found)

    @on(StepAway)
    def step_away(self, event: StepAway) -> None:
        """Focus the next or previous field."""
        event.stop()
        rows = list(self._rows.values())
        index = next((place for place, row in enumerate(rows) if row.box is event.box), len(rows))
        if event.entered and index >= len(rows) - 1:
            self.submit()
        elif 0 <= index + event.step < len(rows):
            rows[index].touched = rows[index].touched or event.entered
            self._show_errors()
            rows[index + event.step].box.focus()

    @on(FieldRow.Edited)
    async def field_edited(self, event: FieldRow.Edited) -> None:
        event.stop()
        path, places = event.row.field.path, self._places()
        others = [
            (place, words) for place, words in self._parent_problems if path_at(place, places) not in (path, None)
        ]
        if event.row.field.kind is FieldKind.BRANCH:
            await self._draw(choose(event.row.field, self._entries()))
        self._parent_problems = others
        self._check_soon()

    @on(TextArea.Changed)
    def raw_edited(self, event: TextArea.Changed) -> None:
        event.stop()
        if self._raw.text != self._raw_text:
            self._raw_text = self._raw.text
            self._parent_problems = ()
            self._check_soon()

    def action_submit(self) -> None:
        self.submit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "raw":
            return not self.raw_shown
        if action in ("add_row", "remove_row", "move_row"):
            return not self.raw_shown and self._row_at_focus(adding=action == "add_row") is not None
        if action == "skeleton":
            row = self._focused_row
            return row is not None and isinstance(row.box, JsonBox) and row.field.source is not None
        return action != "fields" or (self.raw_shown and self._form.raw_only is None)

    async def action_fields(self) -> None:
        """Return to the fields; invalid JSON stays where it is."""
        await self._toggle_raw()

    async def action_raw(self) -> None:
        await self._toggle_raw()

    @on(RowsBox.Added)
    async def add_at_end(self, event: RowsBox.Added) -> None:
        event.stop()
        await self.action_add_row()

    async def action_add_row(self) -> None:
        """Add a row below the one with the focus, and go there."""
        at = self._row_at_focus(adding=True)
        if at is None:
            return
        field, row = at
        changed = add_row(self._form, field, self._entries(), row + 1)
        if changed is None:
            self.app.bell()
            self._show_status([f"{field.label} has as many rows as a form can show: ctrl+j edits them as JSON"])
            return
        await self._change_rows(field, changed, row + 1)

    async def action_remove_row(self) -> None:
        """Delete the row with the focus."""
        at = self._row_at_focus()
        if at is not None:
            field, row = at
            changed = remove_row(field, self._entries(), row)
            left = changed.entries[field.path]
            await self._change_rows(field, changed, min(row, left - 1) if isinstance(left, int) else -1)

    async def action_move_row(self, step: int) -> None:
        """Let the row with the focus and its neighbour change places."""
        at = self._row_at_focus()
        changed = move_row(at[0], self._entries(), at[1], step) if at is not None else None
        if at is not None and changed is not None:
            await self._change_rows(at[0], changed, None)

    def action_schema(self) -> None:
        """Show the schema beside the fields where there is room, else over them."""
        text = json_text(self._source)
        if self.app.size.width < WIDE and not self.has_class("-schema"):
            self.app.push_screen(ReaderScreen(self._source_label, text, is_json=True))
            return
        self.query_one("#beside > TextView", TextView).load(show(text).split("\n"))
        self.toggle_class("-schema")

    def action_skeleton(self) -> None:
        """Fill in an empty box for JSON with what its schema asks for."""
        row = self._focused_row
        if row is not None and isinstance(row.box, JsonBox) and row.field.source is not None:
            if row.box.text.strip():
                self.app.bell()
            else:
                row.box.text = dump(row.field.source.skeleton())

    @property
    def _focused_row(self) -> FieldRow | None:
        return next((row for row in self._rows.values() if row.focused), None)

    def _row_at_focus(self, *, adding: bool = False) -> tuple[FormField, int] | None:
        """The list or map around the focus, and the number of the row there; to add one, its last row from outside."""
        focused = self._focused_row
        if focused is None:
            return None
        if adding and isinstance(focused.box, RowsBox):
            count = focused.entry
            return focused.field, (count if isinstance(count, int) else 0) - 1
        around = row_of(focused.field.path)
        return (self._rows[around[0]].field, around[1]) if around is not None and around[0] in self._rows else None

    async def _change_rows(self, field: FormField, changed: RowsChanged, row: int | None) -> None:
        """Draw the changed rows, and go to this one: -1 is the list itself, None where the focus is."""
        self._rows = renumbered(self._rows, field.path, changed.numbers)
        self._titles = renumbered(self._titles, field.path, changed.numbers)
        await self._draw(changed.entries)
        self._rows[field.path].touched = True
        if row is not None:
            inside = (*field.path, row)
            target = next((each for path, each in self._rows.items() if path[: len(inside)] == inside), None)
            (target or self._rows[field.path]).box.focus()
        elif (focused := self._focused_row) is not None:
            self.call_after_refresh(focused.scroll_visible, animate=False)
        self._check_soon()

    async def _draw(self, entries: Entries) -> None:
        """Draw the fields that these entries make; the widgets of those that were there before stay."""
        async with self._loading:
            container = self.query_one("#fields", FieldScroll)
            fields, self._kept = list(drawn(self._form.fields, entries)), entries
            rows = {each.path: self._row(each, entries) for each in fields if each.kind is not FieldKind.GROUP}
            self._titles = {
                each.path: self._titles.get(each.path) or GroupTitle(each) for each in fields if _has_title(each)
            }
            for each in fields:
                if each.path in self._titles:
                    self._titles[each.path].become(each)
            self._rows = rows
            wanted = list(self._in_order(fields))
            if not wanted:
                return
            there = set(wanted)
            with self.app.batch_update():
                await container.remove_children([each for each in container.children if each not in there])
                await container.mount_all([each for each in wanted if not each.is_attached])
                for place, widget in enumerate(wanted):
                    if container.children[place] is not widget:
                        container.move_child(widget, before=place)

    def _row(self, field: FormField, entries: Entries) -> FieldRow:
        """The row of a field: the one that was there, if it can show the entry."""
        entry, row = entries.get(field.path, ABSENT), self._rows.get(field.path)
        if row is None or not row.is_attached or not row.draws(field, entry):
            return FieldRow(field, entry, self._columns, suggests=self._suggests)
        row.become(field, entry)
        return row

    def _in_order(self, fields: Sequence[FormField]) -> Iterator[Widget]:
        for each in fields:
            if each.kind is not FieldKind.GROUP:
                yield self._rows[each.path]
            elif each.path in self._titles:
                yield self._titles[each.path]

    def _places(self) -> dict[FieldPath, KeyPath]:
        entries = self._entries()
        return {path: place_of(path, entries) for path in self._rows}

    async def _toggle_raw(self) -> None:
        if not self.raw_shown:
            before = to_object(self._form, self._entries(), self._base)
            self._set_raw(dump(before), before)
            self._show_raw(True)
        elif self._form.raw_only is None and await self._apply_raw():
            self._show_raw(False)
        else:
            self.app.bell()
        self._show_errors()
        self.focus_again()

    @property
    def _raw(self) -> RawEditor:
        return self.query_one(RawEditor)

    @property
    def _source_label(self) -> str:
        return "schema" if self._source is self._schema else "definition"

    @property
    def _room(self) -> int:
        width = self.query_one("#fields").size.width or self.size.width
        return max(width - 1, 1)  # one column for the scrollbar

    def _no_fields(self) -> NoFields:
        run = hint_key(self, "form.submit", "ctrl+r")
        words = f"Nothing to fill in: there are no arguments. enter or {run}: {self._submit_label}."
        return NoFields(words, markup=False)

    def _entries(self) -> Entries:
        return {**self._kept, **{path: row.entry for path, row in self._rows.items()}}

    def _collect(self) -> tuple[dict[str, Any], dict[FieldPath, str]]:
        return collect(self._form, self._entries(), base=self._base)

    def _set_raw(self, text: str, before: Mapping[str, Any]) -> None:
        self._raw.text = text
        self._raw_text, self._raw_before = self._raw.text, before

    async def _apply_raw(self) -> bool:
        """Put the JSON into the fields; return False if it is invalid."""
        after, _ = read_object(self._raw.text)
        if after is None:
            return False
        if self._raw.text != dump(self._raw_before):
            await self._draw(from_object(self._form, self._entries(), self._raw_before, after))
            self._base = after
            self.post_message(self.Changed(self, not self._collect()[1]))
        return True

    def _show_raw(self, shown: bool) -> None:
        self.set_class(shown, "-raw")
        reason = self._form.raw_only
        self._raw.explain(
            f"As JSON, since {reason}."
            if reason
            else f"All arguments as JSON. {hint_key(self, 'form.fields', 'ctrl+j')}: back to the fields."
        )
        self._offer_keys()
        self.refresh_bindings()

    def _offer_keys(self) -> None:
        """Show the keys that work where the focus is."""
        key = partial(hint_key, self)
        keys = [(key("form.submit", "ctrl+r"), self._submit_label, "submit")]
        in_row = bool(self.check_action("remove_row", ()))
        if self._form.raw_only is None and not in_row:
            raw, fields = (key(f"form.{each}", "ctrl+j") for each in ("raw", "fields"))
            keys.append((fields, "fields", "fields") if self.raw_shown else (raw, "raw JSON", "raw"))
        if self.check_action("skeleton", ()):
            keys.insert(0, (key("form.skeleton", "ctrl+o"), "skeleton", "skeleton"))
        if not in_row:  # a row's own keys need the room
            keys.insert(0, (key("form.schema", "f6"), self._source_label, "schema"))
        if in_row:
            delete = key("form.remove", "ctrl+d")
            keys = [(delete, "delete", "remove_row"), ("alt+↑↓", "move", "move_row(1)"), *keys]
        if self.check_action("add_row", ()):
            keys.insert(0, (key("form.add", "ctrl+n"), "add", "add_row"))
        self.query_one(FormKeys).offer(*keys)

    def _check_soon(self) -> None:
        """Check once for all keys of a frame, and by the whole schema when typing pauses."""
        if not self._check_due:
            self._check_due = True
            self.call_after_refresh(self._check)
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE, self._check_schema)

    def _check(self) -> None:
        self._check_due = False
        errors = self._show_errors()
        self.post_message(self.Changed(self, self.values() is not None if self.raw_shown else not errors))

    def _check_schema(self) -> None:
        _: Worker[None] = self.run_worker(self._validate(), exclusive=True, group="check")

    async def _validate(self) -> None:
        """Find the problems that only the whole schema knows of, for what is typed so far."""
        schema, arguments = self._schema, self.values_so_far()
        if arguments is None:
            return
        result = await validate(schema, arguments)
        if self._schema is schema and self.values_so_far() == arguments:
            self._take_problems(arguments, result)
            self._show_errors()

    def _take_problems(self, arguments: Mapping[str, Any], result: ValidationResult) -> None:
        self._checked = arguments
        self._schema_problems = [(each.path, each.message) for each in result.problems]

    def _show_errors(self) -> dict[FieldPath, str]:
        """Show the errors of fields that were edited, or of all after a submit; return those of the form's checks."""
        errors = {} if self.raw_shown else self._collect()[1]
        by_schema, others = self._sorted_problems(self._schema_problems)
        by_parent, more = self._sorted_problems(self._parent_problems)
        for path, row in self._rows.items():
            if row.field.kind in GROWING and any(each[: len(path)] == path for each in errors):
                by_schema.pop(path, None)  # "fits none of the forms", while one of them is being filled in
            known = errors.get(path) or by_schema.get(path, "") if self._was_submitted or row.touched else ""
            row.show_problem(known or by_parent.get(path, ""))
        self._raw.list_problems(self._raw_problems() if self.raw_shown else [])
        shown = [*others, *more] if self._was_submitted else more
        self._show_status([] if self.raw_shown else self._summary(shown))
        return errors

    def _sorted_problems(self, problems: Problems) -> tuple[dict[FieldPath, str], list[tuple[str, str]]]:
        """The problems by field, and those that belong to no field."""
        by_field: dict[FieldPath, list[str]] = {}
        others, places = [], self._places() if problems else {}
        for place, sentence in problems:
            path = path_at(place, places)
            if path is None:
                others.append((place if isinstance(place, str) else ".".join(map(str, place)), sentence))
            else:
                by_field.setdefault(path, []).append(f"{place_within(places[path], place)} {sentence}".strip())
        return {path: "; ".join(sentences[:MOST_PROBLEMS]) for path, sentences in by_field.items()}, others

    def _raw_problems(self) -> list[tuple[str, str]]:
        arguments, why = read_object(self._raw.text)
        if arguments is None:
            return [("", why)]
        entries = fill(self._form, arguments)
        _, errors = collect(self._form, entries, base=arguments)
        listed = {place_text(place_of(path, entries)): words for path, words in errors.items()}
        found = [*self._schema_problems, *self._parent_problems]
        more = [(place if isinstance(place, str) else ".".join(map(str, place)), words) for place, words in found]
        return [*listed.items(), *((place, words) for place, words in more if place not in listed)]

    def _summary(self, others: Sequence[tuple[str, str]]) -> list[str]:
        wrong = sum(bool(row.problem) for row in self._rows.values())
        counted = "1 invalid field" if wrong == 1 else f"{wrong} invalid fields"
        lines = [counted] if wrong and (self._was_submitted or self._parent_problems) else []
        return lines + [f"{place} {words}".strip() for place, words in others[:MOST_PROBLEMS]]

    def _show_status(self, lines: list[str]) -> None:
        if lines == self._status_lines:
            return  # an update lays out the whole screen, which takes longer than all checks of a keystroke
        self._status_lines = lines
        self._status.update(Content("\n".join(f"▲ {show_line(line, 300)}" for line in lines)))
        self._status.display = bool(lines)


def _has_title(field: FormField) -> bool:
    """True if the group has a title; the fields of a branch come below the choice instead."""
    if field.kind is not FieldKind.GROUP:
        return False
    last = field.path[-1]
    return isinstance(last, str) or last >= 0
