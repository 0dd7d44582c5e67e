"""The blocks of a request or an answer below each other, one of them the current one, and what is folded between.

Knows frames. Refuses to act: the screen's keys act on the current block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from mcphost.tui.widgets.blocks import BlockList, BlockView
from mcphost.tui.widgets.content import with_room
from mcphost.tui.widgets.sampling_parts import Part, Place


class PartView(BlockView):
    """One block in its frame; ``part`` says where it is from."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.shown)
        self.part = part

    @property
    def cut(self) -> bool:
        """Is only its beginning shown?"""
        return bool(self._rest)

    def _footnote(self) -> str:
        if self._rest:
            return f"… {self._rest} — f reads all"
        return ""


class PartList(BlockList, inherit_bindings=False):
    """Parts, and notices of ours between them. Letters other than these are the screen's."""

    HELP = "The arrows scroll, and go from block to block. a shows a text as it came, i draws pictures or names them."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "up", id="part.up", show=False, tooltip="Scroll, or to the block above"),
        Binding("down,j", "scroll_down", "down", id="part.down", show=False, tooltip="Scroll, or to the block below"),
        Binding("pageup", "page_up", "page up", id="part.page-up", show=False, tooltip="One page up"),
        Binding("pagedown,space", "page_down", "page down", id="part.page-down", show=False, tooltip="One page down"),
        Binding("home", "scroll_home", "start", id="part.home", show=False, tooltip="To the start"),
        Binding("end", "scroll_end", "end", id="part.end", show=False, tooltip="To the end"),
        Binding("a", "toggle_look", "as it came", id="part.look", tooltip="The text as it came, or rendered"),
        Binding("i", "toggle_pictures", "pictures", id="part.pictures", tooltip="Draw pictures, or only name them"),
        Binding("o", "open", "open", id="part.open", tooltip="Open it with a program of the desktop; asks first"),
    ]

    def __init__(
        self, parts: Sequence[Part] = (), before: str = "", after: str = "", head: Sequence[Widget] = ()
    ) -> None:
        shown = with_room(part.shown for part in parts)
        views = [PartView(Part(part.place, each)) for part, each in zip(parts, shown, strict=True)]
        first = sum(part.place.message is None for part in parts)  # a system prompt stands before what is folded
        super().__init__(*head, *views[:first], *_folds(before), *views[first:], *_folds(after))
        self._blocks = list[BlockView](views)
        self._below = False

    class Moved(Message):
        """There is more below now, or no more."""

    @property
    def below(self) -> bool:
        """Is there more below what is in view?"""
        return self.scroll_offset.y < self.max_scroll_y

    def on_mount(self) -> None:
        """Notice what comes into view."""
        for name in ("scroll_y", "virtual_size"):
            self.watch(self, name, self._notice, init=False)

    def on_resize(self) -> None:
        """More may be in view."""
        self._notice()

    def _notice(self) -> None:
        if self.below is not self._below:
            self._below = self.below
            self.post_message(self.Moved())

    @property
    def place(self) -> Place | None:
        """Where the current block is from."""
        return self.current.part.place if isinstance(self.current, PartView) else None

    @property
    def cut(self) -> bool:
        """Is only the beginning of one shown?"""
        return any(view.cut for view in self.blocks if isinstance(view, PartView))

    def go_to_place(self, place: Place | None) -> None:
        """Make the block from there the current one, where there is one still."""
        for number, view in enumerate(self.blocks):
            if isinstance(view, PartView) and view.part.place == place:
                self._go_to(number)
                return

    def action_page_down(self) -> None:
        """One page down; the current block is one that is in view then."""
        self._page(1)

    def action_page_up(self) -> None:
        """One page up."""
        self._page(-1)

    def _page(self, direction: int) -> None:
        step = max(1, self.size.height - 1)
        self.scroll_relative(y=direction * step, animate=False)
        top = min(max(0, self.scroll_offset.y + direction * step), self.max_scroll_y)
        for number, view in enumerate(self.blocks):
            if view.virtual_region.bottom > top:
                self._at = number
                self._mark()
                return


def _folds(words: str) -> list[Static]:
    return [Static(Content.styled(words, "$foreground-muted"), markup=False)] if words else []
