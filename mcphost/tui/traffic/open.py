"""The dialog that asks for a file of exported traffic."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from mcphost.errors import McphostError
from mcphost.host.traffic.book import TrafficBook, read_traffic
from mcphost.protocol.display import show
from mcphost.tui.kit.framed import LineScreen


class OpenTrafficScreen(LineScreen[tuple[str, TrafficBook] | None]):
    """Reads the file whose path is typed; dismissed with its name and its traffic, or None."""

    HELP = "The path of a file of exported traffic (JSONL). enter opens it, esc goes back. The file is never changed."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not open", id="open_traffic.back", tooltip="Back to the live traffic"),
    ]

    def __init__(self, folder: Path) -> None:
        line = Input(f"{folder}/", select_on_focus=False, compact=True)
        super().__init__("Open exported traffic", "enter open · esc back", line)

    async def submit(self, text: str) -> None:
        try:
            name, book = await asyncio.to_thread(_read, text.strip())
        except FileNotFoundError:
            self.show_problem(show(f"There is no file {text.strip()}.", limit=400))
        except (McphostError, OSError, ValueError, RuntimeError) as problem:
            self.show_problem(show(str(problem), limit=400))
        else:
            self.dismiss((name, book))


def _read(typed: str) -> tuple[str, TrafficBook]:
    path = Path(typed).expanduser()
    return path.name, read_traffic(path)
