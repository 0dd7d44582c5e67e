"""Folders to choose from: a tree with check marks, of which only what is open is read and what is in view is drawn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.worker import Worker

from mcphost.dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.rows import MARK, Cell, RowList, columns

MOST: Final = 20_000
"""Folders of one folder that are listed; nobody looks through more."""

READ: Final = 200_000
"""Entries of one folder that are read, folders or not."""

WATCHED: Final = 300
"""Folders in one folder up to which each is looked into for a git work tree."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A folder in a folder. ``real`` is where it is; that differs from ``path`` for a link."""

    path: Path
    real: Path
    problem: str = ""
    """Why it cannot be shared or opened."""
    is_git: bool = False

    @property
    def is_link(self) -> bool:
        """Does it lead somewhere else?"""
        return self.real != self.path


@dataclass(frozen=True, slots=True)
class FolderListing:
    """What is in a folder, by name. ``problem``: why that is not known; ``cut``: there is more than is listed."""

    entries: tuple[FolderEntry, ...] = ()
    problem: str = ""
    cut: bool = False


def list_folders(folder: Path, real: Path) -> FolderListing:
    """The folders in ``folder``, which really is at ``real``. Never raises."""
    try:
        with os.scandir(folder) as scan:
            found = list(islice(_folders(islice(scan, READ)), MOST + 1))
            cut = len(found) > MOST or next(scan, None) is not None
    except OSError as error:
        return FolderListing(problem=error.strerror or "cannot be read")
    few = len(found) <= WATCHED
    entries = [_entry(each, folder, real, few) for each in found[:MOST]]
    return FolderListing(tuple(sorted(entries, key=lambda each: each.path.name.casefold())), cut=cut)


def top_above(here: Path) -> Path:
    """Where a tree that shows ``here`` begins: home, or else the root."""
    home = Path.home()
    return home if home in here.parents or here == home else Path(here.anchor)


def offered(here: Path, suggested: Iterable[Path]) -> dict[Path, str]:
    """What is suggested, and why."""
    words = {True: "suggested: the git work tree you are in", False: "suggested: the folder you are in"}
    return {path: words[path != here or (path / ".git").exists()] for path in suggested}


def _folders(scan: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    for each in scan:
        try:
            if each.is_dir():
                yield each
        except OSError:
            continue  # a link in a circle


def _entry(found: os.DirEntry[str], folder: Path, real: Path, watched: bool) -> FolderEntry:
    path, at = folder / found.name, real / found.name
    if found.is_symlink():
        at = Path(os.path.realpath(path))
    readable = os.access(path, os.R_OK | os.X_OK)
    is_git = watched and readable and os.path.exists(path / ".git")
    return FolderEntry(path, at, "" if readable else "cannot be read", is_git)


class Mark(Enum):
    """How a folder stands to what is shared."""

    NONE = "[ ]"
    SHARED = "[x]"
    WITHIN = "[·]"
    """It lies in one that is shared."""
    PARTLY = "[-]"
    """Something in it is shared."""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder on a line, or without ``entry`` a remark. ``whole``: its whole path is shown."""

    entry: FolderEntry | None
    depth: int = 0
    is_open: bool = False
    mark: Mark = Mark.NONE
    remark: str = ""
    whole: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """By which a row is found again."""
        return (self.entry and self.entry.path, self.depth, self.entry is None and self.remark)


@dataclass
class FolderRows:
    """A tree below ``top``. ``first`` are folders with a remark that stand above it, whole."""

    top: Path
    first: Mapping[Path, str] = field(default_factory=dict)
    hidden: bool = False
    """Are those shown whose names begin with a dot?"""
    marked: set[Path] = field(default_factory=set)
    """Where the marked ones really are."""
    _listings: dict[Path, FolderListing] = field(default_factory=dict)
    _open: set[Path] = field(default_factory=set)

    def open(self, path: Path) -> bool:
        """Open a folder; True when it must be read first."""
        self._open.add(path)
        return path not in self._listings

    def close(self, path: Path) -> None:
        """Close it; it is read anew when it is opened again."""
        self._open.discard(path)
        self._listings.pop(path, None)

    def take(self, path: Path, listing: FolderListing) -> None:
        """What was read of a folder."""
        self._listings[path] = listing

    def way_to(self, path: Path) -> list[Path]:
        """The folders from the top down to the one ``path`` lies in; the top moves where it is not above it."""
        if path != self.top and self.top not in path.parents:
            self.top = Path(path.anchor)
        above = [self.top, *(each for each in reversed(path.parents) if self.top in each.parents)]
        return [] if path == self.top else above

    def is_read(self, path: Path) -> bool:
        """Is all read that is around it?"""
        return all(each in self._listings for each in self.way_to(path))

    def rows(self) -> list[FolderRow]:
        """All rows, from above."""
        above = {each for path in self.marked for each in path.parents}
        entries = (FolderEntry(path, path) for path in self.first)
        first = [FolderRow(each, 0, False, self._mark(each, above), self.first[each.path], True) for each in entries]
        return [*first, *self._below([FolderEntry(self.top, self.top)], 0, above)]

    def _below(self, entries: Iterable[FolderEntry], depth: int, above: set[Path]) -> Iterator[FolderRow]:
        stack = [(entry, depth) for entry in entries][::-1]
        while stack:
            entry, level = stack.pop()
            is_open = entry.path in self._open
            yield FolderRow(entry, level, is_open, self._mark(entry, above), _remark(entry), whole=not level)
            if not is_open:
                continue
            listing = self._listings.get(entry.path)
            inner = [] if listing is None else [each for each in listing.entries if self._shown(each)]
            if words := _told(listing, bool(inner), self.hidden):
                yield FolderRow(None, level + 1, remark=words)
            stack.extend((each, level + 1) for each in reversed(inner))

    def _shown(self, entry: FolderEntry) -> bool:
        return self.hidden or not entry.path.name.startswith(".") or entry.real in self.marked

    def _mark(self, entry: FolderEntry, above: set[Path]) -> Mark:
        if entry.real in self.marked:
            return Mark.SHARED
        if any(each in self.marked for each in entry.real.parents):
            return Mark.WITHIN
        return Mark.PARTLY if entry.real in above else Mark.NONE


def _remark(entry: FolderEntry) -> str:
    if entry.problem:
        return entry.problem
    return "git work tree" if entry.is_git else ""


def _told(listing: FolderListing | None, some: bool, hidden: bool) -> str:
    if listing is None:
        return "reading …"
    if listing.problem:
        return f"cannot be read: {listing.problem}"
    if listing.cut:
        return f"there are more than the {len(listing.entries):,} that are listed: / goes to one by its path"
    if not some:
        return "no folders in it" + (" but hidden ones (.)" if listing.entries and not hidden else "")
    return ""


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

    @dataclass
    class Toggled(Message):
        """The user marked this folder, or took the mark away; it is shown after `refresh_rows`."""

        entry: FolderEntry

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
        """Mark the folder, or take the mark away."""
        if self.item is not None and self.item.entry is not None:
            self.post_message(self.Toggled(self.item.entry))

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
            _: Worker[None] = self.run_worker(partial(self._load, entry.path, entry.real), group="disk")

    async def _load(self, path: Path, real: Path) -> None:
        self.show_listing(path, await asyncio.to_thread(list_folders, path, real))

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
