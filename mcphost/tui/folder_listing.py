"""The folders in a folder, read from the disk: bounded however large it is, links told apart, unreadable ones said.

Waits for the disk: call it in a thread. Refuses to follow anything: a link is an entry with a target.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

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
