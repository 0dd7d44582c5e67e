"""Asks for a server in one line: a command line, an address, a link, or a file."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.recordings.recording import SUFFIX
from mcphost.imports.server_line import ServerLineReader
from mcphost.imports.sources import ResolvedAdd
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.recordings.screen import READING, Mount

EXAMPLES: Final = "npx server@1.2.3   https://mcp.example   ./mcp.json   ./git.mcp.jsonl"

LOOKING: Final = "Looking … (esc stops)"


class ServerLineScreen(LineScreen[ResolvedAdd | None]):
    """Dismissed with what the line means."""

    HELP = (
        "A command line as a shell takes it, an address, a link of a web page, the JSON of an entry, a file with\n"
        "servers, a bundle, or a name in a registry. An address is called only if you give one, or a name.\n"
        "Nothing is run: what it means is shown before anything is added.\n"
        "A recording, such as git.mcp.jsonl, becomes a server of this run."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="server-line.back", tooltip="Add nothing"),
        HELP_BINDING,
    ]

    def __init__(self, reader: ServerLineReader, mount: Mount) -> None:
        super().__init__("Add a server", "enter look at it · esc back", LineInput(placeholder=EXAMPLES))
        self._reader, self._mount = reader, mount

    async def submit(self, text: str) -> None:
        line = text.strip()
        if not line:
            self.show_problem("")
            return
        if line.endswith(SUFFIX):
            self.show_problem(READING)
            _: Worker[None] = self.run_worker(self._replay(line), exclusive=True)
            return
        try:
            local = self._reader.is_local(line)
        except McphostError as error:
            self._show_error(line, error)
            return
        if local:
            await self._find(line)
        else:
            self.show_problem(LOOKING)
            _ = self.run_worker(self._find(line), exclusive=True)

    async def _find(self, line: str) -> None:
        try:
            found = await self._reader.find(line)
        except McphostError as error:
            self._show_error(line, error)
            return
        if len(found.servers) == 1 and found.servers[0].refusal:
            self.show_problem(f"It cannot be added: {show(found.servers[0].refusal, limit=600)}")
        else:
            self.dismiss(found)

    async def _replay(self, file: str) -> None:
        try:
            await self._mount(file)
        except McphostError as error:
            self._show_error(file, error)
        else:
            self.dismiss(None)

    def _show_error(self, line: str, error: McphostError) -> None:
        words = str(error)
        about = f"{show_line(line, 60)} " if words.startswith("is ") else ""
        self.show_problem(f"✖ {about}{show(words, limit=600)}")
