"""The list of calls, newest first: those of this run, and below them those of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.worker import Worker

from mcphost.config import entry_of
from mcphost.errors import ConfigError
from mcphost.host.history.call_history import CallHistory
from mcphost.host.history.past_call import PastCall, PastCallQuery, moment_text
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.messages import COPY_AS_KEY, CallChosen, CancelRequested, CopyAsRequested, SaveCallRequested
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

HOW_TO: Final = "Choose a tool (t), fill in its form and run it.\nCalls are listed here, those of earlier runs below."
EMPTY: Final = f"No calls yet.\n{HOW_TO}"

AHEAD: Final = 50
"""Rows below the cursor from which on more calls of earlier runs are read."""

WORDLESS: Final = 90
"""Columns below which the mark alone says that a call is done, so that there is room for its arguments."""

Call = ToolCall | PastCall


class CallList(FilteredRows[Call]):
    HELP = (
        "The calls to the chosen server, or to all, newest first: those of this run, and with their date those of\n"
        "earlier runs. Opening one shows its result. A marked call is compared with the next one that is marked."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "cancel", id="calls.cancel", tooltip="Cancel the call, and tell the server"),
        Binding("ctrl+r", "run", "run again", id="calls.run", tooltip="Run it again with the same arguments"),
        Binding("a", "again", "form", id="calls.again", tooltip="Open the tool with these arguments"),
        Binding("ctrl+s", "save", "save call", id="calls.save", tooltip="Save this call under a name"),
        Binding("m", "mark", "compare", id="calls.mark", tooltip="Mark it, then another call of the tool to compare"),
        Binding(
            f"Y,{COPY_AS_KEY}",
            "copy_as",
            "copy as",
            id="calls.copy-as",
            show=False,
            tooltip="Copy it as a command, JSON-RPC, curl or a rule",
        ),
        Binding("T", "screen.tasks", "tasks", id="calls.tasks", tooltip="List the tasks of its server"),
    ]

    DEFAULT_CSS = """
    CallList {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    @dataclass
    class PastChosen(Message):
        """The user opened a call of an earlier run."""

        call: PastCall

    @dataclass
    class RunRequested(Message):
        """The user asked to run a call's tool again with the same arguments."""

        call: Call

    @dataclass
    class RepeatRequested(Message):
        """The user asked for a tool's form with the arguments of this call."""

        call: Call

    @dataclass
    class ComparisonRequested(Message):
        """The user asked for the difference between the results of two calls of one tool."""

        calls: tuple[Call, Call]

    def __init__(self, history: CallHistory) -> None:
        super().__init__(self._row, search_text, empty=EMPTY, examples="words of a tool, a server or an argument")
        self._history = history
        self._server: str | None = None
        self._widths = (0, 0)
        self._past: list[PastCall] = []
        self._sought: tuple[str | None, tuple[str, ...]] | None = None
        """The server and the words that earlier calls were last sought for."""
        self._has_more = self._visible = False
        self._active_keys: tuple[bool | None, ...] = ()
        self.marked: Call | None = None

    def compose(self) -> ComposeResult:
        self.border_title = "Calls"
        yield from super().compose()

    def on_show(self) -> None:
        """Read the calls of earlier runs: other mcphosts may have added some."""
        self._visible, self._sought = True, None
        self.list_matches()

    def on_hide(self) -> None:
        self._visible = False

    def show_calls(self, calls: Iterable[ToolCall], server: str | None) -> None:
        """Show the calls to this server (None: to all); ``calls`` are oldest first.

        The cursor stays on the newest call, until the user moves it to another one.
        """
        shown = [call for call in calls if server in (None, entry_of(call.request.server))]
        at_newest = not self.rows.highlighted and not self.filtered
        self._server = server
        self.say_when_empty(EMPTY if server is None else f"No calls to “{server}” yet.\n{HOW_TO}")
        self.show_items(reversed(shown), keep=_key_of)
        if at_newest:
            self.rows.highlighted = 0
        self._show_title()
        self._update_keys()  # the call may have ended

    def below(self) -> Sequence[Call]:
        """The calls of earlier runs that were found; of these, those that the present filter matches."""
        words = self._typed_search.words
        fitting = [call for call in self._past if self._server in (None, call.server)]
        return [call for call in fitting if all(word in search_text(call).all for word in words)] if words else fitting

    def list_matches(self, *, to_best: bool = False) -> None:
        sought = self._server, self._typed_search.words
        if sought != self._sought and self._visible and self._history.kept:
            self._sought = sought
            self._look_up(None, to_best=to_best)
        super().list_matches(to_best=to_best)
        self._fit_columns()

    def _look_up(self, before: int | None, *, to_best: bool = False) -> None:
        """Find calls of earlier runs in the background, in place of what is being sought."""
        find = partial(self._find, before, to_best=to_best)
        _: Worker[None] = self.run_worker(find, group="history", exclusive=True)

    async def _find(self, before: int | None, *, to_best: bool = False) -> None:
        """Find calls of earlier runs: the newest, or those older than ``before``."""
        query = PastCallQuery(
            server=self._server, words=self._typed_search.words, before=before, without_run=self._history.run
        )
        try:
            found = await self._history.find(query)
            total = await self._history.count(self._server)
            self.below_total = max(0, total - sum(call.state.ended for call in self.all))
        except ConfigError as error:
            self.notify(f"The history of calls cannot be read: {error}", severity="warning", markup=False)
            found = []
        self._past = found if before is None else [*self._past, *found]
        self._has_more = bool(found)
        self.expect_items(bool(self.below_total))
        untouched = not self.rows.highlighted
        self.list_matches(to_best=to_best and untouched)
        self._show_title()

    def _fit_columns(self) -> None:
        calls = [*self.all, *self._past]
        servers = _widest({server_of(call) for call in calls}, 14) if self._server is None else 0
        widths = servers, _widest({tool_of(call) for call in calls}, 32)
        if widths != self._widths:
            self._widths = widths
            self.rows.refresh()

    def _show_title(self) -> None:
        words = ["Calls", self._server or "all servers", f"{len(self.all):,}" if self.all else ""]
        words.append(f"{self.below_total:,} earlier" if self.below_total else "")
        words.append("" if self._history.kept or not self._history.path else "no history is kept")
        self.border_title = Content(" · ".join(filter(None, words)))

    def _row(self, call: Call, width: int) -> Content:
        if isinstance(call, PastCall):
            return _past_row(call, width, self._widths, self.search, marked=call == self.marked)
        clock = len(moment_text(0)) if self._past else 8
        return _row(call, width, self._widths, self.search, clock, marked=call is self.marked)

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Call]) -> None:
        event.stop()
        call = event.item
        self.post_message(self.PastChosen(call) if isinstance(call, PastCall) else CallChosen(call.number))

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        """Read more before the cursor reaches the last row."""
        at = self.rows.highlighted
        if self._has_more and self._past and at is not None and at + AHEAD >= len(self.rows.items):
            self._has_more = False
            self._look_up(self._past[-1].id)
        self._update_keys()

    def _update_keys(self) -> None:
        active = tuple(self.check_action(action, ()) for action in ("cancel", "run", "mark"))
        if active != self._active_keys:  # else each move would update the key line, which is slow
            self._active_keys = active
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        call = self.item
        match action:
            case "cancel":
                return isinstance(call, ToolCall) and not call.state.ended
            case "again" | "copy_as":
                return call is not None
            case "save":
                return isinstance(call, ToolCall) or (call is not None and call.argument_text is not None)
            case "run":
                return call is not None and call.state.ended
            case "mark":
                return call is not None and _has_result(call)
        return super().check_action(action, parameters)

    def action_cancel(self) -> None:
        if isinstance(self.item, ToolCall):
            self.post_message(CancelRequested(self.item.number))

    def action_run(self) -> None:
        if self.item is not None:
            self.post_message(self.RunRequested(self.item))

    def action_again(self) -> None:
        if self.item is not None:
            self.post_message(self.RepeatRequested(self.item))

    def action_save(self) -> None:
        call = self.item
        if isinstance(call, ToolCall):
            request = call.request
            self.post_message(SaveCallRequested(request.server, request.tool, call.arguments, request.references))
        elif call is not None:
            self.post_message(SaveCallRequested(call.server, call.tool, call.arguments))

    def action_copy_as(self) -> None:
        call = self.item
        if call is not None:
            known = isinstance(call, ToolCall) or call.argument_text is not None
            self.post_message(CopyAsRequested(server_of(call), tool_of(call), call.arguments if known else None))

    def action_mark(self) -> None:
        """Mark a call; with another call of the same tool marked, compare the two; unmark a marked call."""
        call, marked = self.item, self.marked
        if call is None:
            return
        self.marked = None if call == marked else call
        if marked is not None and self.marked is not None:
            if _tool_key(marked) == _tool_key(call):
                self.marked = None
                self.post_message(self.ComparisonRequested((marked, call)))
            else:
                self.notify("Only calls of the same tool are compared; this one is marked now.")
        self.rows.refresh()


