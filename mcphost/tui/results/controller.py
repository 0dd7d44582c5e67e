"""Opens images, audio and files from servers with programs of the desktop, after asking the user."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from textual.app import App

from mcphost.errors import NotDone
from mcphost.protocol.display import show_line, size_text
from mcphost.tui.kit.messages import OpenRequested
from mcphost.tui.results.desktop_open import Desktop, opener
from mcphost.tui.results.pictures import NO_PICTURES

if TYPE_CHECKING:
    from mcphost.tui.kit.facts_table import Fact
    from mcphost.tui.results.content import Block


class ResultsController:
    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._desktop: Desktop | None = None

    def draw_pictures(self, on: bool) -> None:
        """Draw images, or only name them, until the user changes it."""
        self._app.set_class(not on, NO_PICTURES)

    def on_open_requested(self, event: OpenRequested) -> None:
        """Ask the user, then open a block."""
        from mcphost.tui.kit.modal_screen import AskScreen

        try:
            program = opener()
        except NotDone as problem:
            self._app.notify(str(problem), severity="warning", markup=False)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._app.run_worker(self._open(program, event.block), group="open-file")

        self._app.push_screen(AskScreen("Open this with a program?", _facts(program, event.block), "open it"), answered)

    def close(self) -> None:
        """Remove the copies that were opened."""
        if self._desktop is not None:
            self._desktop.close()

    async def _open(self, program: str, block: Block) -> None:
        self._desktop = self._desktop or Desktop()
        try:
            content, _ = await asyncio.to_thread(block.content)
            await self._desktop.open(program, content, block.opens_as)
        except NotDone as problem:
            self._app.notify(str(problem), severity="error", markup=False)
        else:
            self._app.notify("Opened a copy. It is removed when mcphost ends.")


def _facts(program: str, block: Block) -> list[Fact]:
    from mcphost.tui.kit.facts_table import fact
    from mcphost.tui.results.media import decoded_size

    size = decoded_size(block.data) if block.data is not None else len((block.text or "").encode("utf-8", "replace"))
    return [
        fact("what", block.title or block.kind),
        *([fact("from", show_line(block.uri, 200))] if block.uri else []),
        fact("type", f"{block.opens_as}, by its content"),
        *(
            [fact("but", f"the server says {show_line(block.mime_type, 80)}", "$text-warning")]
            if block.mismatch
            else []
        ),
        fact("size", size_text(size)),
        fact("program", f"{program} FILE"),
        fact("", "It opens whatever program you have set for this type. That program reads what the server sent."),
        fact("file", "a private copy, removed when mcphost ends"),
    ]
