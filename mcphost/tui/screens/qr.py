"""A link as a picture to photograph: a QR code in half blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.tui.faults import ErrorBoundary
from mcphost.tui.screens.dialog import KEYS

QUIET: Final = 2
"""Light modules around the code: the standard wants four, and every camera is content with two on a light ground."""


class QrScreen(ErrorBoundary, ModalScreen[None]):
    """Shows ``url`` as a QR code, or how much room it needs."""

    HELP = "The link as a QR code, for the camera of another machine. esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="qr.back", tooltip="Close"),
        KEYS,
    ]

    DEFAULT_CSS = """
    QrScreen {
        align: center middle;
        background: $background;
        & > Vertical { width: auto; height: auto; }
        #code { width: auto; height: auto; color: black; background: white; }
        #code.-none { color: $text-warning; background: $background; max-width: 70; }
    }
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._lines = half_blocks(url)

    def compose(self) -> ComposeResult:
        """The code."""
        with Vertical():
            yield Static(id="code", markup=False)

    def on_mount(self) -> None:
        """Draw it."""
        self._draw()

    def on_resize(self) -> None:
        """It may fit now, or no longer."""
        self._draw()

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)

    def _draw(self) -> None:
        rows, cells = len(self._lines), max(map(len, self._lines), default=0)
        fits = bool(rows) and rows <= self.size.height and cells <= self.size.width
        code = self.query_one("#code", Static)
        code.set_class(not fits, "-none")
        code.update(Content("\n".join(self._lines)) if fits else Content(self._too_small(rows, cells)))

    def _too_small(self, rows: int, cells: int) -> str:
        here = f"this terminal has {self.size.width} × {self.size.height}"
        if not rows:
            return "The link is too long for a QR code.\nesc goes back; c copies the link."
        return (
            f"The QR code of this link needs {cells} columns and {rows} rows; {here}.\n"
            "Make it larger, or its letters smaller. esc goes back; c copies the link."
        )


def half_blocks(text: str) -> Sequence[str]:
    """The code of ``text``, dark on light, two modules above each other in a cell; nothing where it is too long."""
    import segno  # late: few ask for it

    try:
        code = segno.make_qr(text, error="l", boost_error=False)
    except segno.DataOverflowError:
        return ()
    modules = [[bool(module) for module in row] for row in code.matrix_iter(border=QUIET)]
    if len(modules) % 2:
        modules.append([False] * len(modules[0]))
    return ["".join(map(_block, upper, lower)) for upper, lower in zip(modules[::2], modules[1::2], strict=True)]


def _block(upper: bool, lower: bool) -> str:
    return (" ", "▄", "▀", "█")[2 * upper + lower]
