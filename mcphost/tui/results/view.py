"""Shows a tool call: its progress, its result, or its failure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from mcphost.errors import InvalidArguments
from mcphost.host.history.past_call import moment_text
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.host.tool_calls.validation import ValidationResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line, show_name, size_text
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import Task
from mcphost.tui.kit.bindings import shown_key
from mcphost.tui.kit.export import file_name, save_as
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.messages import COPY_AS_KEY, CancelRequested, CopyAsRequested, PagerRequested, ResourceLinkFollowed
from mcphost.tui.kit.search import SearchArea
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.results.blocks import BlockList, BlockView
from mcphost.tui.results.content import BLOCKS, Block, describe, json_size, quoted, with_room
from mcphost.tui.results.failure import Failure, failure_of, is_said_whole
from mcphost.tui.results.json_view import JsonView
from mcphost.tui.results.tables import TableView, as_table

if TYPE_CHECKING:
    from mcphost.tui.results.repetition_row import RepetitionRow

BAR: Final = 30
"""Cells of a progress bar."""

_PROBLEMS: Final = 5

STOP: Final = "result.stop", "x"
DIFFERENCE: Final = "result.difference", "d"
"""The id and the key of bindings around a repeated call."""

SAME_CHARACTERS: Final = 200_000
"""Characters of a text that is compared with the structured content."""


class Tab(Enum):
    """The tabs of a result in order; each opens by its number."""

    CONTENT = "Content"
    STRUCTURED = "Structured"
    RAW = "Raw"
    CALL = "Call"

    @property
    def key(self) -> str:
        """1 to 4, even if tabs are missing."""
        return str(list(Tab).index(self) + 1)

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT: Final = {
    Tab.CONTENT: "the result's content",
    Tab.STRUCTURED: "the structured content",
    Tab.RAW: "the result as it came, as JSON",
    Tab.CALL: "the call and its arguments",
}


class TabStrip(Static):
    """The tabs in one line: their keys and names, and which is open."""

    DEFAULT_CSS = """
    TabStrip {
        height: 1; padding: 0 1; color: $foreground-muted;
        link-style: none; link-color: $foreground-muted; link-style-hover: bold; link-color-hover: $text;
        link-background: $surface 0%; link-background-hover: $boost;
    }
    """

    class Chosen(Message):
        def __init__(self, tab: Tab) -> None:
            self.tab = tab
            super().__init__()

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show_tabs(self, tabs: Sequence[Tab], current: Tab, call: ToolCall | None) -> None:
        self.display = bool(tabs)
        self.update(Content("  ").join([_label(tab, tab is current, call) for tab in tabs]))

    def action_choose(self, name: str) -> None:
        self.post_message(self.Chosen(Tab[name]))


def _label(tab: Tab, current: bool, call: ToolCall | None) -> Content:
    words = f"{'▸' if current else ' '}{tab.key} {tab.value}{_extra(tab, call)}"
    if current:
        return Content.styled(words, "bold $text-accent")
    return Content(words).stylize(Style.from_meta({"@click": f"choose('{tab.name}')"}))


def _extra(tab: Tab, call: ToolCall | None) -> str:
    if call is None or call.outcome is None:
        return ""
    if tab is Tab.CONTENT:
        return f" ({len(call.outcome.content)})" if len(call.outcome.content) > 1 else ""
    return " ▲" if tab is Tab.STRUCTURED and call.validity is not None and not call.validity.valid else ""


class Notice(Static):
    """A message of mcphost about a call: what happened and what to do next."""

    DEFAULT_CSS = """
    BlockList > Notice, Notice {
        width: 1fr; height: auto; padding: 0 1; margin: 0 0 0 0;
        &.-error { border-left: outer $text-error; background: $error-muted; }
        &.-warning { border-left: outer $text-warning; background: $warning-muted; }
        &.-calm { border-left: outer $border-blurred; }
        &.-good { border-left: outer $text-success; }
    }
    """

    def __init__(self, mark: str, headline: str, advice: str, level: str) -> None:
        lines = [Content(f"{mark} {headline}").stylize("bold")]
        if advice:
            lines.append(Content(advice))
        super().__init__(Content("\n").join(lines), classes=f"-{level}", markup=False)

    @classmethod
    def of_validation(cls, validation: ValidationResult) -> Notice:
        """Say how the structured content fails to match the output schema."""
        if validation.note is not None:
            return cls("▲", show_line(validation.note, 300), "", "warning")
        lines = [f"{show_line(p.path, 80) or '(root)'}: {show_line(p.message)}" for p in validation.problems]
        rest = len(lines) - _PROBLEMS
        shown = [*lines[:_PROBLEMS], *([f"… {rest} more"] if rest > 0 else [])]
        return cls("▲", "The structured content does not match the output schema", "\n".join(shown), "warning")


class ProgressView(Static):
    """The progress of a call. It moves only with signs of progress."""

    DEFAULT_CSS = """
    ProgressView { height: auto; padding: 0 1; }
    """

    def __init__(self, call: ToolCall) -> None:
        super().__init__("", markup=False)
        self.call = call
        self._moves = 0

    def on_mount(self) -> None:
        self.show_progress()

    def show_progress(self, moved: bool = False) -> None:
        """Draw it again; ``moved``: there was a sign of progress."""
        self._moves += moved
        self.update(Content("\n").join(list(self._lines())))

    def _lines(self) -> Iterator[Content]:
        call, progress = self.call, self.call.progress
        if not call.state.ended:
            yield Content(_waiting(call)).stylize("bold")
        if call.state not in (CallState.ASKING, CallState.SIGNING_IN):
            yield progress_line(progress, self._moves)
        said = progress.message if progress is not None and progress.message else call.task and call.task.status_message
        if said:
            yield Content.assemble((f"{show_line(call.request.server, 30)} says  ", "dim"), show_line(said))
        if call.task is not None:
            yield Content.assemble(("runs as task  ", "dim"), _task(call, call.task))
            yield Content(_retention(call.task)).stylize("dim")
        if call.state is CallState.SIGNING_IN:
            yield Content("nothing was sent yet · S in the list of servers opens the sign-in").stylize("dim")
        if not call.state.ended:
            ends = "cancels" if call.request.task is None else "stops waiting; the task continues"
            yield Content(f"esc or x {ends}").stylize("dim")


def _waiting(call: ToolCall) -> str:
    words = {
        CallState.ASKING: "▲ waiting for your answer",
        CallState.SIGNING_IN: "▲ waiting for a sign-in",
        CallState.CANCELLING: "◐ cancelling",
    }
    limit = call.request.timeout
    bound = f" · limit {duration_text(limit)} without progress" if limit else ""
    return f"{words.get(call.shown_state, '◐ running')} · {duration_text(call.elapsed)}{bound}"


def _task(call: ToolCall, task: Task) -> str:
    state = "resumed in the next session" if call.interrupted else show_line(task.status, 20)
    return f"{show_line(task.task_id, 48)} · {state}"


def _retention(task: Task) -> str:
    how_long = "until the server removes it" if task.ttl is None else f"for {task.kept}"
    return f"kept {how_long} · T lists tasks"


def progress_line(progress: Progress | None, moves: int) -> Content:
    """``━━━━──── 40 % 4 of 10``; without a total a short piece that has moved ``moves`` times."""
    fraction = None if progress is None else progress.fraction
    if fraction is not None:
        start, length = 0, round(fraction * BAR)
    else:
        start, length = moves % (BAR - 2), 3 if moves or progress else 0
    bar = "─" * start + "━" * length + "─" * (BAR - start - length)
    return Content.assemble((bar, "$text-accent"), _amount(progress, fraction))


def _amount(progress: Progress | None, fraction: float | None) -> str:
    if progress is None:
        return "  no progress reported"
    if fraction is None or progress.total is None:
        return f"  {progress.progress:g} so far"
    return f"  {fraction:.0%}   {progress.progress:g} of {progress.total:g}"


class StructuredView(Vertical):
    """Structured content as a table or JSON, and how it fails to match the output schema."""

    footnote: reactive[str] = reactive("", repaint=False)
    """The size of a table and its keys, for a border."""

    DEFAULT_CSS = """
    StructuredView { height: 1fr; }
    StructuredView > .beside { height: auto; max-height: 2; padding: 0 1; color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "toggle_look", "table/JSON", id="structured.look", tooltip="Switch between table and JSON"),
    ]

    def __init__(self, value: Any, validation: ValidationResult | None) -> None:
        super().__init__()
        self._value, self._validation = value, validation
        table = as_table(value)
        self._table = None if table is None else TableView(table)
        self._as_table = table is not None

    def compose(self) -> ComposeResult:
        if self._validation is not None and not self._validation.valid:
            yield Notice.of_validation(self._validation)
        if self._table is None:
            yield JsonView(self._value)
            return
        if beside := self._table.table.beside_text:
            yield Static(beside, classes="beside", markup=False)
        yield self._table
        self.watch(self._table, "footnote", self._update_footnote)

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> StructuredView:
        bodies = self.query("TableView, TextView")
        if not bodies:  # they are not mounted yet
            self.call_after_refresh(self.focus, scroll_visible)
        for body in bodies:
            if body.display:
                body.focus(scroll_visible)
        return self

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "toggle_look" or self._table is not None

    def action_toggle_look(self) -> None:
        focused = self.has_focus_within
        self._as_table = not self._as_table
        if not self.query(TextView):
            self.mount(JsonView(self._value))
        self.query_one(TextView).display = not self._as_table
        self.query_one(TableView).display = self._as_table
        self._update_footnote()
        if focused:
            self.focus()

    def _update_footnote(self) -> None:
        self.footnote = f"{self._table.footnote} · m JSON" if self._table is not None and self._as_table else ""

    def show_json(self) -> None:
        """Show JSON, which can be searched."""
        if self._as_table:
            self.action_toggle_look()


