"""Inputs of one line: a cheap one, one for filters, and one that suggests values below itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from mcphost.host.filter_terms import FilterError
from mcphost.protocol.display import show_line
from mcphost.protocol.models.prompts import Completion
from mcphost.tui.kit.rows import Cell, columns


class FilterLine(Vertical):
    """A line for a filter, hidden until `open`; beside it a count, below it what is wrong.

    ``parse`` checks what is typed. While it raises FilterError, the last valid filter stays.
    """

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
        """The text is a valid filter; posted for each letter."""

        text: str

    class Entered(Message):
        """The user pressed enter."""

    class Left(Message):
        """The user pressed down."""

    def __init__(self, parse: Callable[[str], object], examples: str) -> None:
        super().__init__()
        self._parse = parse
        self.input = LineInput(compact=True, placeholder=examples, select_on_focus=False)
        self._count = Static(markup=False, classes="count")
        self.problem = Static(markup=False, classes="problem")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label("/ ")
            yield self.input
            yield self._count
        yield self.problem

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self) -> None:
        """Show and focus it, its text selected, so that typing replaces it."""
        self.add_class("-open")
        self.input.focus()
        self.input.select_all()

    def show_filter(self, text: str) -> None:
        """Show it with this filter, without the focus."""
        self.add_class("-open")
        self.input.value = text

    def close(self) -> None:
        """Hide and empty it."""
        self.remove_class("-open")
        self.input.value = ""

    def show_count(self, shown: int, total: int) -> None:
        self._count.update(f"{shown:,} of {total:,}")

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

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.has_class("-wrong"):
            self.post_message(self.Entered())


class LineInput(Input):
    """An Input that lays out only itself when a letter is typed; Textual's lays out the whole screen."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)


MOST_SUGGESTIONS: Final = 100
VISIBLE_SUGGESTIONS: Final = 6
NO_SUGGESTION: Final = "nothing is suggested that fits"


