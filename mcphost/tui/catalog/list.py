"""A list with a filter, for tools, resources and prompts; the best match is on top and selected."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final, Protocol, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.connections.connection import Connection, ServerState
from mcphost.protocol.display import show_line
from mcphost.protocol.models.base import Wire
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, RowList

PREVIEW: Final = 0.15
"""Seconds that the cursor rests on an entry before it is described: longer than the time between two keys of a user who
goes down the list, since a key waits for the frame of a description."""


class CatalogEntry(Protocol):
    @property
    def server(self) -> str:
        """The configured name."""

    @property
    def key(self) -> Hashable:
        """Identifies it in the catalog."""


Entry = TypeVar("Entry", bound=CatalogEntry)


def why_none(what: str, servers: Mapping[str, Connection], chosen: str | None) -> str:
    """Say why there are no ``what`` (such as tools) of the chosen server, or of all; empty if a ready one has none."""
    if chosen is not None and chosen in servers:
        state = servers[chosen].state
        if state is ServerState.READY:
            return f"“{chosen}” has no {what}."
        if state is ServerState.STARTING:
            return f"“{chosen}” is starting. Its {what} appear when it is ready."
        return f"“{chosen}” has no {what}: {STATE_WORDS[state]}.\nc shows why. s and home: all servers."
    states = [each.state for each in servers.values()]
    if starting := states.count(ServerState.STARTING):
        counted = "1 server" if starting == 1 else f"{starting} servers"
        return f"Starting {counted}. {what.capitalize()} appear as soon as a server is ready."
    if ServerState.READY in states or not states:
        return ""
    return f"No {what}: no server is ready.\ns goes to the servers, enter there shows why; f3 opens the logs."


STATE_WORDS: Final = {
    ServerState.DISABLED: "it is disabled",
    ServerState.STOPPED: "it is stopped",
    ServerState.RECONNECTING: "it is not connected",
    ServerState.NEEDS_SIGN_IN: "it needs a sign-in",
    ServerState.FAILED: "it failed",
}


class CatalogList(FilteredRows[Entry]):
    """Subclasses define the rows."""

    TITLE: ClassVar[str]
    EMPTY: ClassVar[str]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d",
            "definition",
            "definition",
            id="offers.definition",
            tooltip="Show its definition, as the server sends it",
        ),
    ]

    DEFAULT_CSS = """
    CatalogList {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    class Chosen(Message):
        """The user chose the selected row."""

    def __init__(self) -> None:
        examples = "words of a name, a title or a description"
        super().__init__(self.row, self.search_text, empty=self.EMPTY, examples=examples, from_top=True)
        self._entries: Sequence[Entry] = ()
        self._server: str | None = None
        self.sorted_by = ""
        """For the title, if the list is sorted."""
        self.mixed = False
        """True if there are rows of more than one server."""

    def compose(self) -> ComposeResult:
        self.border_title = self.TITLE
        yield from super().compose()

    @abstractmethod
    def row(self, entry: Entry, width: int) -> Content:
        """Draw a row."""

    @abstractmethod
    def defined(self, entry: Entry) -> Wire:
        """The entry as its server defines it."""

    @abstractmethod
    def search_text(self, entry: Entry) -> SearchText:
        """The text that the filter searches."""

    def server_cells(self, entry: Entry, width: int) -> list[Cell]:
        """The column of servers, if the list has more than one."""
        return [Cell(entry.server, "$foreground-muted", 5, min(14, max(6, width // 6)))] if self.mixed else []

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

    def say_when_empty(self, text: str) -> None:
        """Replace the text of an empty list; "" restores the usual one."""
        super().say_when_empty(text or self.EMPTY)

    def explain(self, servers: Mapping[str, Connection], chosen: str | None) -> None:
        """Say in an empty list why there is nothing of the chosen server; None: of all servers."""
        self.say_when_empty(why_none(self.TITLE.lower(), servers, chosen))

    def show_entries(self, entries: Sequence[Entry], server: str | None) -> None:
        """List the entries of one server; None for all servers."""
        if (entries, server) == (self._entries, self._server):
            return
        self._entries, self._server = entries, server
        self.mixed = server is None and len({each.server for each in entries}) > 1
        self.show_items(entries, keep=lambda each: each.key)

    def list_matches(self, *, to_best: bool = False) -> None:
        super().list_matches(to_best=to_best)
        parts = (self.TITLE, self._server or "all servers", f"{len(self.all):,}", self.sorted_by)
        self.border_title = Content(" · ".join(filter(None, parts)))

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Entry]) -> None:
        event.stop()
        self.post_message(self.Chosen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An empty list has nothing to define."""
        return self.item is not None if action == "definition" else super().check_action(action, parameters)

    def action_definition(self) -> None:
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        if self.item is not None:
            text = json_text(self.defined(self.item).definition())
            self.app.push_screen(ReaderScreen(f"{self.item.server} › definition", text, is_json=True))
