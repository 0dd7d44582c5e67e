"""What a person set of conversations before, so that a new one begins with it.

Knows one state file and when it is out of date. Refuses to add to it: it holds what was set by hand, and nothing that
makes more results pass unseen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mcphost.errors import ConfigError
from mcphost.host.chat.choices import ChatSettings
from mcphost.host.faults import fault
from mcphost.host.memory import StateStore

CHAT: Final = "chat"
"""The name of the state file."""


class ChatPreferences:
    """Reads and writes them through ``store`` (None: there is none); ``alarm`` takes a sentence for the user."""

    def __init__(self, store: StateStore | None, alarm: Callable[[str], None]) -> None:
        self._store, self._alarm = store, alarm
        self._writing = asyncio.Lock()
        self._saved = ChatSettings()
        self.choices = ChatSettings()
        """Each thing as it was set last, in whatever conversation."""

    async def load(self) -> None:
        """Have those of earlier runs. Raises ConfigError."""
        if self._store is not None:
            self.choices = self._saved = ChatSettings.read(await asyncio.to_thread(self._store.read, CHAT))

    def follow(self, before: ChatSettings, after: ChatSettings) -> None:
        """The person changed something in a conversation. What waits for a review is each conversation's own."""
        self.choices = replace(self.choices.following(before, after), hold=None)

    async def save(self) -> None:
        """Write what changed, if anything did. Never raises: what cannot be saved is an alarm."""
        async with self._writing:
            before, after = self._saved, self.choices
            if self._store is None or before == after:
                return
            try:
                await asyncio.to_thread(
                    self._store.update, CHAT, lambda data: ChatSettings.read(data).following(before, after).plain()
                )
                self._saved = after
            except ConfigError as error:
                self._alarm(f"what you set of conversations could not be saved: {error}")
            except Exception as error:
                self._alarm(f"what you set of conversations could not be saved: {fault(error)}")
