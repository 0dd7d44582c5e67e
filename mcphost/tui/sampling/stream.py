"""An answer while it comes: its end, which is followed until one scrolls back."""

from __future__ import annotations

from typing import Final

from mcphost.host.sampling.request import Sampling
from mcphost.protocol.display import show, size_text
from mcphost.tui.kit.text_view import TextView

WINDOW: Final = 20_000
"""Characters that are shown at least while more comes; twice as many at most. So each moment costs the same."""


class StreamView(TextView):
    """Shows the end of a text that grows."""

    DEFAULT_CSS = """
    StreamView { height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted; }
    StreamView:focus { border: round $border; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._start = 0
        self._shown = ""
        self._follows = True

    def tell(self, sampling: Sampling) -> None:
        """What came so far; as long as that is nothing, what the model thinks."""
        thinks = not sampling.text and bool(sampling.thought)
        self.border_title = "What the model thinks: this is not sent" if thinks else "The answer, as it comes"
        self.show_text(sampling.thought if thinks else sampling.text)

    @property
    def following(self) -> bool:
        """Does it stay at the end of what comes?"""
        return self._follows

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Looking back stops following; coming to the end goes on with it."""
        super().watch_scroll_y(old_value, new_value)
        if new_value < min(old_value, self.max_scroll_y):
            self._follows = False
        elif new_value >= self.max_scroll_y:
            self._follows = True

    def show_text(self, text: str) -> None:
        """It is this long by now; a shorter one is another text."""
        if text == self._shown:
            return
        if len(text) < self._start or not text.startswith(self._shown[: self._start]):
            self._start = 0
        self._shown = text
        if len(text) - self._start > 2 * WINDOW:
            self._start = _line_start(text, len(text) - WINDOW)
        lines = show(text[self._start :], joiners=True).split("\n")
        if self._start:
            lines.insert(0, f"⟨the first {size_text(self._start)} are shown when it is done⟩")
        self.load(lines, home=False)
        if self._follows:
            self.scroll_end(animate=False)


def _line_start(text: str, at: int) -> int:
    """Where a line begins, at or soon after ``at``."""
    found = text.find("\n", at, at + WINDOW // 2)
    return at if found < 0 else found + 1
