"""A list with a filter, for tools, resources and prompts; the best match is on top and selected."""

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
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList


class Offer(Protocol):
    @property
    def server(self) -> str:
        """The configured name."""

    @property
    def key(self) -> Hashable:
        """Identifies it among all offers."""


Offered = TypeVar("Offered", bound=Offer)


class FilteredOffers(Vertical, Generic[Offered]):
    """Subclasses define the rows."""

    TITLE: ClassVar[str]
    EMPTY: ClassVar[str]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="offers.filter", tooltip="Type words; enter opens the best match"),
        Binding(
            "d",
            "definition",
            "definition",
            id="offers.definition",
            tooltip="Show its definition, as the server sends it",
        ),
        Binding("escape", "clear", "clear", id="offers.clear", show=False, tooltip="Clear the filter"),
    ]

    DEFAULT_CSS = """
    FilteredOffers {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    class Chosen(Message):
        """The user chose the selected row."""

    def __init__(self) -> None:
        super().__init__()
        self._offered: Sequence[Offered] = ()
        self._texts: list[SearchText] | None = None  # prepared by the first filter
        self._server: str | None = None
        self.sorted_by = ""
        """For the title, if the list is sorted."""
        self._nothing = self.EMPTY
        self.mixed = False
        """Are there rows of more than one server?"""
        self._typed_search = Search()
        self.search = self._typed_search
        """The current filter; where nothing has its words, the one that looks for their letters."""
        self.filter_line = FilterLine(Search, "words of a name, a title or a description")
        self.rows = RowList[Offered](self.row, empty=self.EMPTY)

    def compose(self) -> ComposeResult:
        self.border_title = self.TITLE
        yield self.filter_line
        yield self.rows

    @property
    def item(self) -> Offered | None:
        """The selected row."""
        return self.rows.item

    @abstractmethod
    def row(self, offered: Offered, width: int) -> Content:
        """Draw a row."""

    @abstractmethod
    def defined(self, offered: Offered) -> Wire:
        """The offer as its server defines it."""

    @abstractmethod
    def search_text(self, offered: Offered) -> SearchText:
        """The text that the filter searches."""

    def title_cells(self, label: str, name: str, about: str, width: int) -> list[Cell]:
        """Columns for the title and, if there is room, the description, with the filter's matches marked.

        The name is added if only it matches; the description starts at its match if nothing else matches.
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
        """Subclasses may return another order."""
        return offered

    def sort_again(self) -> None:
        """Sort and list the offers again."""
        self._apply()

    def say_when_empty(self, text: str) -> None:
        """Replace the text of an empty list; "" restores the usual one."""
        if (text or self.EMPTY) != self._nothing:
            self._nothing = text or self.EMPTY
            self._apply()

    def show_offers(self, offered: Sequence[Offered], server: str | None) -> None:
        """List these offers of this server; None: of all servers."""
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
            self._typed_search = Search(event.text)
            self._apply(to_best=bool(self._typed_search.words))

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "clear" or self.filter_line.is_open

    def action_filter(self) -> None:
        self.filter_line.open()
        self.refresh_bindings()
        self._texts = self._prepared()  # now, so that the first letter is as fast as the others

    def action_clear(self) -> None:
        if self.filter_line.is_open:
            self.filter_line.close()
            self.rows.focus()
            self.refresh_bindings()

    def action_definition(self) -> None:
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        if self.item is not None:
            text = json_text(self.defined(self.item).definition())
            self.app.push_screen(ReaderScreen(f"{self.item.server} › definition", text, is_json=True))

    def _prepared(self) -> list[SearchText]:
        return [self.search_text(each) for each in self._offered] if self._texts is None else self._texts

    def _apply(self, *, to_best: bool = False) -> None:
        """List the matching offers. The cursor stays on its row, or goes to the best match if the user typed
        (``to_best``).
        """
        self.search = self._typed_search
        filtered, matching = bool(self.search.words), self._offered
        if filtered:
            self._texts = self._prepared()
            matching = self.search.best_first(self._offered, self._texts)
            if not matching:
                self.search = self.search.by_letters
                matching = self.search.best_first(self._offered, self._texts)
        self.rows.empty = "No match. esc clears the filter." if filtered and self._offered else self._nothing
        listed = self.sort(matching)
        self.rows.set_items(listed, keep=lambda each: each.key, from_top=True)
        if to_best and matching:
            self.rows.highlighted = listed.index(matching[0])
        self.filter_line.show_count(len(matching), len(self._offered))
        parts = (self.TITLE, self._server or "all servers", f"{len(self._offered):,}", self.sorted_by)
        self.border_title = Content(" · ".join(filter(None, parts)))
