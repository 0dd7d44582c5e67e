"""A list for tools, resources and prompts: groups with headings, or the matches of a filter, best first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, cast

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.connections.connection import Connection, ServerState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.models.base import Wire
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.marks import SERVER_MARKS
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

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

PINNED: Final = "*pinned"
RECENT: Final = "*recent"
"""Groups above those of the servers, whose names have no asterisk."""

TITLES: Final = {PINNED: "Pinned", RECENT: "Recent"}

LEAST_SERVER: Final = 5
MOST_SERVER: Final = 14
"""Columns of the names of servers; between these, titles come first."""

BESIDE_SERVER: Final = 4
"""Columns of gaps and marks beside a title and a server."""

MOST_LABEL: Final = 40
"""Columns of titles at most, if descriptions are beside them."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The row above a group of entries: those of a server, `PINNED` or `RECENT`."""

    group: str
    count: int
    folded: bool

    @property
    def key(self) -> Hashable:
        return (self.group,)


@dataclass(frozen=True, slots=True)
class Shortcut(Generic[Entry]):
    """An entry in one of the upper groups; it is listed with its server as well."""

    group: str
    entry: Entry

    @property
    def key(self) -> Hashable:
        return self.group, self.entry.key


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


EXPECTED: Final = (ServerState.STARTING, ServerState.RECONNECTING, ServerState.NEEDS_SIGN_IN, ServerState.FAILED)
"""States of servers that the user wants, and that are not ready."""

STATE_WORDS: Final = {
    ServerState.DISABLED: "it is disabled",
    ServerState.STOPPED: "it is stopped",
    ServerState.RECONNECTING: "it is not connected",
    ServerState.NEEDS_SIGN_IN: "it needs a sign-in",
    ServerState.FAILED: "it failed",
}


