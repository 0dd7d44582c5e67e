"""The pane for tools: the list, the form and the result, side by side or one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker

from mcphost.config import entry_of
from mcphost.host.catalog import CatalogTool
from mcphost.host.connections.connection import ServerState
from mcphost.host.host import Host
from mcphost.host.pinned_tools import ToolKey
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.tools import Tool
from mcphost.tui.catalog.list import PINNED, PREVIEW, RECENT, CatalogList
from mcphost.tui.kit.messages import (
    COPY_AS_KEY,
    CopyAsRequested,
    RepetitionRequested,
    RoomChanged,
    SaveCallRequested,
)
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

if TYPE_CHECKING:
    from mcphost.host.tool_calls.call import ArgumentReferences
    from mcphost.tui.forms.schema_form import SchemaForm
    from mcphost.tui.results.view import ResultView
    from mcphost.tui.tools.preview import LastCall
    from mcphost.tui.tools.summaries import ResultSummary
    from mcphost.tui.tools.workbench import Workbench


MOST_RECENT: Final = 5
FEW: Final = 20
"""Tools that are found without a list of those used last."""


class ToolList(CatalogList[CatalogTool]):
    TITLE = "Tools"
    EMPTY = "No tools: no ready server offers any.\nc opens the server's card; f3 opens the logs."
    HELP = (
        "The tools on offer, by server. A filter looks at names, titles, servers and descriptions.\n"
        "A tool without arguments needs no form. A refused tool never runs; its form says why."
    )

    NAMES_EMPTY_SERVERS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P", "pin", "pin", id="tools.pin", show=False, tooltip="List it first, or no longer"),
    ]

    @dataclass
    class PinToggled(Message):
        """The user pinned this tool, or unpinned it."""

        key: ToolKey
        pinned: bool

    def __init__(self) -> None:
        super().__init__()
        self._pinned = frozenset[ToolKey]()
        self._recent: Sequence[ToolKey] = ()

    def show_favorites(
        self, *, pinned: frozenset[ToolKey] | None = None, recent: Sequence[ToolKey] | None = None
    ) -> None:
        """List the pinned tools first, then those used last, the newest first. None: as before."""
        before = self._pinned, self._recent
        self._pinned = self._pinned if pinned is None else pinned
        self._recent = self._recent if recent is None else recent
        if (self._pinned, self._recent) != before:
            self.list_matches()

    def upper_groups(self, entries: Sequence[CatalogTool]) -> Sequence[tuple[str, Sequence[CatalogTool]]]:
        if not (self._pinned or self._recent):
            return ()
        by_key = {each.key: each for each in entries}
        pinned = [each for key, each in by_key.items() if key in self._pinned]
        others = (by_key[key] for key in dict.fromkeys(self._recent) if key in by_key and key not in self._pinned)
        return (PINNED, pinned), (RECENT, list(islice(others, MOST_RECENT)) if len(entries) > FEW else [])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.item is not None if action == "pin" else super().check_action(action, parameters)

    def action_pin(self) -> None:
        """Pin the selected tool, or unpin it."""
        if self.item is not None:
            key = self.item.key
            self.show_favorites(pinned=self._pinned ^ {key})
            self.post_message(self.PinToggled(key, key in self._pinned))

    def row(self, entry: CatalogTool, width: int) -> Content:
        tool = entry.tool
        cells = self.title_cells(tool.label, tool.name, tool.description or "", width)
        cells += self.server_cells(entry, width)
        cells += [Cell("★", "$text-accent", 1, 1)] if entry.key in self._pinned else []
        word, style = _claim(entry)
        return columns(width, [*cells, Cell(word, style, len(word), len(word), "right")])

    def defined(self, entry: CatalogTool) -> Tool:
        return entry.tool

    def search_text(self, entry: CatalogTool) -> SearchText:
        tool = entry.tool
        return SearchText(tool.name, tool.label, entry.server, more=tool.description or "")


def _claim(entry: CatalogTool) -> tuple[str, str]:
    """A label that asks for attention, with its color; titles need the remaining width."""
    if entry.tool.refusal:
        return "refused", "$text-error"
    if entry.tool.app_only:
        return "app only", "$foreground-muted"
    return ("destroys", "$text-error") if "destructive" in entry.tool.claims else ("", "")


NO_SERVERS: Final = "No servers are configured."

Step = Literal["list", "form", "result"]


class ToolsPane(Container):
    """On a small screen one part at a time: enter goes on, esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "back", "back", id="tools.back", tooltip="Back from the result to the form, then to the list"
        ),
        Binding(
            "ctrl+r,ctrl+enter", "run", "run again", id="tools.run", tooltip="Run it again, with what its form holds"
        ),
        Binding("ctrl+s", "save", "save call", id="tools.save", tooltip="Save this call under a name"),
        Binding("f9", "result", "result", id="tools.result", tooltip="Go to the last result"),
        Binding(
            COPY_AS_KEY,
            "copy_as",
            "copy as",
            id="tools.copy-as",
            show=False,
            priority=True,
            tooltip="Copy the call as a command, JSON-RPC, curl or a rule",
        ),
        Binding(
            "alt+r,f12",
            "repeat",
            "repeat",
            id="tools.repeat",
            show=False,
            priority=True,
            tooltip="Run the call every few seconds",
        ),
        Binding("R", "repeat_result", "repeat", id="result.repeat", tooltip="Run the call every few seconds"),
        Binding("x", "stop_repeating", "stop repeating", id="result.stop", tooltip="Run the call no more"),
        Binding("d", "difference", "difference", id="result.difference", tooltip="The last answers that differ"),
    ]

    @dataclass
    class StopRequested(Message):
        """The user asked not to repeat this call any more."""

        repeated: RepeatedCall

    @dataclass
    class DifferenceRequested(Message):
        """The user asked how the answers to this call differ."""

        repeated: RepeatedCall

    DEFAULT_CSS = """
    ToolsPane {
        layout: horizontal;
        ToolList { width: 40%; height: 100%; }
        Workbench { width: 1fr; height: 100%; }
        ToolForm { height: 1fr; max-height: 100%; }
        ResultView { height: 1fr; &.-empty, &.-folded { display: none; } }
        ResultSummary.-shown { display: block; }
        &.-form ToolForm.-above { max-height: 80%; }
        &.-wide Workbench { layout: horizontal; }
        &.-wide ToolForm { height: 100%; width: 1fr; &.-beside { width: 64; } }
        &.-wide ResultView { height: 100%; width: 1fr; }
        &.-single ToolList { width: 100%; display: none; }
        &.-single Workbench { width: 100%; }
        &.-single ToolForm, &.-single ResultView, &.-single ResultSummary { display: none; }
        &.-single SchemaForm { margin-top: 0; }
        &.-single.-list ToolList { display: block; }
        &.-single.-list Workbench { display: none; }
        &.-single.-form ToolForm { display: block; }
        &.-single.-result ResultView { display: block; }
    }
    """

    def __init__(self, host: Host, welcome: str = "", *, single: bool = False) -> None:
        super().__init__(classes="-list -single" if single else "-list")
        self._host = host
        self.list = ToolList()
        self.list.explain(host.servers, None)
        self._welcome = welcome
        self._bench: Workbench | None = None
        self._mounting = asyncio.Lock()
        self._opening = asyncio.Lock()
        """Held while a form is filled, whose place no preview takes."""
        self._step: Step = "list"
        self._preview: Timer | None = None
        self._how_to_add: Content | None = None
        self._server: str | None = None
        self._used_before: Sequence[ToolKey] = ()
        """The tools that were used in earlier runs, the newest first."""

    def compose(self) -> ComposeResult:
        yield self.list

    @property
    def step(self) -> Step:
        """The part that has the user's attention."""
        return self._step

    @property
    def result(self) -> ResultView | None:
        return self._bench.result if self._bench else None

    @property
    def rows_wanted(self) -> int:
        """The rows that the form needs while it has the user's attention; 0 without one."""
        return self._bench.tool.rows_wanted if self._bench and self._step == "form" else 0

    @property
    def shown_call(self) -> int | None:
        """The number of the call of this run whose result is shown."""
        call = self._bench.result.call if self._bench else None
        return call.number if call and call.number > 0 else None

    async def bench(self) -> Workbench:
        """Return the form and the result, made on first use: importing them takes longer than all the rest."""
        async with self._mounting:
            if self._bench is None:
                from mcphost.tui.tools.workbench import Workbench

                bench = Workbench(self._welcome)
                await self.mount(bench)
                self._bench = bench
                if self._how_to_add is not None:
                    bench.tool.show_how_to_add(self._how_to_add)
                self._show_preview()
        return self._bench

    def leave_demo(self) -> None:
        """Servers of the user's own took the demo's place."""
        self._welcome = ""
        self._go("list")
        if self._bench is not None:
            self._bench.tool.show_none()

    def set_single(self, single: bool) -> None:
        """Show one part at a time, or all."""
        self.set_class(single, "-single")
        self._say_when_empty()
        self._arrange()

    def show_no_servers(self, how_to_add: Content | None) -> None:
        """Say that there is no server, and how to add one; None if there is one."""
        if how_to_add == self._how_to_add:
            return
        self._how_to_add = how_to_add
        self._say_when_empty()
        if self._bench is not None and how_to_add is not None:
            self._bench.tool.show_how_to_add(how_to_add)
        elif self._bench is not None:
            self._bench.tool.show_none()

    def _say_when_empty(self) -> None:
        """Explain why the list is empty; say how to add a server only if nothing is beside the list."""
        if self._how_to_add is None:
            self.list.explain(self._host.servers, self._server)
        else:
            more = f"\n{self._how_to_add}" if self.has_class("-single") else ""
            self.list.say_when_empty(f"{NO_SERVERS}{more}")

    def set_wide(self, wide: bool) -> None:
        """Show the result beside the form, or below it."""
        self.set_class(wide, "-wide")
        self._arrange()

    def _arrange(self) -> None:
        """Make a form above a result as tall as its fields, and one beside it no wider than it needs."""
        if self._bench is None:
            return
        tool, result = self._bench.tool, self._bench.result
        beside_result = result.call is not None and not self._bench.folded and not self.has_class("-single")
        wide = self.has_class("-wide")
        tool.set_class(beside_result and not wide, "-above")
        tool.set_class(beside_result and wide, "-beside")

    def _fold_result(self, folded: bool = True) -> None:
        if self._bench is not None:
            self._bench.fold_result(folded)
            self._arrange()

    def show_tools(self, entries: Sequence[CatalogTool], server: str | None) -> None:
        self._server = server
        self._say_when_empty()
        self.list.show_entries(entries, server)
        starting = (each.state is ServerState.STARTING for each in self._host.servers.values())
        self.list.expect_items(any(starting))

    def show_used(self, tools: Sequence[ToolKey]) -> None:
        """List these tools as used before those of this run, the newest first."""
        self._used_before = tools
        self.list.show_favorites(recent=self._recent)

    @property
    def _recent(self) -> list[ToolKey]:
        """The tools that the user ran last, the newest first."""
        requests = [call.request for call in self._host.tool_calls.calls.values() if call.request.origin == "you"]
        here = [(each.server, each.tool) for each in reversed(requests)]
        return list(dict.fromkeys([*here, *self._used_before]))

    async def show_call(self, call: ToolCall) -> None:
        """Show this call, and go there."""
        bench = await self.bench()
        self._leave_other_form(bench, call)
        bench.result.show_call(call, self._host.repeated_calls.of(call))
        self._fold_result(False)
        self._go("result")
        bench.result.focus()

    def _leave_other_form(self, bench: Workbench, call: ToolCall) -> None:
        """Describe the tool of this call in place of another tool's form."""
        key = (entry_of(call.request.server), call.request.tool)
        if bench.entry is not None and bench.entry.key != key:
            found = (each for each in self._host.catalog.tools(key[0]) if each.key == key)
            if (entry := next(found, None)) is not None:
                self._describe(bench, entry)

    def refresh_call(self) -> None:
        if self._bench is not None:
            self._bench.result.refresh_call()
            self._bench.summary.refresh()
            call = self._bench.result.call
            if self._bench.entry is None and call is not None and call.state.ended:
                self._show_preview()  # which lists it

    def refresh_runs(self) -> None:
        """Show the last run of a repeated call in place of the one before, wherever the user is."""
        if self._bench is not None:
            self._bench.result.refresh_runs()
            self._bench.summary.show_call(self._bench.result.call)
            self.refresh_bindings()

    def focus_list(self) -> None:
        self._go("list")
        self.list.show_favorites(recent=self._recent)
        self.list.rows.focus()

    async def open_tool(
        self,
        entry: CatalogTool,
        arguments: Mapping[str, Any] | None = None,
        references: ArgumentReferences | None = None,
    ) -> None:
        """Open a tool's form with what was typed before, or with these arguments, which may hold ``references``.
        An earlier result is a line until the next run.
        """
        bench = await self.bench()
        self._fold_result()
        async with self._opening:
            await bench.load(entry, arguments, references)
            self._go("form")
        bench.form.focus_first()

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[CatalogTool]) -> None:
        """Describe the tool under the cursor beside the list, once the cursor rests: its move is drawn first."""
        if self._preview is not None:
            self._preview.stop()
        self._preview = self.set_timer(PREVIEW, self._show_preview)

    def _show_preview(self) -> None:
        waits = self._step == "list" and not self._opening.locked()
        if self._bench is not None and waits and self.list.item is not None:
            self._describe(self._bench, self.list.item)
            self._fold_other_result()

    def _fold_other_result(self) -> None:
        """Show no result of one tool beside another."""
        if self._bench is not None and self._bench.shows_other_call and not self._bench.folded:
            self._fold_result()

    def _describe(self, bench: Workbench, entry: CatalogTool) -> None:
        from mcphost.tui.tools.preview import LAST_CALLS, last_calls

        here = last_calls(self._host.tool_calls.calls.values(), entry.key)
        bench.preview(entry, here)
        if len(here) < LAST_CALLS and self._host.history.kept:
            # A coroutine of a worker that is cancelled before it starts would be reported as never awaited.
            adding = partial(self._add_earlier_runs, bench, entry, here)
            _: Worker[None] = self.run_worker(adding, group="last", exclusive=True)

    async def _add_earlier_runs(self, bench: Workbench, entry: CatalogTool, here: Sequence[LastCall]) -> None:
        from mcphost.tui.tools.preview import LAST_CALLS, calls_before

        before = calls_before(await self._host.history.last_calls(*entry.key, LAST_CALLS))
        bench.show_last_calls(entry, [*here, *before][:LAST_CALLS])

    @on(ToolList.Chosen)
    async def _chosen(self, event: ToolList.Chosen) -> None:
        event.stop()
        entry = self.list.item
        if entry is None:
            return
        if not entry.tool.takes_arguments:
            await (await self.bench()).load(entry)
            await self._run(*entry.key, {}, composed=True)
        else:
            await self.open_tool(entry)

    async def on_schema_form_submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        bench = self._bench
        if bench is not None and bench.entry is not None:
            server, tool = bench.entry.key
            await self._run(server, tool, event.arguments, composed=bench.composed, references=bench.references)

    async def on_result_view_again_requested(self, event: ResultView.AgainRequested) -> None:
        event.stop()
        await self.show_call(self._host.tool_calls.repeat(event.call))

    async def _run(self, server: str, tool: str, arguments: Mapping[str, Any], **how: Any) -> None:
        await self.show_call(self._host.tool_calls.call(server, tool, arguments, **how))

    def on_schema_form_grown(self, event: SchemaForm.Grown) -> None:
        event.stop()
        self.post_message(RoomChanged())

    def on_result_summary_opened(self, event: ResultSummary.Opened) -> None:
        event.stop()
        self.action_result()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "result":
            return self._step != "result" and self.shown_call is not None
        if action == "copy_as":
            return self._step == "form"
        if action == "run":
            call = self._bench.result.call if self._bench else None
            return self._step == "result" and call is not None and call.state.ended
        repeated = self._bench.result.repeated if self._bench else None
        going_on = repeated is not None and not repeated.end
        if action in ("repeat", "repeat_result"):
            has_result = self._step == "result" and self.shown_call is not None and not going_on
            return has_result or (action == "repeat" and self._step == "form")
        if action == "stop_repeating":
            return self._step == "result" and going_on
        if action == "difference":
            return self._step == "result" and repeated is not None and repeated.difference is not None
        if action == "save":
            return self._step == "form" or (self._step == "result" and self.shown_call is not None)
        return action != "back" or self._step != "list"

    async def action_run(self) -> None:
        """From the result of the form's tool, submit the form; from that of another, run it with its arguments."""
        bench = self._bench
        call = bench.result.call if bench else None
        if bench is None or call is None:
            return
        key = (entry_of(call.request.server), call.request.tool)
        if bench.entry is not None and bench.entry.key == key and bench.entry.tool.takes_arguments:
            self._go("form")  # where its problems are, if it has any
            bench.form.submit()
        else:
            await self.show_call(self._host.tool_calls.repeat(call))

    def action_save(self) -> None:
        """Ask for a name for the call whose result is shown, or for what the form holds."""
        bench = self._bench
        call = bench.result.call if bench and self._step == "result" else None
        if call is not None:
            request = call.request
            self.post_message(SaveCallRequested(request.server, request.tool, call.arguments, request.references))
        elif bench is not None and bench.entry is not None and (arguments := bench.form.values_so_far()) is not None:
            (server, name), unfit = bench.entry.key, bench.form.unfit
            self.post_message(SaveCallRequested(server, name, arguments, bench.references, unfit=unfit))
        else:
            self.app.bell()

    def action_copy_as(self) -> None:
        if self._bench is not None and self._bench.entry is not None:
            self.post_message(CopyAsRequested(*self._bench.entry.key, self._bench.form.values_so_far()))

    def action_repeat(self) -> None:
        """Ask how often to repeat what the form holds, or the call whose result is shown."""
        bench = self._bench
        if self._step == "result":
            self.action_repeat_result()
        elif bench is not None and bench.entry is not None:
            arguments = bench.form.values()
            if arguments is None:
                bench.form.submit()  # shows what is wrong, and runs nothing
            else:
                self.post_message(RepetitionRequested(*bench.entry.key, arguments, bench.references))

    def action_repeat_result(self) -> None:
        call = self._bench.result.call if self._bench else None
        if call is not None:
            was = call.request
            self.post_message(RepetitionRequested(was.server, was.tool, call.arguments, was.references, was.recalled))

    def action_stop_repeating(self) -> None:
        repeated = self._bench.result.repeated if self._bench else None
        if repeated is not None:
            self.post_message(self.StopRequested(repeated))

    def action_difference(self) -> None:
        repeated = self._bench.result.repeated if self._bench else None
        if repeated is not None:
            self.post_message(self.DifferenceRequested(repeated))

    def action_back(self) -> None:
        """Go back one step; the call continues, and what was typed stays."""
        bench = self._bench
        if self._step == "result" and bench and bench.entry and bench.entry.tool.takes_arguments:
            self._fold_other_result()
            self._go("form")
            bench.form.focus_again(replacing=True)
        else:
            self.focus_list()

    def action_result(self) -> None:
        """Go to the last result; esc goes back."""
        if self._bench is not None:
            self._fold_result(False)
            self._go("result")
            self._bench.result.focus()

    def _go(self, step: Step) -> None:
        if step != self._step:
            self.remove_class(f"-{self._step}", update=False)
            self._step = step
            self.add_class(f"-{step}")
            if self._bench is not None:
                self._bench.form.left = step == "result"
            self.refresh_bindings()
            self.post_message(RoomChanged())
