"""The alternative to the palette: Textual's own over as many names, which looks at nothing but the names."""

from __future__ import annotations

import sys
from itertools import islice
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.command import CommandPalette, Hit, Hits, Provider
from textual.widgets import Static

HITS = 50
"""As many as mcphost's palette shows."""


class Names(Provider):
    """Finds the names whose number begins with what was typed."""

    async def search(self, query: str) -> Hits:
        matcher, names = self.matcher(query), (f"tool-{n:04}" for n in range(1, int(sys.argv[1]) + 1))
        for number, name in enumerate(islice((name for name in names if f"-{query}" in name), HITS)):
            yield Hit(1 - number / (2 * HITS), matcher.highlight(name), int, name)


class BarePalette(App[None]):
    COMMANDS: ClassVar = {Names}
    BINDINGS: ClassVar = [("ctrl+q", "quit", "quit")]

    def compose(self) -> ComposeResult:
        yield Static("tools")

    def on_mount(self) -> None:
        self.push_screen(CommandPalette())


if __name__ == "__main__":
    BarePalette().run()