def call_blocks(call: ToolCall) -> Iterator[Block]:
    """The facts of a call, and its arguments as requested and as sent."""
    yield Block("facts", "call", None, tuple(_call_facts(call)))
    title = "arguments sent" if call.sent_at is not None else "arguments (not sent)"
    yield _arguments(f"{title}{' · edited by you' if call.edited else ''}", call.arguments)
    if call.edited:
        yield _arguments("arguments before your edit", call.request.arguments)


def _arguments(title: str, arguments: Any) -> Block:
    return Block("arguments", title, json_text(dict(arguments)), mime_type="application/json")


def _call_facts(call: ToolCall) -> Iterator[tuple[str, str]]:
    request = call.request
    yield "server", show_line(request.server)
    yield "tool", show_line(request.tool)
    yield "requested by", show_line(request.origin)
    yield "state", call.shown_state.value
    if call.sent_at is None:
        yield "sent", "no"
        return
    yield "sent", f"{duration_text(call.sent_at - call.asked_at)} after the request"
    yield "duration", duration_text(call.elapsed)
    if call.task is not None:
        yield "task", show_line(call.task.task_id)
        yield "task state", show_line(call.task.oddity or call.task.words)
        yield "task kept for", call.task.kept
    for number, words in enumerate(call.needs(), start=1):
        yield f"round {number}", words
    if request.timeout:
        yield "limit", f"{duration_text(request.timeout)} without progress"


