"""What a tree of folders shows: which are open, what was read of them, and which are marked.

Knows rows. Refuses to read the disk: `FolderRows.take` is handed what was read, and says before what it misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mcphost.tui.folder_listing import FolderEntry, FolderListing


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
