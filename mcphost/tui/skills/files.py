"""The files of a skill, each with a mark: not read, verified, or different from its entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.content import Content

from mcphost.host.catalog import CatalogSkill
from mcphost.host.host import Host
from mcphost.host.skills.service import FileState, FileStatus
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.models.skills import SkillFile, counted_files
from mcphost.tui.kit.rows import Cell, RowList, columns

FILE_MARKS: Final[Mapping[FileState, tuple[str, str]]] = {
    FileState.NOT_READ: ("○", "$foreground-muted"),
    FileState.VERIFIED: ("✓", "$text-success"),
    FileState.DIFFERS: ("✖", "bold $text-error"),
}

SIZE, CHECK = 7, 16
"""Columns: ``16.8 MB`` and ``✓ verified 12:03``."""


class SkillFiles(RowList[SkillFile]):
    HELP = "The files of the skill, as its entry lists them. Opening one reads it, and verifies it."
    DEFAULT_CSS = """
    SkillFiles {
        height: auto; max-height: 33%; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus { border: round $border; border-title-color: $text-accent; }
    }
    """

    def __init__(self, host: Host) -> None:
        super().__init__(self._row)
        self._host = host
        self._entry: CatalogSkill | None = None
        self._open = ""

    def show_files(self, entry: CatalogSkill) -> None:
        """List the files of this entry, SKILL.md first; of a dynamic skill, that one alone."""
        skill, self._entry = entry.skill, entry
        files = sorted(skill.files, key=lambda file: skill.path_of(file.uri) != "SKILL.md")
        none = "its server vouches for none" if skill.dynamic else "none is listed"
        sizes = f"{counted_files(len(files))} · {size_text(skill.size)}"
        self.border_title = Content(f"Files · {sizes if files else none}")
        self.set_items(files or [SkillFile(skill.uri, "", 0)], keep=lambda file: file.uri)

    def show_open(self, uri: str) -> None:
        """Mark the file that is shown."""
        self._open = uri
        self.refresh()

    def _row(self, file: SkillFile, width: int) -> Content:
        if self._entry is None:
            return Content("")
        server, skill = self._entry.server, self._entry.skill
        words, style = check_words(file, self._host.skills.file_status(server, skill, file))
        path = show_line(skill.path_of(file.uri), 200)
        return columns(
            width,
            [
                Cell(path, "bold" if file.uri == self._open else "", 10, keep="end"),
                Cell(size_text(file.size) if file.digest else "", "$foreground-muted", SIZE, SIZE, "right"),
                Cell(words, style, CHECK, CHECK),
            ],
        )


def check_words(file: SkillFile, status: FileStatus) -> tuple[str, str]:
    """The last check of a file and its style; one without a digest is read, and not verified."""
    mark, style = FILE_MARKS[status.state]
    if status.state is FileState.VERIFIED and not file.digest:
        return f"◌ read {status.at:%H:%M}", "$text-warning"
    return f"{mark} {status.words}", style
