"""A conversation with a model: the transcript, the input, and the usage beside them.

Keys act on the chat that is shown. What concerns other chats is posted to the app.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from textwrap import indent
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
from textual.worker import Worker

from mcphost.config import ChatConfig
from mcphost.config.model_providers import EXAMPLE_ENTRY, OTHER_PROVIDERS
from mcphost.errors import McphostError
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.preferences import following
from mcphost.host.chat.turns import TurnState, UserMessage
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.chat.input import ChatInput
from mcphost.tui.chat.items import AnswerItem, UseItem, result_text
from mcphost.tui.chat.side import ChatLine, ChatSide, chat_facts
from mcphost.tui.chat.transcript import Transcript
from mcphost.tui.kit.clock import file_stamp
from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.messages import CallChosen
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.search import Searchable, SearchArea

BESIDE: Final = 110
"""Columns of the pane from which the usage is shown beside the conversation, which keeps 72 of them."""

WELCOME: Final = """\
Write a message below and press enter. The model can use your servers' tools. You approve each call first; you can \
edit its arguments, or decline it and say why.

  /server:prompt   inserts a server's prompt, /skill server:name a skill
  @server:uri      attaches a resource, @path a file
  ctrl+g           preview of what would be sent, and its cost
  ctrl+t           tools the model may use, and their cost
  ctrl+o · f8      switch the model · other conversations
  f9               review results before the model gets them
  esc · f1         stop the model; again: leave the chat · all keys"""

SCRIPT: Final = """\
No language model is configured, so a script answers here. It knows a few phrases; begin with: Who is out there?
Others: Climb the tower · Tear out the pages · Write a verse about gulls

"""

NO_MODEL: Final = f"""\
No language model is configured yet. Add these lines to your configuration file \
(mcphost config path prints its path):

{indent(EXAMPLE_ENTRY, "  ")}

provider can also be {OTHER_PROVIDERS}.

ctrl+l reloads the file. Everything else works without a model: t tools, p prompts, e resources."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message that was not sent yet."""

    text: str = ""
    instead_of: int = 0
    """The number of the turn whose message it replaces; 0: none."""
    before: str = ""
    """The draft that the user was writing before editing that message."""


