"""Asking which file of exported traffic to read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcphost.errors import McphostError
from mcphost.host.traffic.book import TrafficBook, read_traffic
from mcphost.protocol.display import show
from mcphost.tui.error_boundary import ErrorBoundary


class OpenTrafficScreen(ErrorBoundary, ModalScreen[tuple[str, TrafficBook] | None]):
    """Reads the file whose path is typed; dismissed with its name and what was in it, or None."""

    HELP = "The path of a file of exported traffic (JSONL). enter reads it, esc does not. The file is never changed."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not open", id="open_traffic.back", tooltip="Back to the live traffic"),
    ]

    DEFAULT_CSS = """
    OpenTrafficScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 100; height: auto; border: round $border; background: $surface; padding: 0 1;
        }
        Input { background: $panel; }
        #problem { color: $text-error; height: auto; }
    }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def compose(self) -> ComposeResult:
        """A field in a frame."""
        with Vertical() as frame:
            frame.border_title = "Open exported traffic · which file?"
            frame.border_subtitle = "enter open · esc back"
            yield Input(f"{self._folder}/", select_on_focus=False, compact=True)
            yield Static(id="problem", markup=False)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            name, book = await asyncio.to_thread(_read, event.value.strip())
        except FileNotFoundError:
            self._say(f"There is no file {event.value.strip()}.")
        except (McphostError, OSError, ValueError, RuntimeError) as problem:
            self._say(str(problem))
        else:
            self.dismiss((name, book))

    def _say(self, problem: str) -> None:
        self.query_one("#problem", Static).update(show(problem, limit=400))

    def action_back(self) -> None:
        self.dismiss(None)


def _read(typed: str) -> tuple[str, TrafficBook]:
    path = Path(typed).expanduser()
    return path.name, read_traffic(path)
