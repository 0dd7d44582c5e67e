"""Conversations with language models, as plain methods of the host.

Knows which conversations there are and what they are given. Refuses to know how one goes: `Chat` is what to hold on to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any

from mcphost.config import Config
from mcphost.host.calls import Call, CallRequest
from mcphost.host.catalog import Catalog
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.parts import ChatParts
from mcphost.host.chat.running import Running
from mcphost.host.connection import Connection, sent_to
from mcphost.host.consent import ConsentBroker
from mcphost.host.desk import CallDesk
from mcphost.host.events import ChatChanged, EventBus
from mcphost.host.models import Models
from mcphost.host.policy import Verdict
from mcphost.host.questions import Approver


class Chatting:
    """The host's methods about conversations."""

    config: Config
    servers: dict[str, Connection]
    consent: ConsentBroker
    catalog: Catalog
    bus: EventBus
    _desk: CallDesk
    _models: Models
    _tasks: asyncio.TaskGroup | None

    def mask(self, text: str) -> str:
        """The text without secrets."""
        raise NotImplementedError

    @property
    def chats(self) -> Mapping[int, Chat]:
        """The conversations of this run by number, oldest first."""
        return self._chats

    def begin_chat(self, *, model: str = "") -> Chat:
        """A new conversation, with this entry of ``[models]``; empty: as configured, or the first."""
        return self._add_chat(f"{datetime.now():%Y%m%d-%H%M%S}-{token_hex(3)}", model)

    def _begin_chatting(self, approver: Approver) -> None:
        """Set up what conversations are given, once models, consent and calls are."""
        self._chats: dict[int, Chat] = {}
        self._chat_parts = ChatParts(
            settings=lambda: self.config.chat,
            models=self._models,
            tools=lambda: [each for each in self.catalog.tools() if self._serves(each.server)],
            instructions=self._instructions,
            folders=lambda: (),
            call=self._call_for_model,
            runs=self._runs,
            ask=approver.ask,
            spawn=self._spawn,
            changed=lambda number: self.bus.publish(ChatChanged(number)),
            keep=lambda chat_id, record: None,
            clock=time.monotonic,
            mask=self.mask,
        )
        self._run_turn = Running(self._chat_parts).run

    def _stop_chats(self) -> None:
        for chat in self._chats.values():
            chat.stop()

    def _add_chat(self, chat_id: str, model: str) -> Chat:
        number = len(self._chats) + 1
        chat = self._chats[number] = Chat(number, chat_id, self._chat_parts, self._run_turn, model)
        self.bus.publish(ChatChanged(number))
        return chat

    def _serves(self, server: str) -> bool:
        """May a model be offered what it has?"""
        return server in self.servers

    def _instructions(self, server: str) -> str:
        connection = self.servers.get(server)
        session = None if connection is None else connection.session
        return "" if session is None else session.server.instructions or ""

    def _call_for_model(
        self, server: str, tool: str, arguments: Mapping[str, Any], *, origin: str, outside: str
    ) -> Call:
        assert self._tasks is not None
        return self._desk.begin(CallRequest(server, tool, arguments, origin, outside=outside), self._tasks)

    def _runs(self, server: str, tool: str, outside: str) -> bool:
        """Would a call run now without a question?"""
        connection = self.servers.get(server)
        known = next((each.tool for each in self.catalog.tools(server) if each.tool.name == tool), None)
        if connection is None or known is None:
            return False
        verdict = self.consent.foresee(server, sent_to(connection.config), known, outside=outside)
        return verdict is not Verdict.ASK

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._tasks is not None
        return self._tasks.create_task(work, name=name)
