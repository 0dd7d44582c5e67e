"""The pane for skills: the list, the files of a skill, and a reader that verifies what it reads.

Nothing is read before the user opens it, and nothing that is read here is given to a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from mcphost.errors import SkillRefused
from mcphost.host.catalog import CatalogSkill
from mcphost.host.host import Host
from mcphost.host.skills.service import SkillStatus
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.tui.catalog.pane import CatalogPane
from mcphost.tui.kit.facts_table import Fact
from mcphost.tui.kit.messages import ResourceLinkFollowed
from mcphost.tui.kit.rows import RowList
from mcphost.tui.results.reading_pane import PaneReading, ReadingView
from mcphost.tui.skills.files import SkillFiles
from mcphost.tui.skills.list import SkillList
from mcphost.tui.skills.reading import described, refusal_blocks, state_facts, with_file

HINT = (
    "A skill is a set of instructions for a model, with the files that it needs.\n\n"
    "Choose one and press enter: its SKILL.md is read, verified and shown here. Nothing is given to a model. "
    "In the chat, /skill uses one."
)

CHANGED = "✱ the entry changed: r reads again"


class SkillsPane(CatalogPane[CatalogSkill]):
    HELP = (
        "The servers' skills. enter reads SKILL.md, or the chosen file, and verifies it by the size and the digest\n"
        "that the server listed; what differs is not shown. Reading gives nothing to a model; in the chat, /skill does."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,ctrl+r", "ask_again", "ask again", id="skills.again", tooltip="Get the entry again, and read again"),
        Binding("y", "copy", "copy URI", id="skills.copy", tooltip="Copy the URI"),
    ]
    DEFAULT_CSS = """
    SkillsPane {
        & SkillFiles { display: none; }
        &.-shown SkillFiles { display: block; }
    }
    """

    def __init__(self, host: Host, *, single: bool = False) -> None:
        self.skills, self.files = SkillList(host), SkillFiles(host)
        super().__init__(host, self.skills, ReadingView("Skill", HINT), single=single)
        self.entry: CatalogSkill | None = None
        """The entry that is shown beside the list."""
        self._held: Skill | None = None
        """The entry by which the shown file was verified; None while nothing was read."""
        self._status: SkillStatus | None = None
        """The state of the skill that is shown above the file."""
        self._stated: tuple[Fact, ...] = ()

    def bench(self) -> Iterable[Widget]:
        return self.files, self.view

    def show_skills(self, skills: Sequence[CatalogSkill], server: str | None) -> None:
        self.skills.explain(self.host.servers, server)
        self.skills.show_entries(skills, server)
        self.skills.rows.refresh()  # what the user approves and reads changes no entry
        self.files.refresh()
        self._follow_list()

    def describe(self, entry: CatalogSkill) -> None:
        """Show what the entry says; nothing is read for it."""
        if self.entry is None or self.entry.key != entry.key:
            self._show_entry(entry)
            self._show_listed(entry)

    async def choose(self, entry: CatalogSkill) -> None:
        """Read SKILL.md, since the user asks for it."""
        self._show_entry(entry)
        self._read(entry.skill.uri)

    def notes(self) -> tuple[str, ...]:
        """Say if the shown file was verified by an earlier entry."""
        stale = self.entry is not None and self._held is not None and self._held.canonical != self.entry.skill.canonical
        return (CHANGED,) if stale else ()

    def show_reading(self, reading: PaneReading) -> None:
        """Show a file, or why it is refused, below the state of the skill."""
        blocks = refusal_blocks(reading.error) if isinstance(reading.error, SkillRefused) else reading.blocks
        self._status, self._stated = self._current_status, self._facts()
        super().show_reading(replace(reading, blocks=blocks, facts=(*self._stated, *reading.facts)))
        self.files.refresh()

    def show_with_notes(self, reading: PaneReading, *, offset: int = 0) -> None:
        super().show_with_notes(reading, offset=offset)
        self.files.show_open(reading.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "copy":
                return self._uri != ""
            case "ask_again":
                return self._step == "reading" and self.entry is not None
            case "back":
                return self._step != "list" or self.files.has_focus
        return super().check_action(action, parameters)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._uri)

    def action_ask_again(self) -> None:
        """Get the entry from its server, and read the shown file again."""
        if self.view.reading is not None:
            self._read(self.view.reading.name, again=True)

    @on(RowList.Selected, "SkillFiles")
    def _file_chosen(self, event: RowList.Selected[SkillFile]) -> None:
        event.stop()
        self._open_file(event.item.uri)

    def _open_file(self, uri: str) -> None:
        """Read a file; from one beside SKILL.md, esc goes back to that."""
        shown, entry = self.view.reading, self.entry
        if shown is not None and shown.is_read and entry is not None and shown.name == entry.skill.uri:
            self._ways_back.clear()
            self.remember_way_back(None)
        self._read(uri)

    def on_resource_link_followed(self, event: ResourceLinkFollowed) -> None:
        """Read what SKILL.md links to as a file of the skill; what is outside of its folder is a resource."""
        if self.entry is not None and self.entry.skill.path_of(event.uri) != event.uri:
            event.stop()
            self._open_file(event.uri)

    @property
    def _uri(self) -> str:
        """The URI that is copied: of the shown file, or of the skill under the cursor."""
        if self._step == "reading":
            return self.view.reading.name if self.view.reading is not None else ""
        return self.skills.item.skill.uri if self.skills.item is not None else ""

    def _facts(self) -> tuple[Fact, ...]:
        status = self._current_status
        return () if self.entry is None or status is None else tuple(state_facts(self.entry.skill, status))

    def _show_entry(self, entry: CatalogSkill) -> None:
        self.entry = entry
        self.files.show_files(entry)
        self.add_class("-shown")

    def _show_listed(self, entry: CatalogSkill) -> None:
        reading = described(entry, self._facts())
        if reading != self.view.reading:
            self._held = None
            self.view.show_reading(reading)

    def _follow_list(self) -> None:
        """Show what the list, and the user's approvals, say of the shown skill by now."""
        if self.entry is None:
            return
        listed = self.host.catalog.skill(self.entry.server, self.entry.skill.uri)
        if listed is not None and listed is not self.entry.skill:
            self._show_entry(CatalogSkill(self.entry.server, listed))
        if self.view.reading is not None and self.view.reading.listed:
            self._show_listed(self.entry)
        else:
            self._renew_state()
            self.view.show_notes(*self.notes())

    def _renew_state(self) -> None:
        """Show above the file what the user approved, or the server changed, since it was read."""
        reading, before, status = self.view.reading, self._stated, self._current_status
        if reading is not None and status != self._status and reading.facts[: len(before)] == before:
            self._status, self._stated = status, self._facts()
            facts = (*self._stated, *reading.facts[len(before) :])
            self.view.show_reading(replace(reading, facts=facts), *self.notes())

    @property
    def _current_status(self) -> SkillStatus | None:
        if self.entry is None or self.entry.server not in self.host.servers:  # it may have been removed
            return None
        return self.skills.status_of(self.entry)

    def _read(self, uri: str, *, again: bool = False) -> None:
        entry = self.entry
        if entry is not None:
            self._held = None
            self.files.show_open(uri)
            reading = PaneReading(entry.server, uri, facts=self._facts())
            self.start_fetch(reading, partial(self._get, entry, uri, again))

    async def _get(self, entry: CatalogSkill, uri: str, again: bool) -> None:
        await self.show_answer(entry.server, uri, self._verified(entry, uri, again), _timed)

    async def _verified(self, entry: CatalogSkill, uri: str, again: bool) -> PaneReading:
        if again:
            entry = CatalogSkill(entry.server, await self.host.skills.refresh(entry.server, entry.skill.uri))
            if self._shows(entry, uri):
                self._show_entry(entry)
        path = entry.skill.path_of(uri)
        file = await self.host.skills.read_file(entry.server, entry.skill, path, origin="you")
        if self._shows(entry, uri):
            self._held = entry.skill
        return await asyncio.to_thread(with_file, entry.server, file)

    def _shows(self, entry: CatalogSkill, uri: str) -> bool:
        """True if the user has not gone on to another file or skill."""
        shown = self.view.reading
        return self.entry is not None and self.entry.key == entry.key and shown is not None and shown.name == uri


def _timed(_: PaneReading, read: PaneReading, seconds: float) -> PaneReading:
    return replace(read, seconds=seconds)