_EMPTY: Final = (
    "Results appear here: text, tables, JSON and pictures.\n\nChoose a tool, fill in its form and run it with ctrl+r."
)
_NAME_CELLS: Final = 16
"""Cells that a name has at least in the title; with less room, the title is shorter."""


class ResultView(Vertical):
    """A call and its result; before the first call, a hint."""

    DEFAULT_CSS = """
    ResultView {
        border: round $border-blurred; border-title-color: $foreground-muted; height: 1fr;
        border-subtitle-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
        & .empty { padding: 1 2; color: $foreground-muted; height: 1fr; }
    }
    """
    HELP = "The result of a call."
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(tab.key, f"open_tab('{tab.name.lower()}')", tab.value, show=False, id=f"result.{tab.name.lower()}",
                    tooltip=f"Show {tab.about}")
            for tab in Tab
        ),
        Binding("left", "turn(-1)", "previous tab", show=False, id="result.left", tooltip="Go to the previous tab"),
        Binding("right", "turn(1)", "next tab", show=False, id="result.right", tooltip="Go to the next tab"),
        Binding("y", "copy", "copy", id="result.copy", tooltip="Copy this block or tab"),
        Binding("w", "save", "save", id="result.save", tooltip="Save this block or tab to a file"),
        Binding("P", "page", "pager", show=False, id="result.page", tooltip="Read this block or tab in your $PAGER"),
        Binding(f"Y,{COPY_AS_KEY}", "copy_as", "copy as", id="result.copy-as", show=False,
                tooltip="Copy the call as a command, JSON-RPC, curl or a rule"),
        Binding("a", "again", "again", id="result.again", tooltip="Run the tool again with the same arguments"),
        Binding("escape,x", "cancel", "cancel call", id="result.cancel", tooltip="Cancel the running call"),
    ]  # fmt: skip

    @dataclass
    class AgainRequested(Message):
        """The user asked to run this call's tool again with the same arguments."""

        call: ToolCall

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="-empty")
        self.call: ToolCall | None = None
        self.repeated: RepeatedCall | None = None
        """The repetition whose last run is shown."""
        self._row: RepetitionRow | None = None
        self.tab = Tab.CONTENT
        self._shown_state: CallState | None = None
        self._result_size = 0
        self._strip = TabStrip()
        self._area = _ResultArea()
        self._bodies: dict[Tab, Widget] = {}
        self._clock: Timer | None = None
        self._tab_chosen = False
        self._focus_due = False  # the focused widget was replaced, and Textual focused another one meanwhile

    def compose(self) -> ComposeResult:
        yield self._strip
        yield self._area

    def on_mount(self) -> None:
        self._clock = self.set_interval(1.0, self._update_progress, pause=True)
        self._rebuild()

    def show_call(self, call: ToolCall | None, repeated: RepeatedCall | None = None) -> None:
        """Show a call; if it is the last run of a repeated one, each further run takes its place."""
        self.call, self.tab, self._tab_chosen = call, Tab.CONTENT, False
        self.repeated = repeated
        self._show_row()
        self.set_class(call is None, "-empty")
        if self.is_mounted:
            self._rebuild()

    def refresh_call(self) -> None:
        """Update the progress, or show the result."""
        if self.call is None or not self.is_mounted:
            return
        if self.call.state is not self._shown_state:
            self._rebuild()
        else:
            self._update_progress(moved=True)

    def refresh_runs(self) -> None:
        """Show the last run of the repeated call that ended."""
        call = self.repeated.ended_call if self.repeated else None
        if call is not None and call is not self.call and self.is_mounted:
            self._show_run(call)
        self._show_row()

    def _show_row(self) -> None:
        if self.repeated is not None and self._row is None and self.is_mounted:
            from mcphost.tui.results.repetition_row import RepetitionRow

            self._row = RepetitionRow(self.repeated)
            self.mount(self._row, before=self._strip)
        if self._row is not None:
            self._row.display = self.repeated is not None
            if self.repeated is not None and self._row.is_mounted:
                self._row.show_runs(self.repeated)
                self._update_title()

    def _show_run(self, call: ToolCall) -> None:
        """Show the next run on the tab that is open, at the same place of it."""
        before, self.call = self.call, call
        was = None if before is None or before.outcome is None else before.outcome.raw
        if call.outcome is None or call.outcome.raw != was or call.state is not self._shown_state:
            at = self._scrolling.scroll_y
            self._rebuild(searching=True)
            self.call_after_refresh(lambda: self._scrolling.scroll_to(y=at, animate=False))
            self.call_after_refresh(self._area.search_again)
            return
        if (body := self._bodies.pop(Tab.CALL, None)) is not None:
            body.remove()
        self._open(self.tab)

    @property
    def _scrolling(self) -> Widget:
        """The widget of the open tab that scrolls."""
        body = self._bodies[self.tab]
        inner = body.query("TableView, TextView") if isinstance(body, StructuredView) else ()
        return next((each for each in inner if each.display), body)

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> ResultView:
        body = self._bodies.get(self.tab)
        if body is not None:
            body.focus(scroll_visible)
        return self

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """The tabs that have content."""
        call = self.call
        if call is None:
            return ()
        if call.outcome is None:
            return (Tab.CONTENT, Tab.CALL)
        return tuple(tab for tab in Tab if tab is not Tab.STRUCTURED or call.outcome.has_structured)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "cancel":
            return self.call is not None and not self.call.state.ended
        if action == "again":
            return self.call is not None and self.call.state.ended
        if action in ("copy", "save", "page"):
            return self._can_pick()
        return self.call is not None if action in ("open_tab", "turn", "copy_as") else True

    def action_open_tab(self, name: str) -> None:
        """Open a tab that has content."""
        self._tab_chosen = True
        if Tab[name.upper()] in self.tabs:
            self._open(Tab[name.upper()])

    def action_turn(self, step: int) -> None:
        self._tab_chosen = True
        tabs = self.tabs
        self._open(tabs[(tabs.index(self.tab) + step) % len(tabs)])

    def action_copy(self) -> None:
        picked = self._picked()
        if picked is not None:
            self.app.copy_to_clipboard(picked.copied)

    def action_save(self) -> None:
        picked = self._picked()
        if picked is not None and self.call is not None:
            content, mime_type = picked.content()
            request = self.call.request
            name = file_name(request.server, request.tool, datetime.now(), mime_type)
            save_as(self.app, name, content)

    def action_page(self) -> None:
        picked = self._picked()
        if picked is not None:
            self.post_message(PagerRequested(picked.copied))

    def action_copy_as(self) -> None:
        if self.call is not None:
            request = self.call.request
            self.post_message(CopyAsRequested(request.server, request.tool, self.call.arguments))

    def action_again(self) -> None:
        if self.call is not None:
            self.post_message(self.AgainRequested(self.call))

    def action_cancel(self) -> None:
        if self.call is not None:
            self.post_message(CancelRequested(self.call.number))

    def on_tab_strip_chosen(self, message: TabStrip.Chosen) -> None:
        message.stop()
        self.action_open_tab(message.tab.name)

    def on_block_list_link_followed(self, message: BlockList.LinkFollowed) -> None:
        message.stop()
        if self.call is not None:
            self.post_message(ResourceLinkFollowed(self.call.request.server, message.uri, message.size))

    def on_resize(self) -> None:
        self._update_title()

    def on_show(self) -> None:
        """Fit the title: it may have changed while there was no room to fit it into."""
        self._update_title()

    # Tabs and their bodies.

    def _rebuild(self, *, searching: bool = False) -> None:
        """Show the call from the beginning; with ``searching``, an open search stays."""
        focused = (self.has_focus_within and not (searching and self._types_search)) or self._focus_due
        self._shown_state = None if self.call is None else self.call.state
        outcome = None if self.call is None else self.call.outcome
        self._result_size = 0 if outcome is None else json_size([dict(outcome.raw)])
        (self._area.forget_matches if searching else self._area.forget_search)()
        for body in self._bodies.values():
            body.remove()
        self._bodies.clear()
        self._run_clock()
        if self.tab not in self.tabs:
            self.tab = Tab.CONTENT
        if self.call is not None and not self._tab_chosen and _is_table(self.call):
            self.tab = Tab.STRUCTURED
        self._open(self.tab, focused)

    def _open(self, tab: Tab, focused: bool = False) -> None:
        focused = focused or (self.has_focus_within and not self._types_search)
        self.tab = tab
        if tab not in self._bodies:
            self._bodies[tab] = self._body(tab)
            self._area.mount(self._bodies[tab], before=self._area.bar)
        for name, body in self._bodies.items():
            body.display = name is tab
        self._strip.show_tabs(self.tabs, tab, self.call)
        self._update_title()
        self._update_progress()
        if focused:
            self._focus_due = True
            self._bodies[tab].call_after_refresh(self._focus_again)  # a new body has no children yet
        self.refresh_bindings()

    @property
    def _types_search(self) -> bool:
        return self._area.bar.input.has_focus

    def _focus_again(self) -> None:
        if not all(node.display for node in self.ancestors_with_self if isinstance(node, Widget)):
            self._focus_due = False  # the user went to another tab meanwhile, which a focus here would leave
            return
        self.focus()
        self.app.call_later(self._focus_came)  # after the focus, which Textual also sets later

    def _focus_came(self) -> None:
        self._focus_due = False

    def _body(self, tab: Tab) -> Widget:
        call = self.call
        if call is None:
            return Static(_EMPTY, classes="empty", markup=False)
        if call.outcome is not None and tab is Tab.STRUCTURED:
            view = StructuredView(call.outcome.structured, call.validity)
            self.watch(view, "footnote", self._update_title)
            return view
        if call.outcome is not None and tab is Tab.RAW:
            return JsonView(call.outcome.raw)
        return BlockList(*(_content(call) if tab is Tab.CONTENT else map(BlockView, call_blocks(call))))

    @property
    def _said(self) -> Block | None:
        """The text of a failure that its headline has said."""
        if self.call is None or self.call.outcome is None or not is_said_whole(self.call):
            return None
        return describe(self.call.outcome.content[0])

    def _can_pick(self) -> bool:
        body = self._bodies.get(self.tab)
        if isinstance(body, BlockList):
            return body.current is not None or self._said is not None
        return self.call is not None and self.call.outcome is not None

    def _picked(self) -> Block | None:
        """Return the block that keys copy and save."""
        body = self._bodies.get(self.tab)
        if isinstance(body, BlockList):
            return self._said if body.current is None else body.current.block
        call = self.call
        if call is None or call.outcome is None:
            return None
        value = call.outcome.structured if self.tab is Tab.STRUCTURED else call.outcome.raw
        return Block("json", self.tab.about, json_text(value), mime_type="application/json")

    def _update_title(self) -> None:
        self.border_title = Content(
            "Result" if self.call is None else _title(self.call, self.size.width - 4, self._result_size)
        )
        body = self._bodies.get(self.tab)
        notes = [body.footnote] if isinstance(body, StructuredView) else []
        self.border_subtitle = Content(" · ".join(filter(None, [*self._repetition_keys(), *notes])))

    def _repetition_keys(self) -> Iterator[str]:
        """Name the keys of a repeated call, which a narrow line of keys has no room for."""
        if self.repeated is not None and not self.repeated.end:
            yield f"{shown_key(self, *STOP)} stop repeating"
        if self.repeated is not None and self.repeated.difference is not None:
            yield f"{shown_key(self, *DIFFERENCE)} difference"

    def _update_progress(self, moved: bool = False) -> None:
        for progressing in self._area.query(ProgressView):
            progressing.show_progress(moved)
        if self.call is not None and not self.call.state.ended:
            self._update_title()

    def _run_clock(self) -> None:
        if self._clock is None:
            return
        if self.call is not None and not self.call.state.ended:
            self._clock.resume()
        else:
            self._clock.pause()


