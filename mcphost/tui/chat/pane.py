"""Talking with a model: the conversation, what one writes, and what stands beside it.

Knows its parts and which key wishes what. Refuses to act: it says what the user wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from mcphost.config import ChatConfig
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.turns import TurnState
from mcphost.protocol.display import show_line
from mcphost.tui.chat.input import ChatInput
from mcphost.tui.chat.items import TranscriptItem, UseItem, told
from mcphost.tui.chat.side import ChatLine, ChatSide, tally_of
from mcphost.tui.chat.transcript import Transcript
from mcphost.tui.kit.export import copy_text
from mcphost.tui.kit.search import Searchable, SearchArea

BESIDE: Final = 110
"""Columns of the pane from which the tally stands beside the conversation, which keeps 72 of them."""

WELCOME: Final = """\
Write to the model below, and press enter. It may use the tools of your servers: you are asked before each call, may \
change its arguments, or say no and why.

  /server:prompt   brings in a prompt that a server has ready
  @server:uri      attaches what a server has to read, @path a file
  ctrl+g           shows what would be sent, and what it costs
  ctrl+t           which tools the model may use, and what they cost
  ctrl+o   f8      which model · other conversations
  f9               results wait for you before the model gets them
  esc              stops the model; again: to the conversation, and out of the chat. f1 says more"""

NO_MODEL: Final = """\
No language model is configured, so there is nobody to talk to yet. Add these lines to your configuration (mcphost \
config path says where it is):

  [models.big]
  provider = "anthropic"
  model = "claude-sonnet-4-5"
  api_key = "${keyring:anthropic}"

provider may be "openai" too, with base_url for whatever speaks like it, or "ollama", which needs no key.

