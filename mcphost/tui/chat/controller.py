"""What the user wants of conversations with a model, done by the host: say, stop, ask again, branch, switch, resume.

Knows the host and the pane. Refuses to decide: each call is asked about as any other, and nothing is sent unasked.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.errors import McphostError, NotDone
from mcphost.host.events import Event, Logged, TrafficAdded
from mcphost.host.host import Host
from mcphost.protocol.display import show
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.modal import Dialog
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.tools.controller import ToolsController

if TYPE_CHECKING:  # conversations would delay the first picture
    from mcphost.host.chat.chat import Chat
    from mcphost.host.chat.preview import MessagePreview
    from mcphost.host.chat.turns import UserMessage as Said
    from mcphost.tui.chat.input import ChatInput
    from mcphost.tui.chat.items import TranscriptItem
    from mcphost.tui.chat.pane import ChatPane

    _App = App[Any]
else:
    _App = object

Work = Callable[[], Coroutine[None, None, None]]
"""A coroutine is made only where it is awaited: a worker may be replaced before it begins."""

_NOTHING_NEW: Final = (Logged, TrafficAdded)


class ChatWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    main: MainScreen
    tools: ToolsController
    questions: QuestionQueue
    _shown: Chat | None = None

    # What is shown.

    def chats_changed(self, events: Iterable[Event]) -> None:
        """Show what changed in the conversation, where it is on screen or something else than words is new."""
        if any(not isinstance(event, _NOTHING_NEW) for event in events):
            self.show_chat()

    def show_chat(self, chat: Chat | None = None) -> None:
        """Show a conversation, or the one that is shown as it is now."""
        pane = self.main.chat
        self._shown = chat or self._shown
        if pane is None or not pane.is_attached or not (self.main.conversing or chat is not None):
            return
        if self._shown is None:
            self._shown = next(reversed(list(self.host.chats.all.values())), None) or self.host.chats.begin()
        pane.show_chat(self._shown, self.host.config.chat, tuple(self.host.servers))

    def on_main_screen_chat_opened(self) -> None:
        """Its tab was opened."""
        self.show_chat()
        if self.main.chat is not None:
            self.main.chat.focus_input()

    def on_dialog_placed(self, event: Dialog.Placed) -> None:
        """Move the conversation above the dialog."""
        if self.main.chat is not None:
            self.main.chat.make_room(event.rows - (self.size.height - self.main.chat.region.bottom))

    def room_again(self) -> None:
        """No dialog is in front any more."""
        if self.main.chat is not None:
            self.main.chat.make_room(0)

    def _turn_to(self, chat: Chat) -> None:
        """Show another conversation, and go there."""
        self.show_chat(chat)
        self.main.action_go("chat")

    # What the user says.

    def on_chat_pane_send_wanted(self, event: ChatPane.SendWanted) -> None:
        """Read what the message brings along, and send it."""
        if self._shown is not None:
            self._work(partial(self._send, self._shown, event), "chat-send", exclusive=True)

    async def _send(self, chat: Chat, said: ChatPane.SendWanted) -> None:
        pane = await self.main.chat_pane()
        if chat.busy:
            raise NotDone("The model is still at work on your last message: esc stops it.")
        composed = await self.host.chats.compose(said.text)
        parts = composed.text, composed.attachments, composed.prompts
        if (said.look or composed.prompts) and not await self._seen(chat.preview(*parts)):
            return
        speaks = self.host.chats.branch(chat, said.instead_of - 1) if said.instead_of else chat
        speaks.send(*parts)
        self.questions.rested()
        pane.sent(chat, said.text)
        pane.transcript.action_last()
        self.show_chat(speaks)

    async def _seen(self, preview: MessagePreview) -> bool:
        """Show what would be sent; shall it be?"""
        from mcphost.tui.chat.preview import PreviewScreen

        seen: bool = await self.push_screen_wait(PreviewScreen(preview))
        return seen

    def on_chat_input_typed(self, event: ChatInput.Typed) -> None:
        """Suggest what could be meant."""
        self._work(partial(self._suggest, event.text, event.cursor), "chat-suggest", exclusive=True)

    async def _suggest(self, text: str, cursor: int) -> None:
        from mcphost.tui.chat.suggestions import suggestions

        found = await suggestions(self.host, text, cursor)
        if self.main.chat is not None and found is not None:
            self.main.chat.input.suggest(text, found)

    # What else the user wants.

    def on_chat_pane_wanted(self, event: ChatPane.Wanted) -> None:
        """See `mcphost.tui.chat.pane.ChatAction`."""
        chat, turn = self._shown, event.item.key[0] if event.item is not None else 0
        if chat is None:
            return
        acts: Mapping[str, Callable[[], None]] = {
            "STOP": chat.stop,
            "GO_ON": lambda: self._try(chat.go_on),
            "MODEL": self.choose_model,
            "TOOLS": self.choose_tools,
            "CHATS": self._list_chats,
            "EDIT": lambda: self._edit(chat, turn),
            "BRANCH": lambda: self._try(lambda: self._turn_to(self.host.chats.branch(chat, turn))),
            "EXPORT": lambda: self._export(chat),
            "CODE": self._choose_code,
            "OPEN": lambda: self._open_part(event.item),
            "HOLD": lambda: self._review(chat),
        }
        acts[event.wish.name]()

    def _review(self, chat: Chat) -> None:
        from mcphost.host.chat.preferences import following

        chat.hold_results(following(chat.hold))

    def _edit(self, chat: Chat, turn: int) -> None:
        """Change a message: it is sent in a branch, and what came of it before stays."""
        pane = self.main.chat
        if pane is None or not 0 < turn <= len(chat.turns):
            return
        pane.edit(turn, _typed(chat.turns[turn - 1].message))
        pane.focus_input()

    def _export(self, chat: Chat) -> None:
        name = f"chat-{datetime.now():%Y%m%d-%H%M%S}.md"
        save_as(self, name, chat.markdown.encode("utf-8", "replace"))

    def _open_part(self, item: TranscriptItem | None) -> None:
        from mcphost.tui.chat.items import UseItem
        from mcphost.tui.kit.reader import ReaderScreen

        if isinstance(item, UseItem) and item.use.number is not None and item.use.number in self.host.tool_calls.calls:
            self.run_worker(self.tools.open_call(item.use.number))
        elif item is not None:
            self.push_screen(ReaderScreen("Conversation", item.source))

    def _choose_code(self) -> None:
        from mcphost.tui.chat.choose import CodeScreen
        from mcphost.tui.chat.items import AnswerItem

        items = self.main.chat.transcript.items if self.main.chat is not None else ()
        codes = [code for item in items if isinstance(item, AnswerItem) for code in item.codes]

        def copy(text: str | None) -> None:
            if text is not None:
                self.copy_to_clipboard(text)
                self.notify(f"Copied {len(text):,} characters.")

        self.push_screen(CodeScreen(codes), copy)

    def choose_model(self) -> None:
        """Talk to another model."""
        from mcphost.tui.sampling.model import ModelScreen

        chat = self._shown
        models = [model for model in self.host.models.all if not model.by_hand]
        if chat is None or not models:
            self.notify("No model is configured: the chat says which lines to add.")
            return
        current = chat.entry or self.host.config.chat.model or models[0].entry

        def use(entry: str | None) -> None:
            if entry is not None:
                self._try(lambda: chat.use_model(entry))

        self.push_screen(ModelScreen(models, current, None, "talk to it"), use)

    def choose_tools(self) -> None:
        """Switch servers and tools on and off for this conversation."""
        from mcphost.tui.chat.tools import ChatToolsScreen

        if self._shown is not None:
            self.push_screen(ChatToolsScreen(self._shown, self.host.catalog, tuple(self.host.servers)))

    async def _choose_chat(self) -> None:
        from mcphost.tui.chat.choose import ChatsScreen

        saved = await self.host.chats.saved()

        def turn_to(chosen: str | None) -> None:
            if chosen == "":
                self._turn_to(self.host.chats.begin())
            elif chosen is not None:
                self._work(partial(self._resume, chosen), "chat-resume")

        drafts = {} if self.main.chat is None else self.main.chat.drafts
        self.push_screen(ChatsScreen(list(self.host.chats.all.values()), saved, drafts), turn_to)

    async def _resume(self, chat_id: str) -> None:
        opened = next((each for each in self.host.chats.all.values() if each.id == chat_id), None)
        self._turn_to(opened or await self.host.chats.resume(chat_id))

    # How it is done.

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except McphostError as error:
            self.complain(error)

    def complain(self, error: McphostError) -> None:
        """Say why a wish did not come true."""
        self.notify(show(str(error), limit=600), severity="warning", markup=False, timeout=10)

    def _work(self, work: Work, group: str, *, exclusive: bool = False) -> None:
        _: Worker[None] = self.run_worker(work, group=group, exclusive=exclusive)

    def chat_commands(self) -> Iterator[SystemCommand]:
        """For the palette."""

        def new() -> None:
            self._turn_to(self.host.chats.begin())

        yield SystemCommand("New conversation", "With a language model that may use your servers' tools", new)
        yield SystemCommand("Conversations", "Those of this run and before", self._list_chats)

    def _list_chats(self) -> None:
        self._work(self._choose_chat, "chat-list")


def _typed(message: Said) -> str:
    """A message as it was typed."""
    lines = []
    for prompt in message.prompts[:1]:
        pairs = (f"{name}={shlex.quote(value)}" for name, value in prompt.arguments.items())
        lines.append(" ".join([f"/{prompt.server}:{prompt.prompt}", *pairs]))
    return "\n".join([*lines, message.text] if message.text else lines)
