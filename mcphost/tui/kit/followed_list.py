"""A live list that follows its newest row, with a filter; the log and the traffic are such lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import ColumnHeads, RowList


class Numbered(Protocol):
    """An entry of a book. Numbers start at 1 and only grow."""

    @property
    def number(self) -> int: ...


Item = TypeVar("Item", bound=Numbered)
Tested = TypeVar("Tested", contravariant=True)


class RowFilter(Protocol[Tested]):
    @property
    def text(self) -> str: ...

    @property
    def tests(self) -> Sequence[object]:
        """Empty if every row passes."""

    @property
    def words(self) -> tuple[str, ...]:
        """Texts that occur in every row that passes."""

    def passes(self, item: Tested, /) -> bool: ...


def list_keys(prefix: str, one: str, many: str, clear: str) -> list[Binding]:
    """The keys of a followed list; ``clear`` is the tooltip for clearing."""

    def key(pressed: str, action: str, description: str, tooltip: str, *, show: bool = True) -> Binding:
        return Binding(pressed, action, description, id=f"{prefix}.{action}", show=show, tooltip=tooltip)

    return [
        key("escape", "unfilter", "clear filter", f"Show all {many} again"),
        key("slash", "filter", "filter", f"Show only some {many}"),
        key("f", "follow", "follow", f"Follow the newest {one}, or pause"),
        key("x", "clear", "clear", clear, show=False),
        key("X", "restore", "restore", f"Show cleared {many} again", show=False),
    ]


class FollowedList(Vertical, Generic[Item]):
    """Subclasses read their book in `rebuild`, and give `add` what was added since."""

    EMPTY: ClassVar[str]
    """Shown while the book has no entry."""
    NO_MATCH: ClassVar[str]
    CLEARED: ClassVar[str]

    DEFAULT_CSS = """
    FollowedList {
        height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
        & > RowList { scrollbar-gutter: stable; }
    }
    """

    def __init__(
        self,
        parse: Callable[[str], RowFilter[Item]],
        examples: str,
        *,
        id: str | None = None,
        rows_id: str | None = None,
    ) -> None:
        """``parse`` raises FilterError for an invalid filter."""
        super().__init__(id=id)
        self._parse, self.filter, self.search = parse, parse(""), Search()
        self.last_number = self.cleared = self.paused_at = 0
        """The newest entry that was read; the last cleared one; the newest one when the list stopped following."""
        self.total = 0
        """The entries that are listed without a filter."""
        self.unseen = 0
        """The rows that were added since the list stopped following."""
        self._title = ""
        self.filter_line = FilterLine(parse, examples)
        self.heads = ColumnHeads(self.head)
        self.rows = RowList[Item](self.row, empty=self.EMPTY, tails=True, id=rows_id)

    def compose(self) -> ComposeResult:
        yield self.filter_line
        yield self.heads
        yield self.rows

    @abstractmethod
    def head(self, width: int) -> Content:
        """Draw the names of the columns."""

    @abstractmethod
    def row(self, item: Item, width: int) -> Content:
        """Draw an item, with the matches of `search` marked."""

    @abstractmethod
    def rebuild(self) -> None:
        """Read all entries again, and list those that pass the filter."""

    @abstractmethod
    def title_words(self) -> Iterable[str]:
        """The parts of the title; empty ones are left out."""

    @abstractmethod
    async def exported(self, items: Sequence[Item]) -> tuple[str, bytes]:
        """Return the name of a file for these items, and its content."""

    @property
    def newest(self) -> int:
        """The row of the newest item."""
        return len(self.rows.items) - 1

    def update_title(self) -> None:
        """Update the title, the count and the text of an empty list."""
        if self.rows.following:
            self.paused_at, self.unseen = self.last_number, 0
        title = " · ".join(word for word in self.title_words() if word)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self.heads.update_heads()
        self.filter_line.show_count(len(self.rows.items), self.total)
        if not self.rows.items:
            self.rows.empty = self.NO_MATCH if self.total else self.CLEARED if self.cleared else self.EMPTY

    @property
    def following_words(self) -> str:
        if self.rows.following:
            return "following"
        return f"paused · {self.unseen:,} new" if self.unseen else "paused"

    def list_items(self, items: Sequence[Item]) -> None:
        """Replace the rows."""
        self.rows.set_items(items, keep=lambda item: item.number)
        self.unseen = sum(item.number > self.paused_at for item in items)

    # The filter.

    def show_filtered(self, text: str) -> None:
        """Show the rows that pass this filter, and focus them."""
        self.filter_line.show_filter(text)
        self.apply_filter(text)
        self.rows.focus()

    def apply_filter(self, text: str) -> None:
        if text.strip() != self.filter.text:
            self.filter = self._parse(text)
            self.search = Search(words=self.filter.words)
            self.rebuild()

    def on_filter_line_typed(self, event: FilterLine.Typed) -> None:
        """Filter as the user types; the newest match is selected."""
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self.apply_filter(event.text)
            if self.filter.text:
                self.rows.highlighted = self.newest

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        event.stop()
        if self.filter.text:
            self.rows.focus()
        else:
            self.action_unfilter()

    def on_filter_line_left(self, event: FilterLine.Left) -> None:
        event.stop()
        self.rows.focus()

    # Keys.

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        event.stop()
        self.update_title()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter":
            return not self.filter_line.input.has_focus
        if action == "unfilter":
            return self.filter_line.is_open
        return bool(self.cleared) if action == "restore" else True

    def action_filter(self) -> None:
        self.filter_line.open()
        self.refresh_bindings()

    def action_unfilter(self) -> None:
        self.filter_line.close()
        self.apply_filter("")
        self.rows.focus()
        self.refresh_bindings()

    def action_follow(self) -> None:
        self.rows.following = not self.rows.following

    def action_clear(self) -> None:
        """Empty the list; the book keeps its entries."""
        self.cleared = self.last_number
        self.rebuild()

    def action_restore(self) -> None:
        self.cleared = 0
        self.rebuild()

    def action_save(self) -> None:
        """Save the rows that are listed, in their order."""
        if self.rows.items:
            self.run_worker(self._save(list(self.rows.items)), group="export", exclusive=True)

    async def _save(self, items: Sequence[Item]) -> None:
        save_as(self.app, *await self.exported(items))
