"""The chosen tool: its description, its form, and the result of the last call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.catalog import CatalogTool
from mcphost.host.tool_calls.call import ArgumentReferences
from mcphost.protocol.display import hidden_count, show, show_line, unindented
from mcphost.tui.forms.schema_form import FormState, SchemaForm
from mcphost.tui.kit.form_frame import FormFrame
from mcphost.tui.results.view import ResultView
from mcphost.tui.textual_private.corrections import ScrolledColumn
from mcphost.tui.tools.preview import LastCall, ToolPreview, claims_explained
from mcphost.tui.tools.summaries import DESCRIPTION_KEY, ResultSummary, ToolSummary

NO_TOOL = "Choose a tool and press enter: its description and form appear here."
PREVIEW_LINES = 8
PREVIEW_CHARACTERS = 700
"""Of a description before the form is opened, so that the arguments below it are in view."""

KEPT_FORMS = 50
"""Tools whose form is remembered."""


class ToolForm(FormFrame):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            DESCRIPTION_KEY,
            "description",
            "description",
            id="tool.description",
            show=False,
            tooltip="Show all of the tool's description, or one line",
        ),
    ]

    DEFAULT_CSS = """
    ToolForm {
        #about { dock: top; height: auto; max-height: 50%; padding: 0 1; scrollbar-size-vertical: 1; }
        &.-none #about { dock: none; max-height: 100%; }
        &.-none ToolSummary, &.-whole ToolSummary { display: none; }
        SchemaForm { margin-top: 1; }
        &.-above { height: auto; max-height: 50%; #about { max-height: 20vh; } SchemaForm { margin-top: 0; } }
        &.-above.-none { max-height: 62vh; #about { max-height: 50vh; } }
    }
    """

    def __init__(self, welcome: str = "") -> None:
        super().__init__(classes="-none")
        self._about = Static(f"{NO_TOOL}\n\n{welcome}" if welcome else NO_TOOL, markup=False)
        self._preview = ToolPreview()
        self._preview.display = False
        self._summary = ToolSummary()
        self._described = ScrolledColumn(self._about, self._summary, self._preview, id="about", can_focus=False)
        self._title = ""
        self._entry: CatalogTool | None = None
        """The tool whose form is shown."""
        self.form = SchemaForm(submit_label="run")
        self.form.display = False

    def compose(self) -> ComposeResult:
        self.border_title = "Tool"
        yield self._described
        yield self.form

    @property
    def rows_wanted(self) -> int:
        """The rows of the whole form with its frame, if one is shown."""
        return 0 if self._entry is None else self.form.rows_wanted + 4

    def show_none(self) -> None:
        """Show no tool, and no welcome."""
        self._show("Tool", NO_TOOL, form=False)

    def show_how_to_add(self, words: Content) -> None:
        """Say how to add a server, if none is configured."""
        self._show("Add a server", words, form=False)

    def preview(self, entry: CatalogTool, calls: Sequence[LastCall] = ()) -> None:
        """Show the server's description, the arguments and the last calls."""
        self._preview.show_tool(entry, calls)
        self._show(_title(entry), _about(entry, brief=True), form=False, preview=True)

    def show_last_calls(self, calls: Sequence[LastCall]) -> None:
        self._preview.show_calls(calls)

    def show_about(self, entry: CatalogTool) -> None:
        """Show a line of the description above the form, and what warns of the tool."""
        self._entry = entry
        self._summary.show_tool(entry.tool)
        self._show(_title(entry), Content("\n").join(_warnings(entry)), form=True)

    def _show(self, title: str | Content, about: str | Content, *, form: bool, preview: bool = False) -> None:
        if not form:
            self._entry = None
        if str(title) != self._title:
            self._title = str(title)
            self._described.scroll_to(y=0, animate=False)
        self.border_title = title
        self._about.update(about)
        self._about.display = bool(str(about))
        self._preview.display = preview
        self.remove_class("-whole")
        self.set_class(not form, "-none")
        self.form.display = form

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "description" or self._entry is not None

    def action_description(self) -> None:
        """Show all of the description above the form, or one line of it."""
        if self._entry is None:
            return
        whole = not self.has_class("-whole")
        about = _about(self._entry) if whole else Content("\n").join(_warnings(self._entry))
        self._about.update(about)
        self._about.display = bool(about.plain)
        self.set_class(whole, "-whole")


class Workbench(Vertical):
    """The form above the result. Half-filled forms are remembered."""

    def __init__(self, welcome: str = "") -> None:
        super().__init__()
        self.entry: CatalogTool | None = None
        self._described: tuple[str, str] | None = None
        """The key of the tool that is described, with or without its form."""
        self.tool = ToolForm(welcome)
        self.summary = ResultSummary()
        self.result = ResultView()
        self._forms: dict[tuple[str, str], FormState] = {}
        self._filled: dict[tuple[str, str], ArgumentReferences | None] = {}
        """Tools whose form was filled with the arguments of a call, which a model may have written, and the references
        in these."""

    def compose(self) -> ComposeResult:
        yield self.tool
        yield self.summary
        yield self.result

    @property
    def folded(self) -> bool:
        """True if the result is a line."""
        return self.result.has_class("-folded")

    def fold_result(self, folded: bool = True) -> None:
        """Show a line in place of the result, or the result again."""
        folded = folded and self.result.call is not None
        self.summary.show_call(self.result.call)
        self.summary.set_class(folded, "-shown")
        self.result.set_class(folded, "-folded")

    @property
    def shows_other_call(self) -> bool:
        """True if the result is of another tool than the form."""
        call = self.result.call
        return call is not None and self._described not in (None, (call.request.server, call.request.tool))

    @property
    def form(self) -> SchemaForm:
        return self.tool.form

    @property
    def composed(self) -> bool:
        """True if the user wrote the values in the form."""
        return self.entry is not None and self.entry.key not in self._filled

    @property
    def references(self) -> ArgumentReferences | None:
        """The references in the values of the form."""
        return None if self.entry is None else self._filled.get(self.entry.key)

    async def load(
        self,
        entry: CatalogTool,
        arguments: Mapping[str, Any] | None = None,
        references: ArgumentReferences | None = None,
    ) -> None:
        """Show a tool with what was typed before, or with these arguments, which may hold ``references``."""
        self._keep_form()
        self.entry, self._described = entry, entry.key
        if arguments is not None:
            self._filled[entry.key] = references
        self.tool.show_about(entry)
        await self.form.load(entry.tool.input_schema, arguments)
        if arguments is None and entry.key in self._forms:
            await self.form.restore(self._forms[entry.key])

    def preview(self, entry: CatalogTool, calls: Sequence[LastCall] = ()) -> None:
        """Show what a tool is and takes, and its last calls; its form comes when it is chosen."""
        self._keep_form()
        self.entry, self._described = None, entry.key
        self.tool.preview(entry, calls)

    def show_last_calls(self, entry: CatalogTool, calls: Sequence[LastCall]) -> None:
        """Replace the last calls of the tool, if it is still described."""
        if self._described == entry.key:
            self.tool.show_last_calls(calls)

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
    lines += [Content.assemble(("server says ", "$foreground-muted"), claims_explained(tool)), *_warnings(entry)]
    if tool.description:
        text = unindented(tool.description)
        description = _start_of(text) if brief else show(text, limit=8000)
        lines.append(Content.styled(description, "$foreground-muted"))
    return Content("\n").join(lines)


def _start_of(text: str) -> str:
    start = "\n".join(text.strip().split("\n", PREVIEW_LINES)[:PREVIEW_LINES])[:PREVIEW_CHARACTERS].rstrip()
    more = len(start) < len(text.strip())
    return show(start) + (" … d shows all of it" if more else "")


def _warnings(entry: CatalogTool) -> list[Content]:
    """Warnings that the user must see before a run, however little of the description is shown."""
    tool, lines = entry.tool, list[Content]()
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
    return lines
