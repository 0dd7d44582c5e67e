"""A part that scrolls, and knows whether all of it was on screen: what was not seen cannot be agreed to."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.message import Message


class ReadToEnd(VerticalScroll, can_focus=False):
    """Scrolls what is in it. `Reached` is posted once its end was in view; `rewind` asks for that anew."""

    DEFAULT_CSS = """
    ToTheEnd { height: auto; scrollbar-size-vertical: 1; }
    """

    class Reached(Message):
        """Its end is in view, for the first time."""

    reached = False

    def on_mount(self) -> None:
        """Notice when the end comes into view."""
        self.watch(self, "scroll_y", self._check, init=False)
        self.watch(self, "virtual_size", self._check, init=False)
        self.rewind()

    def on_resize(self) -> None:
        """More of it may be in view."""
        self.call_after_refresh(self._check)

    def rewind(self) -> None:
        """Something else is in it now."""
        self.reached = False
        self.scroll_home(animate=False)
        self.call_after_refresh(self._check)

    def more(self, direction: int) -> bool:
        """Is there something to scroll to on that side?"""
        return self.scroll_offset.y < self.max_scroll_y if direction > 0 else self.scroll_offset.y > 0

    def page(self, direction: int) -> None:
        """Scroll by a page."""
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def _check(self) -> None:
        last = self.children[-1].virtual_region if self.children else None
        if not self.reached and last and last.height and last.bottom <= self.scroll_offset.y + self.size.height:
            self.reached = True
            self.post_message(self.Reached())
