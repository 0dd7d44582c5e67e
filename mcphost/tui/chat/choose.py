"""Dialogs to choose a conversation, or a block of code to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.chat.chat import Chat
from mcphost.host.chat.transcript_store import SavedChat
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, size_text
from mcphost.tui.chat.markdown import CodeBlock
from mcphost.tui.kit.framed import PickScreen
from mcphost.tui.kit.rows import Cell, columns


@dataclass(frozen=True, slots=True)
class ListedChoice:
    """A choice and its row; foreign text in it has been made safe."""

    value: str
    mark: str
    text: str
    about: str = ""
    style: str = ""


class ChooseScreen(PickScreen[ListedChoice, str]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f8", "back", "back", id="choose.back", tooltip="Choose none", show=False)
    ]

    def row(self, item: ListedChoice, width: int) -> Content:
        mark, about = Cell(item.mark, "$text-accent", 1, 1), Cell(item.about, "$foreground-muted", 10, 32, "right")
        return columns(width, [mark, Cell(item.text, item.style, 12), about])

    def value(self, item: ListedChoice) -> str:
        return item.value


class ChatsScreen(ChooseScreen):
    """Conversations of this run, then saved ones; dismissed with an id, or "" for a new conversation."""

    HELP = (
        "enter opens a conversation, n begins one, as the first row does.\n"
        "● is open in this run, ◐ at work, ◌ kept from before. What you began to write in one waits for you there."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new", id="choose.new", tooltip="Begin a new conversation")
    ]

    def __init__(self, open_ones: Sequence[Chat], saved: Sequence[SavedChat], drafts: Mapping[int, str]) -> None:
        here = {chat.id for chat in open_ones}
        choices = [
            ListedChoice("", "+", "a new conversation", "n", style="bold"),
            *(
                _opened(chat, drafts.get(chat.number, ""))
                for chat in reversed(open_ones)
                if chat.turns or chat.number in drafts
            ),
            *(_saved(each) for each in saved if each.id not in here),
        ]
        super().__init__("Conversations", "open · n new", choices)

    def action_new(self) -> None:
        self.dismiss("")


def _opened(chat: Chat, draft: str) -> ListedChoice:
    turns = f"{len(chat.turns)} message{'' if len(chat.turns) == 1 else 's'}"
    branch = ", a branch" if chat.branch_of else ""
    about = f"{turns}{branch}{', a draft' if draft else ''}" if chat.turns else "a draft"
    title = show_line(chat.title, 200) or show_line(draft, 200) or chat.id
    return ListedChoice(chat.id, "◐" if chat.busy else "●", title, about)


def _saved(each: SavedChat) -> ListedChoice:
    when = each.changed
    words = f"{when:%H:%M}" if when.date() == datetime.now().date() else f"{when:%-d %b %Y}"
    return ListedChoice(each.id, "◌", show_line(each.title, 200) or each.id, f"{words} · {size_text(each.size)}")


class CodeScreen(ChooseScreen):
    """Blocks of code, newest first; dismissed with the text of one."""

    HELP = "The blocks of code in what the model wrote. enter copies one, as it came."

    def __init__(self, codes: Sequence[CodeBlock]) -> None:
        none = "The model has written no block of code in this conversation."
        super().__init__("Blocks of code", "copy", [_code(code) for code in reversed(codes)], empty=none)


def _code(code: CodeBlock) -> ListedChoice:
    text = code.text.removesuffix("\n")
    lines = text.count("\n") + 1
    about = f"{code.language or 'code'} · {lines} line{'' if lines == 1 else 's'} · {size_text(len(text))}"
    return ListedChoice(text, "▪", show_line(text.strip(), 200), about)
