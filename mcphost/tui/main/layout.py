"""How the main screen is divided: what the user chose, kept from run to run in the state folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

from mcphost.config.state import read_toml, update_toml
from mcphost.errors import ConfigError
from mcphost.lazy_dataclass import dataclass

LogDrawer = Literal["auto", "open", "closed"]

SHARES: Final = range(20, 71, 5)
"""Percent of the width that a list may have beside what it opens."""

DRAWERS: Final[tuple[LogDrawer, ...]] = ("auto", "open", "closed")


@dataclass(frozen=True, slots=True)
class Layout:
    """What the user chose of the layout."""

    list_share: int = 40
    """Percent of the width that a list has beside what it opens."""
    logs: LogDrawer = "auto"
    """auto: open where there is room, and when a server warns."""

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """From a state file, or whatever was made of it."""
        share, logs = plain.get("list_share"), plain.get("logs")
        layout = cls()
        if isinstance(share, int) and share in SHARES:
            layout = replace(layout, list_share=share)
        found: LogDrawer | None = next((each for each in DRAWERS if each == logs), None)
        return layout if found is None else replace(layout, logs=found)

    def divided(self, steps: int) -> Self:
        """With the list this many steps wider, or narrower, as far as it goes."""
        share = self.list_share + steps * SHARES.step
        return replace(self, list_share=min(max(share, SHARES[0]), SHARES[-1]))


class LayoutFile:
    """The state file layout.toml in ``folder``. ``report`` takes a sentence for the user about a file that fails."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._path, self._report = folder / "layout.toml", report
        self._saved: Layout | None = None
        self._writing = asyncio.Lock()

    async def load(self) -> Layout:
        """The layout of the last run; the default where none can be read."""
        try:
            self._saved = Layout.read(await asyncio.to_thread(read_toml, self._path, self._report))
        except ConfigError as error:
            self._report(f"the layout could not be read: {error}")
            self._saved = Layout()
        return self._saved

    async def save(self, layout: Layout) -> None:
        """Write the layout if it changed."""
        async with self._writing:
            if layout == self._saved:
                return
            try:
                await asyncio.to_thread(update_toml, self._path, lambda data: {**data, **asdict(layout)}, self._report)
                self._saved = layout
            except ConfigError as error:
                self._report(f"the layout could not be saved: {error}")
