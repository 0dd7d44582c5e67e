"""A field that suggests, below itself, what somebody might be typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from mcphost.protocol.display import show_line
from mcphost.protocol.models.prompts import Completion
from mcphost.tui.kit.rows import Cell, columns

MOST: Final = 100
"""Suggestions that are shown."""
ROWS: Final = 6
"""Of them at once."""
NONE: Final = "nothing is suggested that fits"


class Suggestions(Widget):
    """The values suggested; one may be chosen. Of the others a few are in view around it."""

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
        """The value that enter takes."""
        return None if self.at is None else self.values[self.at]

    @property
    def is_open(self) -> bool:
        """Is there anything to choose from?"""
        return bool(self.values)

    def show_values(self, values: Sequence[str], more: str = "") -> None:
        """Suggest these, none chosen yet; ``more`` says what is left out."""
        self.values, self.at, self._more = values, None, more
        self.set_class(self.is_open or bool(more), "-open")
        self.refresh(layout=True)

    def narrow(self, typed: str) -> None:
        """Of those for an older text, keep what may still be meant until the answer for this one comes."""
        fitting = [value for value in self.values if typed.lower() in value.lower()]
        if len(fitting) < len(self.values):
            self.show_values(fitting)

    def move(self, step: int) -> None:
        """Choose the next or the one before; above the first none is."""
        at = (-1 if self.at is None else self.at) + step
        self.at = None if at < 0 else min(at, len(self.values) - 1)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A few rows, and one for the key and what is left out."""
        return min(len(self.values), ROWS) + 1

    def render(self) -> Content:
        """The values in view."""
        lines = [self._line(number) for number in range(self.top, min(self.top + ROWS, len(self.values)))]
        return Content("\n").join([*lines, Content.styled(f"  {self._foot()}", "$foreground-muted")])

    @property
    def top(self) -> int:
        """The first value in view."""
        return max(0, min((self.at or 0) - ROWS // 2, len(self.values) - ROWS))

    def _line(self, number: int) -> Content:
        mark, style = ("▸ ", "bold $text-accent") if number == self.at else ("  ", "")
        return columns(self.size.width, [Cell(mark + show_line(self.values[number], 200), style)])

    def _foot(self) -> str:
        key = "" if not self.values else "↓ chooses" if self.at is None else "enter takes it · esc does not"
        count = self._more or (f"{len(self.values)} suggestions" if len(self.values) > ROWS else "")
        return " · ".join(part for part in (key, count) if part)


def _left_out(found: Completion, shown: int) -> str:
    total = found.total or 0
    if shown and total > shown:
        return f"{shown:,} of {min(total, 10**9):,}: type on"
    return "there are more: type on" if shown and found.has_more else ""


class CompletedInput(Vertical):
    """The field ``name``. Posts `SuggestionsRequested` with the focus and with each change."""

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
        """Something else stands in the field."""

    class Submitted(Message):
        """Enter was pressed, and no suggestion was chosen."""

        def __init__(self, field: CompletedInput) -> None:
            self.field = field
            super().__init__()

    class SuggestionsRequested(Message):
        """Suggestions for ``value`` would be welcome: `suggest` takes them."""

        def __init__(self, field: CompletedInput, value: str) -> None:
            self.field, self.value = field, value
            super().__init__()

    def __init__(self, name: str, value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.field_name = name
        self.input = Input(value, placeholder=placeholder, select_on_focus=False, compact=True)
        self.suggestions = Suggestions()
        self._taken: str | None = None
        self._helped = False
        """Was there ever a suggestion for this field?"""

    def compose(self) -> ComposeResult:
        """The field, and the suggestions while there are any."""
        yield self.input
        yield self.suggestions

    @property
    def value(self) -> str:
        """What stands in the field."""
        return self.input.value

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> CompletedInput:
        self.input.focus(scroll_visible)
        return self

    def suggest(self, value: str, found: Completion) -> None:
        """Show what was found for ``value``, unless another stands in the field by now, or somebody is elsewhere."""
        if value != self.value or not self.input.has_focus:
            return
        values = found.usable[:MOST]
        self._helped = self._helped or bool(values)
        typed_already = values == (value,)
        if typed_already:
            values = ()
        fits = values or typed_already or not value or not self._helped
        self.suggestions.show_values(values, _left_out(found, len(values)) if fits else NONE)
        self.call_after_refresh(self.scroll_visible, animate=False)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Choosing needs suggestions; as long as none is chosen, esc leaves the form as everywhere."""
        match action:
            case "choose":
                return self.suggestions.is_open
            case "close":
                return self.suggestions.chosen is not None
        return True

    def action_choose(self, step: int) -> None:
        """Choose the next suggestion, or the one before."""
        self.suggestions.move(step)
        self.refresh_bindings()

    def action_close(self) -> None:
        """Keep what is typed."""
        self.suggestions.show_values(())
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())
        if event.value == self._taken:
            self._taken = None
        else:
            self.suggestions.narrow(event.value)
            self._ask()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is None:
            self.post_message(self.Submitted(self))
        else:
            self._take(chosen)

    def on_descendant_focus(self) -> None:
        """What could stand here?"""
        self._ask()

    def on_descendant_blur(self) -> None:
        """Nobody looks at the suggestions any more."""
        self.action_close()

    def on_click(self, event: events.Click) -> None:
        """Take the suggestion that was clicked on."""
        row = self.suggestions.top + event.screen_y - self.suggestions.region.y
        if event.widget is self.suggestions and 0 <= row < len(self.suggestions.values):
            self._take(self.suggestions.values[row])

    def _take(self, value: str) -> None:
        self._taken = value if value != self.value else None
        self.action_close()
        self.input.value = value
        self.input.cursor_position = len(value)
        self.input.focus()

    def _ask(self) -> None:
        if self.input.has_focus:
            self.post_message(self.SuggestionsRequested(self, self.value))
