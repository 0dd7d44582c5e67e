"""Inputs of one line: a cheap one, and one for filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.widgets import Input, Label, Static

from mcphost.host.filter_terms import FilterError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line


class FilterLine(Vertical):
    """A line for a filter, hidden until `open`; beside it a count, below it what is wrong.

    ``parse`` checks what is typed. While it raises FilterError, the last valid filter stays.
    """

    DEFAULT_CSS = """
    FilterLine {
        height: auto; display: none;
        &.-open { display: block; }
        & > Horizontal { height: 1; }
        & Label { color: $text-accent; width: 2; }
        & Input { width: 1fr; }
        & .count { width: auto; padding: 0 1; color: $foreground-muted; text-align: right; }
        & .problem { height: auto; display: none; padding: 0 2; color: $text-error; }
        &.-wrong .problem { display: block; }
    }
    """

    @dataclass
    class Typed(Message):
        """The text is a valid filter; posted for each letter."""

        text: str

    class Entered(Message):
        """The user pressed enter."""

    class Left(Message):
        """The user pressed down."""

    def __init__(self, parse: Callable[[str], object], examples: str) -> None:
        super().__init__()
        self._parse = parse
        self.input = FilterInput(compact=True, placeholder=examples, select_on_focus=False)
        self._counted, self._widest = "", 0
        self._count = Static(markup=False, classes="count")
        self.problem = Static(markup=False, classes="problem")

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self) -> None:
        """Show and focus it, its text selected, so that typing replaces it."""
        self._show()
        self.input.focus()
        self.input.select_all()

    def show_filter(self, text: str) -> None:
        """Show it with this filter, without the focus."""
        self._show()
        self.input.value = text

    def close(self) -> None:
        """Hide and empty it."""
        self.remove_class("-open")
        self.input.value = ""

    def show_count(self, shown: int, total: int) -> None:
        self._counted, self._widest = f"{shown:,} of {total:,}", len(f"{total:,} of {total:,}")
        if self.is_open:  # else each log line would lay out the screen for a count that is not seen
            self._update_count()

    def _show(self) -> None:
        if not self.children:  # most lists are never filtered
            line = Horizontal()
            self.mount(line, self.problem)
            line.mount(Label("/ "), self.input, self._count)
        self.add_class("-open")
        self._update_count()

    def _update_count(self) -> None:
        self._count.styles.min_width = self._widest + self._count.gutter.width  # no letter lays out the screen for it
        self._count.update(self._counted, layout=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        try:
            self._parse(event.value)
        except FilterError as problem:
            self.add_class("-wrong")
            self.problem.update(show_line(str(problem), 400))
        else:
            self.remove_class("-wrong")
            self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.has_class("-wrong"):
            self.post_message(self.Entered())


class LineInput(Input):
    """An Input that lays out only itself when a letter is typed; Textual's lays out the whole screen."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        # Textual has no character for ``slash``, and would list it as a key that works.
        return key == "slash" or super().check_consume_key(key, character)


class FilterInput(LineInput):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "go", id="filter.enter", tooltip="Open the best match, or go to the rows"),
        Binding("down", "leave", "rows", id="filter.down", tooltip="From the filter to its rows"),
    ]

    def action_leave(self) -> None:
        self.post_message(FilterLine.Left())