class _ResultArea(SearchArea):
    """Before a search, a table is shown as JSON."""

    def make_searchable(self) -> None:
        for structured in self.query(StructuredView):
            if structured.display:
                structured.show_json()


def _is_table(call: ToolCall) -> bool:
    """True if the structured content is a table, and the content only repeats it as text."""
    outcome = call.outcome
    if call.state is not CallState.DONE or outcome is None or as_table(outcome.structured) is None:
        return False
    match outcome.content:
        case []:
            return True
        case [TextContent(text=text)] if len(text) <= SAME_CHARACTERS:
            with suppress(ValueError, RecursionError):
                return bool(json.loads(text) == outcome.structured)
    return False


def _content(call: ToolCall) -> Iterator[Widget]:
    if not call.state.ended:
        yield ProgressView(call)
    failure = failure_of(call)
    if failure is not None:
        yield from _failure(failure, call)
    if call.outcome is None:
        return
    said = call.outcome.raw.get("isError")
    if call.outcome.is_error and said is not True:
        yield Notice("▲", f"isError is {show_name(said, 40)}, neither true nor false", "Read as a failure.", "warning")
    if call.validity is not None and not call.validity.valid:
        yield Notice.of_validation(call.validity)
    if not is_said_whole(call):
        yield from map(BlockView, with_room(map(describe, call.outcome.content[:BLOCKS])))
    yield from _after(call)