ctrl+l reads the file again. Until then everything works by hand: t runs tools, p gets prompts, e reads resources."""


class ChatAction(Enum):
    """What the user wants of a conversation."""

    STOP = auto()
    GO_ON = auto()
    MODEL = auto()
    TOOLS = auto()
    CHATS = auto()
    EDIT = auto()
    BRANCH = auto()
    EXPORT = auto()
    CODE = auto()
    OPEN = auto()
    HOLD = auto()


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """What is being written in a conversation."""

    text: str = ""
    instead_of: int = 0
    """The turn whose message it takes the place of; 0: none."""
    before: str = ""
    """What was being written before that message was taken up."""


class ChatPane(SearchArea):
    """One conversation. ``/`` in it searches; the input is below it."""

    DEFAULT_CSS = """
    ChatPane {
        & > #beside { height: 1fr; }
        #talk { width: 1fr; height: 100%; }
        #empty { height: 1fr; padding: 1 2; color: $foreground-muted; display: none; }
        &.-empty Transcript, &.-no-model Transcript { display: none; }
        &.-empty #empty, &.-no-model #empty { display: block; }
        &.-no-model ChatInput, &.-no-model ChatLine { display: none; }
        ChatSide { display: none; }
        &.-wide ChatSide { display: block; }
        &.-wide ChatLine { display: none; }
    }
    """
    HELP = (
        "A conversation with a model that may use your servers' tools; nothing runs without you being asked first.\n"
        "esc stops it, and keeps what came. r asks again, E changes an earlier message, B branches: see below.\n"
        "f9 says which results of tools wait for you before the model gets them: none, those from outside, or all."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape",
            "back",
            "stop, back",
            id="chat.back",
            tooltip="Stop the model; else from the input to the conversation, and from there out of the chat",
        ),
        Binding("ctrl+g", "look", "preview", id="chat.preview", tooltip="What would be sent, and its cost", show=False),
        Binding("ctrl+t,x", "wish('TOOLS')", "its tools", id="chat.tools", tooltip="Which tools it may use, and costs"),
        Binding("ctrl+o,m", "wish('MODEL')", "model", id="chat.model", tooltip="Talk to another model"),
        Binding(
            "f9,v", "wish('HOLD')", "review", id="chat.hold", tooltip="Which results wait for you: none, some, all"
        ),
        Binding("f8", "wish('CHATS')", "chats", id="chat.chats", tooltip="Other conversations, and a new one"),
        Binding("r", "wish('GO_ON')", "ask again", id="chat.again", tooltip="Ask again, or let it go on"),
        Binding("E", "wish('EDIT')", "edit, resend", id="chat.edit", tooltip="Change this message and send it anew"),
        Binding("B", "wish('BRANCH')", "branch", id="chat.branch", tooltip="Another conversation from here on"),
        Binding("o", "wish('OPEN')", "open", id="chat.open", tooltip="All of it: the call, the answer, the message"),
        Binding("y", "copy", "copy", id="chat.copy", tooltip="Copy the part under the cursor"),
        Binding("K", "wish('CODE')", "code", id="chat.code", tooltip="The blocks of code: copy one"),
        Binding("w", "wish('EXPORT')", "save", id="chat.export", tooltip="Save the conversation as Markdown"),
        Binding("i", "write", "write", id="chat.write", tooltip="To the input"),
    ]

    class Wanted(Message):
        """See `ChatAction`; ``item`` is what the cursor is on."""

        def __init__(self, wish: ChatAction, item: TranscriptItem | None) -> None:
            super().__init__()
            self.wish, self.item = wish, item

    class Left(Message):
        """The user is done here for now."""

    @dataclass
    class SendWanted(Message):
        """Say this; ``look``: after a look at what it brings along. ``instead_of`` is as in `MessageDraft`."""

        text: str
        instead_of: int
        look: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.transcript, self.input = Transcript(), ChatInput()
        self.side, self.line = ChatSide(), ChatLine()
        self.chat: Chat | None = None
        """What is shown."""
        self._welcome = Static(markup=False, id="empty")
        self._welcome.can_focus = True
        self._ticking: Timer | None = None
        self._instead_of, self._before = 0, ""
        self._put_by: dict[int, MessageDraft] = {}
        """Of the conversations that are not shown, by their numbers."""

    def compose(self) -> ComposeResult:
        """The conversation above, the input below, the tally beside."""
        with Horizontal(id="beside"):
            with Vertical(id="talk"):
                yield self._welcome
                yield self.transcript
                yield self.bar
                yield self.line
                yield self.input
            yield self.side

    # What is shown.

    def show_chat(self, chat: Chat, settings: ChatConfig, servers: tuple[str, ...]) -> None:
        """Show this conversation as it is now."""
        if chat is not self.chat:
            self._take_up(chat)
            self.forget_search()
            self.transcript.forget()
        tally = tally_of(chat, settings, servers)
        self.set_class(not chat.turns, "-empty")
        self.set_class(not tally.model and not chat.turns, "-no-model")
        self._welcome.update(NO_MODEL if not tally.model else WELCOME)
        self.transcript.show_turns(chat.turns)
        self.side.show_tally(tally)
        self.line.show_tally(tally)
        self._say_title()
        self._keep_time(chat.busy)

    def refresh_chat(self) -> None:
        """Time passed."""
        if self.chat is not None:
            self.transcript.show_turns(self.chat.turns)

    def on_resize(self, event: Resize) -> None:
        """The tally goes where there is room."""
        self.set_class(event.size.width >= BESIDE, "-wide")

    def focus_input(self) -> None:
        """Go where one writes; where there is no model, to what says so."""
        if self.has_class("-no-model"):
            self._welcome.focus()
        else:
            self.input.focus()

    def _say_title(self) -> None:
        if self._instead_of:
            self.input.border_title = f"message {self._instead_of}, changed: sent in a branch · esc leaves it"
        elif self.chat is not None:
            self.input.border_title = Content(_heading(self.chat))

    # What is being written.

    @property
    def drafts(self) -> dict[int, str]:
        """What is written and not sent, by the numbers of the conversations."""
        shown = {self.chat.number: self.input.text} if self.chat is not None else {}
        texts = {number: draft.text for number, draft in self._put_by.items()} | shown
        return {number: text for number, text in texts.items() if text.strip()}

    def edit(self, turn: int, text: str) -> None:
        """Change the message of this turn; what was being written comes back after it."""
        if not self._instead_of:
            self._before = self.input.text
        self._write(MessageDraft(text, turn, self._before))
        self._say_title()

    def sent(self, chat: Chat, text: str) -> None:
        """Forget what went out, which was written in this conversation."""
        self.input.sent(text)
        if chat is not self.chat:
            draft = self._put_by.get(chat.number, MessageDraft())
            if draft.text == text:
                self._put_by[chat.number] = MessageDraft(draft.before)
        elif self._instead_of and not self.input.text:
            self._write(MessageDraft(self._before))

    def _take_up(self, chat: Chat) -> None:
        if self.chat is not None:
            self._put_by[self.chat.number] = MessageDraft(self.input.text, self._instead_of, self._before)
        self.chat = chat
        self._write(self._put_by.pop(chat.number, MessageDraft()))

    def _write(self, draft: MessageDraft) -> None:
        self._instead_of, self._before = draft.instead_of, draft.before
        self.input.write(draft.text)

    # What else is to be seen.

    def make_room(self, rows: int) -> None:
        """So many rows at the bottom are covered."""
        below = self.input.outer_size.height + self.line.outer_size.height
        self.styles.padding = (0, 0, max(0, rows - below), 0)

    def _keep_time(self, busy: bool) -> None:
        if busy and self._ticking is None:
            self._ticking = self.set_interval(1.0, self.refresh_chat)
        elif not busy and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None

    # What the user does.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what there is can be done."""
        if action == "wish":
            return self._can(ChatAction[str(parameters[0])])
        if action == "copy":
            return self.transcript.item is not None
        if action == "search":
            return not self.input.area.has_focus
        return super().check_action(action, parameters)

    def _can(self, wish: ChatAction) -> bool:
        turns = self.chat.turns if self.chat else []
        match wish:
            case ChatAction.GO_ON:
                return bool(turns) and turns[-1].state in (TurnState.FAILED, TurnState.STOPPED, TurnState.BOUNDED)
            case ChatAction.EDIT | ChatAction.BRANCH | ChatAction.EXPORT | ChatAction.OPEN | ChatAction.CODE:
                return bool(turns)
        return True

    def action_wish(self, wish: str) -> None:
        """See `ChatAction`."""
        self.post_message(self.Wanted(ChatAction[wish], self.transcript.item))

    def searched(self) -> Sequence[Searchable]:
        """The conversation."""
        return [self.transcript]

    def action_back(self) -> None:
        """Stop the model; where it is idle, from the input to the conversation, and from there out of the chat."""
        if self.bar.has_class("-open"):
            self.action_close_search()
            return
        if self.input.close_suggestions():
            return
        if self._instead_of:
            self._write(MessageDraft(self._before))
            self._say_title()
        elif self.chat is not None and self.chat.busy:
            self.post_message(self.Wanted(ChatAction.STOP, None))
        elif self.input.area.has_focus and self.transcript.display:
            self.transcript.focus()
        else:
            self.post_message(self.Left())

    def action_look(self) -> None:
        """See what would be sent."""
        self.input.close_suggestions()
        if self.input.text.strip():
            self.post_message(self.SendWanted(self.input.text, self._instead_of, look=True))

    def action_write(self) -> None:
        """To the input."""
        self.focus_input()

    def action_copy(self) -> None:
        """The part under the cursor, as it came."""
        item = self.transcript.item
        if item is not None:
            copy_text(self.app, told(item.use) if isinstance(item, UseItem) else item.source)

    @on(ChatInput.Entered)
    def _entered(self, event: ChatInput.Entered) -> None:
        event.stop()
        self.post_message(self.SendWanted(event.text, self._instead_of))

    @on(Transcript.Moved)
    def _moved(self, event: Transcript.Moved) -> None:
        event.stop()
        self.refresh_bindings()

    @property
    def call_in_view(self) -> int | None:
        """The call under the cursor."""
        item = self.transcript.item
        return item.use.number if isinstance(item, UseItem) and self.transcript.has_focus else None


def _heading(chat: Chat) -> str:
    title = show_line(chat.title, 40)
    branch = " · a branch" if chat.branch_of is not None else ""
    return f"Chat {chat.number}{': ' + title if title else ''}{branch}"
