"""Shows, lists and branches conversations, and sends their messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.errors import McphostError, NotDone
from mcphost.host.events import Event, Logged, TrafficAdded
from mcphost.host.host import Host
from mcphost.protocol.display import show
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.modal_screen import Dialog
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.main.updater import MainScreenUpdater
from mcphost.tui.textual_private.corrections import KeyOrder

if TYPE_CHECKING:  # late: the first frame does without conversations
    from mcphost.host.chat.chat import Chat
    from mcphost.host.chat.model_messages import MessagePreview
    from mcphost.tui.chat.pane import ChatPane

Work = Callable[[], Coroutine[None, None, None]]
"""Not a coroutine itself: a worker may be replaced before it starts, and would leave the coroutine unawaited."""

_NOTHING_NEW: Final = (Logged, TrafficAdded)


class ChatController:
    """Acts for the chat pane of ``app`` on ``host``."""

    def __init__(
        self,
        app: App[Any],
        keys: KeyOrder,
        host: Host,
        main: MainScreen,
        questions: QuestionQueue,
        updater: MainScreenUpdater,
    ) -> None:
        self._app, self._keys, self._host, self._main, self._questions = app, keys, host, main, questions
        self._updater = updater
        self._shown: Chat | None = None

    def changed(self, events: Iterable[Event]) -> None:
        """Update the conversation, unless there were only log lines and traffic."""
        if any(not isinstance(event, _NOTHING_NEW) for event in events):
            self.show()

    def show(self, chat: Chat | None = None) -> None:
        """Show this conversation; None: update the one that is shown."""
        pane = self._main.chat
        self._shown = chat or self._shown
        if pane is None or not pane.is_attached or not (self._main.conversing or chat is not None):
            return
        if self._shown is None:
            self._shown = next(reversed([*self._host.chats.all.values()]), None) or self._host.chats.begin()
        switched = pane.chat is not self._shown
        pane.show_chat(self._shown, self._host.config.chat, tuple(self._host.servers))
        if switched:
            self._updater.top_line()

    def on_main_screen_chat_opened(self, _: object) -> None:
        self.show()
        if self._main.chat is not None:
            self._main.chat.focus_input()

    def cover(self, rows: int) -> None:
        """Keep the conversation readable above a dialog of so many rows; 0: there is no dialog."""
        pane = self._main.chat
        if pane is not None:
            pane.make_room(rows - (self._app.size.height - pane.region.bottom) if rows else 0)

    def on_dialog_placed(self, event: Dialog.Placed) -> None:
        self.cover(event.rows)

    def on_chat_pane_message_submitted(self, message: ChatPane.MessageSubmitted) -> None:
        """Resolve the message's prompts and attachments, and send it."""
        if self._shown is not None:
            self._work(partial(self._send, self._shown, message), "chat-send", exclusive=True)

    def on_chat_pane_branch_requested(self, event: ChatPane.BranchRequested) -> None:
        """Start another conversation from this turn on, and show it."""
        if self._shown is None:
            return
        try:
            self._turn_to(self._host.chats.branch(self._shown, event.turn))
        except McphostError as error:
            self._app.notify(show(str(error), limit=600), severity="warning", markup=False, timeout=10)

    def on_chat_pane_chats_requested(self, _: object) -> None:
        self.list_chats()

    def list_chats(self) -> None:
        """Let the user choose among the conversations of this run and saved ones."""
        self._keys.wait_for(self._work(self._choose_chat, "chat-list"))

    def begin(self) -> None:
        self._turn_to(self._host.chats.begin())

    def resume(self, chat_id: str) -> None:
        """Show a conversation of this run or of an earlier one."""
        self._work(partial(self._resume, chat_id), "chat-resume")

    def use_model(self, entry: str) -> None:
        """Let this entry of ``[models]`` answer from now on, in the conversation that is shown."""
        chat = self._shown or next(reversed(self._host.chats.all.values()), None) or self._host.chats.begin()
        try:
            chat.use_model(entry)
        except McphostError as error:
            self._app.notify(show(str(error), limit=600), severity="warning", markup=False, timeout=10)

    def commands(self) -> Iterator[SystemCommand]:
        about = "Talk to a language model that can use your servers' tools"
        yield SystemCommand("New conversation", about, self.begin)
        yield SystemCommand("Conversations", "Of this run and earlier ones", self.list_chats)

    async def _send(self, chat: Chat, message: ChatPane.MessageSubmitted) -> None:
        pane = await self._main.chat_pane()
        if chat.busy:
            raise NotDone("The model is still answering your last message; esc stops it.")
        composed = await self._host.chats.attachments.compose(message.text)
        parts = composed.text, composed.attachments, composed.prompts
        shown = message.preview or any(each.skill for each in composed.attachments) or bool(composed.prompts)
        if shown and not await self._approved(chat.preview(*parts)):
            return
        target = self._host.chats.branch(chat, message.instead_of - 1) if message.instead_of else chat
        target.send(*parts)
        self._questions.typing_done()
        pane.sent(chat, message.text)
        pane.transcript.action_last()
        self.show(target)

    async def _approved(self, preview: MessagePreview) -> bool:
        """Show what would be sent; return whether the user agrees."""
        from mcphost.tui.chat.dialogs import PreviewScreen

        approved: bool = await self._app.push_screen_wait(PreviewScreen(preview))
        return approved

    async def _choose_chat(self) -> None:
        from mcphost.tui.chat.dialogs import ChatsScreen

        saved = await self._host.chats.saved()

        def turn_to(chosen: str | None) -> None:
            if chosen == "":
                self.begin()
            elif chosen is not None:
                self.resume(chosen)

        drafts = {} if self._main.chat is None else self._main.chat.drafts
        self._app.push_screen(ChatsScreen([*self._host.chats.all.values()], saved, drafts), turn_to)

    async def _resume(self, chat_id: str) -> None:
        opened = next((each for each in self._host.chats.all.values() if each.id == chat_id), None)
        self._turn_to(opened or await self._host.chats.resume(chat_id))

    def _turn_to(self, chat: Chat) -> None:
        self.show(chat)
        self._main.action_go("chat")

    def _work(self, work: Work, group: str, *, exclusive: bool = False) -> Worker[None]:
        return self._app.run_worker(work, group=group, exclusive=exclusive)
