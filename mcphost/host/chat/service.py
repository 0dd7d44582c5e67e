"""Begins, branches and resumes conversations with language models, and reads what messages bring along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from mcphost.config import Config
from mcphost.dataclass import dataclass
from mcphost.errors import NotDone
from mcphost.host.background import BackgroundTasks
from mcphost.host.catalog import Catalog
from mcphost.host.chat.preferences import ChatPreferences, ChatSettings
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.questions import Approver
from mcphost.host.events import ChatChanged, EventBus
from mcphost.host.resources.service import ResourceService
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.state_store import StateStore
from mcphost.host.tool_calls.service import ToolCallService

if TYPE_CHECKING:  # imported when somebody begins to talk: most commands never do
    from mcphost.host.chat.attachments import MentionCandidates
    from mcphost.host.chat.chat import Chat
    from mcphost.host.chat.dependencies import ChatDependencies
    from mcphost.host.chat.runner import TurnRunner
    from mcphost.host.chat.transcript_store import SavedChat, TranscriptStore
    from mcphost.host.chat.turns import Attachment, PromptUsed
    from mcphost.host.models import ModelCatalog


@dataclass(frozen=True, slots=True)
class Composed:
    """A message that can be looked at before it is sent: `Chat.send` takes its parts."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    prompts: tuple[PromptUsed, ...] = ()


