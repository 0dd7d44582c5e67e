"""Takes what is shown out of the screen: to the clipboard, or into a file that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App


def copy_text(app: App[Any], text: str) -> None:
    """Put ``text`` on the clipboard."""
    app.copy_to_clipboard(text)
    app.notify(f"Copied {len(text):,} characters.")


def save_as(app: App[Any], name: str, content: bytes) -> None:
    """Let the user save ``content``; ``name`` is ours, see `mcphost.tui.results.saving.save`."""
    from mcphost.tui.results.saving import SaveScreen

    def saved(path: Path | None) -> None:
        if path is not None:
            app.notify(f"Saved {path}", markup=False)

    app.push_screen(SaveScreen(name, content, Path.cwd()), saved)
