"""Asks for the file of a recording."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.protocol.display import show
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.modal_screen import HELP_BINDING

READING: Final = "Reading … (esc stops)"

Mount = Callable[[str], Awaitable[None]]
"""Adds the recording in a file as a server. Raises McphostError."""


class RecordingScreen(LineScreen[None]):
    HELP = (
        "A file that mcphost record, tap --into or --traffic wrote, a cassette of mcp-recorder, or a record of\n"
        "mcporter. It becomes a server that answers as the recorded one did, until mcphost exits.\n"
        "Nothing of the file is run."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="recording.back", tooltip="Replay nothing"),
        HELP_BINDING,
    ]

    def __init__(self, mount: Mount) -> None:
        super().__init__("Replay a recording", "enter replay · esc back", LineInput(placeholder="./git.mcp.jsonl"))
        self._mount = mount

    async def submit(self, text: str) -> None:
        if not text.strip():
            self.show_problem("")
            return
        self.show_problem(READING)
        _: Worker[None] = self.run_worker(self._replay(text.strip()), exclusive=True)

    async def _replay(self, file: str) -> None:
        try:
            await self._mount(file)
        except McphostError as error:
            self.show_problem(f"✖ {show(str(error), limit=600)}")
        else:
            self.dismiss(None)
