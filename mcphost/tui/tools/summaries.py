"""Single lines for the parts that a form folds: the description of its tool, and an earlier result."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import duration_text, show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.kit.bindings import hint_key
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.rows import Cell, columns

DESCRIPTION_KEY: Final = "f8"
RESULT_KEY: Final = "f9"


class ToolSummary(Widget):
    """The first line of a tool's description, a claim that warns, and the key that shows the rest."""

    DEFAULT_CSS = """
    ToolSummary { height: 1; color: $foreground-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = Content("")

    def show_tool(self, tool: Tool) -> None:
        said = show_line((tool.description or "").strip().split("\n", 1)[0], 400) or show_line(tool.label, 120)
        warns = ("destructive", "bold $text-error") if "destructive" in tool.claims else ""
        self._text = Content.assemble(warns, " · " if warns else "", said)
        self.refresh()

    def render(self) -> Content:
        key = f"{hint_key(self, 'tool.description', DESCRIPTION_KEY)} all"
        return columns(self.size.width, [Cell(self._text), Cell(key, "$text-accent", len(key), len(key))], gap=2)


class ResultSummary(Widget, can_focus=True):
    """The state of a call whose result is folded away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "show result", id="folded-result.open", tooltip="Show the result again"),
    ]

    DEFAULT_CSS = """
    ResultSummary {
        dock: bottom; height: 1; padding: 0 1; display: none; color: $foreground-muted;
        &:focus {
            color: $block-cursor-foreground; background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    }
    """

    class Opened(Message):
        """The user opened the result."""

    def __init__(self) -> None:
        super().__init__()
        self._call: ToolCall | None = None

    def show_call(self, call: ToolCall | None) -> None:
        self._call = call
        self.refresh()

    def render(self) -> Content:
        call = self._call
        if call is None:
            return Content("")
        mark, style = CALL_MARKS[call.shown_state]
        name = f"{call.request.server} › {show_line(call.request.tool, 80)}"
        lasted = duration_text(call.elapsed) if call.state.ended else ""
        state = Content.assemble((mark, style), f" {call.shown_state.value}", f" · {lasted}" if lasted else "")
        key = f"{RESULT_KEY} shows it"
        cells = [
            Cell(Content.assemble(f"Last result · {name} · ", state)),
            Cell(key, "$text-accent", len(key), len(key)),
        ]
        line = columns(self.size.width, cells, gap=2)
        return Content(line.plain) if self.has_focus else line  # colours would be patches in the bar

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def on_click(self) -> None:
        self.action_open()
