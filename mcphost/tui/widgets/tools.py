"""Working with a tool: the list, the chosen tool's form, and the result, side by side or one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from mcphost.host.calls import Call
from mcphost.host.catalog import OfferedTool
from mcphost.protocol.display import hidden_count, show, show_line
from mcphost.tui.screens.tool_call import claims_text
from mcphost.tui.widgets.result import ResultView
from mcphost.tui.widgets.schema_form import FormState, SchemaForm
from mcphost.tui.widgets.tool_list import ToolList

Step = Literal["list", "form", "result"]

NO_TOOL = "Choose a tool and press enter: its description and its form appear here."
KEPT_FORMS = 50
"""Tools whose half-filled forms are kept."""


class ToolForm(Vertical):
    """The chosen tool: what its server says of it, and the form of its arguments."""

    HELP = "The chosen tool. tab and enter go from field to field, ctrl+r runs it, ctrl+j shows the raw JSON."

    DEFAULT_CSS = """
    ToolForm {
        border: round $panel-lighten-2;
        &:focus-within { border: round $accent; }
        #about { height: auto; max-height: 45%; padding: 0 1; }
        &.-none #about { max-height: 100%; }
        SchemaForm { height: 1fr; }
    }
    """

    def __init__(self, welcome: str = "") -> None:
        super().__init__(classes="-none")
        self._welcome = f"{NO_TOOL}\n\n{welcome}" if welcome else NO_TOOL
        self._about = Static(self._welcome, markup=False)
        self.form = SchemaForm(submit_label="run")
        self.form.display = False

    def compose(self) -> ComposeResult:
        """What the server says, then the form."""
        with VerticalScroll(id="about", can_focus=False):
            yield self._about
        yield self.form

    def show_about(self, offered: OfferedTool | None) -> None:
        """Describe this tool."""
        name = "Tool" if offered is None else f"{offered.server} › {show_line(offered.tool.name, 60)}"
        self.border_title = Content(name)
        self._about.update(Content(self._welcome) if offered is None else _about(offered))
        self.set_class(offered is None, "-none")
        self.form.display = offered is not None


class ToolsPane(Container):
    """List, form and result. On a small screen one of them at a time: enter goes on, esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="tools.back", tooltip="From the result to the form to the list"),
    ]

    DEFAULT_CSS = """
    ToolsPane {
        layout: horizontal;
        ToolList { width: 38%; height: 100%; }
        #work { width: 1fr; height: 100%; }
        ToolForm { height: 1fr; }
        ResultView { height: 1fr; }
        &.-form ToolForm { height: 3fr; }
        &.-result ResultView { height: 3fr; }
        &.-single ToolList { width: 100%; display: none; }
        &.-single #work { width: 100%; }
        &.-single ToolForm, &.-single ResultView { display: none; }
        &.-single.-list ToolList { display: block; }
        &.-single.-list #work { display: none; }
        &.-single.-form ToolForm { display: block; }
        &.-single.-result ResultView { display: block; }
    }
    """

    @dataclass
    class RunWanted(Message):
        """Run this tool with these arguments."""

        offered: OfferedTool
        arguments: Mapping[str, Any]

    def __init__(self, welcome: str = "") -> None:
        super().__init__()
        self.list = ToolList()
        self.chosen = ToolForm(welcome)
        self.result = ResultView()
        self._step: Step = "list"
        self._offered: OfferedTool | None = None
        self._forms: dict[tuple[str, str], FormState] = {}
        self.add_class("-list")

    def compose(self) -> ComposeResult:
        """All three; classes decide what shows."""
        yield self.list
        with Vertical(id="work"):
            yield self.chosen
            yield self.result

    @property
    def step(self) -> Step:
        """Which part has the user's attention."""
        return self._step

    @property
    def shown_call(self) -> int | None:
        """The call whose result is shown."""
        call = self.result.call
        return call.number if call else None

    def set_single(self, single: bool) -> None:
        """Show one part at a time, or all of them."""
        self.set_class(single, "-single")

    def show_tools(self, offered: Sequence[OfferedTool], server: str | None) -> None:
        """These are the tools."""
        self.list.show_tools(offered, server)

    def show_call(self, call: Call) -> None:
        """Show this call's progress and result, and go there."""
        self.result.show_call(call)
        self._go("result")
        self.result.focus()

    def refresh_call(self) -> None:
        """The shown call changed."""
        self.result.refresh_call()

    def focus_list(self) -> None:
        """Go to the list of tools."""
        self._go("list")
        self.list.rows.focus()

    async def open_tool(self, offered: OfferedTool, arguments: Mapping[str, Any] | None = None) -> None:
        """Show a tool's form, as it was left, or with these arguments."""
        self._keep_form()
        form = self.chosen.form
        self._offered = offered
        self.chosen.show_about(offered)
        await form.load(offered.tool.input_schema, arguments)
        if arguments is None and offered.key in self._forms:
            form.restore(self._forms[offered.key])
        self._go("form")
        form.focus_first()

    @on(ToolList.Chosen)
    async def _chosen(self, event: ToolList.Chosen) -> None:
        event.stop()
        if _takes_nothing(event.offered):
            self._keep_form()
            self._offered = event.offered
            self.chosen.show_about(event.offered)
            await self.chosen.form.load(event.offered.tool.input_schema)
            self.post_message(self.RunWanted(event.offered, {}))
        else:
            await self.open_tool(event.offered)

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        if self._offered is not None:
            self.post_message(self.RunWanted(self._offered, event.arguments))

    def action_back(self) -> None:
        """One step back; the call goes on, and what was typed stays."""
        if self._step == "result" and self._offered is not None and not _takes_nothing(self._offered):
            self._go("form")
            self.chosen.form.focus_first()
        else:
            self.focus_list()

    def _keep_form(self) -> None:
        if self._offered is None:
            return
        self._forms.pop(self._offered.key, None)
        self._forms[self._offered.key] = self.chosen.form.state()
        while len(self._forms) > KEPT_FORMS:
            del self._forms[next(iter(self._forms))]

    def _go(self, step: Step) -> None:
        self.remove_class(f"-{self._step}")
        self._step = step
        self.add_class(f"-{step}")


def _takes_nothing(offered: OfferedTool) -> bool:
    schema = offered.tool.input_schema
    return not schema.get("properties") and set(schema) <= {"type", "properties", "$schema", "additionalProperties"}


def _about(offered: OfferedTool) -> Content:
    tool = offered.tool
    lines = []
    if tool.label != tool.name:
        lines.append(Content.styled(show_line(tool.label, 120), "bold"))
    lines.append(Content.assemble(("claims ", "$foreground-muted"), claims_text(tool)))
    hidden = hidden_count(f"{tool.name}{tool.description}")
    if hidden:
        lines.append(Content.styled(f"{hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error"))
    if tool.description:
        lines.append(Content.styled(show(tool.description, limit=8000), "$foreground-muted"))
    return Content("\n").join(lines)