class ChatPane(SearchArea):
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
    HELP = "A conversation with a model that can use your servers' tools. Nothing runs before you approve it."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", id="chat.stop", tooltip="Stop the model; what it wrote stays"),
        Binding(
            "escape",
            "back",
            "back",
            id="chat.back",
            tooltip="Go from the input to the conversation, then leave the chat",
        ),
        Binding(
            "ctrl+g",
            "preview",
            "preview",
            id="chat.preview",
            tooltip="See what would be sent, and its cost",
            show=False,
        ),
        Binding(
            "ctrl+t,x",
            "choose_tools",
            "tools",
            id="chat.tools",
            tooltip="Choose the tools it may use; see their cost",
        ),
        Binding("ctrl+o,m", "choose_model", "model", id="chat.model", tooltip="Switch to another model"),
        Binding(
            "f9,v",
            "toggle_review",
            "review",
            id="chat.hold",
            tooltip="Review tool results: none, those from outside, all",
        ),
        Binding("f8", "list_chats", "chats", id="chat.chats", tooltip="Other conversations, or a new one"),
        Binding("r", "resume", "ask again", id="chat.again", tooltip="Ask again, or let it continue"),
        Binding(
            "E", "edit", "edit, resend", id="chat.edit", tooltip="Edit this message and send it again, in a branch"
        ),
        Binding("B", "branch", "branch", id="chat.branch", tooltip="Branch the conversation here"),
        Binding("o", "open_item", "open", id="chat.open", tooltip="Open this call, answer or message in full"),
        Binding("y", "copy", "copy", id="chat.copy", tooltip="Copy the part under the cursor"),
        Binding("K", "copy_code", "code", id="chat.code", tooltip="Copy a block of code"),
        Binding("w", "export", "save", id="chat.export", tooltip="Save the conversation as Markdown"),
        Binding("i", "write", "write", id="chat.write", tooltip="Go to the input"),
    ]

    class Left(Message):
        """The user left the chat."""

    class ChatsRequested(Message):
        """The user asked for the list of conversations."""

    @dataclass
    class BranchRequested(Message):
        """The user asked for another conversation from this turn on."""

        turn: int

    @dataclass
    class MessageSubmitted(Message):
        """The user entered a message; ``preview``: show it before it is sent. For ``instead_of`` see `MessageDraft`."""

        text: str
        instead_of: int
        preview: bool = False

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self.transcript, self.input = Transcript(), ChatInput()
        self.side, self.line = ChatSide(), ChatLine()
        self.chat: Chat | None = None
        """The conversation that is shown."""
        self._welcome = Static(markup=False, id="empty")
        self._welcome.can_focus = True
        self._ticking: Timer | None = None
        self._instead_of, self._before = 0, ""
        self._title = ""
        self._other_drafts: dict[int, MessageDraft] = {}
        """Drafts in the other conversations, by their numbers."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            with Vertical(id="talk"):
                yield self._welcome
                yield self.transcript
                yield self.bar
                yield self.line
                yield self.input
            yield self.side

    def show_chat(self, chat: Chat, settings: ChatConfig, servers: tuple[str, ...]) -> None:
        """Show this conversation, or update it."""
        if chat is not self.chat:
            self._switch_to(chat)
            self.forget_search()
            self.transcript.forget()
        facts = chat_facts(chat, settings, servers)
        self.set_class(not chat.turns, "-empty")
        self.set_class(not facts.model and not chat.turns, "-no-model")
        scripted = any(
            model.provider == "demo" and name == facts.model for name, model in self._host.config.models.items()
        )
        welcome = SCRIPT * scripted + WELCOME if facts.model else NO_MODEL
        # An update lays the whole screen out again, and this runs for each word of an answer.
        if welcome != self._welcome.content:
            self._welcome.update(welcome)
        self.transcript.show_turns(chat.turns)
        self.side.show_chat_facts(facts)
        self.line.show_chat_facts(facts)
        self._update_title()
        self._keep_time(chat.busy)

    def refresh_chat(self) -> None:
        if self.chat is not None:
            self.transcript.show_turns(self.chat.turns)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")

    def focus_input(self) -> None:
        """Focus the input; without a model, focus the text that says so."""
        if self.has_class("-no-model"):
            self._welcome.focus()
        else:
            self.input.focus()

    def _update_title(self) -> None:
        title = f"message {self._instead_of}, changed: sent in a branch · esc leaves it"
        if not self._instead_of:
            title = "" if self.chat is None else _heading(self.chat)
        if title and title != self._title:  # setting a title repaints the widget
            self._title = title
            self.input.border_title = Content(title)

    # Drafts.

    @property
    def drafts(self) -> dict[int, str]:
        """The text that was not sent yet, by the number of the conversation."""
        shown = {self.chat.number: self.input.text} if self.chat is not None else {}
        texts = {number: draft.text for number, draft in self._other_drafts.items()} | shown
        return {number: text for number, text in texts.items() if text.strip()}

    def edit(self, turn: int, text: str) -> None:
        """Edit the message of this turn; the current draft comes back afterwards."""
        if not self._instead_of:
            self._before = self.input.text
        self._write(MessageDraft(text, turn, self._before))
        self._update_title()

    def sent(self, chat: Chat, text: str) -> None:
        """Drop the draft that was sent from this conversation."""
        self.input.sent(text)
        if chat is not self.chat:
            draft = self._other_drafts.get(chat.number, MessageDraft())
            if draft.text == text:
                self._other_drafts[chat.number] = MessageDraft(draft.before)
        elif self._instead_of and not self.input.text:
            self._write(MessageDraft(self._before))

    def _switch_to(self, chat: Chat) -> None:
        if self.chat is not None:
            self._other_drafts[self.chat.number] = MessageDraft(self.input.text, self._instead_of, self._before)
        self.chat = chat
        self._write(self._other_drafts.pop(chat.number, MessageDraft()))

    def _write(self, draft: MessageDraft) -> None:
        self._instead_of, self._before = draft.instead_of, draft.before
        self.input.write(draft.text)

    def make_room(self, rows: int) -> None:
        """Leave so many rows free at the bottom of the pane, for a dialog."""
        below = self.input.outer_size.height + self.line.outer_size.height
        self.styles.padding = (0, 0, max(0, rows - below), 0)

    def _keep_time(self, busy: bool) -> None:
        if busy and self._ticking is None:
            self._ticking = self.set_interval(1.0, self.refresh_chat)
            self.refresh_bindings()  # esc stops it now
        elif not busy and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None
            self.refresh_bindings()

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        turns = self.chat.turns if self.chat else []
        if action == "stop":
            return self.chat is not None and self.chat.busy
        if action == "resume":
            return bool(turns) and turns[-1].state in (TurnState.FAILED, TurnState.STOPPED, TurnState.BOUNDED)
        if action in ("edit", "branch", "export", "open_item", "copy_code"):
            return bool(turns)
        if action == "copy":
            return self.transcript.item is not None
        if action == "search":
            return not self.input.area.has_focus
        return super().check_action(action, parameters)

    @property
    def _turn(self) -> int:
        """The number of the turn under the cursor; 0: none."""
        item = self.transcript.item
        return item.key[0] if item is not None else 0

    def action_resume(self) -> None:
        """Ask the model again, or let it continue."""
        if self.chat is not None:
            self._try(self.chat.go_on)

    def action_toggle_review(self) -> None:
        if self.chat is not None:
            self.chat.hold_results(following(self.chat.hold))

    def action_choose_model(self) -> None:
        from mcphost.tui.sampling.dialogs import ModelScreen

        chat = self.chat
        models = [model for model in self._host.models.all if not model.by_hand]
        if chat is None or not models:
            self.notify("No model is configured. The chat shows which lines to add.")
            return
        current = chat.entry or self._host.config.chat.model or models[0].entry

        def use(entry: str | None) -> None:
            if entry is not None:
                self._try(lambda: chat.use_model(entry))

        self.app.push_screen(ModelScreen(models, current, None, "talk to it"), use)

    def action_choose_tools(self) -> None:
        from mcphost.tui.chat.tools import ChatToolsScreen

        if self.chat is not None:
            self.app.push_screen(ChatToolsScreen(self.chat, self._host.catalog, tuple(self._host.servers)))

    def action_list_chats(self) -> None:
        self.post_message(self.ChatsRequested())

    def action_edit(self) -> None:
        """Edit a message; it is sent in a branch, so the turns after it stay as they are."""
        if self.chat is not None and 0 < self._turn <= len(self.chat.turns):
            self.edit(self._turn, _as_typed(self.chat.turns[self._turn - 1].message))
            self.focus_input()

    def action_branch(self) -> None:
        self.post_message(self.BranchRequested(self._turn))

    def action_export(self) -> None:
        if self.chat is not None:
            name = f"chat-{file_stamp()}.md"
            save_as(self.app, name, self.chat.markdown.encode("utf-8", "replace"))

    def action_open_item(self) -> None:
        """Show all of the selected item: the call, the answer or the message."""
        item = self.transcript.item
        if isinstance(item, UseItem) and item.use.number is not None and item.use.number in self._host.tool_calls.calls:
            self.post_message(CallChosen(item.use.number))
        elif item is not None:
            self.app.push_screen(ReaderScreen("Conversation", item.source))

    def action_copy_code(self) -> None:
        from mcphost.tui.chat.dialogs import CodeScreen

        codes = [code for item in self.transcript.items if isinstance(item, AnswerItem) for code in item.codes]

        def copy(text: str | None) -> None:
            if text is not None:
                self.app.copy_to_clipboard(text)

        self.app.push_screen(CodeScreen(codes), copy)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except McphostError as error:
            self.notify(show(str(error), limit=600), severity="warning", markup=False, timeout=10)

    def searched(self) -> Sequence[Searchable]:
        return [self.transcript]

    def action_stop(self) -> None:
        self.action_back()

    def action_back(self) -> None:
        """Stop the model; if it is idle, move the focus from the input to the transcript, and leave the chat from
        there.
        """
        if self.bar.has_class("-open"):
            self.action_close_search()
            return
        if self.input.close_suggestions():
            return
        if self._instead_of:
            self._write(MessageDraft(self._before))
            self._update_title()
        elif self.chat is not None and self.chat.busy:
            self.chat.stop()
        elif self.input.area.has_focus and self.transcript.display:
            self.transcript.focus()
        else:
            self.post_message(self.Left())

    def action_preview(self) -> None:
        self.input.close_suggestions()
        if self.input.text.strip():
            self.post_message(self.MessageSubmitted(self.input.text, self._instead_of, preview=True))

    def action_write(self) -> None:
        self.focus_input()

    def action_copy(self) -> None:
        item = self.transcript.item
        if item is not None:
            self.app.copy_to_clipboard(result_text(item.use) if isinstance(item, UseItem) else item.source)

    @on(ChatInput.Entered)
    def _entered(self, event: ChatInput.Entered) -> None:
        event.stop()
        self.post_message(self.MessageSubmitted(event.text, self._instead_of))

    @on(ChatInput.Typed)
    def _input_typed(self, event: ChatInput.Typed) -> None:
        event.stop()
        work = partial(self._suggest, event.text, event.cursor)
        _: Worker[None] = self.run_worker(work, group="chat-suggest", exclusive=True)

    async def _suggest(self, text: str, cursor: int) -> None:
        from mcphost.tui.chat.suggestions import suggestions

        found = await suggestions(self._host, text, cursor)
        if found is not None:
            self.input.suggest(text, found)

    @on(Transcript.Moved)
    def _moved(self, event: Transcript.Moved) -> None:
        event.stop()
        self.refresh_bindings()

    @property
    def call_in_view(self) -> int | None:
        """The number of the selected tool call."""
        item = self.transcript.item
        return item.use.number if isinstance(item, UseItem) and self.transcript.has_focus else None


def _heading(chat: Chat) -> str:
    title = show_line(chat.title, 40)
    branch = " · a branch" if chat.branch_of is not None else ""
    return f"Chat {chat.number}{': ' + title if title else ''}{branch}"


def _as_typed(message: UserMessage) -> str:
    lines = [f"/skill {each.server}:{each.name}" for each in message.attachments if each.skill]
    for prompt in message.prompts[:1]:
        pairs = (f"{name}={shlex.quote(value)}" for name, value in prompt.arguments.items())
        lines.append(" ".join([f"/{prompt.server}:{prompt.prompt}", *pairs]))
    return "\n".join([*lines, message.text] if message.text else lines)
