"""A line on which a filter is typed, with how many pass beside it and what is wrong with it below."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label, Static

from mcphost.dataclass import dataclass
from mcphost.host.filter_terms import FilterError
from mcphost.protocol.display import show_line
from mcphost.tui.kit.line_input import LineInput


class FilterLine(Vertical):
    """Closed until ``open``. ``parse`` reads what is typed; while it raises FilterError, the last good one stays."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "leave", "to the rows", id="filter.down", show=False, tooltip="From the filter to its rows"),
    ]

    DEFAULT_CSS = """
    FilterLine {
        height: auto; display: none;
        &.-open { display: block; }
        & > Horizontal { height: 1; }
        & Label { color: $text-accent; width: 2; }
        & Input { width: 1fr; }
        & .count { width: auto; padding: 0 1; color: $foreground-muted; }
        & .problem { height: auto; display: none; padding: 0 2; color: $text-error; }
        &.-wrong .problem { display: block; }
    }
    """

    @dataclass
    class Typed(Message):
        """Another filter is wanted, with each letter that makes one."""

        text: str

    class Entered(Message):
        """The user is done with it: on to what passes."""

    class Left(Message):
        """The user goes down to the rows."""

    def __init__(self, parse: Callable[[str], object], examples: str) -> None:
        super().__init__()
        self._parse = parse
        self.input = LineInput(compact=True, placeholder=examples, select_on_focus=False)
        self._count = Static(markup=False, classes="count")
        self.problem = Static(markup=False, classes="problem")

    def compose(self) -> ComposeResult:
        """A slash, the filter, the count; the problem below."""
        with Horizontal():
            yield Label("/ ")
            yield self.input
            yield self._count
        yield self.problem

    @property
    def is_open(self) -> bool:
        """Is it there to be seen?"""
        return self.has_class("-open")

    def open(self) -> None:
        """Go there. The text it had is selected, so that typing replaces it."""
        self.add_class("-open")
        self.input.focus()
        self.input.select_all()

    def show_filter(self, text: str) -> None:
        """Let it be seen with this filter on it."""
        self.add_class("-open")
        self.input.value = text

    def close(self) -> None:
        """Put it away, emptied."""
        self.remove_class("-open")
        self.input.value = ""

    def say_count(self, shown: int, total: int) -> None:
        """How many pass, of how many."""
        self._count.update(f"{shown:,} of {total:,}")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        event.stop()
        try:
            self._parse(event.value)
        except FilterError as problem:
            self.add_class("-wrong")
            self.problem.update(show_line(str(problem), 400))
        else:
            self.remove_class("-wrong")
            self.post_message(self.Typed(event.value))

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on, unless it is wrong."""
        event.stop()
        if not self.has_class("-wrong"):
            self.post_message(self.Entered())
