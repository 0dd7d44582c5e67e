"""The settings of a conversation: its model, the tools and texts that the model gets, and which results are reviewed.

A value, and its plain form for a transcript or a state file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal, Self, cast

from mcphost.errors import ConfigError
from mcphost.host.internal_error import internal_error
from mcphost.host.state_store import StateStore
from mcphost.json_values import as_dict, as_list, as_text, texts_in
from mcphost.lazy_dataclass import dataclass

Hold = Literal["never", "outside", "always"]

HOLDS: Final[tuple[Hold, ...]] = ("never", "outside", "always")
"""Which results wait for the person, the fewest first."""


def following(hold: Hold) -> Hold:
    """What one key makes of it: more of them, and after all of them none."""
    return HOLDS[(HOLDS.index(hold) + 1) % len(HOLDS)]


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The defaults: all tools on, no server's instructions, the rest as configured."""

    model: str = ""
    """The entry of ``[models]``; empty: as configured, or the first."""
    instead_of: str = ""
    """What ``chat.model`` said when it was chosen."""
    hold: Hold | None = None
    """None: as configured."""
    folders: bool = False
    """Is the model told which folders servers may know of?"""
    servers: frozenset[str] = frozenset()
    """Those that are off."""
    tools: frozenset[tuple[str, str]] = frozenset()
    """Those that are off, by server and name."""
    told: Mapping[str, str] = field(default_factory=dict)
    """The servers whose instructions the model gets, with the digest of the accepted text."""

    def on(self, server: str, tool: str | None = None) -> bool:
        """May the model use it?"""
        return server not in self.servers and (tool is None or (server, tool) not in self.tools)

    def following(self, before: ChatSettings, after: ChatSettings) -> ChatSettings:
        """These, with only that changed which differs between ``before`` and ``after``."""
        model = after if after.model != before.model else self
        return ChatSettings(
            model.model,
            model.instead_of,
            after.hold if after.hold != before.hold else self.hold,
            after.folders if after.folders != before.folders else self.folders,
            self.servers - (before.servers - after.servers) | after.servers - before.servers,
            self.tools - (before.tools - after.tools) | after.tools - before.tools,
            _followed(self.told, before.told, after.told),
        )

    def plain(self) -> dict[str, Any]:
        """As JSON and TOML have it."""
        return {
            "model": self.model,
            "instead_of": self.instead_of,
            "hold": self.hold or "",
            "folders": self.folders,
            "servers_off": sorted(self.servers),
            "tools_off": [list(pair) for pair in sorted(self.tools)],
            "told": dict(sorted(self.told.items())),
        }

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """Read the plain form; invalid members are ignored."""
        hold = plain.get("hold")
        return cls(
            as_text(plain.get("model")),
            as_text(plain.get("instead_of")),
            cast(Hold, hold) if hold in HOLDS else None,
            plain.get("folders") is True,
            frozenset(texts_in(plain.get("servers_off"))),
            frozenset(_pairs(plain)),
            {server: text for server, text in as_dict(plain.get("told")).items() if isinstance(text, str)},
        )


def _followed(mine: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]) -> Mapping[str, str]:
    changed = {server for server in before.keys() | after.keys() if before.get(server) != after.get(server)}
    kept = {server: text for server, text in mine.items() if server not in changed}
    return kept | {server: after[server] for server in changed if server in after}


def _pairs(plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in as_list(plain.get("tools_off")):
        match each:
            case [str(server), str(tool)]:
                yield server, tool


CHAT: Final = "chat"
"""The name of the state file."""


class ChatPreferences:
    """Reads and writes them through ``store`` (None: there is none); ``alarm`` takes a sentence for the user."""

    def __init__(self, store: StateStore | None, alarm: Callable[[str], None]) -> None:
        self._store, self._alarm = store, alarm
        self._writing = asyncio.Lock()
        self._saved = ChatSettings()
        self.settings = ChatSettings()
        """Each thing as it was set last, in whatever conversation."""

    async def load(self) -> None:
        """Have those of earlier runs. Raises ConfigError."""
        if self._store is not None:
            self.settings = self._saved = ChatSettings.read(await asyncio.to_thread(self._store.read, CHAT))

    def follow(self, before: ChatSettings, after: ChatSettings) -> None:
        """The person changed something in a conversation. What waits for a review is each conversation's own."""
        self.settings = replace(self.settings.following(before, after), hold=None)

    async def save(self) -> None:
        """Write what changed, if anything did. Never raises: what cannot be saved is an alarm."""
        async with self._writing:
            before, after = self._saved, self.settings
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
                self._alarm(f"what you set of conversations could not be saved: {internal_error(error)}")
