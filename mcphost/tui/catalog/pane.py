"""The base of the panes for resources and prompts: a list, a form, and what was read, side by side or one at a time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogPrompt, CatalogResource, CatalogTemplate
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.forms.listed_arguments import ListedArguments
from mcphost.protocol.models.prompts import CompletionRef
from mcphost.tui.catalog.argument_table import ArgumentTable
from mcphost.tui.catalog.list import PREVIEW, CatalogList
from mcphost.tui.kit.form_frame import FormFrame
from mcphost.tui.kit.messages import RoomChanged, SaveCallRequested
from mcphost.tui.kit.rows import RowList
from mcphost.tui.results.reading_pane import PaneReading, ReadingView

if TYPE_CHECKING:
    from mcphost.tui.catalog.argument_form import ArgumentForm, TextArgument
    from mcphost.tui.forms.schema_form import FormState, SchemaForm

Step = Literal["list", "form", "reading"]

KEPT_FORMS: Final = 50
"""Entries whose form is remembered."""

Answer = TypeVar("Answer")
Entry = TypeVar("Entry", bound=CatalogResource | CatalogTemplate | CatalogPrompt)


@dataclass(frozen=True, slots=True)
class EntryDescription:
    """An entry before its form is opened; all texts are safe to show."""

    title: str
    about: Content
    arguments: ListedArguments


class CatalogForm(FormFrame):
    """The description of an entry, the form of its arguments, and a preview of what they make."""

    DEFAULT_CSS = """
    CatalogForm {
        display: none;
        &.-loaded, &.-described { display: block; }
        & > ArgumentTable { display: none; padding: 1 1 0 1; }
        &.-described > ArgumentTable { display: block; }
        &.-described > ArgumentForm { display: none; }
        & > .about { dock: top; height: auto; max-height: 6; padding: 0 1; }
        & > .made { dock: bottom; height: auto; max-height: 4; padding: 0 1; }
    }
    """

    def __init__(self, submit_label: str) -> None:
        super().__init__()
        self._submit_label = submit_label
        self.form: ArgumentForm | None = None
        self._about = Static("", classes="about", markup=False)
        self._table = ArgumentTable()
        self._preview = Static("", classes="made", markup=False)

    def compose(self) -> ComposeResult:
        yield self._about
        yield self._preview
        yield self._table

    def describe(self, description: EntryDescription) -> None:
        """Show what an entry is and takes, without the form."""
        self._show_about(description.title, description.about)
        self._table.show_arguments(description.arguments)
        self.add_class("-described")

    async def load(
        self, title: str, about: Content, definition: Any, arguments: Iterable[TextArgument]
    ) -> ArgumentForm:
        """Show the empty form, made on first use: importing it takes longer than all the rest."""
        from mcphost.tui.catalog.argument_form import ArgumentForm, schema_of

        self._show_about(title, about)
        if self.form is None:
            self.form = ArgumentForm(self._submit_label)
            await self.mount(self.form, after=self._about)
        await self.form.load(schema_of(arguments), source=definition)
        self.remove_class("-described")
        self.add_class("-loaded")
        return self.form

    def unload(self) -> None:
        self.remove_class("-loaded", "-described")

    def _show_about(self, title: str, about: Content) -> None:
        self.border_title = Content(title)
        self._about.update(about)
        self._about.display = bool(about.plain)
        self.show_preview(Content(""))

    def show_preview(self, preview: Content) -> None:
        self._preview.update(preview)
        self._preview.display = bool(preview.plain)


class CatalogPane(Container, Generic[Entry]):
    """On a small screen one part at a time: enter goes on, esc goes back."""

    KIND: ClassVar[str]
    """``prompt`` or ``resource``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "back", "back", id="offers.back", tooltip="Back from the answer to the form, then to the list"
        ),
        Binding("ctrl+s", "save", "save call", id="offers.save", tooltip="Save this call under a name"),
    ]

    DEFAULT_CSS = """
    CatalogPane {
        layout: horizontal;
        & > CatalogList { width: 40%; height: 100%; }
        & > .bench { width: 1fr; height: 100%; }
        &.-single > CatalogList { width: 100%; display: none; }
        &.-single.-list > CatalogList { display: block; }
        &.-single.-list > .bench { display: none; }
        &.-single.-form ReadingView { display: none; }
        &.-form CatalogForm { max-height: 66%; }
        &.-single.-form CatalogForm { height: 1fr; max-height: 100%; }
        &.-single.-reading CatalogForm { display: none; }
    }
    """

    def __init__(
        self, host: Host, entries: CatalogList[Entry], view: ReadingView, submit_label: str, *, single: bool
    ) -> None:
        super().__init__(classes="-list -single" if single else "-list")
        self.host = host
        self.list, self.view, self.form = entries, view, CatalogForm(submit_label)
        self.entry: Entry | None = None
        """The entry whose form is open."""
        self._typed: dict[object, FormState] = {}
        self._step: Step = "list"
        self._ways_back: list[Callable[[], None]] = []
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.list
        with Vertical(classes="bench"):
            yield self.form
            yield self.view

    # For subclasses.

    @abstractmethod
    async def choose(self, entry: Entry) -> None:
        """The user chose this entry; ends when its form takes keys."""

    @abstractmethod
    def submit(self, entry: Entry, values: Mapping[str, str]) -> None:
        """The user submitted the form."""

    @abstractmethod
    def completion_ref(self, entry: Entry) -> CompletionRef:
        """The prompt or template whose arguments the server completes."""

    def preview(self, entry: Entry, values: Mapping[str, str]) -> Content:
        """A preview of what the values make; empty if there is nothing to show."""
        return Content("")

    def description_of(self, entry: Entry) -> EntryDescription | None:
        """A description to show beside the list; None if the entry needs none."""
        return None

    # From part to part.

    @property
    def step(self) -> Step:
        """The part that has the user's attention."""
        return self._step

    def set_single(self, single: bool) -> None:
        """Show one part at a time, or all."""
        self.set_class(single, "-single")

    def focus_list(self) -> None:
        self._ways_back.clear()
        self.go("list")
        self.list.rows.focus()

    async def open_form(
        self, entry: Entry, title: str, about: Content, definition: Any, arguments: Iterable[TextArgument]
    ) -> None:
        """Open the form with what was typed before; ``definition`` is what the server wrote."""
        self._keep_typed()
        form = await self.form.load(title, about, definition, arguments)
        if entry.key in self._typed:
            await form.restore(self._typed[entry.key])
        self.entry = entry
        self._update_preview()
        self.go("form")
        form.focus_first()

    async def choose_filled(self, entry: Entry, values: Mapping[str, str] | None) -> None:
        """As `choose`, with these values in the form; None: with what was typed before."""
        await self.choose(entry)
        if values is not None and self.entry is entry and self.form.form is not None:
            await self.form.form.load(self.form.form.schema, values, source=self.form.form.source)
            self._update_preview()
            self.form.form.focus_first()

    def submit_form(self) -> None:
        """Submit the form, if one is open."""
        if self.entry is not None and self.form.form is not None and self._step == "form":
            self.form.form.submit()

    def close_form(self) -> None:
        """Close the form; this entry needs none."""
        self._keep_typed()
        self.entry = None
        self.form.unload()

    def start_fetch(self, reading: PaneReading, fetch: Callable[[], Coroutine[None, None, None]]) -> None:
        """Show that ``reading`` is being fetched, and start ``fetch`` in place of an earlier one."""
        self.view.show_reading(reading)
        self.go("reading")
        self.call_after_refresh(self._focus_reading)
        self.call_after_refresh(self._fetch, fetch)  # after the focus, which the answer takes over

    def _fetch(self, fetch: Callable[[], Coroutine[None, None, None]]) -> None:
        _: Worker[None] = self.run_worker(fetch, group="fetch", exclusive=True)

    def show_reading(self, reading: PaneReading) -> None:
        """Show what was fetched, unless something else was opened meanwhile."""
        if self.view.reading is not None and self.view.reading.key == reading.key:
            self.show_with_notes(reading)

    def show_with_notes(self, reading: PaneReading, *, offset: int = 0) -> None:
        """Show this, and then our notes on it."""
        self.view.show_reading(reading, offset=offset)
        self.view.show_notes(*self.notes())

    async def show_answer(
        self,
        server: str,
        name: str,
        answer: Awaitable[Answer],
        add: Callable[[PaneReading, Answer, float], PaneReading],
    ) -> None:
        """Await a server's answer; ``add`` returns the reading with it."""
        began, reading = time.monotonic(), PaneReading(server, name)
        try:
            received = await answer
        except McphostError as error:
            self.show_reading(reading.with_error(error, time.monotonic() - began))
        else:
            self.show_reading(add(reading, received, time.monotonic() - began))

    def remember_way_back(self, back: Callable[[], None] | None) -> None:
        """Remember the way back from a link: ``back``, or None for what is shown here now."""
        self._ways_back.append(back or self._way_to_this())

    @property
    def reading_in_view(self) -> tuple[str, str] | None:
        """The key of the visible reading."""
        visible = all(part.display for part in self.view.ancestors_with_self if isinstance(part, Widget))
        return self.view.reading.key if self.view.reading is not None and visible else None

    def _way_to_this(self) -> Callable[[], None]:
        reading, offset, entry = self.view.reading, self.view.offset_shown, self.entry

        def back() -> None:
            if reading is not None:
                self.entry = entry
                self.form.unload()
                self.form.set_class(entry is not None, "-loaded")
                self.show_with_notes(reading, offset=offset)
                self.view.focus()

        return back

    def notes(self) -> tuple[str, ...]:
        """Notes on the shown content."""
        return ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "save":
            return self._step == "form" or (self._step == "reading" and self.view.reading is not None)
        return action != "back" or self._step != "list"

    def action_save(self) -> None:
        """Ask for a name for what the form holds, or for what was read without a form."""
        form, reading = self.form.form, self.view.reading
        if self.entry is not None and form is not None:
            values = form.values_so_far() or {}
            self.post_message(
                SaveCallRequested(*self.entry.key, values, kind=self.KIND, schema=form.schema, unfit=form.unfit)
            )
        elif reading is not None:
            self.post_message(SaveCallRequested(*reading.key, {}, kind=self.KIND))

    def action_back(self) -> None:
        """Go back one step, over links the way the user came."""
        if self._step == "reading" and self._ways_back:
            self._ways_back.pop()()
        elif self._step == "reading" and self.entry is not None and self.form.form is not None:
            self.go("form")
            self.form.form.focus_again()
        else:
            self.focus_list()

    def go(self, step: Step) -> None:
        if step != self._step:
            self.remove_class(f"-{self._step}")
            self._step = step
            self.add_class(f"-{step}")
            self.post_message(RoomChanged())

    @on(CatalogList.Chosen)
    async def _chosen(self, event: CatalogList.Chosen) -> None:
        event.stop()
        if self.list.item is not None:
            self._ways_back.clear()
            await self.choose(self.list.item)

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[Entry]) -> None:
        """Describe the entry once the cursor rests, in place of another one's form."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(PREVIEW, self._describe)

    def _describe(self) -> None:
        entry = self.list.item
        if self._step != "list" or self.has_class("-single") or entry is None or entry == self.entry:
            return
        description = self.description_of(entry)
        if description is not None:
            self.close_form()
            self.form.describe(description)

    def on_schema_form_changed(self, event: SchemaForm.Changed) -> None:
        event.stop()
        self._update_preview()

    def on_schema_form_submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        if self.entry is not None:
            self.submit(self.entry, event.arguments)

    def on_schema_form_suggestions_requested(self, event: SchemaForm.SuggestionsRequested) -> None:
        event.stop()
        if self.entry is not None and self.host.completion.offered(self.entry.server):
            _: Worker[None] = self.run_worker(partial(self._suggest, self.entry, event), group="suggest")

    async def _suggest(self, entry: Entry, event: SchemaForm.SuggestionsRequested) -> None:
        found = await self.host.completion.suggest(
            entry.server, self.completion_ref(entry), event.name, event.value, event.others
        )
        if found is not None and self.entry == entry:
            event.form.suggest(event.name, event.value, found)

    def _focus_reading(self) -> None:
        if self._step == "reading":
            self.view.focus()

    def _update_preview(self) -> None:
        if self.entry is not None and self.form.form is not None:
            self.form.show_preview(self.preview(self.entry, self.form.form.values_so_far() or {}))

    def _keep_typed(self) -> None:
        if self.entry is None or self.form.form is None:
            return
        self._typed.pop(self.entry.key, None)
        self._typed[self.entry.key] = self.form.form.state()
        while len(self._typed) > KEPT_FORMS:
            del self._typed[next(iter(self._typed))]
