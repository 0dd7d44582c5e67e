"""A list of what servers offer, filtered as one types: the best match first, and under the cursor.

What a row looks like, and what can be done with it, its heirs know.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from mcphost.protocol.display import show_line
from mcphost.protocol.models.base import Wire
from mcphost.tui.kit.filter_line import FilterLine
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList


class Offer(Protocol):
    """What is listed."""

    @property
    def server(self) -> str:
        """Whose it is."""

    @property
    def key(self) -> Hashable:
        """What tells it apart from every other."""


Offered = TypeVar("Offered", bound=Offer)


class FilteredOffers(Vertical, Generic[Offered]):
    """A filter above a list."""

    TITLE: ClassVar[str]
    EMPTY: ClassVar[str]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="offers.filter", tooltip="Type words; enter opens the best match"),
        Binding("d", "definition", "definition", id="offers.definition", tooltip="As its server defines it"),
        Binding("escape", "clear", "clear", id="offers.clear", show=False, tooltip="Drop the filter"),
    ]

    DEFAULT_CSS = """
    FilteredOffers {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    class Chosen(Message):
        """The user wants to use the row under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._offered: Sequence[Offered] = ()
        self._texts: list[SearchText] | None = None  # prepared when somebody filters
        self._server: str | None = None
        self.sorted_by = ""
        """Words for the title, where it is not as listed."""
        self._nothing = self.EMPTY
        self.mixed = False
        """Do the rows belong to more than one server?"""
        self.search = Search()
        """What the rows were filtered by."""
        self.filter_line = FilterLine(Search, "words of a name, a title or a description")
        self.rows = RowList[Offered](self.row, empty=self.EMPTY)
        """The list itself."""

    def compose(self) -> ComposeResult:
        """The filter, closed while empty, and the list."""
        self.border_title = self.TITLE
        yield self.filter_line
        yield self.rows

    @property
    def item(self) -> Offered | None:
        """The row under the cursor."""
        return self.rows.item

    @abstractmethod
    def row(self, offered: Offered, width: int) -> Content:
        """One line."""

    @abstractmethod
    def defined(self, offered: Offered) -> Wire:
        """The thing as its server defines it."""

    @abstractmethod
    def search_text(self, offered: Offered) -> SearchText:
        """What the words of the filter are looked for in."""

    def title_cells(self, label: str, name: str, about: str, width: int) -> list[Cell]:
        """What it is called and, where there is room, what it is for; with the letters that the filter matches marked.

        The name is added where it matches and the title does not; a description begins at its match where nothing else
        has one.
        """
        label, name = show_line(label, 80), show_line(name, 80)
        first_line = show_line(about.strip().split("\n", 1)[0], 160)
        by_name = self.search.finds(name) and not self.search.finds(label)
        if not by_name and not self.search.finds(label):
            first_line = self.search.excerpt(show_line(about, 2_000)) or first_line
        if width < 58:
            return [Cell(self.search.mark(f"{label} · {name}" if by_name else label), "", 10)]
        if by_name:
            first_line = f"{name} · {first_line}"
        return [
            Cell(self.search.mark(label), "", 10, min(30, width // 3)),
            Cell(self.search.mark(first_line), "$foreground-muted"),
        ]

    def sort(self, offered: Sequence[Offered]) -> Sequence[Offered]:
        """In the order that they are to be listed in."""
        return offered

    def sort_again(self) -> None:
        """The order is another now."""
        self._apply()

    def say_when_empty(self, text: str) -> None:
        """Say this where nothing is offered; empty: what is said usually."""
        if (text or self.EMPTY) != self._nothing:
            self._nothing = text or self.EMPTY
            self._apply()

    def show_offers(self, offered: Sequence[Offered], server: str | None) -> None:
        """These are offered, by this server (None: by all)."""
        if (offered, server) == (self._offered, self._server):
            return
        self._offered, self._server = offered, server
        self.mixed = server is None and len({each.server for each in offered}) > 1
        self._texts = None
        self._apply()

    @on(FilterLine.Typed)
    def _typed(self, event: FilterLine.Typed) -> None:
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self.search = Search(event.text)
            self._apply(to_best=bool(self.search.words))

    @on(FilterLine.Entered)
    def _entered(self, event: FilterLine.Entered) -> None:
        event.stop()
        if not self.search.words:
            self.action_clear()
        elif self.item is not None:
            self.rows.focus()
            self.post_message(self.Chosen())

    @on(FilterLine.Left)
    def _left(self, event: FilterLine.Left) -> None:
        event.stop()
        if self.search.words:
            self.rows.focus()
        else:
            self.action_clear()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Offered]) -> None:
        event.stop()
        self.post_message(self.Chosen())

    def action_filter(self) -> None:
        """Go to the filter."""
        self.filter_line.open()
        self._texts = self._prepared()  # now, so that the first letter is as fast as the others

    def action_clear(self) -> None:
        if self.filter_line.is_open:
            self.filter_line.close()
            self.rows.focus()

    def action_definition(self) -> None:
        """Show how its server defines what is under the cursor."""
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        if self.item is not None:
            text = json_text(self.defined(self.item).definition())
            self.app.push_screen(ReaderScreen(f"{self.item.server} › definition", text, is_json=True))

    def _prepared(self) -> list[SearchText]:
        return [self.search_text(each) for each in self._offered] if self._texts is None else self._texts

    def _apply(self, *, to_best: bool = False) -> None:
        """List what matches. The cursor stays on its row, unless it is ``to_best``: the user typed another letter."""
        filtered = bool(self.search.words)
        if filtered:
            self._texts = self._prepared()
            matching: Sequence[Offered] = self.search.best_first(self._offered, self._texts)
        else:
            matching = self._offered
        self.rows.empty = "Nothing matches. esc clears the filter." if filtered and self._offered else self._nothing
        listed = self.sort(matching)
        self.rows.set_items(listed, keep=lambda each: each.key, from_top=True)
        if to_best and matching:
            self.rows.highlighted = listed.index(matching[0])
        self.filter_line.say_count(len(matching), len(self._offered))
        parts = (self.TITLE, self._server or "all servers", f"{len(self._offered):,}", self.sorted_by)
        self.border_title = Content(" · ".join(filter(None, parts)))