class ChatService:
    """The conversations of this run. ``models`` finds its catalog when somebody begins to talk.

    ``folder`` is where transcripts are kept; None: nowhere. ``mask`` takes secrets out of them.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        models: Callable[[], ModelCatalog],
        catalog: Catalog,
        servers: Servers,
        roots: RootsService,
        resources: ResourceService,
        tool_calls: ToolCallService,
        consent: ConsentBroker,
        approver: Approver,
        bus: EventBus,
        background: BackgroundTasks,
        folder: Path | None,
        store: StateStore | None,
        mask: Callable[[str], str],
    ) -> None:
        self._config, self._models, self._catalog, self._servers = config, models, catalog, servers
        self._roots, self._resources, self._tool_calls = roots, resources, tool_calls
        self._consent, self._approver, self._bus, self._background = consent, approver, bus, background
        self._folder, self._mask = folder, mask
        self._preferences = ChatPreferences(store, bus.alarm)
        self.all: dict[int, Chat] = {}
        """By number, oldest first."""

    async def load(self) -> None:
        """Read what the user set of conversations in earlier runs. Raises ConfigError."""
        await self._preferences.load()

    def stop(self) -> None:
        """Stop all that is under way."""
        for chat in self.all.values():
            chat.stop()

    async def aclose(self) -> None:
        """Write what is still to be written."""
        if "_transcripts" in vars(self):  # else nobody talked
            await self._transcripts.aclose()
        await self._preferences.save()

    def begin(self, *, model: str = "", as_configured: bool = False) -> Chat:
        """A new conversation, with this entry of ``[models]``; empty: the one that was talked to before.

        It begins with what the user set of others, also in earlier runs; ``as_configured``: with nothing of that.
        """
        return self._add(_new_id(), ChatSettings() if as_configured else self._initial(), model)

    def branch(self, chat: Chat, turns: int) -> Chat:
        """A new conversation that shares the first so many turns of another, which stays as it is.

        To send one message anew: branch before it, and send. Raises NotDone where one of the turns is under way.
        """
        shared = chat.turns[:turns]
        if any(not turn.state.ended for turn in shared):
            raise NotDone("the model is still at work there; stop it first, or wait")
        branch = self._add(_new_id(), chat.settings)
        branch.take_over(chat, turns)
        return branch

    async def saved(self) -> list[SavedChat]:
        """The conversations in the state folder, the newest first."""
        return await asyncio.to_thread(self._transcripts.saved)

    async def resume(self, chat_id: str, *, model: str = "", as_configured: bool = False) -> Chat:
        """A conversation of an earlier run; ``chat_id`` may be the beginning of its id, or ``last``.

        What was set of it then is set again; what was not written down is as in `begin`. One that is open already
        is just found. Raises UnknownName, ConfigError.
        """
        from mcphost.host.chat.transcript_store import branch_of, replay, settings_of

        known = await asyncio.to_thread(self._transcripts.full_id, chat_id)
        if (opened := self._open(known)) is not None:
            return opened
        records = await asyncio.to_thread(self._transcripts.records, known)
        if (opened := self._open(known)) is not None:  # by somebody who did not wait either
            return opened
        own = settings_of(records)
        chosen = (ChatSettings() if as_configured else self._initial()) if own is None else own
        chat = self._add(known, self._available(chosen), model)
        chat.resume(replay(records), branch_of(records))
        return chat

    # What a message can bring along.

    async def compose(self, text: str) -> Composed:
        """A message as it would be sent: the prompt and the attachments that it names, read. Nothing is sent.

        What stands after an @ and is neither a server's resource nor a file stays text. Raises what reading raises.
        """
        from mcphost.host.chat.attachments import is_file, parse

        parsed = parse(text, self._servers)
        prompts = []
        if (named := parsed.prompt) is not None:
            if named.problem:
                raise NotDone(f"/{named.server}:{named.prompt}: {named.problem}")
            prompts.append(await self.attach_prompt(named.server, named.prompt, named.arguments))
        attachments = []
        for mention in parsed.mentions:
            if mention.server:
                attachments.append(await self.attach_resource(mention.server, mention.name))
            elif await asyncio.to_thread(is_file, mention.name):
                attachments.append(await self.attach_file(Path(mention.name)))
        return Composed(parsed.text, tuple(attachments), tuple(prompts))

    async def attach_resource(self, server: str, uri: str) -> Attachment:
        """Read a resource for a model. Raises NotDone where nothing of it can be given, or what reading raises."""
        from mcphost.host.chat.attachments import of_resource

        known = self._catalog.resource(server, uri)
        read = await self._resources.read(server, uri)
        return of_resource(server, uri, known.label if known else uri, read, self._config().chat.attachment_bytes)

    async def attach_file(self, path: Path) -> Attachment:
        """Read a file for a model. Raises NotDone."""
        from mcphost.host.chat.attachments import of_file

        return await asyncio.to_thread(of_file, path, self._config().chat.attachment_bytes)

    def attach_text(self, name: str, text: str) -> Attachment:
        """A text that came from somewhere else, such as a pipe. Raises NotDone where it is empty."""
        from mcphost.host.chat.attachments import of_text

        return of_text(name, name, text, self._config().chat.attachment_bytes)

    async def attach_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> PromptUsed:
        """The messages of a prompt, to be looked at and sent. Raises NotDone, or what asking for it raises."""
        from mcphost.host.chat.attachments import of_prompt

        given = dict(arguments)
        return of_prompt(server, prompt, given, await self._resources.get_prompt(server, prompt, given))

    def candidates(self, text: str, cursor: int) -> MentionCandidates:
        """What could be meant by what is being typed at ``cursor``: prompts after a slash, resources after an @."""
        from mcphost.host.chat.attachments import candidates

        prompts = [(each.server, each.prompt.name) for each in self._catalog.prompts()]
        resources = [(each.server, each.resource.uri) for each in self._catalog.resources()]
        return candidates(text, cursor, prompts=prompts, resources=resources)

    @cached_property
    def _transcripts(self) -> TranscriptStore:
        from mcphost.host.chat.transcript_store import TranscriptStore

        return TranscriptStore(self._folder, self._mask, self._bus.alarm)

    @cached_property
    def _services(self) -> ChatDependencies:
        from mcphost.host.chat.dependencies import ChatDependencies

        return ChatDependencies(
            config=self._config,
            models=self._models(),
            catalog=self._catalog,
            servers=self._servers,
            roots=self._roots,
            tool_calls=self._tool_calls,
            consent=self._consent,
            approver=self._approver,
            transcripts=self._transcripts,
            preferences=self._preferences,
            bus=self._bus,
            background=self._background,
            mask=self._mask,
        )

    @cached_property
    def _runner(self) -> TurnRunner:
        from mcphost.host.chat.runner import TurnRunner

        return TurnRunner(self._services)

    def _initial(self) -> ChatSettings:
        """What was set last; the model unless the configuration names another now than it did then."""
        last = self._preferences.settings
        unchanged = last.instead_of == (self._config().chat.model or "")
        return self._available(last) if unchanged else replace(last, model="")

    def _available(self, settings: ChatSettings) -> ChatSettings:
        """These, without a model that is not configured any more."""
        entry = self._config().models.get(settings.model)
        return settings if entry is not None and entry.provider != "manual" else replace(settings, model="")

    def _open(self, chat_id: str) -> Chat | None:
        return next((each for each in self.all.values() if each.id == chat_id), None)

    def _add(self, chat_id: str, settings: ChatSettings, model: str = "") -> Chat:
        from mcphost.host.chat.chat import Chat

        number = len(self.all) + 1
        chosen = replace(settings, model=model) if model else settings
        chat = self.all[number] = Chat(number, chat_id, self._services, self._runner.run, chosen)
        self._bus.publish(ChatChanged(number))
        return chat


def _new_id() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}-{token_hex(3)}"
