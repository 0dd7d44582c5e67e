"""Small modals in a frame: the base of all, and those for a line of text, a list, and a choice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.modal_screen import HELP_BINDING, Modal
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import RowList

Item = TypeVar("Item")
Value = TypeVar("Value")
Result = TypeVar("Result")


class FramedScreen(Modal[Result]):
    """A modal with its content in a frame; going back dismisses it with None."""

    QUESTIONS_ABOVE: ClassVar[bool] = False
    """True if questions may open above it; else they wait until it is closed."""
    frame: Widget
    """Kept, since a worker may end after its closed screen has lost its widgets."""
    _content_rows = 0

    DEFAULT_CSS = """
    FramedScreen {
        align: center middle;
        background: $background 40%;
        & > .frame { border: round $border; background: $surface; }
    }
    """

    def framed(self, title: str, keys: str = "", frame: Widget | None = None) -> Widget:
        """Return the frame, for a ``with`` in compose. ``title`` and ``keys`` are safe to show."""
        self.frame = Vertical() if frame is None else frame
        self.frame.add_class("frame")
        self.frame.border_title, self.frame.border_subtitle = Content(title), Content(keys)
        return self.frame

    def fit_height(self, rows: int) -> None:
        """Give the content this many rows, up to the frame's ``max-height``, or as many as before: nothing jumps."""
        self._content_rows = max(rows, self._content_rows)
        self.frame.styles.height = self._content_rows + 2

    def action_back(self) -> None:
        self.dismiss(None)


class LineScreen(FramedScreen[Result]):
    """Asks for a line of text; a subclass decides what becomes of it."""

    DEFAULT_CSS = """
    LineScreen {
        align: center bottom;
        & > .frame { width: 100%; max-width: 100; height: auto; padding: 0 1; }
        Input { background: $panel; }
        .problem { color: $text-error; height: auto; }
    }
    """

    def __init__(self, title: str, keys: str, line: Input) -> None:
        super().__init__()
        self._title, self._keys, self._line = title, keys, line
        self._problem = Static(classes="problem", markup=False)

    def compose(self) -> ComposeResult:
        with self.framed(self._title, self._keys):
            yield self._line
            yield self._problem

    @abstractmethod
    async def submit(self, text: str) -> None:
        """Dismiss the screen, or show a problem with this text."""

    def show_problem(self, problem: str) -> None:
        """Show what is wrong, safe to show."""
        self._problem.update(problem)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        await self.submit(event.value)


class ListScreen(FramedScreen[Result], Generic[Item, Result]):
    """A list with details of the selected item below it."""

    DEFAULT_CSS = """
    ListScreen {
        .details { height: auto; max-height: 5; padding: 0 1; border-top: solid $border-blurred; }
    }
    """

    def __init__(self, title: str, keys: str, empty: str) -> None:
        super().__init__()
        self._title, self._keys = title, keys
        self.list = FilteredRows[Item](self.row, self.search_text, empty=empty)
        self.rows = self.list.rows
        self.details = Static(markup=False, classes="details")

    @abstractmethod
    def row(self, item: Item, width: int) -> Content:
        """Draw an item, with the matches of the filter marked."""

    @abstractmethod
    def search_text(self, item: Item) -> SearchText:
        """The text that the filter searches."""

    def compose(self) -> ComposeResult:
        with self.framed(self._title, self._keys):
            yield self.list
            yield self.details

    def on_mount(self) -> None:
        self.refresh_rows()
        self.rows.focus()

    @abstractmethod
    def refresh_rows(self) -> None:
        """List the items, and show the details again."""

    @abstractmethod
    def show_details(self) -> None:
        """Show the details of the selected item, or hide them."""

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[Item]) -> None:
        event.stop()
        self.show_details()


class PickScreen(FramedScreen[Value | None], Generic[Item, Value]):
    """Lists ``items`` with the cursor on number ``at``; dismissed with the value of the chosen one, or None.

    ``title`` and ``does``, the label of enter, are safe to show; ``empty`` is shown without items.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="pick.back", tooltip="Choose none"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    PickScreen {
        & > .frame { width: 92%; max-width: 120; height: auto; max-height: 80%; }
    }
    """

    def __init__(self, title: str, does: str, items: Sequence[Item], *, at: int = 0, empty: str = "") -> None:
        super().__init__()
        self._title, self._does, self._items, self._at = title, does, items, at
        self.rows = RowList[Item](self.row, empty=empty, classes="between")

    @abstractmethod
    def row(self, item: Item, width: int) -> Content:
        """Draw an item."""

    @abstractmethod
    def value(self, item: Item) -> Value:
        """Return what the screen is dismissed with."""

    def below(self) -> ComposeResult:
        """Yield widgets for below the list."""
        yield from ()

    def compose(self) -> ComposeResult:
        with self.framed(self._title, f"enter {self._does} · esc back"):
            yield self.rows
            with Vertical(classes="below"):
                yield from self.below()

    def on_mount(self) -> None:
        self.rows.set_items(self._items)
        self.rows.highlighted = self._at
        self.rows.focus()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Item]) -> None:
        event.stop()
        self.dismiss(self.value(event.item))
