"""The preview of a tool beside the list: the server's claims, the arguments, and the last calls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from textual.content import Content

from mcphost.host.catalog import CatalogTool
from mcphost.host.history.past_call import PastCall
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.protocol.display import duration_text, size_text
from mcphost.protocol.forms.listed_arguments import schema_arguments
from mcphost.protocol.models.tools import Tool
from mcphost.tui.catalog.argument_table import MUTED, ArgumentTable
from mcphost.tui.consent.call_rows import claims_text
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.results.failure import first_line
from mcphost.tui.results.summary import result_words

LAST_CALLS: Final = 5

CLAIMS: Final[Mapping[str, str]] = {
    "read-only": "changes nothing",
    "writes": "changes something",
    "destructive": "may delete or overwrite",
    "not destructive": "only adds",
    "idempotent": "safe to repeat",
    "not idempotent": "acts again if repeated",
    "open-world": "reaches the outside world",
    "closed-world": "reaches nothing outside",
}
"""The meaning of the server's claims."""


class LastCall(NamedTuple):
    """A call of a tool, in this run or an earlier one; ``result`` is in a few words, and safe to show."""

    state: CallState
    result: str
    time: float
    """In seconds since 1970."""
    seconds: float


def last_calls(calls: Iterable[ToolCall], key: tuple[str, str]) -> list[LastCall]:
    """The last calls of a tool by its server and name, newest first; ``calls`` are oldest first."""
    found = (call for call in reversed(list(calls)) if (call.request.server, call.request.tool) == key)
    return [
        LastCall(call.shown_state, result_words(call), call.time, call.elapsed) for call in islice(found, LAST_CALLS)
    ]


def calls_before(calls: Iterable[PastCall]) -> list[LastCall]:
    """The calls of earlier runs among these."""
    return [LastCall(call.state, _past_result(call), call.time, call.duration) for call in calls if call.id]


def _past_result(call: PastCall) -> str:
    if call.error:
        return first_line(call.error)
    return "" if call.result_size is None else f"a result of {size_text(call.result_size)}"


def claims_explained(tool: Tool) -> Content:
    """The server's claims, each with its meaning."""
    if not tool.claims:
        return claims_text(tool)
    meanings = Content.styled(f" ({', '.join(CLAIMS[claim] for claim in tool.claims)})", MUTED)
    return Content.assemble(claims_text(tool), meanings)


class ToolPreview(ArgumentTable):
    """The arguments and the last calls of a tool."""

    DEFAULT_CSS = """
    ToolPreview { margin-top: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._takes_arguments = False
        self._calls: Sequence[LastCall] = ()

    def show_tool(self, entry: CatalogTool, calls: Sequence[LastCall]) -> None:
        self._takes_arguments, self._calls = entry.tool.takes_arguments, calls
        self.show_arguments(schema_arguments(entry.tool.input_schema))

    def show_calls(self, calls: Sequence[LastCall]) -> None:
        """Replace the last calls."""
        if calls != self._calls:
            self._calls = calls
            self.lay_out_again()

    def draw(self, width: int) -> Iterator[Content]:
        yield from super().draw(width)
        yield from _keys(self._takes_arguments)
        if self._calls:
            yield Content("")
            yield Content.styled("last calls", MUTED)
            yield from (_call_row(call, width) for call in self._calls)


def _keys(takes_arguments: bool) -> Iterator[Content]:
    key = "bold $text-accent"
    if takes_arguments:
        yield Content("")
        yield Content.assemble(("enter", key), " opens the form   ", ("d", key), " shows the definition")
    else:
        yield Content.assemble(("enter", key), " runs it (no arguments)")


def _call_row(call: LastCall, width: int) -> Content:
    mark, style = CALL_MARKS[call.state]
    today = date_text(call.time) == date_text(time.time())
    when = clock_text(call.time) if today else date_text(call.time)
    cells = [
        Cell(mark, style, 1, 1),
        Cell(call.result, "" if call.state is CallState.DONE else style, 10, None),
        Cell(when, MUTED, len(when), len(when)),
        Cell(duration_text(call.seconds), MUTED, 6, 9, "right"),
    ]
    return columns(width, cells)
