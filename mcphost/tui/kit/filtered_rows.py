"""A list with a filter; the best match is on top, and selected while the user types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import RowList

Item = TypeVar("Item")

NO_MATCH: Final = "No match. esc clears the filter."


class FilteredRows(Vertical, Generic[Item]):
    """``row`` draws an item, with the matches of `search` marked; ``text`` is what the filter searches of it.

    Opening an item posts the list's ``Selected``. With ``from_top`` the cursor stays on the first item until something
    moves it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="list.filter", tooltip="Type words; enter opens the best match"),
        Binding("escape", "clear_typed", "clear filter", id="list.clear_typed", system=True),
        Binding("escape", "clear", "clear filter", id="list.clear", show=False, tooltip="List everything again"),
    ]

    DEFAULT_CSS = """
    FilteredRows { height: 1fr; }
    """

    below_total = 0
    """The number of items that `below` searches."""

    def __init__(
        self,
        row: Callable[[Item, int], Content],
        text: Callable[[Item], SearchText],
        *,
        empty: str,
        examples: str = "",
        from_top: bool = False,
    ) -> None:
        super().__init__()
        self._text, self._empty, self._from_top = text, empty, from_top
        self._keep: Callable[[Item], object] = lambda item: item
        self.all: Sequence[Item] = ()
        """The items before the filter."""
        self._expecting = False
        self._texts: list[SearchText] | None = None  # prepared by the first filter
        self._typed_search = Search()
        self.search = self._typed_search
        """The current filter; where nothing has its words, the one that looks for their letters."""
        self.filter_line = FilterLine(Search, examples)
        self.rows = RowList[Item](row, empty=empty)

    def compose(self) -> ComposeResult:
        yield self.filter_line
        yield self.rows

    @property
    def item(self) -> Item | None:
        return self.rows.item

    @property
    def filtered(self) -> bool:
        """True if only the matches of a filter are listed."""
        return bool(self._typed_search.words)

    def show_items(self, items: Iterable[Item], keep: Callable[[Item], object] | None = None) -> None:
        """Replace the items. The cursor stays on the item with the same ``keep(item)``."""
        filled = bool(self.all)
        self.all, self._texts = list(items), None
        self._keep = keep or self._keep
        self.list_matches()
        if filled != bool(self.all):
            self.refresh_bindings()

    def expect_items(self, expecting: bool) -> None:
        """Let the filter open before the first items have come, or not."""
        if expecting != self._expecting:
            self._expecting = expecting
            self.refresh_bindings()

    def say_when_empty(self, text: str) -> None:
        """Replace the text of an empty list."""
        if text != self._empty:
            self._empty = text
            self.list_matches()

    def rows_of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Subclasses may return another order, and rows in between."""
        return items

    def below(self) -> Sequence[Item]:
        """Subclasses may find more matches in their own way, which are listed below the others."""
        return ()

    def first_of(self, rows: Sequence[Item]) -> int:
        """The number of the first row that is an item."""
        return 0

    def list_matches(self, *, to_best: bool = False) -> None:
        """List the matching items. The cursor stays on its row, or goes to the best match (``to_best``)."""
        self.search, matching, below = self._typed_search, self.all, self.below()
        if self.filtered:
            self._texts = self._prepared()
            matching = self.search.best_first(self.all, self._texts)
            if not matching and not below:
                self.search = self.search.by_letters
                matching = self.search.best_first(self.all, self._texts)
        self.rows.empty = NO_MATCH if self.filtered and (self.all or self.below_total) else self._empty
        listed = [*self.rows_of(matching), *below]
        self.rows.set_items(listed, keep=self._keep, rest=self.first_of(listed) if self._from_top else None)
        if to_best and listed:
            self.rows.highlighted = listed.index(matching[0]) if matching else 0
        total = len(self.all) + max(len(below), self.below_total)
        self.filter_line.show_count(len(matching) + len(below), total)

    def _prepared(self) -> list[SearchText]:
        return [self._text(each) for each in self.all] if self._texts is None else self._texts

    @on(FilterLine.Typed)
    def _typed(self, event: FilterLine.Typed) -> None:
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self._typed_search = Search(event.text)
            self.list_matches(to_best=self.filtered)

    @on(FilterLine.Entered)
    def _entered(self, event: FilterLine.Entered) -> None:
        event.stop()
        if not self.filtered:
            self.action_clear()
        elif self.item is not None:
            self.rows.focus()
            self.rows.action_open()

    @on(FilterLine.Left)
    def _left(self, event: FilterLine.Left) -> None:
        event.stop()
        if self.filtered:
            self.rows.focus()
        else:
            self.action_clear()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter":
            return bool(self.all) or self._expecting
        if action == "clear_typed":  # in the footer only then: the keys of the rows need its room
            return self.filter_line.input.has_focus
        return action != "clear" or self.filter_line.is_open

    def action_filter(self) -> None:
        self.filter_line.open()
        self.refresh_bindings()
        self._texts = self._prepared()  # now, so that the first letter is as fast as the others

    def action_clear_typed(self) -> None:
        self.action_clear()

    def action_clear(self) -> None:
        if self.filter_line.is_open:
            self.filter_line.close()
            self.rows.focus()
            self.refresh_bindings()
