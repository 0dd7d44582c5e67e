"""The input of the chat: several lines, a history of sent messages, and suggestions."""

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

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.messages import EDITOR_BINDING, EditorRequested
from mcphost.tui.kit.rows import Cell, columns, rows_around

ROWS: Final = 6

HISTORY: Final = 200
"""Sent messages in the history."""

MOST_CHARACTERS: Final = 200_000
"""Characters; longer texts should be attached as a file."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text to insert between ``start`` and ``end``, and a description; both are foreign text."""

    start: int
    end: int
    text: str
    about: str = ""
    more: str = " "
    """The text that is inserted after the suggestion."""


class SuggestionList(Widget):
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
        """Show these suggestions, the first of them chosen."""
        if values != self.values:
            self.values, self.at = values, 0
            self.set_class(bool(values), "-open")
            self.refresh(layout=True)

    def move(self, step: int) -> None:
        self.at = (self.at + step) % len(self.values)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self.values), ROWS) + 1

    def render(self) -> Content:
        lines = [self._line(number) for number in rows_around(self.at, len(self.values), ROWS)]
        count = f" · {len(self.values)}" if len(self.values) > ROWS else ""
        return Content("\n").join(
            [*lines, Content.styled(f"  tab accepts · ↑ ↓ choose · esc closes{count}", "$foreground-muted")]
        )

    def _line(self, number: int) -> Content:
        value = self.values[number]
        mark, style = ("▸ ", "bold $text-accent") if number == self.at else ("  ", "")
        room = self.size.width
        about = Cell(show_line(value.about, 200), "$foreground-muted")
        return columns(room, [Cell(mark + show_line(value.text.strip(), 200), style, 12, room * 3 // 5), about])


class MessageArea(TextArea):
    BINDINGS: ClassVar[list[BindingType]] = [EDITOR_BINDING]

    class Entered(Message):
        """The user pressed enter."""

    class Stepped(Message):
        """The user pressed up in the first line, or down in the last."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class Tabbed(Message):
        """The user pressed tab."""

    def __init__(self) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, soft_wrap=True, show_line_numbers=False)
        self.cursor_blink = False

    async def on_key(self, event: events.Key) -> None:
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

    async def on_paste(self, event: events.Paste) -> None:
        """Insert the text with its control characters marked: a terminal would obey them."""
        event.prevent_default()
        event.stop()
        room = max(0, MOST_CHARACTERS - len(self.text))
        self.replace(show(event.text.replace("\r\n", "\n").replace("\r", "\n"), joiners=True)[:room], *self.selection)
        if len(event.text) > room:
            self.notify(f"Only {room:,} characters fit; attach the rest as a file: @path", severity="warning")

    def action_open_editor(self) -> None:
        self.post_message(EditorRequested(self, self.text, ".md", MOST_CHARACTERS))

    def take_edited(self, text: str) -> None:
        self.replace(show(text, joiners=True), (0, 0), self.document.end, maintain_selection_offset=False)

    def _instead(self, event: events.Key, message: Message | None = None) -> None:
        event.prevent_default()
        event.stop()
        if message is not None:
            self.post_message(message)


class ChatInput(Vertical):
    """The message that is being written, with suggestions above it."""

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
        "Write to the model. enter sends, ↑ recalls sent messages. /server:prompt name=value inserts a prompt, "
        "/skill server:name a skill, @server:uri and @path attach something. Prompts and skills are always shown "
        "before they are sent."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j", "newline", "new line", show=False, id="chat.newline", tooltip="Start a new line"),
    ]

    class Typed(Message):
        """The text or the cursor changed."""

        def __init__(self, text: str, cursor: int) -> None:
            super().__init__()
            self.text, self.cursor = text, cursor

    class Entered(Message):
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
        self.border_subtitle = "enter sends · ctrl+g preview · ctrl+j new line · / prompts · @ resources"
        yield self.suggestions  # above the text, so that opening them does not move it
        yield self.area

    @property
    def text(self) -> str:
        return self.area.text

    def write(self, text: str) -> None:
        """Replace the text, and put the cursor at its end."""
        self._at = None
        self.area.text = show(text, joiners=True)
        self.area.move_cursor(self.area.document.end)

    def sent(self, text: str) -> None:
        """Add a sent message to the history; empty the input unless it was changed since."""
        self._sent = [*[each for each in self._sent if each != text], text][-HISTORY:]
        self._at, self._draft = None, ""
        if self.text == text:
            self.write("")

    def suggest(self, text: str, values: Sequence[Suggestion]) -> None:
        """Show suggestions for ``text``, unless the text has changed since."""
        if text == self.text and text != self._closed_for and self.area.has_focus:
            self._suggested_for = text
            self.suggestions.show_values(values)

    def close_suggestions(self) -> bool:
        """Close the suggestions; return whether there were any."""
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
        """Keep the suggestions that still match: the next key may come before the new ones do."""
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
        """The number of characters before the cursor."""
        row, column = self.area.cursor_location
        return sum(len(line) + 1 for line in self.area.document.lines[:row]) + column

    @on(MessageArea.Entered)
    def _entered(self, event: MessageArea.Entered) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is not None and self.text[chosen.start : chosen.end] != chosen.text:
            self._accept(chosen)
        elif self.text.strip():
            self.close_suggestions()
            self.post_message(self.Entered(self.text))

    @on(MessageArea.Tabbed)
    def _tabbed(self, event: MessageArea.Tabbed) -> None:
        event.stop()
        chosen = self.suggestions.chosen
        if chosen is not None:
            self._accept(chosen)
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
        """Step through the history; below its newest entry is the draft."""
        if not self._sent or (self._at is None and step > 0):
            return
        if self._at is None:
            self._draft, self._at = self.text, len(self._sent)
        at = max(0, self._at + step)
        text = self._sent[at] if at < len(self._sent) else self._draft
        self._closed_for = show(text, joiners=True)
        self.write(text)
        self._at = at if at < len(self._sent) else None

    def _accept(self, chosen: Suggestion) -> None:
        text = self.text
        written = chosen.text + chosen.more
        self.suggestions.show_values(())
        self.area.text = text[: chosen.start] + written + text[chosen.end :]
        before = (text[: chosen.start] + written).split("\n")
        self.area.move_cursor((len(before) - 1, len(before[-1])))

    def on_descendant_blur(self) -> None:
        self.suggestions.show_values(())
