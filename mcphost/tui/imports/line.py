"""Asks for a server in one line: a command line, an address, a link, or a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from mcphost.errors import McphostError
from mcphost.imports.found import FoundServer
from mcphost.protocol.display import show
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.modal import KEYS

EXAMPLES: Final = "npx -y @scope/server@1.2.3   https://mcp.example/mcp   ./mcp.json"

Meaning = Callable[[str], Sequence[FoundServer]]
"""What a line means. Blocks on the disk or the network; raises McphostError."""


class ServerLineScreen(LineScreen[tuple[FoundServer, ...] | None]):
    """Dismissed with the servers that the line means."""

    HELP = (
        "A command line as a shell takes it, an https address, a pasted link, the JSON of an entry, or the path of a\n"
        "file with servers. Nothing is run; what it means is shown before anything is added."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="server-line.back", tooltip="Add nothing"),
        KEYS,
    ]

    def __init__(self, meaning: Meaning) -> None:
        super().__init__("Add a server", "enter look at it · esc back", LineInput(placeholder=EXAMPLES))
        self._meaning = meaning

    async def submit(self, text: str) -> None:
        if not text.strip():
            self.show_problem("")
            return
        try:
            found = tuple(await asyncio.to_thread(self._meaning, text.strip()))
        except McphostError as error:
            self.show_problem(show(str(error), limit=600))
            return
        refused = next((each for each in found if each.refusal), None)
        if refused is not None and len(found) == 1:
            self.show_problem(f"It cannot be added: {show(refused.refusal, limit=600)}")
        else:
            self.dismiss(found)
