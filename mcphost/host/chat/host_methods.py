"""Conversations with language models, as plain methods of the host.

Knows which conversations there are and what they are given. Refuses to know how one goes: `Chat` is what to hold on to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from mcphost.config import Config
from mcphost.errors import NotDone
from mcphost.host.catalog import Catalog
from mcphost.host.chat.preferences import ChatPreferences, ChatSettings
from mcphost.host.connections.connection import Connection
from mcphost.host.consent.approvals import StateStore, sent_to
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.policy import PolicyVerdict
from mcphost.host.consent.questions import Approver
from mcphost.host.events import Alarmed, ChatChanged, EventBus
from mcphost.host.server_requests.roots import OfferedRoot
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.service import ToolCallService

if TYPE_CHECKING:  # imported when somebody begins to talk: most commands never do
    from mcphost.host.chat.chat import Chat
    from mcphost.host.chat.context import MentionCandidates
    from mcphost.host.chat.dependencies import ChatParts
    from mcphost.host.chat.runner import TurnRunner
    from mcphost.host.chat.transcript_store import SavedChat, TranscriptStore
    from mcphost.host.chat.turns import Attachment, PromptUsed
    from mcphost.host.models import ModelCatalog
    from mcphost.protocol.models.tools import GetPromptResult, ReadResourceResult


@dataclass(frozen=True, slots=True)
class Composed:
    """A message that can be looked at before it is sent: `Chat.send` takes its parts."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    prompts: tuple[PromptUsed, ...] = ()


