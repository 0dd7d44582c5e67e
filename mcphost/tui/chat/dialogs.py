"""Dialogs of a chat: choose a conversation, choose a block of code to copy, preview a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from mcphost.host.chat.chat import Chat
from mcphost.host.chat.model_messages import MessagePreview, PreviewPart
from mcphost.host.chat.transcript_store import SavedChat
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show, show_line, size_text
from mcphost.tui.chat.markdown import CodeBlock
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact, link_facts
from mcphost.tui.kit.framed import PickScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.kit.text_view import Spans, TextView


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
        "The first row begins a conversation. ● is open in this run, ◐ at work, ◌ kept from before. What you "
        "began to write in one waits for you there."
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

    HELP = "The blocks of code in what the model wrote, each copied as it came."

    def __init__(self, codes: Sequence[CodeBlock]) -> None:
        none = "The model has written no block of code in this conversation."
        super().__init__("Blocks of code", "copy", [_code(code) for code in reversed(codes)], empty=none)


def _code(code: CodeBlock) -> ListedChoice:
    text = code.text.removesuffix("\n")
    lines = text.count("\n") + 1
    about = f"{code.language or 'code'} · {lines} line{'' if lines == 1 else 's'} · {size_text(len(text))}"
    return ListedChoice(text, "▪", show_line(text.strip(), 200), about)


LINKS = 3
"""Links that are listed one by one."""

GUTTER = "│ "
"""Before each row that is sent, so that no text can imitate one of mcphost's headings."""

Lines = list[tuple[str, bool]]
"""Each text, and True for one of mcphost's own."""


class PiecesView(TextView):
    """The parts of a message, each below a heading."""

    def __init__(self, lines: Lines) -> None:
        self._ours = {number for number, (_, ours) in enumerate(lines) if ours}
        super().__init__([text if ours else GUTTER + text for text, ours in lines])

    def spans_of(self, number: int, text: str) -> Spans:
        return [(0, len(text), "key")] if number in self._ours else ()

    def hang_of(self, number: int) -> str:
        return "" if number in self._ours else GUTTER


class PreviewScreen(Dialog[bool], inherit_bindings=False):
    """Dismissed with True if the message is to be sent."""

    HELP = (
        "What the model would get of your message, read already and not sent yet. What a prompt or a skill says comes "
        "from its server: it can be sent once all of it was on screen. The tokens are estimates."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "send", "send", id="preview.send", tooltip="Send exactly this"),
        Binding("escape,n,e,ctrl+g", "back", "back to your text", id="preview.back", tooltip="Send nothing; edit it"),
        Binding("space", "page", "scroll", id="preview.down", tooltip="Read on", show=False),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    PreviewScreen {
        .dialog { height: 90%; }
        FactsTable { margin-bottom: 1; }
        TextView { height: 1fr; padding: 0; }
        #hint { color: $text-warning; height: auto; }
    }
    """

    def __init__(self, preview: MessagePreview) -> None:
        super().__init__(classes="-careful" if preview.hidden else None)
        self._preview = preview
        self._must_be_read = preview.must_be_read
        self._view = PiecesView(list(_lines(preview)))

    def compose(self) -> ComposeResult:
        model = show_line(self._preview.model, 30)
        title = Content.assemble("What would be sent to ", (model, "bold"))
        with self.framed(title, Content("y send · esc back to your text")):
            yield FactsTable(list(_facts(self._preview)))
            yield self._view
            yield Static("▼ more below: press space until the end, then it can be sent", id="hint", markup=False)

    def on_mount(self) -> None:
        self._view.focus()
        self.query_one("#hint").display = False
        self.watch(self._view, "scroll_y", self._check_end, init=False)
        self.watch(self._view, "virtual_size", self._check_end, init=False)
        self.call_after_refresh(self._check_end)

    def action_send(self) -> None:
        """Send the message, once all text from servers was on screen."""
        if self._must_be_read:
            self.app.bell()
        else:
            self.dismiss(True)

    def action_back(self) -> None:
        self.dismiss(False)

    def action_page(self) -> None:
        self._view.action_page_down()

    def _check_end(self) -> None:
        view = self._view
        if view.size.height and round(view.scroll_y) >= view.max_scroll_y:
            self._must_be_read = False
        self.query_one("#hint").display = self._must_be_read


def _facts(preview: MessagePreview) -> Iterator[Fact]:
    parts = "1 part" if len(preview.pieces) == 1 else f"{len(preview.pieces)} parts"
    yield fact("together", f"{parts}, {size_text(preview.size)}, about {preview.tokens:,} tokens")
    yield fact("besides", f"about {preview.besides:,} tokens: tools, instructions, what was said before")
    for words in preview.acting:
        yield fact("skill", words, "$text-warning")
    if preview.hidden:
        yield fact("beware", f"{_invisible(preview.hidden)}, marked ⟨U+…⟩", "bold $text-error")
    yield from link_facts(preview.links, LINKS, 120)


def _lines(preview: MessagePreview) -> Iterator[tuple[str, bool]]:
    for number, piece in enumerate(preview.pieces):
        if number:
            yield "", True
        yield _heading(piece), True
        yield from ((line, False) for line in show(piece.text, joiners=True).split("\n"))


def _heading(piece: PreviewPart) -> str:
    hidden = hidden_count(piece.text)
    notes = [f"{size_text(piece.size)}, about {piece.tokens:,} tokens"]
    notes.extend(["▲ a server's words"] if piece.foreign else [])
    notes.extend([f"▲ {_invisible(hidden)}"] if hidden else [])
    notes.extend([show_line(piece.note, 300)] if piece.note else [])
    return " · ".join([piece.title, *notes])


def _invisible(count: int) -> str:
    return "1 invisible character" if count == 1 else f"{count} invisible characters"
