"""Where one writes to a model: several lines, what was sent before, and suggestions for what is being typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from mcphost.dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.rows import Cell, columns

ROWS: Final = 6
"""Suggestions in view at once."""

KEPT: Final = 200
"""Messages that can be had back."""

LONGEST: Final = 200_000
"""Characters that can be written here; more belongs in a file that is attached."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text that could stand from ``start`` to ``end``, and what it is; foreign text in both."""

    start: int
    end: int
    text: str
    about: str = ""
    more: str = " "
    """What follows it at once."""


class SuggestionList(Widget):
    """What could be meant; one of them is chosen."""

    DEFAULT_CSS = """
    SuggestionList { height: auto; background: $panel; padding: 0 1; display: none; }
    SuggestionList.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: Sequence[Suggestion] = ()
        self.at = 0

    @property
    def chosen(self) -> Suggestion | None:
        return self.values[self.at] if self.values else None

    def show_values(self, values: Sequence[Suggestion]) -> None:
        """Suggest these, the first chosen."""
        if values != self.values:
            self.values, self.at = values, 0
            self.set_class(bool(values), "-open")
            self.refresh(layout=True)

    def move(self, step: int) -> None:
        self.at = (self.at + step) % len(self.values)
        self.refresh()

    @property
    def top(self) -> int:
        """The first in view."""
        return max(0, min(self.at - ROWS // 2, len(self.values) - ROWS))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A few rows, and one for the keys."""
        return min(len(self.values), ROWS) + 1

    def render(self) -> Content:
        """Those in view, what the chosen one is, and the keys."""
        lines = [self._line(number) for number in range(self.top, min(self.top + ROWS, len(self.values)))]
        count = f" · {len(self.values)}" if len(self.values) > ROWS else ""
        return Content("\n").join(
            [*lines, Content.styled(f"  tab takes it · ↑ ↓ choose · esc none{count}", "$foreground-muted")]
        )

    def _line(self, number: int) -> Content:
        value = self.values[number]
        mark, style = ("▸ ", "bold $text-accent") if number == self.at else ("  ", "")
        room = self.size.width
        about = Cell(show_line(value.about, 200), "$foreground-muted")
        return columns(room, [Cell(mark + show_line(value.text.strip(), 200), style, 12, room * 3 // 5), about])


class MessageArea(TextArea):
    """The lines themselves."""

    class Entered(Message):
        """Enter: send it, or take the suggestion."""

    class Stepped(Message):
        """Up in the first line, or down in the last."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Tabbed(Message):
        """Tab: take the suggestion, or go on."""

    def __init__(self) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, soft_wrap=True, show_line_numbers=False)
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case "enter":
                self._instead(event, self.Entered())
            case "shift+enter" | "alt+enter" | "ctrl+j":
                self._instead(event)
                self.insert("\n")
            case "tab":
                self._instead(event, self.Tabbed())
            case "up" if self.cursor_at_first_line:
                self._instead(event, self.Stepped(-1))
            case "down" if self.cursor_at_last_line:
                self._instead(event, self.Stepped(1))

    async def _on_paste(self, event: events.Paste) -> None:
        """What a terminal would obey is marked: it would be drawn as it is."""
        event.prevent_default()
        event.stop()
        room = max(0, LONGEST - len(self.text))
        self.replace(show(event.text.replace("\r\n", "\n").replace("\r", "\n"), joiners=True)[:room], *self.selection)
        if len(event.text) > room:
            self.notify(f"Only {room:,} characters fit; attach the rest as a file: @path", severity="warning")

    def _instead(self, event: events.Key, message: Message | None = None) -> None:
        event.prevent_default()
        event.stop()
        if message is not None:
            self.post_message(message)


class ChatInput(Vertical):
    """The message that is being written. Posts `Typed` with each change, `Entered` with enter."""

    DEFAULT_CSS = """
    ChatInput {
        height: auto; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
        MessageArea, MessageArea.-textual-compact {
            height: auto; max-height: 8; padding: 0 1; background: $surface; border: none;
            &:focus { background: $boost; border: none; }
        }
    }
    """
    HELP = (
        "Write to the model. enter sends, ctrl+j (shift+enter, alt+enter) begins a line, ↑ brings back what you sent.\n"
        "/server:prompt name=value brings a prompt in, @server:uri and @path attach something: ctrl+g shows all of it\n"
        "before it is sent, as a prompt always is. esc stops the model; where it is idle, it goes to the conversation."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j", "newline", "new line", show=False, id="chat.newline", tooltip="Begin another line"),
    ]

    class Typed(Message):
        """Another text stands here, or the cursor elsewhere: suggestions would be welcome."""

        def __init__(self, text: str, cursor: int) -> None:
            super().__init__()
            self.text, self.cursor = text, cursor

    class Entered(Message):
        """Send this."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self.area = MessageArea()
        self.suggestions = SuggestionList()
        self._sent: list[str] = []
        self._at: int | None = None
        self._draft = ""
        self._closed_for: str | None = None
        self._suggested_for = ""

    def compose(self) -> ComposeResult:
        """Suggestions above the lines: what is written stays where it is."""
        self.border_subtitle = "enter sends · ctrl+g preview · ctrl+j new line · / prompts · @ resources"
        yield self.suggestions
        yield self.area

    @property
    def text(self) -> str:
        return self.area.text

    def write(self, text: str) -> None:
        """Put this there, the cursor at its end."""
        self._at = None
        self.area.text = show(text, joiners=True)
        self.area.move_cursor(self.area.document.end)

    def sent(self, text: str) -> None:
        """It went out: keep it, and begin anew; what was typed meanwhile stays."""
        self._sent = [*[each for each in self._sent if each != text], text][-KEPT:]
        self._at, self._draft = None, ""
        if self.text == text:
            self.write("")

    def suggest(self, text: str, values: Sequence[Suggestion]) -> None:
        """These could be meant, if that text still stands here."""
        if text == self.text and text != self._closed_for and self.area.has_focus:
            self._suggested_for = text
            self.suggestions.show_values(values)

    def close_suggestions(self) -> bool:
        """Take none; were there any?"""
        was_open = bool(self.suggestions.values)
        self._closed_for = self.text
        self.suggestions.show_values(())
        return was_open

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> ChatInput:
        self.area.focus(scroll_visible)
        return self

    def action_newline(self) -> None:
        self.area.insert("\n")

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._narrow_suggestions()
        if self.text != self._closed_for:
            self._closed_for = None
            self.post_message(self.Typed(self.text, self.cursor))

    def _narrow_suggestions(self) -> None:
        """Keep the suggestions that what was typed since may still become: a key may come before the next ones do."""
        if self.suggestions.values:
            self.suggestions.show_values(tuple(filter(None, map(self._fitted, self.suggestions.values))))
            self._suggested_for = self.text

    def _fitted(self, suggestion: Suggestion) -> Suggestion | None:
        text, end, before = self.text, self.cursor, self._suggested_for
        around_is_unchanged = (
            text[: suggestion.start] + text[end:] == before[: suggestion.start] + before[suggestion.end :]
        )
        fits = around_is_unchanged and suggestion.text.startswith(text[suggestion.start : end])
        return replace(suggestion, end=end) if fits else None

    @property
    def cursor(self) -> int:
        """Characters before the cursor."""
        row, column = self.area.cursor_location
        return sum(len(line) + 1 for line in self.area.document.lines[:row]) + column

    @on(MessageArea.Entered)
    def _entered(self, event: MessageArea.Entered) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is not None and self.text[chosen.start : chosen.end] != chosen.text:
            self._take(chosen)
        elif self.text.strip():
            self.close_suggestions()
            self.post_message(self.Entered(self.text))

    @on(MessageArea.Tabbed)
    def _tabbed(self, event: MessageArea.Tabbed) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is not None:
            self._take(chosen)
        else:
            self.screen.focus_next()

    @on(MessageArea.Stepped)
    def _stepped(self, event: MessageArea.Stepped) -> None:
        event.stop()
        if self.suggestions.values:
            self.suggestions.move(event.step)
        else:
            self._recall(event.step)

    def _recall(self, step: int) -> None:
        """What was sent before; below the last of it stands what was being written."""
        if not self._sent or (self._at is None and step > 0):
            return
        if self._at is None:
            self._draft, self._at = self.text, len(self._sent)
        at = max(0, self._at + step)
        text = self._sent[at] if at < len(self._sent) else self._draft
        self._closed_for = show(text, joiners=True)
        self.write(text)
        self._at = at if at < len(self._sent) else None

    def _take(self, chosen: Suggestion) -> None:
        text = self.text
        written = chosen.text + chosen.more
        self.suggestions.show_values(())
        self.area.text = text[: chosen.start] + written + text[chosen.end :]
        before = (text[: chosen.start] + written).split("\n")
        self.area.move_cursor((len(before) - 1, len(before[-1])))

    def on_descendant_blur(self) -> None:
        """Nobody looks at the suggestions any more."""
        self.suggestions.show_values(())