class Suggestions(Widget):
    """A list of suggested values, a few of them visible around the chosen one."""

    DEFAULT_CSS = """
    Suggestions { height: auto; width: 1fr; padding: 0 0 0 2; background: $panel; display: none; }
    Suggestions.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: Sequence[str] = ()
        self.at: int | None = None
        self._more = ""

    @property
    def chosen(self) -> str | None:
        """The value that enter accepts."""
        return None if self.at is None else self.values[self.at]

    @property
    def is_open(self) -> bool:
        return bool(self.values)

    def show_values(self, values: Sequence[str], more: str = "") -> None:
        """Suggest these, none of them chosen; ``more`` says what is left out."""
        self.values, self.at, self._more = values, None, more
        self.set_class(self.is_open or bool(more), "-open")
        self.refresh(layout=True)

    def narrow(self, typed: str) -> None:
        """Keep the suggestions that still match ``typed``, until those for it arrive."""
        fitting = [value for value in self.values if typed.lower() in value.lower()]
        if len(fitting) < len(self.values):
            self.show_values(fitting)

    def move(self, step: int) -> None:
        """Choose another value; above the first, none is chosen."""
        at = (-1 if self.at is None else self.at) + step
        self.at = None if at < 0 else min(at, len(self.values) - 1)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self.values), VISIBLE_SUGGESTIONS) + 1

    def render(self) -> Content:
        lines = [
            self._line(number) for number in range(self.top, min(self.top + VISIBLE_SUGGESTIONS, len(self.values)))
        ]
        return Content("\n").join([*lines, Content.styled(f"  {self._footer()}", "$foreground-muted")])

    @property
    def top(self) -> int:
        """The index of the first visible value."""
        return max(0, min((self.at or 0) - VISIBLE_SUGGESTIONS // 2, len(self.values) - VISIBLE_SUGGESTIONS))

    def _line(self, number: int) -> Content:
        mark, style = ("▸ ", "bold $text-accent") if number == self.at else ("  ", "")
        return columns(self.size.width, [Cell(mark + show_line(self.values[number], 200), style)])

    def _footer(self) -> str:
        key = "" if not self.values else "↓ chooses" if self.at is None else "enter takes it · esc does not"
        count = self._more or (f"{len(self.values)} suggestions" if len(self.values) > VISIBLE_SUGGESTIONS else "")
        return " · ".join(part for part in (key, count) if part)


def _left_out(found: Completion, shown: int) -> str:
    total = found.total or 0
    if shown and total > shown:
        return f"{shown:,} of {min(total, 10**9):,}: type on"
    return "there are more: type on" if shown and found.has_more else ""


class CompletedInput(Vertical):
    """A field that shows suggestions. Posts `SuggestionsRequested` when focused and after each change."""

    DEFAULT_CSS = """
    CompletedInput {
        height: auto;
        & > Input { border: none; height: 1; padding: 0 1; background: $panel; }
        & > Input:focus { background: $boost; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "choose(1)", "suggestions", id="complete.down", tooltip="Choose among the suggestions"),
        Binding("up", "choose(-1)", "one up", show=False, id="complete.up", tooltip="The suggestion above"),
        Binding("escape", "close", "keep what is typed", id="complete.close", tooltip="Take none of the suggestions"),
    ]

    class Changed(Message):
        """The text changed."""

    class Submitted(Message):
        """The user pressed enter with no suggestion chosen."""

        def __init__(self, field: CompletedInput) -> None:
            self.field = field
            super().__init__()

    class SuggestionsRequested(Message):
        """Suggestions for ``value`` are needed; pass them to `suggest`."""

        def __init__(self, field: CompletedInput, value: str) -> None:
            self.field, self.value = field, value
            super().__init__()

    def __init__(self, name: str, value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.field_name = name
        self.input = Input(value, placeholder=placeholder, select_on_focus=False, compact=True)
        self.suggestions = Suggestions()
        self._accepted: str | None = None
        self._had_suggestions = False
        """Was there ever a suggestion for this field?"""

    def compose(self) -> ComposeResult:
        yield self.input
        yield self.suggestions

    @property
    def value(self) -> str:
        return self.input.value

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> CompletedInput:
        self.input.focus(scroll_visible)
        return self

    def suggest(self, value: str, found: Completion) -> None:
        """Show the suggestions for ``value``, unless the text has changed or the focus has gone."""
        if value != self.value or not self.input.has_focus:
            return
        values = found.usable[:MOST_SUGGESTIONS]
        self._had_suggestions = self._had_suggestions or bool(values)
        typed_already = values == (value,)
        if typed_already:
            values = ()
        fits = values or typed_already or not value or not self._had_suggestions
        self.suggestions.show_values(values, _left_out(found, len(values)) if fits else NO_SUGGESTION)
        self.call_after_refresh(self.scroll_visible, animate=False)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is left to the form while no suggestion is chosen."""
        match action:
            case "choose":
                return self.suggestions.is_open
            case "close":
                return self.suggestions.chosen is not None
        return True

    def action_choose(self, step: int) -> None:
        self.suggestions.move(step)
        self.refresh_bindings()

    def action_close(self) -> None:
        self.suggestions.show_values(())
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())
        if event.value == self._accepted:
            self._accepted = None
        else:
            self.suggestions.narrow(event.value)
            self._request_suggestions()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is None:
            self.post_message(self.Submitted(self))
        else:
            self._accept(chosen)

    def on_descendant_focus(self) -> None:
        self._request_suggestions()

    def on_descendant_blur(self) -> None:
        self.action_close()

    def on_click(self, event: events.Click) -> None:
        row = self.suggestions.top + event.screen_y - self.suggestions.region.y
        if event.widget is self.suggestions and 0 <= row < len(self.suggestions.values):
            self._accept(self.suggestions.values[row])

    def _accept(self, value: str) -> None:
        self._accepted = value if value != self.value else None
        self.action_close()
        self.input.value = value
        self.input.cursor_position = len(value)
        self.input.focus()

    def _request_suggestions(self) -> None:
        if self.input.has_focus:
            self.post_message(self.SuggestionsRequested(self, self.value))
