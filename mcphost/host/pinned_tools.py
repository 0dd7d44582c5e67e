"""The tools that the user pinned to the top of the list, kept from run to run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mcphost.config.state import StateFile, StateStore
from mcphost.host.internal_error import describe_failure

FILE: Final = "pins"

ToolKey = tuple[str, str]
"""The configured name of a server, and the name of its tool."""

_Content = dict[str, frozenset[str]]
"""The pinned tools of each server: the content of the state file."""


class PinnedTools:
    """``report`` takes a sentence for the user about a file that fails."""

    def __init__(self, store: StateStore, report: Callable[[str], None]) -> None:
        self._file, self._report = StateFile(store, FILE, _Content), report

    async def load(self) -> frozenset[ToolKey]:
        """Return the pinned tools; none if they cannot be read."""
        try:
            content = await asyncio.to_thread(self._file.read)
        except Exception as error:
            self._report(f"the pinned tools could not be read: {describe_failure(error)}")
            return frozenset()
        return frozenset((server, tool) for server, tools in content.items() for tool in tools)

    async def set(self, key: ToolKey, *, pinned: bool) -> None:
        """Pin a tool or unpin it, and leave what other mcphosts pinned."""
        server, tool = key

        def change(content: _Content) -> _Content:
            tools = content.get(server, frozenset()) - {tool} | (frozenset({tool}) if pinned else frozenset())
            return {name: each for name, each in {**content, server: tools}.items() if each}

        try:
            await asyncio.to_thread(self._file.update, change)
        except Exception as error:
            self._report(f"the pinned tools could not be saved: {describe_failure(error)}")