def _failure(failure: Failure, call: ToolCall) -> Iterator[Widget]:
    yield Notice(failure.mark, failure.headline, failure.advice, failure.level)
    if call.progress is not None and call.outcome is None:
        yield ProgressView(call)
    for quote in failure.quotes:
        yield BlockView(quoted(quote.label, quote.text))


def _after(call: ToolCall) -> Iterator[Widget]:
    assert call.outcome is not None
    count = len(call.outcome.content)
    if count > BLOCKS:
        yield Static(f"… {count - BLOCKS} more blocks: 3 shows all of them as JSON", markup=False)
    if count == 0:
        if unread := call.outcome.unread:
            yield Notice("▲", show_line(f"Nothing to show: {unread}", 300), "Tab 3 has it as JSON.", "warning")
            return
        where = "the structured content is in tab 2" if call.outcome.has_structured else "the tool sent nothing back"
        yield Static(f"No content: {where}.", markup=False)


def _title(call: ToolCall, width: int, size: int) -> str:
    """State, duration and size, and before them as much of the names as ``width`` cells hold.

    The duration of a running call is below, beside its progress.
    """
    word = "not sent" if isinstance(call.error, InvalidArguments) else call.shown_state.value
    state = [f"{CALL_MARKS[call.shown_state][0]} {word}"]
    if call.number < 0:  # of an earlier run
        state.append(moment_text(call.time))
    if call.state.ended:
        state.append(duration_text(call.elapsed))
    if call.outcome is not None:
        state.append(size_text(size))
    if call.validity is not None:
        state.append(_verdict(call.validity))
    tool = show_line(call.request.tool, 80)
    for before in (["Result", f"{call.request.server} › {tool}"], ["Result", tool], [tool]):
        room = width - cell_len(" · ".join([*before[:-1], "", *state]))
        if room >= min(cell_len(before[-1]), _NAME_CELLS):
            return " · ".join([*before[:-1], Content(before[-1]).truncate(room, ellipsis=True).plain, *state])
    return " · ".join(state)


def _verdict(validation: ValidationResult) -> str:
    """Say in the title if the structured content matches the output schema."""
    if validation.valid:
        return "✔ schema"
    if validation.note is not None:
        return "▲ schema not checked"
    count = len(validation.problems)
    return f"✖ schema: {count} problem{'' if count == 1 else 's'}"
