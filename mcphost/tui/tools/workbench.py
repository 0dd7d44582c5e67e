"""The chosen tool: its description, its form, and the result of the last call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.catalog import CatalogTool
from mcphost.protocol.display import hidden_count, show, show_line, unindented
from mcphost.tui.forms.schema_form import FormState, SchemaForm
from mcphost.tui.kit.form_frame import FormFrame
from mcphost.tui.results.view import ResultView
from mcphost.tui.textual_private.corrections import ScrolledColumn
from mcphost.tui.tools.preview import EarlierCall, ToolPreview, claims_explained

NO_TOOL = "Choose a tool and press enter: its description and form appear here."
PREVIEW_LINES = 8
PREVIEW_CHARACTERS = 700
"""Of a description before the form is opened, so that the arguments below it are in view."""

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
        self._preview = ToolPreview()
        self._preview.display = False
        self._described = ScrolledColumn(self._about, self._preview, id="about", can_focus=False)
        self.form = SchemaForm(submit_label="run")
        self.form.display = False

    def compose(self) -> ComposeResult:
        self.border_title = "Tool"
        yield self._described
        yield self.form

    def show_none(self) -> None:
        """Show no tool, and no welcome."""
        self._show("Tool", NO_TOOL, form=False)

    def show_how_to_add(self, words: Content) -> None:
        """Say how to add a server, if none is configured."""
        self._show("Add a server", words, form=False)

    def preview(self, entry: CatalogTool, calls: Sequence[EarlierCall] = ()) -> None:
        """Show the server's description, the arguments and the last calls."""
        self._preview.show_tool(entry, calls)
        self._show(_title(entry), _about(entry, brief=True), form=False, preview=True)

    def show_about(self, entry: CatalogTool) -> None:
        self._show(_title(entry), _about(entry), form=True)

    def _show(self, title: str | Content, about: str | Content, *, form: bool, preview: bool = False) -> None:
        self.border_title = title
        self._about.update(about)
        self._preview.display = preview
        self._described.scroll_to(y=0, animate=False)
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

    def preview(self, entry: CatalogTool, calls: Sequence[EarlierCall] = ()) -> None:
        """Show what a tool is and takes, and its last calls; its form comes when it is chosen."""
        self._keep_form()
        self.entry = None
        self.tool.preview(entry, calls)

    def _keep_form(self) -> None:
        if self.entry is None:
            return
        self._forms.pop(self.entry.key, None)
        self._forms[self.entry.key] = self.form.state()
        while len(self._forms) > KEPT_FORMS:
            del self._forms[next(iter(self._forms))]


def _title(entry: CatalogTool) -> Content:
    return Content(f"{entry.server} › {show_line(entry.tool.name, 60)}")


def _about(entry: CatalogTool, *, brief: bool = False) -> Content:
    tool = entry.tool
    lines = []
    if tool.label != tool.name:
        lines.append(Content.styled(show_line(tool.label, 120), "bold"))
    lines.append(Content.assemble(("server says ", "$foreground-muted"), claims_explained(tool)))
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
        text = unindented(tool.description)
        description = _start_of(text) if brief else show(text, limit=8000)
        lines.append(Content.styled(description, "$foreground-muted"))
    return Content("\n").join(lines)


def _start_of(text: str) -> str:
    start = "\n".join(text.strip().split("\n", PREVIEW_LINES)[:PREVIEW_LINES])[:PREVIEW_CHARACTERS].rstrip()
    more = len(start) < len(text.strip())
    return show(start) + (" … d shows all of it" if more else "")
