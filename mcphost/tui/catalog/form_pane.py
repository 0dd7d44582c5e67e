"""The base of the panes for resources and prompts, whose entries may have a form between the list and what was read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from mcphost.host.catalog import CatalogPrompt, CatalogResource, CatalogTemplate
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.forms.listed_arguments import ListedArguments
from mcphost.protocol.models.prompts import CompletionRef
from mcphost.tui.catalog.argument_table import ArgumentTable
from mcphost.tui.catalog.list import CatalogList
from mcphost.tui.catalog.pane import CatalogPane
from mcphost.tui.kit.form_frame import FormFrame
from mcphost.tui.kit.messages import SaveCallRequested
from mcphost.tui.results.reading_pane import ReadingView

if TYPE_CHECKING:
    from mcphost.tui.catalog.argument_form import ArgumentForm, TextArgument
    from mcphost.tui.forms.schema_form import FormState, SchemaForm

KEPT_FORMS: Final = 50
"""Entries whose form is remembered."""

FormEntry = TypeVar("FormEntry", bound=CatalogResource | CatalogTemplate | CatalogPrompt)


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


class CatalogFormPane(CatalogPane[FormEntry]):
    KIND: ClassVar[str]
    """``prompt`` or ``resource``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save call", id="offers.save", tooltip="Save this call under a name"),
    ]

    DEFAULT_CSS = """
    CatalogFormPane {
        &.-single.-form ReadingView { display: none; }
        &.-form CatalogForm { max-height: 66%; }
        &.-single.-form CatalogForm { height: 1fr; max-height: 100%; }
        &.-single.-reading CatalogForm { display: none; }
    }
    """

    def __init__(
        self, host: Host, entries: CatalogList[FormEntry], view: ReadingView, submit_label: str, *, single: bool
    ) -> None:
        super().__init__(host, entries, view, single=single)
        self.form = CatalogForm(submit_label)
        self.entry: FormEntry | None = None
        """The entry whose form is open."""
        self._typed: dict[object, FormState] = {}

    def bench(self) -> Iterable[Widget]:
        return self.form, self.view

    # For subclasses.

    @abstractmethod
    def submit(self, entry: FormEntry, values: Mapping[str, str]) -> None:
        """The user submitted the form."""

    @abstractmethod
    def completion_ref(self, entry: FormEntry) -> CompletionRef:
        """The prompt or template whose arguments the server completes."""

    def preview(self, entry: FormEntry, values: Mapping[str, str]) -> Content:
        """A preview of what the values make; empty if there is nothing to show."""
        return Content("")

    def description_of(self, entry: FormEntry) -> EntryDescription | None:
        """A description to show beside the list; None if the entry needs none."""
        return None

    def describe(self, entry: FormEntry) -> None:
        """Show the description in place of another entry's form."""
        description = None if entry == self.entry else self.description_of(entry)
        if description is not None:
            self.close_form()
            self.form.describe(description)

    # The form.

    async def open_form(
        self, entry: FormEntry, title: str, about: Content, definition: Any, arguments: Iterable[TextArgument]
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

    async def choose_filled(self, entry: FormEntry, values: Mapping[str, str] | None) -> None:
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

    def _way_to_this(self) -> Callable[[], None]:
        back, entry, reading = super()._way_to_this(), self.entry, self.view.reading

        def back_with_form() -> None:
            if reading is not None:
                self.entry = entry
                self.form.unload()
                self.form.set_class(entry is not None, "-loaded")
            back()

        return back_with_form

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "save":
            return self._step == "form" or (self._step == "reading" and self.view.reading is not None)
        return super().check_action(action, parameters)

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
        """Go back one step; from what a form opened, to the form."""
        opened = self._step == "reading" and not self._ways_back and self.entry is not None
        if opened and self.form.form is not None:
            self.go("form")
            self.form.form.focus_again()
        else:
            super().action_back()

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

    async def _suggest(self, entry: FormEntry, event: SchemaForm.SuggestionsRequested) -> None:
        found = await self.host.completion.suggest(
            entry.server, self.completion_ref(entry), event.name, event.value, event.others
        )
        if found is not None and self.entry == entry:
            event.form.suggest(event.name, event.value, found)

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
