"""A picture among other widgets, in the colours of half cells."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual.app import App
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mcphost.tui.results.pictures import Drawing, Undrawable, draw, fit

OFF: Final = "-no-pictures"
"""The app's class while pictures are not drawn among other things."""

SHARE: Final = 3
"""A picture among other things takes a third of the screen's height at most: about half of its pane."""


def why_not(app: App[object]) -> str:
    """Why this terminal cannot show a picture, as a sentence; empty where it can."""
    if app.no_color:
        return "NO_COLOR is set."
    return "" if app.console.color_system in ("256", "truecolor") else "This terminal has too few colours."


class PictureView(Widget):
    """Draws base64 ``data`` of so many ``pixels``; ``large`` where it may fill its parent, ``sharp`` as a PNG too."""

    SCOPED_CSS = False
    ALLOW_SELECT = False
    DEFAULT_CSS = f"""
    PictureView {{ width: auto; height: auto; color: $foreground-muted; }}
    BlockView > .instead {{ display: none; width: 1fr; height: auto; color: $foreground-muted; }}
    .{OFF} BlockView > PictureView {{ display: none; }}
    .{OFF} BlockView > .instead {{ display: block; }}
    """

    class Ended(Message):
        """It was drawn, or it was not: then ``problem`` says why."""

        def __init__(self, drawing: Drawing | None, problem: str = "") -> None:
            self.drawing, self.problem = drawing, problem
            super().__init__()

    def __init__(self, data: str, pixels: tuple[int, int], *, large: bool = False, sharp: bool = False) -> None:
        super().__init__()
        self._data, self._pixels, self._large, self._sharp = data, pixels, large, sharp
        self._wanted: object = None
        self._drawing: Drawing | None = None

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """The columns it takes."""
        return self._fit(container, viewport).width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows it takes."""
        return self._fit(container, viewport).height

    def render_line(self, y: int) -> Strip:
        """A line of it, which is only asked for when it is seen."""
        want = (self.size, self.background_colors[1].rgb)
        if want != self._wanted:
            self._wanted = want
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
        want = size, background = self.size, self.background_colors[1].rgb
        if not size:
            return
        try:
            drawing = await draw(self._data, size, background, sharp=self._sharp)
        except Undrawable as problem:
            self.post_message(self.Ended(None, str(problem)))
            return
        self._wanted, self._drawing = want, drawing
        self.refresh()
        self.post_message(self.Ended(drawing))
