"""One tool call on screen: how far it is, what it brought, why it brought nothing.

Knows what a person wants to see of a `ToolCall`. Refuses to act: what the user wants is posted to the parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from mcphost.errors import InvalidArguments
from mcphost.host.calls import CallState, ToolCall
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.marks import CALL_MARKS
from mcphost.tui.saving import file_name
from mcphost.tui.widgets.blocks import BlockList, BlockView
from mcphost.tui.widgets.call_tabs import JsonView, Notice, Progressing, StructuredView, Tab, TabStrip, call_blocks
from mcphost.tui.widgets.content import BLOCKS, Block, describe, quoted, weight, with_room
from mcphost.tui.widgets.failure import Failure, failure_of
from mcphost.tui.widgets.json_text import json_text
from mcphost.tui.widgets.search import SearchArea
from mcphost.tui.widgets.wishes import CopyWanted, ResourceWanted, SaveWanted

_EMPTY: Final = (
    "Results appear here: what a tool answered, block by block, its structured content as a table, and the raw "
    "JSON as it came.\n\nChoose a tool, fill its form and run it with ctrl+r."
)
_TITLE_CELLS: Final = 46
"""What a title needs beside the two names."""


class ResultView(Vertical):
    """A call and its outcome, or what this pane is for while there is none."""

    DEFAULT_CSS = """
    ResultView {
        border: round $surface-lighten-2; height: 1fr; border-title-color: $text-muted;
        &:focus-within { border: round $accent; border-title-color: $text; }
        & .empty { padding: 1 2; color: $text-muted; height: 1fr; }
    }
    """
    HELP = (
        "What a call brought. 1 to 4 or left and right change between its content, the structured content, the raw "
        "JSON and the call itself. The arrows go from block to block, m shows a text as it was sent, z wraps long "
        "lines or not, / searches and n goes on. y copies what is shown, w saves it, o opens it with a program of the "
        "desktop after a question. enter shows a picture large, i draws pictures or only names them. While a call "
        "runs, esc or x cancels it."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(tab.key, f"open_tab('{tab.name.lower()}')", tab.value, show=False, id=f"result.{tab.name.lower()}",
                    tooltip=f"Show {tab.about}")
            for tab in Tab
        ),
        Binding("left", "turn(-1)", "tab before", show=False, id="result.left", tooltip="Go one tab to the left"),
        Binding("right", "turn(1)", "next tab", show=False, id="result.right", tooltip="Go one tab to the right"),
        Binding("y", "copy", "copy", id="result.copy", tooltip="Copy the block or the tab that is shown"),
        Binding("w", "save", "save", id="result.save", tooltip="Save the block or the tab in a file"),
        Binding("escape,x", "cancel", "cancel call", id="result.cancel", tooltip="Cancel the call that runs"),
    ]  # fmt: skip

    class CancelWanted(Message):
        """The user wants call ``number`` to stop."""

        def __init__(self, number: int) -> None:
            self.number = number
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.call: ToolCall | None = None
        self.tab = Tab.CONTENT
        self._limit: float | None = None
        self._shown_state: CallState | None = None
        self._weight = 0
        self._strip = TabStrip()
        self._area = _ResultArea()
        self._bodies: dict[Tab, Widget] = {}
        self._clock: Timer | None = None
        self._focus_due = False  # what had the focus was replaced, and Textual gave it to another widget meanwhile

    def compose(self) -> ComposeResult:
        """Tabs above, one body below."""
        yield self._strip
        yield self._area

    def on_mount(self) -> None:
        """Show what the pane is for."""
        self._clock = self.set_interval(1.0, self._tell_progress, pause=True)
        self._rebuild()

    def show_call(self, call: ToolCall | None, *, limit: float | None = None) -> None:
        """Show another call, or none. ``limit``: seconds it may go without progress, if known."""
        self.call, self._limit, self.tab = call, limit, Tab.CONTENT
        if self.is_mounted:
            self._rebuild()

    def refresh_call(self) -> None:
        """The call changed: show its progress, or its end."""
        if self.call is None or not self.is_mounted:
            return
        if self.call.state is not self._shown_state:
            self._rebuild()
        else:
            self._tell_progress(moved=True)

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> ResultView:
        """Put the focus on what is shown."""
        body = self._bodies.get(self.tab)
        if body is not None:
            body.focus(scroll_visible)
        return self

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """Those there is something in."""
        call = self.call
        if call is None:
            return ()
        if call.outcome is None:
            return (Tab.CONTENT, Tab.CALL)
        return tuple(tab for tab in Tab if tab is not Tab.STRUCTURED or call.outcome.has_structured)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Cancelling needs a call that runs; the rest needs a call."""
        if action == "cancel":
            return self.call is not None and not self.call.state.ended
        if action in ("copy", "save"):
            return self._can_pick()
        return self.call is not None if action in ("open_tab", "turn") else True

    def action_open_tab(self, name: str) -> None:
        """Show a tab, if there is something in it."""
        if Tab[name.upper()] in self.tabs:
            self._open(Tab[name.upper()])

    def action_turn(self, step: int) -> None:
        """Show the tab beside this one."""
        tabs = self.tabs
        self._open(tabs[(tabs.index(self.tab) + step) % len(tabs)])

    def action_copy(self) -> None:
        """Copy the current block, or the tab."""
        picked = self._picked()
        if picked is not None:
            self.post_message(CopyWanted(picked.copied))

    def action_save(self) -> None:
        """Save the current block, or the tab."""
        picked = self._picked()
        if picked is not None and self.call is not None:
            content, mime_type = picked.content()
            request = self.call.request
            name = file_name(request.server, request.tool, datetime.now(), mime_type)
            self.post_message(SaveWanted(name, content))

    def action_cancel(self) -> None:
        """Stop the call."""
        if self.call is not None:
            self.post_message(self.CancelWanted(self.call.number))

    def on_tab_strip_chosen(self, message: TabStrip.Chosen) -> None:
        """A tab was clicked."""
        message.stop()
        self.action_open_tab(message.tab.name)

    def on_block_list_link_followed(self, message: BlockList.LinkFollowed) -> None:
        """A link of the result is to be read."""
        message.stop()
        if self.call is not None:
            self.post_message(ResourceWanted(self.call.request.server, message.uri, message.size))

    def on_resize(self) -> None:
        """Names in the title get the room there is."""
        self._tell_title()

    # What is shown.

    def _rebuild(self) -> None:
        focused = self.has_focus_within or self._focus_due
        self._shown_state = None if self.call is None else self.call.state
        outcome = None if self.call is None else self.call.outcome
        self._weight = 0 if outcome is None else weight([dict(outcome.raw)])
        self._area.forget_search()
        for body in self._bodies.values():
            body.remove()
        self._bodies.clear()
        self._run_clock()
        if self.tab not in self.tabs:
            self.tab = Tab.CONTENT
        self._open(self.tab, focused)

    def _open(self, tab: Tab, focused: bool = False) -> None:
        focused = focused or self.has_focus_within
        self.tab = tab
        if tab not in self._bodies:
            self._bodies[tab] = self._body(tab)
            self._area.mount(self._bodies[tab], before=self._area.bar)
        for name, body in self._bodies.items():
            body.display = name is tab
        self._strip.show_tabs(self.tabs, tab, self.call)
        self._tell_title()
        self._tell_progress()
        if focused:
            self._focus_due = True
            self.call_after_refresh(self._focus_again)  # what was just mounted has no children yet
        self.refresh_bindings()

    def _focus_again(self) -> None:
        self.focus()
        self.app.call_later(self._focus_came)  # behind the focus, which Textual sets later too

    def _focus_came(self) -> None:
        self._focus_due = False

    def _body(self, tab: Tab) -> Widget:
        call = self.call
        if call is None:
            return Static(_EMPTY, classes="empty", markup=False)
        if call.outcome is not None and tab is Tab.STRUCTURED:
            return StructuredView(call.outcome.structured, call.validity)
        if call.outcome is not None and tab is Tab.RAW:
            return JsonView(call.outcome.raw)
        return BlockList(*(_content(call, self._limit) if tab is Tab.CONTENT else map(BlockView, call_blocks(call))))

    def _can_pick(self) -> bool:
        body = self._bodies.get(self.tab)
        if isinstance(body, BlockList):
            return body.current is not None
        return self.call is not None and self.call.outcome is not None

    def _picked(self) -> Block | None:
        """What the copy and save keys act on."""
        body = self._bodies.get(self.tab)
        if isinstance(body, BlockList):
            return None if body.current is None else body.current.block
        call = self.call
        if call is None or call.outcome is None:
            return None
        value = call.outcome.structured if self.tab is Tab.STRUCTURED else call.outcome.raw
        return Block("json", self.tab.about, json_text(value), mime_type="application/json")

    def _tell_title(self) -> None:
        self.border_title = Content("Result" if self.call is None else _title(self.call, self.size.width, self._weight))

    def _tell_progress(self, moved: bool = False) -> None:
        for progressing in self._area.query(Progressing):
            progressing.tell(moved)
        if self.call is not None and not self.call.state.ended:
            self._tell_title()

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


