"""The tools of one or all servers, filtered as one types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from mcphost.host.catalog import OfferedTool
from mcphost.protocol.display import show_line
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.rows import RowList

EMPTY = "No tools yet: no server is ready.\nThe list on the left says why; f3 shows the logs."
NO_MATCH = "No tool matches. esc clears the filter."


class ToolList(Vertical):
    """A filter above a list."""

    HELP = (
        "The tools on offer. Type / and words to filter by name, server or description.\n"
        "enter opens a tool's form (or runs it when it takes no arguments), d shows its definition."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="tools.filter", tooltip="Type words that must occur"),
        Binding("d", "definition", "definition", id="tools.definition", tooltip="The tool as its server defines it"),
        Binding("escape", "clear", "clear", id="tools.clear", show=False),
        Binding("down", "to_list", "to the list", id="tools.down", show=False),
    ]

    DEFAULT_CSS = """
    ToolList {
        border: round $panel-lighten-2;
        &:focus-within { border: round $accent; }
        Input { padding: 0 1; background: $panel; }
    }
    """

    @dataclass
    class Chosen(Message):
        """The user wants to use this tool."""

        offered: OfferedTool

    @dataclass
    class DefinitionWanted(Message):
        """The user wants to read this tool's definition."""

        offered: OfferedTool

    def __init__(self) -> None:
        super().__init__()
        self._offered: Sequence[OfferedTool] = ()
        self._haystacks: list[str] = []
        self._server: str | None = None
        self._mixed = False
        self._filter = Input(compact=True, placeholder="words that must occur", select_on_focus=False)
        self._filter.display = False
        self.rows = RowList[OfferedTool](self._row, empty=EMPTY)
        """The list itself."""

    def compose(self) -> ComposeResult:
        """The filter, hidden while empty, and the list."""
        self.border_title = "Tools"
        yield self._filter
        yield self.rows

    @property
    def item(self) -> OfferedTool | None:
        """The tool under the cursor."""
        return self.rows.item

    def show_tools(self, offered: Sequence[OfferedTool], server: str | None) -> None:
        """These are the tools, of this server (None: of all)."""
        if (offered, server) == (self._offered, self._server):  # thousands of them are often told again
            return
        self._offered, self._server = offered, server
        self._mixed = server is None and len({each.server for each in offered}) > 1
        self._haystacks = [_haystack(each) for each in offered]
        self._apply()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_to_list()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[OfferedTool]) -> None:
        event.stop()
        self.post_message(self.Chosen(event.item))

    def action_filter(self) -> None:
        """Go to the filter."""
        field = self._filter
        field.display = True
        field.focus()

    def action_clear(self) -> None:
        """Drop the filter, or leave it to others when there is none."""
        field = self._filter
        if field.value or field.has_focus:
            field.value = ""
            field.display = False
            self.rows.focus()

    def action_to_list(self) -> None:
        """From the filter to its matches."""
        field = self._filter
        field.display = bool(field.value)
        self.rows.focus()

    def action_definition(self) -> None:
        """See `DefinitionWanted`."""
        if self.item is not None:
            self.post_message(self.DefinitionWanted(self.item))

    def _apply(self) -> None:
        words = self._filter.value.lower().split()
        pairs = zip(self._offered, self._haystacks, strict=True)
        matching = [each for each, hay in pairs if all(word in hay for word in words)] if words else self._offered
        self.rows.empty = NO_MATCH if words and self._offered else EMPTY
        self.rows.set_items(matching, keep=lambda each: each.key)
        whose = self._server or "all servers"
        count = f"{len(matching)} of {len(self._offered)}" if words else str(len(self._offered))
        self.border_title = Content(f"Tools · {whose} · {count}")

    def _row(self, offered: OfferedTool, width: int) -> Content:
        tool, roomy = offered.tool, width >= 58
        server = min(14, max(6, width // 6))
        cells = [Cell(offered.server, "$foreground-muted", 5, server)] if self._mixed else []
        cells.append(Cell(show_line(tool.label, 80), "bold", 10, min(30, width // 3) if roomy else None))
        if roomy:
            cells.append(Cell(show_line((tool.description or "").split("\n", 1)[0], 160), "$foreground-muted"))
        word, style = _claim(offered)
        return columns(width, [*cells, Cell(word, style, 8, 8, "right")])


def _claim(offered: OfferedTool) -> tuple[str, str]:
    claims = offered.tool.claims
    if "read-only" in claims:
        return "reads", "$text-success"
    return ("destroys", "$text-error") if "destructive" in claims else ("", "")


def _haystack(offered: OfferedTool) -> str:
    tool = offered.tool
    return f"{offered.server} {tool.name} {tool.label} {tool.description or ''}".lower()
