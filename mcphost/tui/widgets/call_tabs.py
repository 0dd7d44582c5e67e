"""The parts of a result's pane: the strip of tabs, notices, progress, structured content, and the call itself.

Knows how each is drawn. Refuses to know which of them is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from mcphost.host.calls import CallState, ToolCall
from mcphost.host.validation import ValidationResult
from mcphost.protocol.display import duration_text, show_line
from mcphost.protocol.types import Progress, Task
from mcphost.tui.widgets.content import Block
from mcphost.tui.widgets.json_text import LINES, json_lines, json_spans, json_text
from mcphost.tui.widgets.tables import TableView, as_table
from mcphost.tui.widgets.text_view import TextView

FIRST_LINES: Final = 500
BAR: Final = 30
"""Cells of a progress bar."""

_PROBLEMS: Final = 5


class Tab(Enum):
    """The tabs of a result, in order; each is opened by its number."""

    CONTENT = "Content"
    STRUCTURED = "Structured"
    RAW = "Raw"
    CALL = "Call"

    @property
    def key(self) -> str:
        """1 to 4, whichever of them there are."""
        return str(list(Tab).index(self) + 1)

    @property
    def about(self) -> str:
        """What it shows."""
        return _ABOUT[self]


_ABOUT: Final = {
    Tab.CONTENT: "the content of the result",
    Tab.STRUCTURED: "the structured content",
    Tab.RAW: "the result object as it came",
    Tab.CALL: "the call as it was sent",
}


class TabStrip(Static):
    """The tabs on one line: their keys, names and which one is open."""

    DEFAULT_CSS = """
    TabStrip {
        height: 1; padding: 0 1; color: $text-muted;
        link-style: none; link-color: $text-muted; link-style-hover: bold; link-color-hover: $text;
        link-background: $surface 0%; link-background-hover: $boost;
    }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, tab: Tab) -> None:
            self.tab = tab
            super().__init__()

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show_tabs(self, tabs: Sequence[Tab], current: Tab, call: ToolCall | None) -> None:
        """Show these tabs; none: nothing."""
        self.display = bool(tabs)
        self.update(Content("   ").join([_label(tab, tab is current, call) for tab in tabs]))

    def action_choose(self, name: str) -> None:
        """Open a tab by the mouse."""
        self.post_message(self.Chosen(Tab[name]))


def _label(tab: Tab, current: bool, call: ToolCall | None) -> Content:
    words = f"{'▸' if current else ' '}{tab.key} {tab.value}{_extra(tab, call)}"
    click = Style.from_meta({"@click": f"choose('{tab.name}')"})
    return Content(words).stylize("bold $text" if current else "").stylize(click)


def _extra(tab: Tab, call: ToolCall | None) -> str:
    if call is None or call.outcome is None:
        return ""
    if tab is Tab.CONTENT:
        return f" {len(call.outcome.content)}"
    return " ▲" if tab is Tab.STRUCTURED and call.validity is not None and not call.validity.valid else ""


class Notice(Static):
    """Words of ours about a call: what happened and what to do next, apart from everything quoted."""

    DEFAULT_CSS = """
    BlockList > Notice, Notice {
        width: 1fr; height: auto; padding: 0 1; margin: 0 0 0 0;
        &.-error { border-left: outer $error; background: $error-muted; }
        &.-warning { border-left: outer $warning; background: $warning-muted; }
        &.-calm { border-left: outer $panel; }
        &.-good { border-left: outer $success; }
    }
    """

    def __init__(self, mark: str, headline: str, advice: str, level: str) -> None:
        lines = [Content(f"{mark} {headline}").stylize("bold")]
        if advice:
            lines.append(Content(advice))
        super().__init__(Content("\n").join(lines), classes=f"-{level}", markup=False)

    @classmethod
    def of_verdict(cls, verdict: ValidationResult) -> Notice:
        """How the structured content stands to the output schema."""
        if verdict.valid:
            return cls("✔", "The structured content fits the output schema", "", "good")
        if verdict.note is not None:
            return cls("▲", show_line(verdict.note, 300), "", "warning")
        lines = [f"{show_line(p.path, 80) or 'the whole'}: {show_line(p.message)}" for p in verdict.problems]
        rest = len(lines) - _PROBLEMS
        shown = [*lines[:_PROBLEMS], *([f"… {rest} more"] if rest > 0 else [])]
        return cls("▲", "The structured content does not fit the output schema", "\n".join(shown), "warning")


class Progressing(Static):
    """How far a call is. Moves when something happened, never by itself."""

    DEFAULT_CSS = """
    Progressing { height: auto; padding: 0 1; }
    """

    def __init__(self, call: ToolCall, limit: float | None = None) -> None:
        super().__init__("", markup=False)
        self.call, self._limit = call, call.request.timeout or limit
        self._moves = 0

    def on_mount(self) -> None:
        """Say where it stands."""
        self.tell()

    def tell(self, moved: bool = False) -> None:
        """Draw it again; ``moved``: there was a sign of progress."""
        self._moves += moved
        self.update(Content("\n").join(list(self._lines())))

    def _lines(self) -> Iterator[Content]:
        call, progress = self.call, self.call.progress
        if not call.state.ended:
            yield Content(_waiting(call, self._limit)).stylize("bold")
        if call.state not in (CallState.ASKING, CallState.SIGNING_IN):
            yield progress_line(progress, self._moves)
        said = progress.message if progress is not None and progress.message else call.task and call.task.status_message
        if said:
            yield Content.assemble((f"{show_line(call.request.server, 30)} says  ", "dim"), show_line(said))
        if call.task is not None:
            yield Content.assemble(("runs as task  ", "dim"), _task(call, call.task))
            yield Content(_stay(call.task)).stylize("dim")
        if call.state is CallState.SIGNING_IN:
            yield Content("nothing was done yet · in the list of servers, S shows the sign-in").stylize("dim")
        if not call.state.ended:
            ends = "cancels" if call.request.task is None else "stops waiting; the task goes on"
            yield Content(f"esc or x {ends}").stylize("dim")


