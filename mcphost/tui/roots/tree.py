"""A tree of folders with check marks; only open folders are read, and only visible rows drawn.

Textual's DirectoryTree has no marks, and none that say "in part".
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.worker import Worker

from mcphost.config import home_folder
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.rows import MARK, Cell, RowList, columns

MOST: Final = 20_000
"""Folders in one folder that are listed."""

READ: Final = 200_000
"""Entries in one folder that are read, folders or not."""

CHECKED_FOR_GIT: Final = 300
"""Folders in one folder up to which each is checked for a git work tree."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A folder; ``real`` is its resolved path, which differs from ``path`` for a link."""

    path: Path
    real: Path
    problem: str = ""
    """Why it cannot be shared or opened."""
    is_git: bool = False

    @property
    def is_link(self) -> bool:
        return self.real != self.path


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The folders in a folder, by name. ``problem``: why they are not known; ``cut``: there are more."""

    entries: tuple[FolderEntry, ...] = ()
    problem: str = ""
    cut: bool = False


def list_folders(folder: Path, real: Path) -> FolderListing:
    """List the folders in ``folder``, whose resolved path is ``real``. Never raises."""
    try:
        with os.scandir(folder) as scan:
            found = list(islice(_folders(islice(scan, READ)), MOST + 1))
            cut = len(found) > MOST or next(scan, None) is not None
    except OSError as error:
        return FolderListing(problem=error.strerror or "cannot be read")
    few = len(found) <= CHECKED_FOR_GIT
    entries = [_entry(each, folder, real, few) for each in found[:MOST]]
    return FolderListing(tuple(sorted(entries, key=lambda each: each.path.name.casefold())), cut=cut)


def top_above(here: Path) -> Path:
    """The top of a tree that contains ``here``: home, else the root."""
    home = home_folder() or Path(here.anchor)
    return home if home in here.parents or here == home else Path(here.anchor)


def offered(here: Path, suggested: Iterable[Path]) -> dict[Path, str]:
    """The suggested folders, each with the reason."""
    words = {True: "suggested: the git work tree you are in", False: "suggested: the folder you are in"}
    return {path: words[path != here or (path / ".git").exists()] for path in suggested}


def _folders(scan: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    for each in scan:
        try:
            if each.is_dir():
                yield each
        except OSError:
            continue  # a circular link


def _entry(found: os.DirEntry[str], folder: Path, real: Path, watched: bool) -> FolderEntry:
    path, at = folder / found.name, real / found.name
    if found.is_symlink():
        at = Path(os.path.realpath(path))
    readable = os.access(path, os.R_OK | os.X_OK)
    is_git = watched and readable and os.path.exists(path / ".git")
    return FolderEntry(path, at, "" if readable else "cannot be read", is_git)


class Mark(Enum):
    """How a folder relates to the marked ones."""

    NONE = "[ ]"
    SHARED = "[x]"
    WITHIN = "[·]"
    """It is inside of a marked folder."""
    PARTLY = "[-]"
    """It contains a marked folder."""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder, or without ``entry`` a remark. ``full_path``: its full path is shown."""

    entry: FolderEntry | None
    depth: int = 0
    is_open: bool = False
    mark: Mark = Mark.NONE
    remark: str = ""
    full_path: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies the row."""
        return (self.entry and self.entry.path, self.depth, self.entry is None and self.remark)


@dataclass
class FolderRows:
    """The rows of a tree below ``top``. ``first`` are folders listed above it, with their full paths and a remark."""

    top: Path
    first: Mapping[Path, str] = field(default_factory=dict)
    hidden: bool = False
    """Are hidden folders shown?"""
    marked: set[Path] = field(default_factory=set)
    """The resolved paths of marked folders."""
    _listings: dict[Path, FolderListing] = field(default_factory=dict)
    _open: set[Path] = field(default_factory=set)

    def open(self, path: Path) -> bool:
        """Open a folder; return True if it must be read first."""
        self._open.add(path)
        return path not in self._listings

    def close(self, path: Path) -> None:
        """Close a folder; it is read again when it is opened."""
        self._open.discard(path)
        self._listings.pop(path, None)

    def store(self, path: Path, listing: FolderListing) -> None:
        """Store the listing of a folder."""
        self._listings[path] = listing

    def parents_of(self, path: Path) -> list[Path]:
        """The folders from the top to the parent of ``path``; the top moves up if it does not contain it."""
        if path != self.top and self.top not in path.parents:
            self.top = Path(path.anchor)
        above = [self.top, *(each for each in reversed(path.parents) if self.top in each.parents)]
        return [] if path == self.top else above

    def is_read(self, path: Path) -> bool:
        """Are all folders around it read?"""
        return all(each in self._listings for each in self.parents_of(path))

    def rows(self) -> list[FolderRow]:
        above = {each for path in self.marked for each in path.parents}
        entries = (FolderEntry(path, path) for path in self.first)
        first = [FolderRow(each, 0, False, self._mark(each, above), self.first[each.path], True) for each in entries]
        return [*first, *self._below([FolderEntry(self.top, self.top)], 0, above)]

    def _below(self, entries: Iterable[FolderEntry], depth: int, above: set[Path]) -> Iterator[FolderRow]:
        stack = [(entry, depth) for entry in entries][::-1]
        while stack:
            entry, level = stack.pop()
            is_open = entry.path in self._open
            yield FolderRow(entry, level, is_open, self._mark(entry, above), _remark(entry), full_path=not level)
            if not is_open:
                continue
            listing = self._listings.get(entry.path)
            inner = [] if listing is None else [each for each in listing.entries if self._shown(each)]
            if words := _listing_remark(listing, bool(inner), self.hidden):
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


def _listing_remark(listing: FolderListing | None, some: bool, hidden: bool) -> str:
    if listing is None:
        return "reading…"
    if listing.problem:
        return f"cannot be read: {listing.problem}"
    if listing.cut:
        return f"only the first {len(listing.entries):,} are listed: / goes to a path"
    if not some:
        return "no folders" + (" but hidden ones (.)" if listing.entries and not hidden else "")
    return ""


_STYLES = {Mark.SHARED: "bold $text-success", Mark.PARTLY: "$text-success", Mark.WITHIN: "$text-success"}


class FolderTree(RowList[FolderRow]):
    """A tree of folders below ``top``; ``first`` are listed above it, with a remark each."""

    HELP = (
        "space marks a folder or unmarks it; → opens one, ← closes it or goes to its parent.\n"
        "[x] marked  [·] inside a marked one  [-] contains a marked one. A link is shared as its target.\n"
        ". shows hidden folders, u moves the top up, / goes to a path."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark", id="folders.toggle", tooltip="Mark this folder, or unmark it"),
        Binding("right,l", "expand", "open", id="folders.open", tooltip="Open this folder"),
        Binding("left,h", "collapse", "close", id="folders.close", tooltip="Close it, or go to its parent"),
        Binding("full_stop", "hidden", "hidden", id="folders.hidden", tooltip="Show hidden folders, or hide them"),
        Binding("u", "higher", "up", id="folders.up", tooltip="Move the top of the tree one folder up"),
    ]

    class Changed(Message):
        """Other rows are listed."""

    @dataclass
    class Toggled(Message):
        """The user toggled the mark of this folder; call `refresh_rows` to show it."""

        entry: FolderEntry

    def __init__(self, top: Path, first: Mapping[Path, str], marked: Iterable[Path]) -> None:
        super().__init__(folder_row)
        self.folders = FolderRows(top, first, marked=set(marked))
        self._target: Path | None = None

    def on_mount(self) -> None:
        self.refresh_rows()

    def refresh_rows(self) -> None:
        """Show what is open and marked now."""
        self.set_items(self.folders.rows(), keep=lambda row: row.key)
        self.post_message(self.Changed())

    def show_listing(self, path: Path, listing: FolderListing) -> None:
        self.folders.store(path, listing)
        self.refresh_rows()
        self._go_to_target()

    def reveal(self, path: Path, *, go: bool = True) -> None:
        """Open the folders around this one, and ``go`` there."""
        self.call_later(self._open_around, path, go)  # the worker must belong to this widget, whoever calls

    def _open_around(self, path: Path, go: bool) -> None:
        self._target = path if go else None
        for each in self.folders.parents_of(path):
            self._read(FolderEntry(each, each))
        self.refresh_rows()
        self._go_to_target()

    def action_mark(self) -> None:
        if self.item is not None and self.item.entry is not None:
            self.post_message(self.Toggled(self.item.entry))

    def action_open(self) -> None:
        row = self.item
        if row is not None and row.is_open:
            self.action_collapse()
        else:
            self.action_expand()

    def action_expand(self) -> None:
        """Open it; a link, or a folder listed above the tree, is gone to."""
        row = self.item
        if row is None or row.entry is None or row.entry.problem:
            self.app.bell()
        elif row.entry.is_link or (row.full_path and row.depth == 0 and row.entry.path != self.folders.top):
            self.reveal(row.entry.real)
        else:
            self._read(row.entry)
            self.refresh_rows()

    def action_collapse(self) -> None:
        """Close it, or go to its parent."""
        row = self.item
        if row is not None and row.entry is not None and row.is_open:
            self.folders.close(row.entry.path)
            self.refresh_rows()
        elif row is not None and self.highlighted is not None:
            above = range(self.highlighted - 1, -1, -1)
            self.highlighted = next((at for at in above if self.items[at].depth < row.depth), self.highlighted)

    def action_hidden(self) -> None:
        self.folders.hidden = not self.folders.hidden
        self.refresh_rows()

    def action_higher(self) -> None:
        was = self.folders.top
        if was == was.parent:
            self.app.bell()
            return
        self.folders.top = was.parent
        self.reveal(was)

    def on_click(self, event: events.Click) -> None:
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

    def _go_to_target(self) -> None:
        """Put the cursor on the folder being looked for, once it is listed; show hidden folders if needed."""
        target = self._target
        if target is None:
            return
        at, complete = self._place_of(target), self.folders.is_read(target)
        if at is None and complete and not self.folders.hidden:
            self.action_hidden()
            at = self._place_of(target)
        if at is not None:
            self.highlighted = at
        if at is not None or complete:
            self._target = None

    def _place_of(self, path: Path) -> int | None:
        """Its row in the tree, not the one above it."""
        found = (at for at, row in enumerate(self.items) if row.entry is not None and row.entry.path == path)
        return next((at for at in reversed(list(found)) if at >= len(self.folders.first)), None)


def short(path: Path) -> str:
    """A path, safe to show, with home as ``~``."""
    home = home_folder() or path
    inside = path == home or home in path.parents
    return show_line(str(Path("~") / path.relative_to(home) if inside else path), 1000)


def folder_row(row: FolderRow, width: int) -> Content:
    """A row of the tree; of a full path that is too long the end is shown."""
    indent = "  " * row.depth
    if row.entry is None:
        return columns(width, [Cell(f"{indent}  {row.remark}", "$foreground-muted")])
    entry = row.entry
    name = short(entry.path) if row.full_path else show_line(entry.path.name, 200)
    if entry.is_link:
        name = f"{name} → {short(entry.real)}"
    # Not the mark of the cursor, which stands before it.
    opener = "▾ " if row.is_open else "· " if entry.is_link or entry.problem else "▹ "
    style = "$foreground-muted" if entry.problem else ""
    head = Content.assemble(indent + opener, (row.mark.value, _STYLES.get(row.mark, "")))
    keep: Literal["start", "end"] = "end" if row.full_path and not row.depth else "start"
    remark = "inside a marked one" if row.mark is Mark.WITHIN and not row.remark else row.remark
    return columns(
        width,
        [
            Cell(head, "", head.cell_length, head.cell_length),
            Cell(name, style, 8, keep=keep),
            Cell(remark, "$foreground-muted", 0, len(remark) + 1, "right"),
        ],
    )
