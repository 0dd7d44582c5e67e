"""The rows of the list of skills, and the words of an empty one."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult

from mcphost.errors import ListingFailed
from mcphost.host.catalog import CatalogKind, CatalogSkill
from mcphost.host.connections.connection import ServerState
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.skill_approvals import SkillApproval, SkillState
from mcphost.host.skills.service import SkillStatus
from mcphost.protocol.models.skills import Skill
from mcphost.tui.skills.list import SkillList
from tests.tui.skills.skills import entries, skill


class KnownSkills:
    """The part of a host that the list asks, and how often it was."""

    def __init__(self, **states: SkillState) -> None:
        self.skills, self._states, self.asked = self, states, 0

    def status(self, server: str, skill: Skill) -> SkillStatus:
        self.asked += 1
        state = SkillState.REFUSED if skill.refusal else SkillState.DYNAMIC if skill.dynamic else SkillState.NEW
        state = self._states.get(skill.name, state)
        return SkillStatus(state, state.value, SkillApproval(state, lifetime=Lifetime.ONCE))


class Shelf(App[None]):
    def __init__(self, listed: list[CatalogSkill], **states: SkillState) -> None:
        super().__init__()
        self.known = KnownSkills(**states)
        host: Any = self.known
        self.listed, self.list = listed, SkillList(host)

    def compose(self) -> ComposeResult:
        yield self.list

    def on_mount(self) -> None:
        self.list.show_entries(self.listed, None)
        self.list.rows.focus()

    def rows(self) -> list[str]:
        """The words of each row on screen."""
        drawn = (self.list.rows.render_line(number).text for number in range(len(self.list.rows.items)))
        return [" ".join(line.removeprefix("▸").split()) for line in drawn]


@pytest.mark.requirement("SKILL-06")
async def test_a_row_has_files_size_and_state_or_why_it_is_refused() -> None:
    listed = entries(
        skill("tides", {"table.csv": b"1" * 1200}),
        skill("harbour"),
        skill("logbook", "dynamic"),
        skill("signals", "Dynamic"),
        skill("pilots"),
    )
    app = Shelf(listed, harbour=SkillState.APPROVED, pilots=SkillState.CHANGED)
    async with app.run_test(size=(100, 10)):
        assert app.rows() == [
            "tides Use it for tides. 2 files 1.2 kB ○ new",
            "harbour Use it for harbour. 1 file 5 B ● approved",
            "logbook Use it for logbook. ◌ dynamic",
            "signals The entry has 'Dynamic' in place of its files. ✖ refused",
            "pilots Use it for pilots. 1 file 5 B ✱ changed",
        ]


@pytest.mark.parametrize(
    ("width", "row"), [(56, "tides 1 file 5 B ○ new"), (46, "tides 1 file ○ new"), (36, "tides ○ new")]
)
async def test_a_narrow_list_keeps_name_and_state(width: int, row: str) -> None:
    app = Shelf(entries(skill()))
    async with app.run_test(size=(width, 10)):
        assert app.rows() == [row]


@pytest.mark.requirement("SKILL-11")
async def test_skills_of_one_name_are_listed_by_path_and_server() -> None:
    twins = skill("north/signals"), skill("south/signals"), skill("tides")
    app = Shelf([*entries(*twins), *entries(skill("signals"), server="pier")])
    async with app.run_test(size=(36, 10)) as pilot:
        words = [row.partition(" ○")[0] for row in app.rows()]
        assert words == ["▾ harbour 3", "north/signals", "south/signals", "tides", "▾ pier 1", "signals"]
        await pilot.press("slash", *"pier")
        assert app.rows() == ["signals pier ○ new"]
        await pilot.press("escape", "slash", *"south")
        assert app.rows()[0] == "south/signals harbour ○ new"


async def test_ten_thousand_skills_ask_only_for_the_rows_on_screen() -> None:
    one = skill()
    many = [CatalogSkill("harbour", one.model_copy(update={"uri": f"skill://s{n}/SKILL.md"})) for n in range(10_000)]
    app = Shelf(many)
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("end", "home", "pagedown")
        assert 0 < app.known.asked < 200


@pytest.mark.hostile("T01")
async def test_hidden_characters_in_a_row_are_visible() -> None:
    app = Shelf(entries(skill(description="quiet\u202e\x1b[2J\U000e0041 [bold]words[/]")))
    async with app.run_test(size=(120, 5)):
        assert "quiet⟨U+202E⟩␛[2J⟨U+E0041⟩ [bold]words[/]" in app.rows()[0]


class Listed:
    """A server whose skills are listed, or not yet, or could not be."""

    def __init__(self, *, fresh: object = None, failure: ListingFailed | None = None, declares: bool = True) -> None:
        self.name, self.ready, self.state = "harbour", True, ServerState.READY
        self.listings, self.freshness, self.failure, self._declares = self, fresh, failure, declares

    def of_kind(self, kind: CatalogKind) -> Listed:
        return self

    def declared(self, kind: CatalogKind) -> bool:
        return self._declares


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (Listed(), "Listing the skills…"),
        (Listed(failure=ListingFailed("no\x1b")), "harbour: no␛\nL in the list of servers lists again."),
        (Listed(fresh=object()), "“harbour” has no skills."),
        (Listed(declares=False), "“harbour” has no skills."),
    ],
    ids=["listing", "failed", "none", "without the extension"],
)
@pytest.mark.requirement("SKILL-02")
async def test_an_empty_list_says_if_skills_are_listed_or_why_not(server: Any, words: str) -> None:
    app = Shelf([])
    async with app.run_test(size=(80, 10)):
        app.list.explain({"harbour": server}, "harbour")
        assert app.list.rows.empty == words
