"""The chosen tool: its description, its form, and the result of the last call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.catalog import CatalogTool
from mcphost.json_values import as_dict, texts_in
from mcphost.protocol.display import hidden_count, show, show_line, unindented
from mcphost.tui.consent.call_rows import claims_text
from mcphost.tui.forms.schema_form import FormState, SchemaForm
from mcphost.tui.kit.form_frame import FormFrame
from mcphost.tui.results.view import ResultView
from mcphost.tui.textual_private.corrections import ScrolledColumn

NO_TOOL = "Choose a tool and press enter: its description and form appear here."
MOST_ARGUMENTS = 40
"""Arguments that are named before the form is opened."""

KEPT_FORMS = 50
"""Tools whose form is remembered."""


class ToolForm(FormFrame):
    HELP = "The chosen tool. tab and enter move from field to field, ctrl+r runs it, ctrl+j shows the raw JSON."

    DEFAULT_CSS = """
    ToolForm {
        #about { dock: top; height: auto; max-height: 50%; padding: 0 1; scrollbar-size-vertical: 1; }
        &.-none #about { dock: none; max-height: 100%; }
        SchemaForm { margin-top: 1; }
    }
    """

    def __init__(self, welcome: str = "") -> None:
        super().__init__(classes="-none")
        self._about = Static(f"{NO_TOOL}\n\n{welcome}" if welcome else NO_TOOL, markup=False)
        self.form = SchemaForm(submit_label="run")
        self.form.display = False

    def compose(self) -> ComposeResult:
        self.border_title = "Tool"
        with ScrolledColumn(id="about", can_focus=False):
            yield self._about
        yield self.form

    def show_none(self) -> None:
        """Show no tool, and no welcome."""
        self._show("Tool", NO_TOOL, form=False)

    def show_how_to_add(self, words: Content) -> None:
        """Say how to add a server, if none is configured."""
        self._show("Add a server", words, form=False)

    def preview(self, entry: CatalogTool) -> None:
        """Show the server's description and the names of the arguments."""
        self._show(_title(entry), Content("\n\n").join([_about(entry), _arguments(entry)]), form=False)

    def show_about(self, entry: CatalogTool) -> None:
        self._show(_title(entry), _about(entry), form=True)

    def _show(self, title: str | Content, about: str | Content, *, form: bool) -> None:
        self.border_title = title
        self._about.update(about)
        self.set_class(not form, "-none")
        self.form.display = form


class Workbench(Vertical):
    """The form above the result. Half-filled forms are remembered."""

    def __init__(self, welcome: str = "") -> None:
        super().__init__()
        self.entry: CatalogTool | None = None
        self.tool = ToolForm(welcome)
        self.result = ResultView()
        self._forms: dict[tuple[str, str], FormState] = {}
        self._filled = set[tuple[str, str]]()
        """Tools whose form was filled with the arguments of a call, which a model may have written."""

    def compose(self) -> ComposeResult:
        yield self.tool
        yield self.result

    @property
    def form(self) -> SchemaForm:
        return self.tool.form

    @property
    def composed(self) -> bool:
        """True if the user wrote the values in the form."""
        return self.entry is not None and self.entry.key not in self._filled

    async def load(self, entry: CatalogTool, arguments: Mapping[str, Any] | None = None) -> None:
        """Show a tool with what was typed before, or with these arguments."""
        self._keep_form()
        self.entry = entry
        if arguments is not None:
            self._filled.add(entry.key)
        self.tool.show_about(entry)
        await self.form.load(entry.tool.input_schema, arguments)
        if arguments is None and entry.key in self._forms:
            await self.form.restore(self._forms[entry.key])

    def preview(self, entry: CatalogTool) -> None:
        """Show what a tool is and takes; its form comes when it is chosen."""
        self._keep_form()
        self.entry = None
        self.tool.preview(entry)

    def _keep_form(self) -> None:
        if self.entry is None:
            return
        self._forms.pop(self.entry.key, None)
        self._forms[self.entry.key] = self.form.state()
        while len(self._forms) > KEPT_FORMS:
            del self._forms[next(iter(self._forms))]


def _title(entry: CatalogTool) -> Content:
    return Content(f"{entry.server} › {show_line(entry.tool.name, 60)}")


def _arguments(entry: CatalogTool) -> Content:
    """List the arguments, the required ones first, and the keys that go on."""
    schema = entry.tool.input_schema
    properties, needed = as_dict(schema.get("properties")), set(texts_in(schema.get("required")))
    names = list(properties)[:MOST_ARGUMENTS]
    if not names:
        return Content.assemble(("enter", "bold $text-accent"), " runs it (no arguments)")
    listed = [
        Content.assemble(show_line(name, 60), ("*" if name in needed else "", "bold $text-warning"))
        for name in sorted(names, key=lambda name: name not in needed)
    ]
    more = f" and {len(properties) - len(names):,} more" if len(properties) > len(names) else ""
    keys = Content.assemble(
        ("enter", "bold $text-accent"), " opens the form   ", ("d", "bold $text-accent"), " shows the definition"
    )
    return Content.assemble(("arguments  ", "$foreground-muted"), Content(" · ").join(listed), more, "\n\n", keys)


def _about(entry: CatalogTool) -> Content:
    tool = entry.tool
    lines = []
    if tool.label != tool.name:
        lines.append(Content.styled(show_line(tool.label, 120), "bold"))
    lines.append(Content.assemble(("server says ", "$foreground-muted"), claims_text(tool)))
    if tool.refusal:
        lines.append(Content.styled(f"✖ refused, never runs: {tool.refusal}", "bold $text-error"))
    if tool.app_only:
        lines.append(
            Content.styled("app only: for an app's user interface; no model is given this tool", "$text-warning")
        )
    if tool.has_ui:
        lines.append(Content.styled("has a UI that mcphost cannot show: its results are text here", "$text-warning"))
    hidden = hidden_count(f"{tool.name}{tool.description}")
    if hidden:
        lines.append(Content.styled(f"{hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error"))
    if tool.description:
        lines.append(Content.styled(show(unindented(tool.description), limit=8000), "$foreground-muted"))
    return Content("\n").join(lines)
