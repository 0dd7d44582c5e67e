"""The list of calls of this run, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.messages import CallChosen, CancelRequested
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

HOW_TO: Final = "Choose a tool (t), fill in its form and run it.\nThe calls of this run are listed here."
EMPTY: Final = f"No calls yet.\n{HOW_TO}"


class CallList(FilteredRows[ToolCall]):
    HELP = "The calls of this run to the chosen server, or to all, newest first. Opening one shows its result."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "cancel", id="calls.cancel", tooltip="Cancel the call, and tell the server"),
        Binding("a", "again", "again", id="calls.again", tooltip="Open the tool with these arguments"),
        Binding("T", "screen.tasks", "tasks", id="calls.tasks", tooltip="List the tasks of its server"),
    ]

    DEFAULT_CSS = """
    CallList {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    @dataclass
    class RepeatRequested(Message):
        """The user asked for a tool's form with the arguments of this call."""

        number: int

    def __init__(self) -> None:
        super().__init__(self._row, search_text, empty=EMPTY, examples="words of a tool, a server or an argument")
        self._widths = (0, 0)

    def compose(self) -> ComposeResult:
        self.border_title = "Calls"
        yield from super().compose()

    def show_calls(self, calls: Iterable[ToolCall], server: str | None) -> None:
        """Show the calls to this server (None: to all); ``calls`` are oldest first.

        The cursor stays on the newest call, until the user moves it to another one.
        """
        shown = [call for call in calls if server in (None, call.request.server)]
        at_newest = not self.rows.highlighted and not self.filtered
        servers = {call.request.server for call in shown}
        self._widths = _widest(servers, 14) if server is None else 0, _widest({call.request.tool for call in shown}, 32)
        self.say_when_empty(EMPTY if server is None else f"No calls to “{server}” yet.\n{HOW_TO}")
        self.show_items(reversed(shown), keep=lambda call: call.number)
        if at_newest:
            self.rows.highlighted = 0
        self.border_title = Content(f"Calls · {server or 'all servers'}{f' · {len(shown):,}' if shown else ''}")

    def _row(self, call: ToolCall, width: int) -> Content:
        return _row(call, width, self._widths, self.search)

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[ToolCall]) -> None:
        event.stop()
        self.post_message(CallChosen(event.item.number))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.item is not None if action in ("cancel", "again") else super().check_action(action, parameters)

    def action_cancel(self) -> None:
        if self.item is not None:
            self.post_message(CancelRequested(self.item.number))

    def action_again(self) -> None:
        if self.item is not None:
            self.post_message(self.RepeatRequested(self.item.number))


def _widest(names: Iterable[str], most: int) -> int:
    return min(most, max((cell_len(show_line(name, most)) for name in names), default=0))


def search_text(call: ToolCall) -> SearchText:
    """The tool, the server, the number and the state; then the arguments."""
    request = call.request
    return SearchText(request.tool, request.server, str(call.number), _state(call), more=_arguments(call))


def _arguments(call: ToolCall) -> str:
    return show_line(json.dumps(dict(call.arguments), ensure_ascii=False), 200)


def _row(call: ToolCall, width: int, names: tuple[int, int], search: Search) -> Content:
    """``names`` are the widths of the columns of servers and tools; 0: no such column."""
    (mark, style), (server, tool) = CALL_MARKS[call.shown_state], names
    cells = [
        Cell(mark, style, 1, 1),
        Cell(str(call.number), "$foreground-muted", 3, 4, "right"),
        Cell(clock_text(call.time), "$foreground-muted", 8, 8),
        Cell(
            search.mark(call.request.server if server else ""),
            "$foreground-muted",
            min(server, 4),
            min(server, width // 6),
        ),
        Cell(search.mark(show_line(call.request.tool, 60)), "bold", 8, min(tool, width // 3) if width >= 70 else None),
    ]
    if width >= 70:
        cells.append(Cell(search.mark(_arguments(call)), "$foreground-muted"))
    return columns(
        width,
        [
            *cells,
            Cell(_state(call), "" if call.state is CallState.DONE else style, 9, 10, "right"),
            Cell(duration_text(call.elapsed), "$foreground-muted", 6, 10, "right"),
        ],
    )


def _state(call: ToolCall) -> str:
    if call.state is CallState.SIGNING_IN:
        return "sign-in"
    if call.asks:
        return "asks you"
    return "task" if call.state is CallState.RUNNING and call.task is not None else call.state.value
