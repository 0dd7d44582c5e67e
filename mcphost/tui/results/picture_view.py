"""Shows an image among other widgets in half cells, or alone as large as the screen."""

from __future__ import annotations

import os
from typing import ClassVar, Final

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from mcphost.tui.kit.messages import OpenRequested
from mcphost.tui.kit.modal_screen import HELP_BINDING, Modal
from mcphost.tui.results.content import Block
from mcphost.tui.results.pictures import NO_PICTURES, REMOVE, Drawing, Undrawable, draw, fit, place, shows_pictures
from mcphost.tui.textual_private.corrections import ResilientApp

SHARE: Final = 3
"""An image among other widgets takes a third of the screen's height at most."""


def unavailable_reason(app: App[object]) -> str:
    """Why this terminal cannot show images, as a sentence; empty if it can."""
    if app.no_color:
        return "NO_COLOR is set."
    return "" if app.console.color_system in ("256", "truecolor") else "This terminal has too few colours."


class PictureView(Widget):
    """Draws base64 ``data`` of so many ``pixels``; ``large`` fills the parent, ``sharp`` makes a PNG too."""

    SCOPED_CSS = False
    ALLOW_SELECT = False
    DEFAULT_CSS = f"""
    PictureView {{ width: auto; height: auto; color: $foreground-muted; }}
    BlockView > .instead {{ display: none; width: 1fr; height: auto; color: $foreground-muted; }}
    .{NO_PICTURES} BlockView > PictureView {{ display: none; }}
    .{NO_PICTURES} BlockView > .instead {{ display: block; }}
    """

    class Ended(Message):
        """The image was drawn, or ``problem`` says why not."""

        def __init__(self, drawing: Drawing | None, problem: str = "") -> None:
            self.drawing, self.problem = drawing, problem
            super().__init__()

    def __init__(self, data: str, pixels: tuple[int, int], *, large: bool = False, sharp: bool = False) -> None:
        super().__init__()
        self._data, self._pixels, self._large, self._sharp = data, pixels, large, sharp
        self._requested: object = None
        self._drawing: Drawing | None = None

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self._fit(container, viewport).width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._fit(container, viewport).height

    def render_line(self, y: int) -> Strip:
        drawing_key = (self.size, self.background_colors[1].rgb)
        if drawing_key != self._requested:
            self._requested = drawing_key
            self.call_later(self._begin)
        if self._drawing is not None and y < len(self._drawing.strips):
            return self._drawing.strips[y].adjust_cell_length(self.size.width, self.rich_style)
        words = "◐ drawing" if y == 0 else ""
        return Strip([Segment(words, self.rich_style)]).adjust_cell_length(self.size.width, self.rich_style)

    def _fit(self, container: Size, viewport: Size) -> Size:
        rows = container.height if self._large else max(1, viewport.height // SHARE)
        return fit(self._pixels, Size(container.width, rows), enlarge=self._large)

    def _begin(self) -> None:
        self.run_worker(self._draw(), exclusive=True)

    async def _draw(self) -> None:
        drawing_key = size, background = self.size, self.background_colors[1].rgb
        if not size:
            return
        try:
            drawing = await draw(self._data, size, background, sharp=self._sharp)
        except Undrawable as problem:
            self.post_message(self.Ended(None, str(problem)))
            return
        self._requested, self._drawing = drawing_key, drawing
        self.refresh()
        self.post_message(self.Ended(drawing))


class PictureScreen(Modal[None]):
    """Shows the image of ``block``, over its cells in full resolution if the terminal can."""

    HELP = "A picture, as large as there is room."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "back", "back", id="picture.back", tooltip="Close"),
        Binding("o", "open", "open", id="picture.open", tooltip="Open it with a program, after a question"),
        HELP_BINDING,
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
        with Container() as frame:
            frame.border_title = Content(self._block.title)
            frame.border_subtitle = "o open with a program · esc back"
            assert self._block.data is not None
            assert self._block.pixels is not None
            yield PictureView(self._block.data, self._block.pixels, large=True, sharp=self._sharp)

    async def on_picture_view_ended(self, event: PictureView.Ended) -> None:
        """Place the sharp image, or say why it is missing."""
        if event.drawing is None:
            await self.query(PictureView).remove()
            await self.query_one(Container).mount(Static(f"Not drawn: {event.problem}.", markup=False))
        elif event.drawing.sharp:
            self._png = event.drawing.sharp
            self.call_after_refresh(self._place)

    def on_screen_suspend(self) -> None:
        """Remove the image, which would cover the screen above."""
        self._remove()

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self._place)

    def on_resize(self) -> None:
        self._remove()
        self._png = b""

    def on_unmount(self) -> None:
        self._remove()

    def action_back(self) -> None:
        self.dismiss(None)

    def action_open(self) -> None:
        self.post_message(OpenRequested(self._block))

    def _place(self) -> None:
        views = self.query(PictureView)
        if self._png and views and self.is_current:
            self._write("".join((REMOVE, *place(self._png, views.first().content_region))))

    def _remove(self) -> None:
        if self._sharp:
            self._write(REMOVE)

    def _write(self, sequences: str) -> None:
        if isinstance(self.app, ResilientApp):
            self.app.write_to_terminal(sequences)
