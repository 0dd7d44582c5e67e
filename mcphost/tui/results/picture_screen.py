"""A picture as large as the screen: in cells everywhere, and over them in its own pixels where the terminal can."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.modal import KEYS
from mcphost.tui.results.content import Block
from mcphost.tui.results.messages import OpenRequested
from mcphost.tui.results.picture_view import PictureView
from mcphost.tui.results.pictures import REMOVE, place, shows_pictures


class PictureScreen(ErrorBoundary, ModalScreen[None]):
    """Shows the picture of ``block``, which has ``pixels``."""

    HELP = "A picture, as large as there is room. esc goes back, o opens it with a program of the desktop."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "back", "back", id="picture.back", tooltip="Close"),
        Binding("o", "open", "open", id="picture.open", tooltip="Open it with a program, after a question"),
        KEYS,
    ]

    DEFAULT_CSS = """
    PictureScreen {
        background: $background;
        & > Container {
            width: 100%; height: 100%; align: center middle; border: round $border; border-title-color: $text-accent;
        }
        Static { width: auto; max-width: 100%; }
    }
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self._block = block
        self._sharp = shows_pictures(os.environ)
        self._png = b""

    def compose(self) -> ComposeResult:
        """The picture in the middle."""
        with Container() as frame:
            frame.border_title = Content(self._block.title)
            frame.border_subtitle = "o open with a program · esc back"
            assert self._block.data is not None
            assert self._block.pixels is not None
            yield PictureView(self._block.data, self._block.pixels, large=True, sharp=self._sharp)

    async def on_picture_view_ended(self, event: PictureView.Ended) -> None:
        """Bring the sharp one over it, or say why there is none."""
        if event.drawing is None:
            await self.query(PictureView).remove()
            await self.query_one(Container).mount(Static(f"Not drawn: {event.problem}.", markup=False))
        elif event.drawing.sharp:
            self._png = event.drawing.sharp
            self.call_after_refresh(self._place)

    def on_screen_suspend(self) -> None:
        """Something comes above: what is no text would cover it."""
        self._remove()

    def on_screen_resume(self) -> None:
        """Nothing is above any more."""
        self.call_after_refresh(self._place)

    def on_resize(self) -> None:
        """It is drawn anew in another size."""
        self._remove()
        self._png = b""

    def on_unmount(self) -> None:
        self._remove()

    def action_back(self) -> None:
        self.dismiss(None)

    def action_open(self) -> None:
        """Ask for it to be opened."""
        self.post_message(OpenRequested(self._block))

    def _place(self) -> None:
        views = self.query(PictureView)
        if self._png and views and self.is_current:
            self._write("".join((REMOVE, *place(self._png, views.first().content_region))))

    def _remove(self) -> None:
        if self._sharp:
            self._write(REMOVE)

    def _write(self, sequences: str) -> None:
        if self.app._driver is not None:  # pictures are no text, for which alone Textual has words
            self.app._driver.write(sequences)
