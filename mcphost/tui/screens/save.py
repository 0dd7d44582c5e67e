"""Asking where to save something: the folder is the user's choice, the name is ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcphost.errors import NotDone
from mcphost.protocol.display import size_text
from mcphost.tui.saving import save


class SaveScreen(ModalScreen[Path | None]):
    """Saves ``content`` as ``name`` in the folder the user types; dismissed with the path, or None."""

    HELP = "Where to save it. An existing file is never replaced. enter saves, esc does not."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not save", id="save.back", tooltip="Close without saving"),
    ]

    DEFAULT_CSS = """
    SaveScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 100; height: auto; border: round $accent; background: $surface; padding: 0 1;
        }
        Input { background: $panel; }
        #problem { color: $text-error; height: auto; }
    }
    """

    def __init__(self, name: str, content: bytes, folder: Path) -> None:
        super().__init__()
        self._file_name, self._content, self._folder = name, content, folder

    def compose(self) -> ComposeResult:
        """A field in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Save {self._file_name} · {size_text(len(self._content))} · in which folder?")
            frame.border_subtitle = "enter save · esc back"
            yield Input(str(self._folder), select_on_focus=False, compact=True)
            yield Static(id="problem", markup=False)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            path = await asyncio.to_thread(self._write, event.value)
        except NotDone as problem:
            self.query_one("#problem", Static).update(str(problem))
        else:
            self.dismiss(path)

    def _write(self, folder: str) -> Path:
        return save(Path(folder).expanduser(), self._file_name, self._content)

    def action_back(self) -> None:
        """Close without saving."""
        self.dismiss(None)
