"""What the user wants of pictures, sounds and files in what servers sent: to see them large, to open them.

Knows the questions that are asked before. Refuses to open anything without: a program of the desktop is about to read
bytes that somebody else chose.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from textual.app import App

from mcphost.errors import NotDone
from mcphost.protocol.display import show_line, size_text
from mcphost.tui.results.opening import Desktop, opener
from mcphost.tui.results.picture_view import OFF

if TYPE_CHECKING:
    from mcphost.tui.kit.facts_table import Fact
    from mcphost.tui.results.blocks import BlockList
    from mcphost.tui.results.content import Block

    _App = App[Any]
else:
    _App = object


class MediaWishes(_App):
    """The app's ear for these wishes."""

    _desktop: Desktop | None = None

    def draw_pictures(self, on: bool) -> None:
        """Draw pictures among other things, or only name them, until the user says otherwise."""
        self.set_class(not on, OFF)

    def on_block_list_enlarged(self, event: BlockList.Enlarged) -> None:
        """Show a picture large."""
        from mcphost.tui.results.picture_screen import PictureScreen

        self.push_screen(PictureScreen(event.block))

    def on_block_list_open_wanted(self, event: BlockList.OpenWanted) -> None:
        """Ask, then open."""
        from mcphost.tui.kit.modal import AskScreen

        block = event.block
        try:
            program = opener()
        except NotDone as problem:
            self.notify(str(problem), severity="warning", markup=False)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._open(program, block), group="open-file")

        self.push_screen(AskScreen("Open this with a program?", _facts(program, block), "open it"), answered)

    def on_unmount(self) -> None:
        """Remove the copies that were opened."""
        if self._desktop is not None:
            self._desktop.close()

    async def _open(self, program: str, block: Block) -> None:
        self._desktop = self._desktop or Desktop()
        try:
            content, _ = await asyncio.to_thread(block.content)
            await self._desktop.open(program, content, block.opens_as)
        except NotDone as problem:
            self.notify(str(problem), severity="error", markup=False)
        else:
            self.notify("Opened a copy. It is removed when mcphost ends.")


def _facts(program: str, block: Block) -> list[Fact]:
    from mcphost.tui.kit.facts_table import fact
    from mcphost.tui.results.media import decoded_size

    size = decoded_size(block.data) if block.data is not None else len((block.text or "").encode("utf-8", "replace"))
    return [
        fact("what", block.title or block.kind),
        *([fact("from", show_line(block.uri, 200))] if block.uri else []),
        fact("type", f"{block.opens_as}, by its content"),
        *([fact("but", f"the server says {show_line(block.mime_type, 80)}", "$text-warning")] if block.doubt else []),
        fact("size", size_text(size)),
        fact("program", f"{program} FILE"),
        fact("", "It opens whatever program you have set for this type. That program reads what the server sent."),
        fact("file", "a private copy, removed when mcphost ends"),
    ]