def _waiting(call: ToolCall, limit: float | None) -> str:
    words = {
        CallState.ASKING: "▲ waiting for your answer",
        CallState.SIGNING_IN: "▲ waiting for a sign-in",
        CallState.CANCELLING: "◐ cancelling",
    }
    bound = f" · limit {duration_text(limit)} without progress" if limit else ""
    return f"{words.get(call.shown_state, '◐ running')} · {duration_text(call.elapsed)}{bound}"


def _task(call: ToolCall, task: Task) -> str:
    state = "taken up again in the next session" if call.interrupted else show_line(task.status, 20)
    return f"{show_line(task.task_id, 48)} · {state}"


def _stay(task: Task) -> str:
    how_long = "as long as its server likes" if task.ttl is None else f"for {task.kept}"
    return f"stays on the server {how_long} · T lists the tasks"


def progress_line(progress: Progress | None, moves: int) -> Content:
    """``━━━━────  40 %   4 of 10``; without a total a short piece that has moved ``moves`` times."""
    fraction = None if progress is None else progress.fraction
    if fraction is not None:
        start, length = 0, round(fraction * BAR)
    else:
        start, length = moves % (BAR - 2), 3 if moves or progress else 0
    bar = "─" * start + "━" * length + "─" * (BAR - start - length)
    return Content.assemble((bar, "$accent"), _amount(progress, fraction))


def _amount(progress: Progress | None, fraction: float | None) -> str:
    if progress is None:
        return "  no word of progress yet"
    if fraction is None or progress.total is None:
        return f"  {progress.progress:g} so far"
    return f"  {fraction:.0%}   {progress.progress:g} of {progress.total:g}"


class StructuredView(Vertical):
    """Structured content: a table where it is one, else JSON, and how it stands to the output schema."""

    DEFAULT_CSS = """
    StructuredView { height: 1fr; }
    StructuredView > .summary { height: 1; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "m", "toggle_look", "table or JSON", id="structured.look", tooltip="A table, or the JSON it is made of"
        ),
    ]

    def __init__(self, value: Any, verdict: ValidationResult | None) -> None:
        super().__init__()
        self._value, self._verdict, self._table = value, verdict, as_table(value)
        self._as_table = self._table is not None

    def compose(self) -> ComposeResult:
        """The verdict, then the value."""
        if self._verdict is not None:
            yield Notice.of_verdict(self._verdict)
        if self._table is not None:
            yield Static(f"{self._table.summary} · m table or JSON", classes="summary", markup=False)
            yield TableView(self._table)
        yield from () if self._table is not None else (JsonView(self._value),)

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> StructuredView:
        """Put the focus on the value."""
        for body in self.query("TableView, TextView"):
            if body.display:
                body.focus(scroll_visible)
        return self

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a table has two looks."""
        return action != "toggle_look" or self._table is not None

    def action_toggle_look(self) -> None:
        """A table, or JSON."""
        focused = self.has_focus_within
        self._as_table = not self._as_table
        if not self.query(TextView):
            self.mount(JsonView(self._value))
        self.query_one(TextView).display = not self._as_table
        self.query_one(TableView).display = self._as_table
        if focused:
            self.focus()

    def show_json(self) -> None:
        """Show what can be searched."""
        if self._as_table:
            self.action_toggle_look()


class JsonView(TextView):
    """A value as JSON that scrolls: the beginning at once, the rest as soon as it is written."""

    DEFAULT_CSS = """
    JsonView { height: 1fr; }
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        lines, self._more = json_lines(value, FIRST_LINES)
        super().__init__(lines, spans=json_spans)

    def on_mount(self) -> None:
        """Get the rest."""
        if self._more:
            self.run_worker(self._write_rest())

    async def _write_rest(self) -> None:
        lines, more = await asyncio.to_thread(json_lines, self._value)
        if self.is_attached:
            self.load([*lines, f"⟨… more than {LINES:,} lines: w saves all⟩"] if more else lines, home=False)


def call_blocks(call: ToolCall) -> Iterator[Block]:
    """What was asked for and what was sent."""
    yield Block("facts", "call", None, tuple(_call_facts(call)))
    title = "arguments as sent" if call.sent_at is not None else "arguments, not sent"
    yield _arguments(f"{title}{' · edited by you' if call.edited else ''}", call.arguments)
    if call.edited:
        yield _arguments("arguments as first asked for", call.request.arguments)


def _arguments(title: str, arguments: Any) -> Block:
    return Block("arguments", title, json_text(dict(arguments)), mime_type="application/json")


def _call_facts(call: ToolCall) -> Iterator[tuple[str, str]]:
    request = call.request
    yield "server", show_line(request.server)
    yield "tool", show_line(request.tool)
    yield "asked by", show_line(request.origin)
    yield "state", call.shown_state.value
    if call.sent_at is None:
        yield "sent", "no"
        return
    yield "sent", f"{duration_text(call.sent_at - call.asked_at)} after it was asked for"
    yield "ran", duration_text(call.elapsed)
    if call.task is not None:
        yield "task", show_line(call.task.task_id)
        yield "task state", show_line(call.task.words)
        yield "task is kept", call.task.kept
    if request.timeout:
        yield "limit", f"{duration_text(request.timeout)} without progress"
