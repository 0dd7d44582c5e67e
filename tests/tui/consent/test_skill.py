"""The dialog for a skill: what it says, and when it can be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from textual.app import App

from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.definition_diff import Difference
from mcphost.host.consent.questions import Answer, SkillQuestion
from mcphost.host.consent.skill_approvals import FileChange, SkillApproval, SkillDifferences, SkillState
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.skill import SkillScreen, skill_facts
from mcphost.tui.kit.reader import ReaderScreen
from tests.tui.skills.skills import skill

SINCE = datetime(2026, 11, 1).astimezone()
OLD, NEW = (
    SkillFile("skill://tides/a.md", f"sha256:{'a' * 64}", 10),
    SkillFile("skill://tides/a.md", f"sha256:{'b' * 64}", 11),
)


def question(asked: Skill | None = None, approval: SkillApproval | None = None) -> SkillQuestion:
    known = approval or SkillApproval(SkillState.NEW)
    return SkillQuestion("harbour", asked or skill(), "python skills.py", known, "claude", "a skill is asked about")


def changed(**differences: Any) -> SkillApproval:
    return SkillApproval(SkillState.CHANGED, SINCE, Lifetime.ALWAYS, SkillDifferences(**differences))


def words(asked: SkillQuestion) -> str:
    return "\n".join(
        f"{each.label} {each.value.plain}{f' | {each.other.plain}' if each.other else ''}"
        for each in skill_facts(asked)
    )


@pytest.mark.requirement("SKILL-18")
def test_a_new_skill_says_what_goes_to_the_model_and_what_it_may_read() -> None:
    said = words(question(skill(files={"table.csv": b"1" * 1200, "chart.png": b"2"})))
    assert "history not approved before" in said
    assert "from harbour · python skills.py" in said
    assert "model gets SKILL.md, 5 B, about 2 tokens, marked as untrusted text of harbour; you see it first" in said
    assert "may read 2 more files, 1.2 kB, each verified when it is read\n table.csv · 1.2 kB\n chart.png · 1 B" in said
    assert "description Use it for tides." in said


@pytest.mark.requirement("SKILL-13")
def test_a_changed_skill_says_each_difference_first() -> None:
    files = [FileChange("a.md", OLD, NEW), FileChange("b.md", None, NEW), FileChange("c.md", OLD, None)]
    fields = [Difference("description", "Good.", "Bad.")]
    approval = changed(files=files, frontmatter=fields, command=[Difference("command", "one", "two")], text=("x", "y"))
    said = words(question(approval=approval))
    assert said.startswith("history CHANGED since you approved it on 1 Nov 2026\nrotated a.md\n")
    assert f"- 10 B · sha256:{'a' * 16}… | + 11 B · sha256:{'b' * 16}…" in said
    assert f"added b.md\n + 11 B · sha256:{'b' * 16}…\nremoved c.md\n - 10 B · sha256:{'a' * 16}…" in said
    assert (
        "changed command\n - one | + two\nchanged description\n - Good. | + Bad.\nchanged SKILL.md\n - x | + y" in said
    )


@pytest.mark.requirement("SKILL-14", "SKILL-16")
def test_what_a_skill_does_not_get_with_the_approval_is_named() -> None:
    said = words(question(skill(files={"pilots/SKILL.md": b""}, hooks={}, **{"allowed-tools": "Bash"})))
    assert "not with it pilots/SKILL.md, a skill of its own" in said
    assert "ignored hooks and allowed-tools in its frontmatter: a skill is granted nothing" in said


@pytest.mark.hostile("T01")
def test_hidden_characters_and_many_files_are_counted() -> None:
    many: Mapping[str, bytes] = {f"{number}.txt": b"1" for number in range(500)}
    said = words(question(skill(files=many, description="a\u202eb", license="\x1b[2J")))
    assert "beware its frontmatter holds 1 invisible characters, marked ⟨U+…⟩" in said
    assert "description a⟨U+202E⟩b" in said
    assert " … and 488 more: f lists all" in said


class Asking(App[None]):
    """The dialog alone."""

    def __init__(self, asked: SkillQuestion) -> None:
        super().__init__()
        self.dialog = SkillScreen(OpenQuestion(1, asked, 0.0, asyncio.Future()), asked)
        self.answers = list[Answer | None]()

    def on_mount(self) -> None:
        self.push_screen(self.dialog, self.answers.append)


@pytest.mark.parametrize(("key", "lifetime"), [("y", Lifetime.ONCE), ("u", Lifetime.SESSION), ("a", Lifetime.ALWAYS)])
async def test_a_skill_is_approved_once_for_the_run_or_always(key: str, lifetime: Lifetime) -> None:
    app = Asking(question())
    async with app.run_test(size=(100, 36)) as pilot:
        assert app.dialog.answers.item is not None
        assert app.dialog.answers.item.key == "n"
        await pilot.press(key)
    assert app.answers == [Answer(allow=True, lifetime=lifetime)]


@pytest.mark.hostile("P09")
async def test_a_skill_must_be_read_to_the_end_before_it_is_approved() -> None:
    app = Asking(question(skill(files={f"{number}.txt": b"1" for number in range(12)}, description="long " * 200)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("y", "u", "a")
        assert app.answers == []
        await pilot.press("f")
        assert isinstance(app.screen, ReaderScreen)
        await pilot.press("escape", *["space"] * 6, "enter")
    assert app.answers == [Answer(allow=False)]


@pytest.mark.requirement("SKILL-12")
async def test_a_dynamic_skill_can_only_be_used_this_time() -> None:
    app = Asking(question(skill(files="dynamic"), SkillApproval(SkillState.DYNAMIC)))
    async with app.run_test(size=(100, 36)) as pilot:
        assert app.dialog.has_class("-careful")
        await pilot.press("u", "a")
        assert app.answers == []
        await pilot.press("y")
    assert app.answers == [Answer(allow=True)]
