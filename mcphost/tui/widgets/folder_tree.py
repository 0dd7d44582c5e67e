"""Folders to choose from: a tree with check marks, of which only what is open is read and what is in view is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.protocol.display import show_line
from mcphost.tui.folder_listing import FolderEntry, FolderListing
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.folder_rows import FolderRow, FolderRows, Mark
from mcphost.tui.widgets.rows import MARK, RowList

_STYLES = {Mark.SHARED: "bold $text-success", Mark.PARTLY: "$text-success", Mark.WITHIN: "$text-success"}


class FolderTree(RowList[FolderRow]):
    """A tree of folders below ``top``; ``first`` are offered above it, with a remark each."""

    HELP = (
        "Folders. space marks one or takes the mark away; → opens one, ← closes it or goes to the one around it.\n"
        "[x] marked  [·] in a marked one  [-] something in it is marked. A link is told with what it leads to.\n"
        ". shows hidden folders, u goes up, / goes to a path you type."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark", id="folders.toggle", tooltip="Mark this folder, or no longer"),
        Binding("right,l", "expand", "open", id="folders.open", tooltip="Open this folder"),
        Binding("left,h", "collapse", "close", id="folders.close", tooltip="Close it, or go to the one around it"),
        Binding("full_stop", "hidden", "hidden", id="folders.hidden", tooltip="Show hidden folders, or not"),
        Binding("u", "higher", "up", id="folders.up", tooltip="Let the tree begin one folder higher"),
    ]

    class _About(Message):
        def __init__(self, tree: FolderTree, entry: FolderEntry) -> None:
            super().__init__()
            self.tree, self.entry = tree, entry

    class ReadWanted(_About):
        """What is in this folder? `show_listing` takes the answer."""

    class ToggleWanted(_About):
        """The user wants a mark here, or no longer: `FolderRows.marked`, then `refresh_rows`."""

    def __init__(self, top: Path, first: Mapping[Path, str], marked: Iterable[Path]) -> None:
        super().__init__(_row)
        self.folders = FolderRows(top, first, marked=set(marked))
        self._sought: Path | None = None

    def on_mount(self) -> None:
        """Show what there is."""
        self.refresh_rows()

    def refresh_rows(self) -> None:
        """Something else is open or marked now."""
        self.set_items(self.folders.rows(), keep=lambda row: row.key)

    def show_listing(self, path: Path, listing: FolderListing) -> None:
        """What was read of a folder."""
        self.folders.take(path, listing)
        self.refresh_rows()
        self._seek()

    def reveal(self, path: Path, *, go: bool = True) -> None:
        """Open all that is around this folder, and ``go`` there."""
        self.call_later(self._open_around, path, go)  # what is wanted must come from here, whoever calls

    def _open_around(self, path: Path, go: bool) -> None:
        self._sought = path if go else None
        for each in self.folders.way_to(path):
            self._read(FolderEntry(each, each))
        self.refresh_rows()
        self._seek()

    def action_mark(self) -> None:
        """See `ToggleWanted`."""
        if self.item is not None and self.item.entry is not None:
            self.post_message(self.ToggleWanted(self, self.item.entry))

    def action_open(self) -> None:
        """Open or close it."""
        row = self.item
        if row is not None and row.is_open:
            self.action_collapse()
        else:
            self.action_expand()

    def action_expand(self) -> None:
        """Open it; a link, and what stands above the tree, is gone to."""
        row = self.item
        if row is None or row.entry is None or row.entry.problem:
            self.app.bell()
        elif row.entry.is_link or (row.whole and row.depth == 0 and row.entry.path != self.folders.top):
            self.reveal(row.entry.real)
        else:
            self._read(row.entry)
            self.refresh_rows()

    def action_collapse(self) -> None:
        """Close it, or go to the one around it."""
        row = self.item
        if row is not None and row.entry is not None and row.is_open:
            self.folders.close(row.entry.path)
            self.refresh_rows()
        elif row is not None and self.highlighted is not None:
            above = range(self.highlighted - 1, -1, -1)
            self.highlighted = next((at for at in above if self.items[at].depth < row.depth), self.highlighted)

    def action_hidden(self) -> None:
        """Show hidden folders, or not."""
        self.folders.hidden = not self.folders.hidden
        self.refresh_rows()

    def action_higher(self) -> None:
        """Let the tree begin higher."""
        was = self.folders.top
        if was == was.parent:
            self.app.bell()
            return
        self.folders.top = was.parent
        self.reveal(was)

    def on_click(self, event: events.Click) -> None:
        """A click on the box marks."""
        super().on_click(event)
        row, offset = self.item, event.get_content_offset(self)
        at = len(MARK) + (0 if row is None else 2 * row.depth + 2)
        if row is not None and offset is not None and at <= offset.x < at + 3 and event.chain == 1:
            self.action_mark()

    def _read(self, entry: FolderEntry) -> None:
        if self.folders.open(entry.path):
            self.post_message(self.ReadWanted(self, entry))

    def _seek(self) -> None:
        """Put the cursor on what is sought, once it is there; hidden folders are shown for it."""
        sought = self._sought
        if sought is None:
            return
        at, complete = self._place_of(sought), self.folders.is_read(sought)
        if at is None and complete and not self.folders.hidden:
            self.action_hidden()
            at = self._place_of(sought)
        if at is not None:
            self.highlighted = at
        if at is not None or complete:
            self._sought = None

    def _place_of(self, path: Path) -> int | None:
        """Its row in the tree, not that above it."""
        found = (at for at, row in enumerate(self.items) if row.entry is not None and row.entry.path == path)
        return next((at for at in reversed(list(found)) if at >= len(self.folders.first)), None)


def short(path: Path) -> str:
    """A path safe to show, home as ``~``."""
    home = Path.home()
    inside = path == home or home in path.parents
    return show_line(str(Path("~") / path.relative_to(home) if inside else path), 1000)


def _row(row: FolderRow, width: int) -> Content:
    indent = "  " * row.depth
    if row.entry is None:
        return columns(width, [Cell(f"{indent}  {row.remark}", "$foreground-muted")])
    entry = row.entry
    name = short(entry.path) if row.whole else show_line(entry.path.name, 200)
    if entry.is_link:
        name = f"{name} → {short(entry.real)}"
    opener = "▾ " if row.is_open else "· " if entry.is_link or entry.problem else "▸ "
    style = "$foreground-muted" if entry.problem else ""
    text = Content.assemble(indent + opener, (row.mark.value, _STYLES.get(row.mark, "")), " ", (name, style))
    remark = "in a marked one" if row.mark is Mark.WITHIN and not row.remark else row.remark
    return columns(width, [Cell(text, "", 16), Cell(remark, "$foreground-muted", 0, len(remark) + 1, "right")])
