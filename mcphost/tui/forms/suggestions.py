"""A line of text for which the server suggests values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.form import FormField
from mcphost.protocol.models.prompts import Completion
from mcphost.tui.forms.text_boxes import LineBox
from mcphost.tui.kit.rows import Cell, columns, rows_around

MOST_SUGGESTIONS: Final = 100
VISIBLE_SUGGESTIONS: Final = 6
NO_SUGGESTION: Final = "nothing is suggested that fits"


class Suggestions:
    """The suggested values, a few of them visible around the chosen one."""

    def __init__(self) -> None:
        self.values: Sequence[str] = ()
        self.at: int | None = None
        self._more = ""

    @property
    def chosen(self) -> str | None:
        """The value that enter accepts."""
        return None if self.at is None else self.values[self.at]

    def load(self, values: Sequence[str], more: str = "") -> None:
        """Suggest these; a chosen value stays chosen if it is among them. ``more`` says what is left out."""
        chosen = self.chosen
        self.at = None if chosen is None or chosen not in values else values.index(chosen)
        self.values, self._more = values, more

    def narrow(self, typed: str) -> None:
        """Keep the suggestions that still match ``typed``, until those for it arrive."""
        fitting = [value for value in self.values if typed.lower() in value.lower()]
        if len(fitting) < len(self.values):
            self.load(fitting)

    def move(self, step: int) -> None:
        """Choose another value; above the first, none is chosen."""
        at = (-1 if self.at is None else self.at) + step
        self.at = None if at < 0 else min(at, len(self.values) - 1)

    def at_line(self, line: int) -> str | None:
        """The value on this line of `lines`."""
        return self.values[self._visible[line]] if 0 <= line < len(self._visible) else None

    def lines(self, width: int) -> Iterator[Content]:
        """The visible values, and what can be done with them; nothing where there is nothing to say."""
        for number in self._visible:
            mark, style = ("▸ ", "bold $text-accent") if number == self.at else ("  ", "")
            yield _line(mark + show_line(self.values[number], 200), style, width)
        if footer := self._footer():
            yield _line(f"  {footer}", "$foreground-muted", width)

    @property
    def _visible(self) -> range:
        return rows_around(self.at or 0, len(self.values), VISIBLE_SUGGESTIONS)

    def _footer(self) -> str:
        key = "" if not self.values else "↓ chooses" if self.at is None else "enter takes it · esc does not"
        count = self._more or (f"{len(self.values)} suggestions" if len(self.values) > VISIBLE_SUGGESTIONS else "")
        return " · ".join(part for part in (key, count) if part)


def _line(text: str, style: str, width: int) -> Content:
    return columns(width, [Cell(text, style)]).stylize("on $panel")


def _left_out(found: Completion, shown: int) -> str:
    total = found.total or 0
    if shown and total > shown:
        return f"{shown:,} of {min(total, 10**9):,}: type on"
    return "there are more: type on" if shown and found.has_more else ""


class SuggestingBox(LineBox):
    """A line whose row draws suggestions below it. Posts `Requested` when focused and after each change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "choose(1)", "suggestions", id="complete.down", tooltip="Choose among the suggestions"),
        Binding("down", "step(1)", "next field", id="suggest.down", show=False, tooltip="Next field"),
        Binding("up", "choose(-1)", "one up", show=False, id="complete.up", tooltip="The suggestion above"),
        Binding("up", "step(-1)", "field before", id="suggest.up", show=False, tooltip="Field before"),
        Binding("escape", "close", "keep what is typed", id="complete.close", tooltip="Take none of the suggestions"),
    ]
    DEFAULT_CSS = LineBox.DEFAULT_CSS.replace("LineBox", "SuggestingBox")  # its .-textual-compact is a type's own

    class Requested(Message):
        """Suggestions for ``value`` are needed; pass them to `suggest`."""

        def __init__(self, box: SuggestingBox, value: str) -> None:
            self.box, self.value = box, value
            super().__init__()

    class Updated(Message):
        """Other suggestions are shown, or another one is chosen."""

    def __init__(self, field: FormField, entry: Any) -> None:
        super().__init__(field, entry)
        self.suggestions = Suggestions()
        self._accepted: str | None = None
        self._had_suggestions = False
        """True once a suggestion was made for this field."""

    def suggest(self, value: str, found: Completion) -> None:
        """Show the suggestions for ``value``, unless the text has changed or the focus has gone."""
        if value != self.entry or not self.has_focus:
            return
        values = found.usable[:MOST_SUGGESTIONS]
        self._had_suggestions = self._had_suggestions or bool(values)
        typed_already = values == (value,)
        if typed_already:
            values = ()
        fits = values or typed_already or not value or not self._had_suggestions
        self._load(values, _left_out(found, len(values)) if fits else NO_SUGGESTION)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Up and down are left to the form while nothing is suggested, escape while no suggestion is chosen."""
        match action:
            case "choose":
                return bool(self.suggestions.values)
            case "close":
                return self.suggestions.chosen is not None
        return super().check_action(action, parameters)

    def action_choose(self, step: int) -> None:
        self.suggestions.move(step)
        self._updated()

    def action_close(self) -> None:
        self._load(())

    async def action_submit(self) -> None:
        chosen = self.suggestions.chosen
        if chosen is None:
            await super().action_submit()
        else:
            self.accept(chosen)

    def accept(self, value: str) -> None:
        self._accepted = value if value != self.entry else None
        self._load(())
        self.entry = value
        self.cursor_position = len(self.value)
        self.focus()

    def watch_value(self) -> None:
        """Ask for suggestions for what was typed."""
        if not self.is_mounted or not self.has_focus:
            return
        if self.entry == self._accepted:
            self._accepted = None
        else:
            self.suggestions.narrow(self.entry)
            self._updated()
            self.post_message(self.Requested(self, self.entry))

    def on_focus(self) -> None:
        super().on_focus()
        self.post_message(self.Requested(self, self.entry))

    def on_blur(self) -> None:
        super().on_blur()
        self._load(())

    def _load(self, values: Sequence[str], more: str = "") -> None:
        self.suggestions.load(values, more)
        self._updated()

    def _updated(self) -> None:
        self.post_message(self.Updated())
        self.refresh_bindings()
