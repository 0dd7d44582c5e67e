"""Begins, branches and resumes conversations with language models."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from secrets import token_hex
from typing import TYPE_CHECKING

from mcphost.errors import NotDone
from mcphost.host.chat.context import ChatContext
from mcphost.host.chat.preferences import ChatSettings
from mcphost.host.events import ChatChanged, GrantsChanged, ServersChanged

if TYPE_CHECKING:  # imported when a conversation begins: most commands have none
    from mcphost.host.chat.attachments import AttachmentService
    from mcphost.host.chat.chat import Chat
    from mcphost.host.chat.runner import TurnRunner
    from mcphost.host.chat.transcript_store import SavedChat


class ChatService:
    """The conversations of this run."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self.all: dict[int, Chat] = {}
        """By number, oldest first."""
        context.reporting.bus.observe(self._consent_changed, GrantsChanged)
        context.reporting.bus.observe(self._consent_changed, ServersChanged)

    async def load(self) -> None:
        """Read what the user set of conversations in earlier runs. Raises ConfigError."""
        await self._context.preferences.load()

    def stop(self) -> None:
        """Stop all that is under way."""
        for chat in self.all.values():
            chat.stop()

    async def aclose(self) -> None:
        """Write what is still to be written."""
        if "transcripts" in vars(self._context):  # else there was no conversation
            await self._context.transcripts.aclose()
        await self._context.preferences.save()

    def begin(self, *, model: str = "", as_configured: bool = False) -> Chat:
        """A new conversation, with this entry of ``[models]``; empty: the one that was talked to before.

        It begins with what the user set of others, also in earlier runs; ``as_configured``: with nothing of that.
        """
        return self._add(_new_id(), ChatSettings() if as_configured else self._initial(), model)

    def branch(self, chat: Chat, turns: int) -> Chat:
        """Begin a conversation with the first ``turns`` turns of another, which is not changed.

        To change a message: branch before it, and send another. Raises NotDone if one of the turns is under way.
        """
        shared = chat.turns[:turns]
        if any(not turn.state.ended for turn in shared):
            raise NotDone("the model is still at work there; stop it first, or wait")
        branch = self._add(_new_id(), chat.settings)
        branch.take_over(chat, turns)
        return branch

    async def saved(self) -> list[SavedChat]:
        """The conversations in the state folder, the newest first."""
        return await asyncio.to_thread(self._context.transcripts.saved)

    async def resume(self, chat_id: str, *, model: str = "", as_configured: bool = False) -> Chat:
        """A conversation of an earlier run; ``chat_id`` may be the beginning of its id, or ``last``.

        What was set of it then is set again; what was not written down is as in `begin`. One that is open already
        is just found. Raises UnknownName, ConfigError.
        """
        from mcphost.host.chat.transcript_store import branch_of, replay, settings_of

        known = await asyncio.to_thread(self._context.transcripts.full_id, chat_id)
        if (opened := self._open(known)) is not None:
            return opened
        records = await asyncio.to_thread(self._context.transcripts.records, known)
        if (opened := self._open(known)) is not None:  # by another caller meanwhile
            return opened
        own = settings_of(records)
        chosen = (ChatSettings() if as_configured else self._initial()) if own is None else own
        chat = self._add(known, self._available(chosen), model)
        chat.resume(replay(records), branch_of(records))
        return chat

    @cached_property
    def attachments(self) -> AttachmentService:
        """Reads what a message brings along."""
        from mcphost.host.chat.attachments import AttachmentService

        return AttachmentService(
            self._context.config,
            self._context.catalog,
            self._context.servers,
            self._context.resources,
            self._context.open_skills,
        )

    @cached_property
    def _runner(self) -> TurnRunner:
        from mcphost.host.chat.runner import TurnRunner

        return TurnRunner(self._context)

    def _initial(self) -> ChatSettings:
        """The last settings; without their model if the configuration names another one by now."""
        last = self._context.preferences.settings
        unchanged = last.instead_of == (self._context.config().chat.model or "")
        return self._available(last) if unchanged else replace(last, model="")

    def _available(self, settings: ChatSettings) -> ChatSettings:
        """These, without a model that is not configured any more."""
        entry = self._context.config().models.get(settings.model)
        return settings if entry is not None and entry.provider != "manual" else replace(settings, model="")

    def _consent_changed(self, _: GrantsChanged | ServersChanged) -> None:
        """The skills that conversations act on may have been taken back."""
        for chat in self.all.values():
            if chat.acting:
                chat.changed()

    def _open(self, chat_id: str) -> Chat | None:
        return next((each for each in self.all.values() if each.id == chat_id), None)

    def _add(self, chat_id: str, settings: ChatSettings, model: str = "") -> Chat:
        from mcphost.host.chat.chat import Chat

        number = len(self.all) + 1
        chosen = replace(settings, model=model) if model else settings
        chat = self.all[number] = Chat(number, chat_id, self._context, self._runner.run, chosen)
        self._context.reporting.bus.publish(ChatChanged(number))
        return chat


def _new_id() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}-{token_hex(3)}"
