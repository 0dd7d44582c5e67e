"""The comparison of two sides: a line for each fact, with both values beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.comparison.findings import counted
from mcphost.host.comparison.observation import PlannedCalls, SideObservation
from mcphost.host.comparison.report import Comparison, Row, compare_sides, rows_of
from mcphost.host.comparison.severity import BREAKING, NOTE, REVIEW
from mcphost.host.comparison.sides import Sides
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.kit.framed import FramedScreen, PickScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import MARK, Cell, RowList, columns

VALUE: Final = 400
"""Characters of a value in its row; enter shows all."""

NARROW: Final = 120
"""Cells of a row below which a finding has no room for values beside its sentence; enter shows them."""

Pair = tuple[SideObservation, SideObservation]


class OpenComparison:
    """Two sides that are open as long as their screen is."""

    def __init__(self, host: Host, title: str, sides: Sides, servers: tuple[str, ...]) -> None:
        self._host, self.title, self.sides = host, title, sides
        self._names = {*servers, *(side.server for side in sides)}
        self._called: tuple[str, Mapping[str, Any]] | None = None

    @property
    def repeatable(self) -> ToolCall | None:
        """The latest call of one of the servers that are compared, whose arguments both sides can be sent."""
        calls = reversed(list(self._host.tool_calls.calls.values()))
        found = (call for call in calls if call.request.server in self._names and call.request.task is None)
        return next(found, None)

    @property
    def tools(self) -> list[Tool]:
        """The tools of both sides, by name; a tool of both as the first side defines it."""
        first, second = ({tool.name: tool for tool in self._host.servers[side.server].tools} for side in self.sides)
        return sorted((second | first).values(), key=lambda tool: tool.name)

    def arguments_of(self, tool: str) -> Mapping[str, Any] | None:
        """Return the arguments of the latest call, if it was of this tool."""
        latest = self.repeatable
        return latest.request.arguments if latest is not None and latest.request.tool == tool else None

    async def observe(self, progress: Callable[[str], None]) -> Pair:
        """Connect both sides again, and list what they offer."""
        for side in self.sides:
            connection = self._host.servers[side.server]
            if connection.ready:
                connection.restart()
        return await self._host.comparison.observe(self.sides, None, progress)

    async def call(self, seen: Pair, tool: str, arguments: Mapping[str, Any], progress: Callable[[str], None]) -> Pair:
        """Call this tool on both sides; each asks for consent. Raises Declined.

        The answers join those of the calls before, if the arguments are the same.
        """
        again, self._called = self._called == (tool, arguments), (tool, arguments)
        found = await self._host.comparison.observe(self.sides, PlannedCalls(tool, lambda _: arguments), progress)
        pairs = zip(seen, found, strict=True)
        first, second = (replace(old, calls=(*old.calls, *new.calls) if again else new.calls) for old, new in pairs)
        return first, second


class ComparisonScreen(FramedScreen[None]):
    """Shows one comparison; opens both sides when it is mounted."""

    HELP = (
        "Two servers, or one in both eras, side by side; ≠ marks what differs. A change of what they offer is "
        "breaking, for review, or a note. Opening a row shows both values in full. Each side asks for your approval "
        "of a call as usual; more calls give better times."
    )
    QUESTIONS_ABOVE = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tool", "call a tool", id="comparison.tool", tooltip="Call a tool on both sides"),
        Binding("c", "call", "repeat call", id="comparison.call", tooltip="Repeat the latest call on both sides"),
        Binding("d", "differences", "differences", id="comparison.differences", tooltip="Show only what differs"),
        Binding("r", "again", "again", id="comparison.again", tooltip="Connect both sides again, and list again"),
        Binding("y", "copy", "copy", id="comparison.copy", tooltip="Copy the report as text"),
        Binding("escape,q", "back", "back", id="comparison.back", tooltip="Close"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ComparisonScreen {
        & > .frame { width: 96%; height: 92%; max-width: 180; }
        #summary, #labels { height: 1; padding: 0 0 0 2; }
        #labels { color: $foreground-muted; }
        RowList { height: 1fr; }
    }
    """

    def __init__(self, comparison: OpenComparison) -> None:
        super().__init__()
        self._open = comparison
        self._seen: Pair | None = None
        self.report: Comparison | None = None
        self._only_differences = False
        self._summary, self._labels = Static("", id="summary", markup=False), Static("", id="labels", markup=False)
        self._marks = 1
        """The width of the column of marks."""
        self.rows = RowList[Row](self._row, empty="◐ opening both sides …")

    def compose(self) -> ComposeResult:
        title = f"Compare · {show_line(self._open.title, 140)}"
        with self.framed(title, "t call a tool · c repeat · d differences · r again · y copy · esc back"):
            yield self._summary
            yield self._labels
            yield self.rows

    def on_mount(self) -> None:
        self.rows.focus()
        self.action_again()

    def on_resize(self) -> None:
        self.call_after_refresh(self._update_labels)

    def action_again(self) -> None:
        """Connect both sides and list what they offer."""
        self._work(self._open.observe(self._progress))

    def action_tool(self) -> None:
        """Choose a tool, fill in its arguments, and call it on both sides."""
        if self._callable:
            self.app.push_screen(ToolScreen(self._open.tools), self._fill_in)

    def action_call(self) -> None:
        """Repeat the latest call of the server on both sides."""
        call = self._open.repeatable
        if call is None:
            self.notify("Call a tool first (t): c repeats the latest call on both sides.")
        else:
            self._call(call.request.tool, call.request.arguments)

    def action_differences(self) -> None:
        self._only_differences = not self._only_differences
        self._show_rows()

    def action_copy(self) -> None:
        """Copy the report as text, one fact a line."""
        if self.report is not None:
            self.app.copy_to_clipboard(text_of(self.report))

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Row]) -> None:
        event.stop()
        chosen, report = event.item, self.report
        if report is not None and not chosen.heading:
            labels = report.first.side.label, report.second.side.label
            words = f"{chosen.label}\n\n" if chosen.severity else ""
            text = f"{words}{labels[0]}:\n{chosen.first}\n\n{labels[1]}:\n{chosen.second}"
            self.app.push_screen(ReaderScreen(show_line(chosen.label, 100), text))

    @property
    def _callable(self) -> bool:
        """True if both sides are open."""
        return self._seen is not None and self.report is not None and self.report.complete

    def _fill_in(self, tool: Tool | None) -> None:
        if tool is None:
            return

        def filled(arguments: Mapping[str, Any] | None) -> None:
            if arguments is not None:
                self._call(tool.name, arguments)

        before = self._open.arguments_of(tool.name)
        self.app.push_screen(EditArgumentsScreen("both sides", tool, before, submit="call both sides"), filled)

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        if self._callable and self._seen is not None:
            self._work(self._open.call(self._seen, tool, arguments, self._progress))

    def _work(self, work: Awaitable[Pair]) -> None:
        _: Worker[None] = self.run_worker(self._take(work), group="compare", exclusive=True)

    async def _take(self, work: Awaitable[Pair]) -> None:
        try:
            self._seen = await work
        except McphostError as error:  # declined, or a server that is no longer configured
            self._summary.update(Content.styled(show_line(str(error), 300), "$text-warning"))
            return
        self.report = await asyncio.to_thread(compare_sides, *self._seen)
        self._summary.update(summary(self.report))
        self._show_rows()
        headings = [at for at, each in enumerate(self.rows.items) if each.heading]
        if self.report.answers is not None and headings:
            self.rows.highlighted = headings[-1]  # the calls come last

    def _progress(self, text: str) -> None:
        self._summary.update(Content(f"◐ {show_line(text, 200)} …"))

    def _show_rows(self) -> None:
        if self.report is None:
            return
        rows = list(rows_of(self.report))
        self.rows.empty = "Nothing differs. d shows everything."
        self._marks = max(1, *(cell_len(each.mark) for each in rows))
        self.rows.set_items([each for each in rows if each.differs] if self._only_differences else rows)
        self.call_after_refresh(self._update_labels)  # a scroll bar takes its room

    def _update_labels(self) -> None:
        first, second = self._open.sides
        width = self.rows.scrollable_content_region.width - cell_len(MARK)
        self._labels.update(self._row(Row("", first.label, second.label), max(width, 20)))

    def _row(self, each: Row, width: int) -> Content:
        return row(each, width, self._marks)