class Chatting:
    """The host's methods about conversations."""

    config: Config
    servers: dict[str, Connection]
    consent: ConsentBroker
    catalog: Catalog
    bus: EventBus
    _desk: ToolCallService
    _tasks: asyncio.TaskGroup | None

    @cached_property
    def _models(self) -> ModelCatalog:
        raise NotImplementedError

    def mask(self, text: str) -> str:
        """The text without secrets."""
        raise NotImplementedError

    def roots(self, server: str | None) -> tuple[OfferedRoot, ...]:
        """The folders a server may know of."""
        raise NotImplementedError

    async def read_resource(self, server: str, uri: str, *, origin: str = "you") -> ReadResourceResult:
        """Read a resource."""
        raise NotImplementedError

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, object], *, origin: str = "you"
    ) -> GetPromptResult:
        """The messages of a prompt."""
        raise NotImplementedError

    @property
    def chats(self) -> Mapping[int, Chat]:
        """The conversations of this run by number, oldest first."""
        return self._chats

    def begin_chat(self, *, model: str = "", as_configured: bool = False) -> Chat:
        """A new conversation, with this entry of ``[models]``; empty: the one that was talked to before.

        It begins with what the user set of others, also in earlier runs; ``as_configured``: with nothing of that.
        """
        return self._add_chat(_new_id(), ChatSettings() if as_configured else self._as_before(), model)

    def branch_chat(self, chat: Chat, turns: int) -> Chat:
        """A new conversation that shares the first so many turns of another, which stays as it is.

        To send one message anew: branch before it, and send. Raises NotDone where one of the turns is under way.
        """
        shared = chat.turns[:turns]
        if any(not turn.state.ended for turn in shared):
            raise NotDone("the model is still at work there; stop it first, or wait")
        branch = self._add_chat(_new_id(), chat.choices)
        branch.take_over(chat, turns)
        return branch

    async def saved_chats(self) -> list[SavedChat]:
        """The conversations in the state folder, the newest first."""
        return await asyncio.to_thread(self._transcripts.saved)

    async def resume_chat(self, chat_id: str, *, model: str = "", as_configured: bool = False) -> Chat:
        """A conversation of an earlier run; ``chat_id`` may be the beginning of its id, or ``last``.

        What was set of it then is set again; what was not written down is as in `begin_chat`. One that is open already
        is just found. Raises UnknownName, ConfigError.
        """
        from mcphost.host.chat.transcript_store import branch_of, choices_of, replay

        known = await asyncio.to_thread(self._transcripts.full_id, chat_id)
        if (opened := self._opened(known)) is not None:
            return opened
        records = await asyncio.to_thread(self._transcripts.records, known)
        if (opened := self._opened(known)) is not None:  # by somebody who did not wait either
            return opened
        own = choices_of(records)
        chosen = (ChatSettings() if as_configured else self._as_before()) if own is None else own
        chat = self._add_chat(known, self._there(chosen), model)
        chat.resume(replay(records), branch_of(records))
        return chat

    # What a message can bring along.

    async def compose(self, text: str) -> Composed:
        """A message as it would be sent: the prompt and the attachments that it names, read. Nothing is sent.

        What stands after an @ and is neither a server's resource nor a file stays text. Raises what reading raises.
        """
        from mcphost.host.chat.context import is_file, parse

        parsed = parse(text, self.servers)
        prompts = []
        if (wish := parsed.prompt) is not None:
            if wish.problem:
                raise NotDone(f"/{wish.server}:{wish.prompt}: {wish.problem}")
            prompts.append(await self.attach_prompt(wish.server, wish.prompt, wish.arguments))
        attachments = []
        for mention in parsed.mentions:
            if mention.server:
                attachments.append(await self.attach_resource(mention.server, mention.name))
            elif await asyncio.to_thread(is_file, mention.name):
                attachments.append(await self.attach_file(Path(mention.name)))
        return Composed(parsed.text, tuple(attachments), tuple(prompts))

    async def attach_resource(self, server: str, uri: str) -> Attachment:
        """Read a resource for a model. Raises NotDone where nothing of it can be given, or what reading raises."""
        from mcphost.host.chat.context import of_resource

        known = self.catalog.resource(server, uri)
        read = await self.read_resource(server, uri)
        return of_resource(server, uri, known.label if known else uri, read, self.config.chat.attachment_bytes)

    async def attach_file(self, path: Path) -> Attachment:
        """Read a file for a model. Raises NotDone."""
        from mcphost.host.chat.context import of_file

        return await asyncio.to_thread(of_file, path, self.config.chat.attachment_bytes)

    def attach_text(self, name: str, text: str) -> Attachment:
        """A text that came from somewhere else, such as a pipe. Raises NotDone where it is empty."""
        from mcphost.host.chat.context import of_text

        return of_text(name, name, text, self.config.chat.attachment_bytes)

    async def attach_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> PromptUsed:
        """The messages of a prompt, to be looked at and sent. Raises NotDone, or what asking for it raises."""
        from mcphost.host.chat.context import of_prompt

        given = dict(arguments)
        return of_prompt(server, prompt, given, await self.get_prompt(server, prompt, given))

    def chat_candidates(self, text: str, cursor: int) -> MentionCandidates:
        """What could be meant by what is being typed at ``cursor``: prompts after a slash, resources after an @."""
        from mcphost.host.chat.context import candidates

        prompts = [(each.server, each.prompt.name) for each in self.catalog.prompts()]
        resources = [(each.server, each.resource.uri) for each in self.catalog.resources()]
        return candidates(text, cursor, prompts=prompts, resources=resources)

    # How they are made.

    def _begin_chatting(self, approver: Approver, folder: Path | None, store: StateStore | None) -> None:
        """Note what conversations will be given."""
        self._chats: dict[int, Chat] = {}
        self._chats_folder, self._chat_approver = folder, approver
        self._habits = ChatPreferences(store, lambda text: self.bus.publish(Alarmed(text)))

    @cached_property
    def _transcripts(self) -> TranscriptStore:
        from mcphost.host.chat.transcript_store import TranscriptStore

        return TranscriptStore(self._chats_folder, self.mask, lambda text: self.bus.publish(Alarmed(text)))

    @cached_property
    def _chat_parts(self) -> ChatParts:
        from mcphost.host.chat.dependencies import ChatParts

        return ChatParts(
            settings=lambda: self.config.chat,
            models=self._models,
            tools=lambda: [each for each in self.catalog.tools() if self._serves(each.server)],
            instructions=self._instructions,
            folders=lambda: [str(each.path) for each in self.roots(None) if not each.problem],
            call=self._call_for_model,
            runs=self._runs,
            ask=self._chat_approver.ask,
            spawn=self._spawn,
            changed=lambda number: self.bus.publish(ChatChanged(number)),
            keep=self._keep,
            chosen=self._chosen,
            clock=time.monotonic,
            mask=self.mask,
        )

    @cached_property
    def _running(self) -> TurnRunner:
        from mcphost.host.chat.runner import TurnRunner

        return TurnRunner(self._chat_parts)

    def _stop_chats(self) -> None:
        for chat in self._chats.values():
            chat.stop()

    async def _close_transcripts(self) -> None:
        """Write what is still to be written."""
        if "_transcripts" in vars(self):  # else nobody talked
            await self._transcripts.aclose()
        await self._habits.save()

    def _keep(self, chat_id: str, record: Mapping[str, Any]) -> None:
        if self.config.chat.save:
            self._transcripts.keep(chat_id, record)

    def _chosen(self, before: ChatSettings, after: ChatSettings) -> None:
        self._habits.follow(before, after)
        if self._tasks is not None:
            self._tasks.create_task(self._habits.save(), name="save habits")

    def _as_before(self) -> ChatSettings:
        """What was set last; the model unless the configuration names another now than it did then."""
        habit = self._habits.choices
        as_then = habit.instead_of == (self.config.chat.model or "")
        return self._there(habit) if as_then else replace(habit, model="")

    def _there(self, choices: ChatSettings) -> ChatSettings:
        """These, without a model that is not configured any more."""
        entry = self.config.models.get(choices.model)
        return choices if entry is not None and entry.provider != "manual" else replace(choices, model="")

    def _opened(self, chat_id: str) -> Chat | None:
        return next((each for each in self._chats.values() if each.id == chat_id), None)

    def _add_chat(self, chat_id: str, choices: ChatSettings, model: str = "") -> Chat:
        from mcphost.host.chat.chat import Chat

        number = len(self._chats) + 1
        chosen = replace(choices, model=model) if model else choices
        chat = self._chats[number] = Chat(number, chat_id, self._chat_parts, self._running.run, chosen)
        self.bus.publish(ChatChanged(number))
        return chat

    def _serves(self, server: str) -> bool:
        """May a model be offered what it has?"""
        return server in self.servers

    def _instructions(self, server: str) -> str:
        connection = self.servers.get(server)
        session = None if connection is None else connection.session
        return "" if session is None else session.server.instructions or ""

    def _call_for_model(self, request: CallRequest) -> ToolCall:
        assert self._tasks is not None
        return self._desk.begin(request, self._tasks)

    def _runs(self, server: str, tool: str, arguments: Mapping[str, Any], outside: str) -> bool:
        """Would a call run now without a question?"""
        connection = self.servers.get(server)
        known = next((each.tool for each in self.catalog.tools(server) if each.tool.name == tool), None)
        if connection is None or known is None:
            return False
        verdict = self.consent.foresee(server, sent_to(connection.config), known, arguments, outside=outside)
        return verdict is not PolicyVerdict.ASK

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._tasks is not None
        return self._tasks.create_task(work, name=name)


def _new_id() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}-{token_hex(3)}"
