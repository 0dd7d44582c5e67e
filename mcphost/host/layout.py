"""The user's layout of the main screen, kept from run to run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Final, Literal, Self

from mcphost.config.state import StateFile, StateStore
from mcphost.errors import McphostError
from mcphost.host.internal_error import describe_failure
from mcphost.lazy_dataclass import dataclass

FILE: Final = "layout"

LogDrawer = Literal["auto", "open", "closed"]

DRAWERS: Final[tuple[LogDrawer, ...]] = ("auto", "open", "closed")

SHARES: Final = range(20, 71, 5)
"""Percent of the width that a list may have beside what it opens; the tools have as many columns at most."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of the fields are the keys in the state file."""

    list_share: int = 40
    """Percent of the width that a list has beside what it opens."""
    logs: LogDrawer = "auto"
    """auto: open where there is room, and when a server warns."""
    theme: str = ""
    """The theme that was chosen on screen; empty: none was."""
    folded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The folded groups of each list, by its title."""

    def divided(self, steps: int) -> Self:
        """Return the layout with the list this many steps wider (narrower if negative), within `SHARES`."""
        share = self.list_share + steps * SHARES.step
        return replace(self, list_share=min(max(share, SHARES[0]), SHARES[-1]))


def kept_theme(store: StateStore) -> str:
    """The theme that an earlier run kept; empty without one. Blocks on the disk."""
    try:
        return StateFile(store, FILE, Layout).read().theme
    except McphostError:  # `LayoutFile.load` reports it
        return ""


class LayoutFile:
    """Reads and writes the layout. ``report`` takes a sentence for the user about a file that fails."""

    def __init__(self, store: StateStore, report: Callable[[str], None]) -> None:
        self._file, self._report = StateFile(store, FILE, Layout), report
        self._saved: Layout | None = None
        self._writing = asyncio.Lock()

    async def load(self) -> Layout:
        """Return the layout of the last run; the default if it cannot be read."""
        try:
            saved = await asyncio.to_thread(self._file.read)
        except Exception as error:
            self._report(f"the layout could not be read: {describe_failure(error)}")
            saved = Layout()
        self._saved = saved if saved.list_share in SHARES else replace(saved, list_share=Layout().list_share)
        return self._saved

    async def save(self, layout: Layout) -> None:
        """Write the layout if it changed."""
        async with self._writing:
            if layout == self._saved:
                return
            try:
                await asyncio.to_thread(self._file.update, lambda saved: layout)
                self._saved = layout
            except Exception as error:
                self._report(f"the layout could not be saved: {describe_failure(error)}")