def server_of(call: Call) -> str:
    return call.server if isinstance(call, PastCall) else entry_of(call.request.server)


def tool_of(call: Call) -> str:
    return call.tool if isinstance(call, PastCall) else call.request.tool


def _tool_key(call: Call) -> tuple[str, str]:
    return server_of(call), tool_of(call)


def _key_of(call: Call) -> tuple[bool, int]:
    """Distinguishes all calls of the list."""
    return (True, call.id) if isinstance(call, PastCall) else (False, call.number)


def _has_result(call: Call) -> bool:
    return call.has_result if isinstance(call, PastCall) else call.outcome is not None


def _widest(names: Iterable[str], most: int) -> int:
    return min(most, max((cell_len(show_line(name, most)) for name in names), default=0))


def search_text(call: Call) -> SearchText:
    """The tool, the server, the number and the state; then the arguments."""
    if isinstance(call, PastCall):
        return SearchText(call.tool, call.server, str(call.number), call.state.value, more=call.searched_arguments)
    request = call.request
    return SearchText(request.tool, request.server, str(call.number), _state(call), more=_arguments(call))


def _arguments(call: Call) -> str:
    if isinstance(call, PastCall):
        return "(not kept)" if call.argument_text is None else show_line(call.argument_text[:400], 200)
    return show_line(json.dumps(dict(call.arguments), ensure_ascii=False), 200)


