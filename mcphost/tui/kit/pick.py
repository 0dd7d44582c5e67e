"""One of several things: a list in a frame, from which enter takes one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.modal import KEYS
from mcphost.tui.kit.rows import RowList

Item = TypeVar("Item")
Value = TypeVar("Value")


class PickScreen(ErrorBoundary, ModalScreen[Value | None], Generic[Item, Value]):
    """Lists ``items``, beginning at the one of number ``at``; dismissed with the value of one, or None.

    ``title`` and ``does``, which is what enter does, are safe to show; ``empty`` is said where there is nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="pick.back", tooltip="Choose none"),
        KEYS,
    ]

    DEFAULT_CSS = """
    PickScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical {
            width: 92%; max-width: 120; height: auto; max-height: 80%; border: round $border; background: $surface;
        }
        RowList { max-height: 70vh; }
    }
    """

    def __init__(self, title: str, does: str, items: Sequence[Item], *, at: int = 0, empty: str = "") -> None:
        super().__init__()
        self._title, self._does, self._items, self._at = title, does, items, at
        self.rows = RowList[Item](self.row, empty=empty)

    @abstractmethod
    def row(self, item: Item, width: int) -> Content:
        """How one is listed."""

    @abstractmethod
    def value(self, item: Item) -> Value:
        """What it stands for."""

    def below(self) -> ComposeResult:
        """What stands below the list."""
        yield from ()

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title, frame.border_subtitle = Content(self._title), Content(f"enter {self._does} · esc back")
            yield self.rows
            yield from self.below()

    def on_mount(self) -> None:
        self.rows.styles.height = len(self._items) or 3
        self.rows.set_items(self._items)
        self.rows.highlighted = self._at
        self.rows.focus()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Item]) -> None:
        event.stop()
        self.dismiss(self.value(event.item))

    def action_back(self) -> None:
        self.dismiss(None)