class CatalogList(FilteredRows[Entry | Heading | Shortcut[Entry]], Generic[Entry]):
    """Subclasses define the rows."""

    TITLE: ClassVar[str]
    EMPTY: ClassVar[str]
    NAMES_EMPTY_SERVERS: ClassVar[bool] = False
    """True if a server that should have entries, but is not ready, has a heading without any."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d",
            "definition",
            "definition",
            id="offers.definition",
            tooltip="Show its definition, as the server sends it",
        ),
        Binding("space", "toggle_group", "fold", id="offers.toggle", tooltip="Fold or unfold this group"),
        Binding("left", "fold(True)", "fold group", id="offers.fold", show=False, tooltip="Fold this group"),
        Binding("right", "fold(False)", "unfold group", id="offers.unfold", show=False, tooltip="Unfold this group"),
    ]

    DEFAULT_CSS = """
    CatalogList {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    class Chosen(Message):
        """The user chose the selected row."""

    @dataclass
    class ServerChosen(Message):
        """The user chose the heading of a server without entries."""

        server: str

    @dataclass
    class Folded(Message):
        """The user folded or unfolded a group; ``folded`` are all groups of this list that are folded now."""

        title: str
        folded: frozenset[str]

    def __init__(self) -> None:
        examples = "words of a name, a title or a description"
        super().__init__(self._draw, self._searched, empty=self.EMPTY, examples=examples, from_top=True)
        self._folded = frozenset[str]()
        self._grouped = False
        self._names_server = False
        self._at_heading = False
        self._label_width = self._server_width = 0
        self._states: dict[str, ServerState] = {}
        self._entries: Sequence[Entry] = ()
        self._server: str | None = None
        self.sorted_by = ""
        """For the title, if the list is sorted."""
        self.mixed = False
        """True if there are rows of more than one server."""

    def compose(self) -> ComposeResult:
        self.border_title = self.TITLE
        yield from super().compose()

    @property
    def item(self) -> Entry | None:
        """The selected entry; None on a heading."""
        return self._entry_of(self.rows.item)

    def _entry_of(self, row: Entry | Heading | Shortcut[Entry] | None) -> Entry | None:
        if isinstance(row, Heading):
            return None
        return row.entry if isinstance(row, Shortcut) else row

    @abstractmethod
    def row(self, entry: Entry, width: int) -> Content:
        """Draw a row."""

    @abstractmethod
    def defined(self, entry: Entry) -> Wire:
        """The entry as its server defines it."""

    @abstractmethod
    def search_text(self, entry: Entry) -> SearchText:
        """The text that the filter searches."""

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Subclasses may return another order, and set `sorted_by`."""
        return entries

    def upper_groups(self, entries: Sequence[Entry]) -> Sequence[tuple[str, Sequence[Entry]]]:
        """Groups to list above those of the servers."""
        return ()

    def _searched(self, row: Entry | Heading | Shortcut[Entry]) -> SearchText:
        return self.search_text(cast(Entry, row))  # headings come after the search

    def rows_of(
        self, items: Sequence[Entry | Heading | Shortcut[Entry]]
    ) -> Sequence[Entry | Heading | Shortcut[Entry]]:
        """Group the entries, unless they are ordered by a filter or by the user, or are all of one group."""
        self._grouped = False
        entries = self.in_order(cast(Sequence[Entry], items))
        if self.filtered or self.sorted_by:
            return entries
        groups: dict[str, list[Entry | Heading | Shortcut[Entry]]] = {
            group: [Shortcut(group, each) for each in found] for group, found in self.upper_groups(entries) if found
        }
        for each in entries:
            groups.setdefault(each.server, []).append(each)
        if entries and self.NAMES_EMPTY_SERVERS and self._server is None:
            for name, state in self._states.items():
                if state in EXPECTED:
                    groups.setdefault(name, [])
        if len(groups) < 2:
            return entries
        self._grouped = True
        rows: list[Entry | Heading | Shortcut[Entry]] = []
        for group, found in groups.items():
            rows.append(Heading(group, len(found), group in self._folded))
            rows += () if group in self._folded else found
        return rows

    def first_of(self, rows: Sequence[Entry | Heading | Shortcut[Entry]]) -> int:
        return next((place for place, row in enumerate(rows) if not isinstance(row, Heading)), 0)

    def _draw(self, row: Entry | Heading | Shortcut[Entry], width: int) -> Content:
        if isinstance(row, Heading):
            return self._heading(row, width)
        self._names_server = self.mixed and (not self._grouped or isinstance(row, Shortcut))
        entry = row.entry if isinstance(row, Shortcut) else row
        return Content.assemble("  ", self.row(entry, width - 2)) if self._grouped else self.row(entry, width)

    def _heading(self, heading: Heading, width: int) -> Content:
        state, count = self._states.get(heading.group, ServerState.READY), f"{heading.count:,}" if heading.count else ""
        mark, style = SERVER_MARKS[state]
        words = "" if state is ServerState.READY else f"{mark} {state.value}"
        fold = " " if not heading.count else "▸" if heading.folded else "▾"
        name = f"{fold} {TITLES.get(heading.group, heading.group)}"
        return columns(
            width,
            [
                Cell(name, "bold", 10),
                Cell(words, style, len(words), len(words)),
                Cell(count, "$foreground-muted", len(count), len(count), "right"),
            ],
        )

    def server_cells(self, entry: Entry, width: int) -> list[Cell]:
        """The server's name, where neither a heading nor the title of the list has it."""
        if not self._names_server:
            return []
        left = width - cell_len(show_line(self._label(entry), MOST_LABEL)) - BESIDE_SERVER
        taken = max(LEAST_SERVER, min(self._server_width, left))
        return [Cell(entry.server, "$foreground-muted", taken, taken, "right")]

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
            Cell(self.search.mark(label), "", 10, min(self._label_width, width * 3 // 5)),
            Cell(self.search.mark(first_line), "$foreground-muted"),
        ]

    def say_when_empty(self, text: str) -> None:
        """Replace the text of an empty list; "" restores the usual one."""
        super().say_when_empty(text or self.EMPTY)

    def explain(self, servers: Mapping[str, Connection], chosen: str | None) -> None:
        """Say in an empty list why there is nothing of the chosen server; None: of all servers."""
        self.say_when_empty(why_none(self.TITLE.lower(), servers, chosen))
        states = {name: each.state for name, each in servers.items()}
        if states != self._states:
            self._states = states
            if self.all:
                self.list_matches()

    def show_entries(self, entries: Sequence[Entry], server: str | None) -> None:
        """List the entries of one server; None for all servers."""
        if (entries, server) == (self._entries, self._server):
            return
        self._entries, self._server = entries, server
        servers = {each.server for each in entries}
        self.mixed = server is None and len(servers) > 1
        self._server_width = min(MOST_SERVER, max(map(cell_len, servers), default=0))
        self._label_width = cell_len(show_line(max(map(self._label, entries), key=len, default=""), MOST_LABEL))
        self.show_items(entries, keep=lambda each: each.key)

    def _label(self, entry: Entry) -> str:
        defined: Any = self.defined(entry)
        return str(defined.label)

    def fold_groups(self, folded: frozenset[str]) -> None:
        """Fold these groups, and unfold all others."""
        if folded != self._folded:
            self._folded = folded
            self.list_matches()

    def list_matches(self, *, to_best: bool = False) -> None:
        super().list_matches(to_best=to_best)
        parts = (self.TITLE, self._server or "all servers", f"{len(self.all):,}", self.sorted_by)
        self.border_title = Content(" · ".join(filter(None, parts)))

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Entry | Heading]) -> None:
        event.stop()
        if isinstance(event.item, Heading) and not event.item.count:
            self.post_message(self.ServerChosen(event.item.group))
        elif isinstance(event.item, Heading):
            self.action_toggle_group()
        else:
            self.post_message(self.Chosen())

    @on(RowList.Highlighted)
    def _moved(self, event: RowList.Highlighted[Entry | Heading]) -> None:
        if isinstance(event.item, Heading) is not self._at_heading:
            self._at_heading = not self._at_heading
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A heading can be folded, and only an entry has a definition."""
        if action == "toggle_group":
            return isinstance(self.rows.item, Heading) and bool(self.rows.item.count)
        if action == "fold":
            return self._grouped
        return self.item is not None if action == "definition" else super().check_action(action, parameters)

    def action_toggle_group(self) -> None:
        if isinstance(self.rows.item, Heading):
            self.action_fold(not self.rows.item.folded)

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold the group of the selected row, and go to its heading."""
        row = self.rows.item
        if not self._grouped or row is None:
            return
        group = row.group if isinstance(row, Heading | Shortcut) else row.server
        if folded is (group in self._folded):
            return
        self.rows.highlighted = next(
            place for place, each in enumerate(self.rows.items) if isinstance(each, Heading) and each.group == group
        )
        self.fold_groups(self._folded ^ {group})
        self.post_message(self.Folded(self.TITLE.lower(), self._folded))

    def action_definition(self) -> None:
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        if self.item is not None:
            text = json_text(self.defined(self.item).definition())
            self.app.push_screen(ReaderScreen(f"{self.item.server} › definition", text, is_json=True))
