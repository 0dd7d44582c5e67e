"""A list of what servers offer, filtered as one types.

Knows the filter above and the list below. What a row looks like, and what can be done with it, its heirs know.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from mcphost.protocol.types import Wire
from mcphost.tui.widgets.rows import RowList


class Offer(Protocol):
    """What is listed."""

    @property
    def server(self) -> str:
        """Whose it is."""

    @property
    def key(self) -> Hashable:
        """What tells it apart from every other."""


Offered = TypeVar("Offered", bound=Offer)


class OfferList(Vertical, Generic[Offered]):
    """A filter above a list."""

    TITLE: ClassVar[str]
    EMPTY: ClassVar[str]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="offers.filter", tooltip="Type words that must occur"),
        Binding("d", "definition", "definition", id="offers.definition", tooltip="As its server defines it"),
        Binding("escape", "clear", "clear", id="offers.clear", show=False, tooltip="Drop the filter"),
        Binding("down", "to_list", "to the list", id="offers.down", show=False, tooltip="From the filter to its rows"),
    ]

    DEFAULT_CSS = """
    OfferList {
        border: round $panel-lighten-2;
        &:focus-within { border: round $accent; }
        & > Input { padding: 0 1; background: $panel; }
    }
    """

    class Chosen(Message):
        """The user wants to use the row under the cursor."""

    @dataclass
    class DefinitionWanted(Message):
        """The user wants to read how a server defines what is under the cursor."""

        server: str
        definition: Mapping[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self._offered: Sequence[Offered] = ()
        self._haystacks: list[str] = []
        self._server: str | None = None
        self.sorted_by = ""
        """Words for the title, where it is not as listed."""
        self.mixed = False
        """Do the rows belong to more than one server?"""
        self._filter = Input(compact=True, placeholder="words that must occur", select_on_focus=False)
        self._filter.display = False
        self.rows = RowList[Offered](self.row, empty=self.EMPTY)
        """The list itself."""

    def compose(self) -> ComposeResult:
        """The filter, hidden while empty, and the list."""
        self.border_title = self.TITLE
        yield self._filter
        yield self.rows

    @property
    def item(self) -> Offered | None:
        """The row under the cursor."""
        return self.rows.item

    def row(self, offered: Offered, width: int) -> Content:
        """One line."""
        raise NotImplementedError

    def defined(self, offered: Offered) -> Wire:
        """The thing as its server defines it."""
        raise NotImplementedError

    def haystack(self, offered: Offered) -> str:
        """What the words of the filter are looked for in."""
        raise NotImplementedError

    def sort(self, offered: Sequence[Offered]) -> Sequence[Offered]:
        """In the order that they are to be listed in."""
        return offered

    def sort_again(self) -> None:
        """The order is another now."""
        self._apply()

    def show_offers(self, offered: Sequence[Offered], server: str | None) -> None:
        """These are offered, by this server (None: by all)."""
        if (offered, server) == (self._offered, self._server):
            return
        self._offered, self._server = offered, server
        self.mixed = server is None and len({each.server for each in offered}) > 1
        self._haystacks = [self.haystack(each).lower() for each in offered]
        self._apply()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_to_list()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Offered]) -> None:
        event.stop()
        self.post_message(self.Chosen())

    def action_filter(self) -> None:
        """Go to the filter."""
        self._filter.display = True
        self._filter.focus()

    def action_clear(self) -> None:
        """Drop the filter."""
        if self._filter.value or self._filter.has_focus:
            self._filter.value = ""
            self._filter.display = False
            self.rows.focus()

    def action_to_list(self) -> None:
        """From the filter to its matches."""
        self._filter.display = bool(self._filter.value)
        self.rows.focus()

    def action_definition(self) -> None:
        """See `DefinitionWanted`."""
        if self.item is not None:
            self.post_message(self.DefinitionWanted(self.item.server, self.defined(self.item).definition()))

    def _apply(self) -> None:
        words = self._filter.value.lower().split()
        pairs = zip(self._offered, self._haystacks, strict=True)
        matching = [each for each, hay in pairs if all(word in hay for word in words)] if words else self._offered
        self.rows.empty = "Nothing matches. esc clears the filter." if words and self._offered else self.EMPTY
        self.rows.set_items(self.sort(matching), keep=lambda each: each.key)
        count = f"{len(matching)} of {len(self._offered)}" if words else str(len(self._offered))
        parts = (self.TITLE, self._server or "all servers", count, self.sorted_by)
        self.border_title = Content(" · ".join(filter(None, parts)))
