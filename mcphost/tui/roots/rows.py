"""The folders of the dialog for roots: rows to mark, and a tree to choose another one from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import DirectoryTree

from mcphost.config import home_folder
from mcphost.host.host import Host
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.roots.facts import short


def known_folders(host: Host, here: Path, suggested: Sequence[Path]) -> dict[Path, str]:
    """The folders to list first, each with a remark: those suggested, those shared with a server, and home."""
    found = dict[Path, str]()
    for path in suggested:
        is_tree = path != here or (path / ".git").exists()
        found[path] = f"suggested: the {'git work tree' if is_tree else 'folder'} you are in"
    for server in (None, *host.servers):
        for folder in host.roots.offered(server):
            called = "all servers" if folder.server is None else show_line(folder.server, 40)
            found.setdefault(folder.path, f"{folder.source.value}, {called}")
    if (home := home_folder()) is not None:
        found.setdefault(home, "home")
    return found


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder that can be marked; ``path`` has no links in it."""

    path: Path
    remark: str = ""
    marked: bool = False


class FolderRows(RowList[FolderRow]):
    """Folders with check boxes."""

    HELP = "The folders that can be shared."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "open", "mark", id="folders.toggle", tooltip="Mark this folder, or unmark it"),
    ]

    @dataclass
    class Toggled(Message):
        """The user marked this folder, or unmarked it."""

        path: Path

    def __init__(self) -> None:
        super().__init__(folder_row, classes="between")

    def show_rows(self, rows: Sequence[FolderRow]) -> None:
        self.set_items(rows, keep=lambda row: row.path)
        self.refresh(layout=True)  # the list is as high as its rows

    def action_open(self) -> None:
        if self.item is not None:
            self.post_message(self.Toggled(self.item.path))


def folder_row(row: FolderRow, width: int) -> Content:
    """A row of the list; of a path that is too long its end is shown."""
    box = ("[x]", "bold $text-success") if row.marked else ("[ ]", "")
    return columns(
        width,
        [
            Cell(*box, 3, 3),
            Cell(short(row.path), "", 8, keep="end"),
            Cell(row.remark, "$foreground-muted", 0, len(row.remark) + 1, "right"),
        ],
    )


LISTED = 2_000
"""Folders of one folder that are listed: Textual's tree takes 50 µs for each, in the event loop."""


class FolderTree(DirectoryTree):
    """The folders below ``path``; enter chooses one, space opens it."""

    auto_expand = False
    hidden = False
    """True if folders whose names begin with a dot are listed."""

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        """Runs in a thread."""
        return islice((path for path in paths if self._is_listed(path)), LISTED)

    def _is_listed(self, path: Path) -> bool:
        try:
            return (self.hidden or not path.name.startswith(".")) and path.is_dir()
        except OSError:
            return False  # a circular link

    def process_label(self, label: object) -> Text:
        """The names come from the disk: Textual would read markup in them."""
        return Text(show_line(str(label), 200))


class FolderScreen(FramedScreen[Path | None]):
    """Chooses a folder below home, or below ``top``. Dismissed with its path, or None."""

    HELP = (
        "Choose a folder. Press Space to open or close one, Enter to choose it, . to list hidden folders.\n"
        f"Of each folder at most {LISTED:,} are listed; / in the dialog before takes any path."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="folder.back", tooltip="Choose none"),
        Binding("full_stop", "hidden", "hidden", id="folders.hidden", tooltip="List hidden folders, or hide them"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    FolderScreen {
        & > .frame { width: 92%; max-width: 120; height: 80%; }
        DirectoryTree { background: $surface; }
    }
    """

    def __init__(self, top: Path | None = None) -> None:
        super().__init__()
        self.folders = FolderTree(top or home_folder() or Path("/"))

    def compose(self) -> ComposeResult:
        with self.framed("Choose a folder", "enter choose · space open · . hidden · esc back"):
            yield self.folders

    def on_mount(self) -> None:
        self.folders.focus()

    @on(DirectoryTree.DirectorySelected)
    def _selected(self, event: DirectoryTree.DirectorySelected) -> None:
        event.stop()
        self.dismiss(event.path)

    async def action_hidden(self) -> None:
        self.folders.hidden = not self.folders.hidden
        await self.folders.reload()
