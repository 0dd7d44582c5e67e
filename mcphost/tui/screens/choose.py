"""One of several things of a conversation: another conversation, or a block of code to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.host.chat.chat import Chat
from mcphost.host.chat.transcripts import Saved
from mcphost.protocol.display import show_line, size_text
from mcphost.tui.faults import Sturdy
from mcphost.tui.screens.dialog import KEYS
from mcphost.tui.widgets.chat_markdown import Code
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.rows import RowList


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be chosen: what it stands for, and its row; foreign text in it has been made safe."""

    value: str
    mark: str
    text: str
    about: str = ""
    style: str = ""


class ChooseScreen(Sturdy, ModalScreen[str | None]):
    """Lists choices; dismissed with the value of one."""

    TITLE_LINE: ClassVar[str] = ""
    KEYS_LINE: ClassVar[str] = "enter choose · esc back"
    EMPTY: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f8", "back", "back", id="choose.back", tooltip="Choose none"),
        KEYS,
    ]

    DEFAULT_CSS = """
    ChooseScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 92%; max-width: 120; height: 70%; border: round $accent; background: $surface; }
    }
    """

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._choices = choices
        self.rows = RowList[Choice](_row, empty=self.EMPTY)

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title, frame.border_subtitle = self.TITLE_LINE, self.KEYS_LINE
            yield self.rows

    def on_mount(self) -> None:
        """Fill it."""
        self.rows.set_items(self._choices)
        self.rows.focus()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Choice]) -> None:
        event.stop()
        self.dismiss(event.item.value)

    def action_back(self) -> None:
        """Choose none."""
        self.dismiss(None)


class ChatsScreen(ChooseScreen):
    """Conversations of this run, then those kept from before; dismissed with an id, empty for a new one."""

    HELP = "enter opens a conversation, the first row begins one. ● is open in this run, ◐ at work, ◌ kept from before."
    TITLE_LINE = "Conversations"
    KEYS_LINE = "enter open · esc back"

    def __init__(self, open_ones: Sequence[Chat], saved: Sequence[Saved]) -> None:
        here = {chat.id for chat in open_ones}
        super().__init__(
            [
                Choice("", "+", "a new conversation", style="bold"),
                *(_opened(chat) for chat in reversed(open_ones) if chat.turns),
                *(_saved(each) for each in saved if each.id not in here),
            ]
        )


def _opened(chat: Chat) -> Choice:
    turns = f"{len(chat.turns)} message{'' if len(chat.turns) == 1 else 's'}"
    branch = ", a branch" if chat.branch_of else ""
    return Choice(chat.id, "◐" if chat.busy else "●", show_line(chat.title, 200) or chat.id, turns + branch)


def _saved(each: Saved) -> Choice:
    when = each.changed
    words = f"{when:%H:%M}" if when.date() == datetime.now().date() else f"{when:%-d %b %Y}"
    return Choice(each.id, "◌", show_line(each.title, 200) or each.id, f"{words} · {size_text(each.size)}")


class CodeScreen(ChooseScreen):
    """Blocks of code, the newest first; dismissed with the text of one."""

    HELP = "The blocks of code in what the model wrote. enter copies one, as it came."
    TITLE_LINE = "Blocks of code"
    KEYS_LINE = "enter copy · esc back"
    EMPTY = "The model has written no block of code in this conversation."

    def __init__(self, codes: Sequence[Code]) -> None:
        super().__init__([_code(code) for code in reversed(codes)])


def _code(code: Code) -> Choice:
    text = code.text.removesuffix("\n")
    lines = text.count("\n") + 1
    about = f"{code.language or 'code'} · {lines} line{'' if lines == 1 else 's'} · {size_text(len(text))}"
    return Choice(text, "▪", show_line(text.strip(), 200), about)


def _row(choice: Choice, width: int) -> Content:
    return columns(
        width,
        [
            Cell(choice.mark, "$text-accent", 1, 1),
            Cell(choice.text, choice.style, 12),
            Cell(choice.about, "$foreground-muted", 10, 32, "right"),
        ],
    )