def row(each: Row, width: int, marks: int) -> Content:
    """A mark in a column of ``marks`` cells, the label and both values; a narrow row of a finding is its sentence."""
    style = "bold" if each.heading else ""
    label = show_line(each.label, 200)
    mark = Cell(each.mark, _mark_style(each), marks, marks)
    if each.severity and width < NARROW:
        return columns(width, [mark, Cell(f"  {label}", "", 14)])
    cells = [
        mark,
        Cell(label if each.heading or not label else f"  {label}", style, 14, max(24, width * 2 // 5)),
        Cell(show_line(each.first, VALUE), style, 10),
        Cell(show_line(each.second, VALUE), style, 10),
    ]
    return columns(width, cells)


def _mark_style(each: Row) -> str:
    return "bold $text-warning" if each.severity is None else SEVERITY_STYLES[each.severity]


SEVERITY_STYLES: Final = {BREAKING: "bold $text-error", REVIEW: "bold $text-warning", NOTE: "$foreground-muted"}


def summary(report: Comparison) -> Content:
    """Say in a sentence if they differ."""
    if not report.complete:
        return Content.styled("A side could not be opened.", "$text-warning")
    if report.same:
        return Content("They offer and answer the same." if report.answers else "They offer the same.")
    count, found = sum(each.differs for each in rows_of(report)), counted(report.findings)
    places = f"They differ in {count} {'place' if count == 1 else 'places'}"
    return Content.styled(f"{places}: {found}." if found else f"{places}.", "$text-warning")


def text_of(report: Comparison) -> str:
    """The report as text: tab-separated, safe to paste."""
    head = Row("", report.first.side.label, report.second.side.label)
    return "\n".join(_line_of(each) for each in (head, *rows_of(report)))


def _line_of(each: Row) -> str:
    parts = each.mark, each.label, each.first, each.second
    return "\t".join(show_line(part, 10_000) for part in parts)


class OtherServerScreen(PickScreen[str, str]):
    """Chooses the server to compare ``server`` with."""

    HELP = "The server to compare with."

    def __init__(self, server: str, others: Sequence[str]) -> None:
        super().__init__(f"Compare {show_line(server, 60)} with", "compare", others)

    def row(self, item: str, width: int) -> Content:
        return columns(width, [Cell(show_line(item, 64), "", 10)])

    def value(self, item: str) -> str:
        return item


class ToolScreen(PickScreen[Tool, Tool]):
    """Chooses the tool to call on both sides."""

    HELP = "The tool to call on both sides; its form comes next."

    def __init__(self, tools: Sequence[Tool]) -> None:
        super().__init__("Call on both sides", "fill in arguments", tools, empty="Neither side has a tool.")

    def row(self, item: Tool, width: int) -> Content:
        about = (item.description or "").strip().partition("\n")[0]
        return columns(
            width, [Cell(show_line(item.name, 64), "", 16, 40), Cell(show_line(about, 200), "$foreground-muted", 10)]
        )

    def value(self, item: Tool) -> Tool:
        return item
