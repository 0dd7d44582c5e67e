"""The list of calls of this run, newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.messages import CallChosen, CancelRequested
from mcphost.tui.kit.rows import Cell, RowList, columns

EMPTY = "No calls yet.\nChoose a tool (t), fill its form and run it:\nevery call of this run is listed here."


class CallList(Vertical):
    HELP = "The calls of this run, newest first. Opening one shows its result."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "cancel", id="calls.cancel", tooltip="Stop the call and tell its server"),
        Binding("a", "again", "again", id="calls.again", tooltip="The tool's form with these arguments"),
        Binding("T", "screen.tasks", "tasks", id="calls.tasks", tooltip="The tasks its server keeps"),
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
        super().__init__()
        self.rows = RowList[ToolCall](_row, empty=EMPTY)

    def compose(self) -> ComposeResult:
        self.border_title = "Calls"
        yield self.rows

    def show_calls(self, calls: Sequence[ToolCall]) -> None:
        """``calls`` are oldest first."""
        self.rows.set_items(list(reversed(calls)), keep=lambda call: call.number)

    @property
    def item(self) -> ToolCall | None:
        """The selected call."""
        return self.rows.item

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[ToolCall]) -> None:
        event.stop()
        self.post_message(CallChosen(event.item.number))

    def action_cancel(self) -> None:
        if self.item is not None:
            self.post_message(CancelRequested(self.item.number))

    def action_again(self) -> None:
        if self.item is not None:
            self.post_message(self.RepeatRequested(self.item.number))


def _row(call: ToolCall, width: int) -> Content:
    mark, style = CALL_MARKS[call.shown_state]
    cells = [
        Cell(mark, style, 1, 1),
        Cell(str(call.number), "$foreground-muted", 3, 4, "right"),
        Cell(call.request.server, "$foreground-muted", 4, min(14, width // 6)),
        Cell(show_line(call.request.tool, 60), "bold", 8, min(28, width // 3) if width >= 70 else None),
    ]
    if width >= 70:
        cells.append(Cell(show_line(json.dumps(dict(call.arguments), ensure_ascii=False), 200), "$foreground-muted"))
    return columns(
        width,
        [
            *cells,
            Cell(_state(call), style, 9, 10, "right"),
            Cell(duration_text(call.elapsed), "$foreground-muted", 6, 10, "right"),
        ],
    )


def _state(call: ToolCall) -> str:
    if call.state is CallState.SIGNING_IN:
        return "sign-in"
    if call.asks:
        return "asks you"
    return "as a task" if call.state is CallState.RUNNING and call.task is not None else call.state.value