def _content(call: ToolCall, limit: float | None) -> Iterator[Widget]:
    if not call.state.ended:
        yield Progressing(call, limit)
    failure = failure_of(call)
    if failure is not None:
        yield from _failure(failure, call)
    if call.outcome is None:
        return
    if call.validity is not None and not call.validity.valid:
        yield Notice.of_verdict(call.validity)
    yield from map(BlockView, with_room(map(describe, call.outcome.content[:BLOCKS])))
    yield from _after(call)


def _failure(failure: Failure, call: ToolCall) -> Iterator[Widget]:
    yield Notice(failure.mark, failure.headline, failure.advice, failure.level)
    if call.progress is not None and call.outcome is None:
        yield Progressing(call)
    for quote in failure.quotes:
        yield BlockView(quoted(quote.label, quote.text))


def _after(call: ToolCall) -> Iterator[Widget]:
    assert call.outcome is not None
    count = len(call.outcome.content)
    if count > BLOCKS:
        yield Static(f"… {count - BLOCKS} more blocks: 3 shows all as JSON", markup=False)
    if count == 0:
        where = "its structured content is in tab 2" if call.outcome.has_structured else "the tool sent nothing back"
        yield Static(f"No content: {where}.", markup=False)


def _title(call: ToolCall, width: int, size: int) -> str:
    names = Content(f"{call.request.server} › {show_line(call.request.tool, 80)}")
    shown = names.truncate(max(12, width - _TITLE_CELLS), ellipsis=True).plain
    word = "not sent" if isinstance(call.error, InvalidArguments) else call.shown_state.value
    parts = ["Result", shown, f"{CALL_MARKS[call.shown_state][0]} {word}", duration_text(call.elapsed)]
    if call.outcome is not None:
        parts.append(size_text(size))
    return " · ".join(parts)
