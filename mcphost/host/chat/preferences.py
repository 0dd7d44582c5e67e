"""The settings of a conversation: its model, what the model gets, and which results the user reviews."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Final, Literal

from mcphost.config.state import StateFile, StateStore
from mcphost.host.internal_error import describe_failure
from mcphost.lazy_dataclass import dataclass

Hold = Literal["never", "outside", "always"]

HOLDS: Final[tuple[Hold, ...]] = ("never", "outside", "always")
"""Which results the user reviews, the fewest first."""


def following(hold: Hold) -> Hold:
    """Return the next value in `HOLDS`, and after the last the first."""
    return HOLDS[(HOLDS.index(hold) + 1) % len(HOLDS)]


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The settings of one conversation. The defaults: all tools on, no server's instructions, the rest as configured.

    The names of the fields are the keys in the state file and in transcripts.
    """

    model: str = ""
    """The entry of ``[models]``; empty: as configured, or the first."""
    instead_of: str = ""
    """The configured ``chat.model`` when it was chosen."""
    hold: Hold | Literal[""] = ""
    """Which results are reviewed; empty: as configured."""
    folders: bool = False
    """True if the model gets the list of shared folders."""
    servers_off: frozenset[str] = frozenset()
    tools_off: frozenset[tuple[str, str]] = frozenset()
    """By server and name."""
    told: Mapping[str, str] = field(default_factory=dict)
    """The servers whose instructions the model gets, with the digest of the accepted text."""

    def on(self, server: str, tool: str | None = None) -> bool:
        """True if the model may use the server, or this tool of it."""
        return server not in self.servers_off and (tool is None or (server, tool) not in self.tools_off)

    def following(self, before: ChatSettings, after: ChatSettings) -> ChatSettings:
        """These, with only that changed which differs between ``before`` and ``after``."""
        model = after if after.model != before.model else self
        return ChatSettings(
            model.model,
            model.instead_of,
            after.hold if after.hold != before.hold else self.hold,
            after.folders if after.folders != before.folders else self.folders,
            self.servers_off - (before.servers_off - after.servers_off) | after.servers_off - before.servers_off,
            self.tools_off - (before.tools_off - after.tools_off) | after.tools_off - before.tools_off,
            _followed(self.told, before.told, after.told),
        )


def _followed(mine: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]) -> Mapping[str, str]:
    changed = {server for server in before.keys() | after.keys() if before.get(server) != after.get(server)}
    kept = {server: text for server, text in mine.items() if server not in changed}
    return kept | {server: after[server] for server in changed if server in after}


CHAT: Final = "chat"
"""The name of the state file."""


class ChatPreferences:
    """The last settings of any conversation, kept in ``store`` (None: for this run only).

    ``alarm`` takes a sentence for the user.
    """

    def __init__(self, store: StateStore | None, alarm: Callable[[str], None]) -> None:
        self._file = None if store is None else StateFile(store, CHAT, ChatSettings)
        self._alarm = alarm
        self._writing = asyncio.Lock()
        self._saved = ChatSettings()
        self.settings = ChatSettings()
        """Each setting as it was set last, in whatever conversation."""

    async def load(self) -> None:
        """Read those of earlier runs. Raises ConfigError."""
        if self._file is not None:
            self.settings = self._saved = await asyncio.to_thread(self._file.read)

    def follow(self, before: ChatSettings, after: ChatSettings) -> None:
        """Take over a change in a conversation, except which results are reviewed: that stays with the conversation."""
        self.settings = replace(self.settings.following(before, after), hold="")

    async def save(self) -> None:
        """Write what changed. Never raises: a failure is an alarm."""
        async with self._writing:
            before, after = self._saved, self.settings
            if self._file is None or before == after:
                return
            try:
                # Only the difference: another mcphost may have written its own changes meanwhile.
                await asyncio.to_thread(self._file.update, lambda saved: saved.following(before, after))
                self._saved = after
            except Exception as error:
                self._alarm(f"your chat settings could not be saved: {describe_failure(error)}")
