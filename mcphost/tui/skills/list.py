"""The list of skills, with what is known of each from its entry: nothing is read for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from textual.content import Content

from mcphost.host.catalog import CatalogKind, CatalogSkill
from mcphost.host.connections.connection import Connection
from mcphost.host.consent.skill_approvals import SkillState
from mcphost.host.host import Host
from mcphost.host.skills.service import SkillStatus
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.models.skills import Skill, counted_files
from mcphost.protocol.skill_uris import looks_like
from mcphost.tui.catalog.list import CatalogList
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, columns

STATE_MARKS: Final[Mapping[SkillState, tuple[str, str]]] = {
    SkillState.NEW: ("○", ""),
    SkillState.APPROVED: ("●", "$text-success"),
    SkillState.CHANGED: ("✱", "bold $text-warning"),
    SkillState.DYNAMIC: ("◌", "$foreground-muted"),
    SkillState.REFUSED: ("✖", "$text-error"),
}

FILES, SIZE, STATE = 9, 7, 10
"""Columns: ``512 files``, ``16.8 MB`` and ``● approved``."""

FOR_FILES, FOR_SIZES = 40, 48
"""Columns of a row from which the number of files, and their size, leave room for a name."""


class SkillList(CatalogList[CatalogSkill]):
    TITLE = "Skills"
    EMPTY = (
        "No skills: no ready server lists any.\n"
        "A skill is a set of instructions for a model, with the files that it needs. c opens the server's card."
    )
    HELP = (
        "The skills on offer, each with its state. ○ is new, ● approved, ✱ changed since you approved it; ◌ is\n"
        "dynamic: its server vouches for no file. ✖ is refused, for the reason in its row. Nothing of a skill is read\n"
        "until you open it. Skills of one name are listed by their paths."
    )

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._same = frozenset[tuple[str, str]]()
        """The servers with more than one skill of a name, and that name, folded."""

    def row(self, entry: CatalogSkill, width: int) -> Content:
        skill, status = entry.skill, self.status_of(entry)
        mark, style = STATE_MARKS[status.kind]
        refused = status.kind is SkillState.REFUSED
        about = skill.refusal if refused else skill.description
        cells = [*self.title_cells(self.label(entry), skill.uri, about, width), *self.server_cells(entry, width)]
        if width >= FOR_FILES and not refused:  # else the reason has the room
            count = counted_files(len(skill.files)) if skill.files else ""
            cells.append(Cell(count, "$foreground-muted", FILES, FILES, "right"))
        if width >= FOR_SIZES and not refused:
            cells.append(Cell(size_text(skill.size) if skill.files else "", "$foreground-muted", SIZE, SIZE, "right"))
        return columns(width, [*cells, Cell(f"{mark} {status.kind.value}", style, STATE, STATE)])

    def status_of(self, entry: CatalogSkill) -> SkillStatus:
        return self._host.skills.status(entry.server, entry.skill)

    def label(self, entry: CatalogSkill) -> str:
        """The name; of several that look the same, the path, which ends with it. Not safe to show."""
        ambiguous = bool(self._same) and (entry.server, _folded(entry.skill)) in self._same
        return entry.skill.path if ambiguous else entry.skill.label

    def defined(self, entry: CatalogSkill) -> Skill:
        return entry.skill

    def search_text(self, entry: CatalogSkill) -> SearchText:
        skill = entry.skill
        return SearchText(skill.uri, self.label(entry), entry.server, more=skill.description)

    def show_entries(self, entries: Sequence[CatalogSkill], server: str | None) -> None:
        if entries != self._entries:
            names = Counter((each.server, _folded(each.skill)) for each in entries)
            self._same = frozenset(name for name, count in names.items() if count > 1)
        super().show_entries(entries, server)

    def explain(self, servers: Mapping[str, Connection], chosen: str | None) -> None:
        """Say of an empty list that it is coming, or why a server could not list its skills."""
        super().explain(servers, chosen)
        listing = [each for name, each in servers.items() if chosen in (None, name)]
        if words := _why_not_listed(listing):
            self.say_when_empty(words)

    def _label(self, entry: CatalogSkill) -> str:
        return self.label(entry)


def _folded(skill: Skill) -> str:
    """Equal for names that look the same."""
    label = skill.label
    return label if label.isascii() else looks_like(label)


def _why_not_listed(servers: Iterable[Connection]) -> str:
    """Why the skills of these servers are not listed; empty if they are, or if none of the servers is ready."""
    waits = False
    for server in servers:
        listing = server.listings.of_kind(CatalogKind.SKILLS)
        if not server.ready or not server.listings.declared(CatalogKind.SKILLS):
            continue
        if listing.failure is not None:
            return f"{server.name}: {show_line(str(listing.failure), 300)}\nL in the list of servers lists again."
        waits = waits or listing.freshness is None
    return "Listing the skills…" if waits else ""