def _past_row(call: PastCall, width: int, names: tuple[int, int], search: Search, *, marked: bool) -> Content:
    state = call.state.value, CALL_MARKS[call.state]
    return _cells(call, width, names, search, ("", moment_text(call.time), 12), state, call.duration, marked=marked)


def _row(call: ToolCall, width: int, names: tuple[int, int], search: Search, clock: int, *, marked: bool) -> Content:
    when = str(call.number), clock_text(call.time), clock
    state = _state(call), CALL_MARKS[call.shown_state]
    return _cells(call, width, names, search, when, state, call.elapsed, marked=marked)


def _cells(
    call: Call,
    width: int,
    names: tuple[int, int],
    search: Search,
    when: tuple[str, str, int],
    state: tuple[str, tuple[str, str]],
    duration: float,
    *,
    marked: bool,
) -> Content:
    """``names`` are the widths of the columns of servers and tools; 0: no such column. ``when`` are the number, the
    time and its width, ``state`` its word, mark and style.
    """
    (number, moment, clock), (word, (mark, style)), (server, tool) = when, state, names
    cells = [
        Cell("≠", "bold $text-accent", 1, 1) if marked else Cell(mark, style, 1, 1),
        Cell(number, "$foreground-muted", 3, 4, "right"),
        Cell(moment, "$foreground-muted", clock, clock),
        Cell(
            search.mark(show_line(server_of(call), 40) if server else ""),
            "$foreground-muted",
            min(server, 4),
            min(server, width // 6),
        ),
        Cell(search.mark(show_line(tool_of(call), 60)), "bold", 8, min(tool, width // 3) if width >= 70 else None),
    ]
    arguments = search.mark(_arguments(call))
    state_cell = Cell(word, "" if call.state is CallState.DONE else style, 9, 10, "right")
    if width >= WORDLESS:
        cells += [Cell(arguments, "$foreground-muted"), state_cell]
    elif width >= 70:
        said = "" if call.state is CallState.DONE else f"{word}  "
        cells.append(Cell(Content.styled(said, style) + arguments, "$foreground-muted"))
    else:
        cells.append(state_cell)
    return columns(width, [*cells, Cell(duration_text(duration), "$foreground-muted", 6, 10, "right")])


def _state(call: ToolCall) -> str:
    if call.state is CallState.SIGNING_IN:
        return "sign-in"
    if call.asks:
        return "asks you"
    return "task" if call.state is CallState.RUNNING and call.task is not None else call.state.value
