"""A skill on screen: listed, read, asked about, approved, changed by one byte, refused, and asked about again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mcphost.errors import Declined
from mcphost.tui.consent.grants import GrantsScreen
from mcphost.tui.servers.card import card
from tests.tui.skills.skills import TABLE, TIDES, asked, edit, go, load, pane, reads, skills
from tests.tui.stage import NARROW, WIDE, echo, on_stage

pytestmark = pytest.mark.slow


@pytest.mark.requirement("SKILL-03", "SKILL-04", "SKILL-09", "SKILL-10", "SKILL-12", "SKILL-13", "SKILL-18")
async def test_a_skill_is_read_approved_and_refused_once_it_changed(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(skills("--record", record), size=(120, 36)) as stage:
        await go(stage)
        await stage.shows("Skills I 6", "Skills · all servers · 6", "○ new", "◌ dynamic", "north/signals")
        await stage.press(*["down"] * 5, *["up"] * 5)
        await stage.shows("Files · 3 files · 422 B", "frontmatter", "Apache-2.0")
        assert reads(record) == []

        await stage.press("enter")
        await stage.shows("✓ verified", "size, digest and frontmatter are as listed", "add the depth of the chart")
        assert (reads(record), stage.host.consent.grants()) == ([TIDES], [])

        loading = load(stage)
        await asked(stage)
        await stage.shows("Use the skill tides of harbour?", "not approved before", "asked by you")
        await stage.press("u")
        assert (await loading).skill.uri == TIDES
        await stage.shows("state ● approved, until mcphost exits")
        await stage.press("escape", "g")
        await stage.at(GrantsScreen)
        await stage.shows("skill tides", "as long as its 3 files are the same", "until mcphost exits")
        await stage.press("x", "escape")
        await stage.until(lambda _: "● approved" not in stage.text)

        stage.app.guard_seconds = 60.0
        loading = load(stage)
        dialog = await asked(stage)
        await stage.press("y", "u", "a", "enter")  # typed before it could be read
        assert stage.app.screen is dialog
        stage.app.guard_seconds = 0.0
        await stage.press("a")
        await loading

        await edit(stage, published=False)
        await stage.press("I", "enter")
        await stage.shows("✓ verified")
        await stage.press("shift+tab", "down", "enter")
        await stage.shows("✖ refused", "Its content is not used", "✖ differs", "Nothing of it is shown")
        assert "4.2,0.8" not in stage.text

        await edit(stage, published=True)
        await stage.shows("✱ changed: 1 file rotated", "✖ refused")
        await stage.press("r")
        await stage.shows("✱ changed: 1 file rotated, since you approved it a moment ago", "✓ verified", "4.2,0.8")
        loading = load(stage)
        await asked(stage)
        await stage.shows("CHANGED since you approved it", "rotated", "references/table.csv", "- 33 B", "+ 33 B")
        await stage.press("enter")
        with pytest.raises(Declined):
            await loading
        await stage.gone()
        assert reads(record) == [TIDES, TABLE]  # what is in the cache is verified again; no question reads anything


async def test_esc_goes_from_a_file_to_skill_md_and_to_the_list() -> None:
    async with on_stage(skills(), size=NARROW) as stage:
        await go(stage)
        await stage.press("enter")
        await stage.shows("SKILL.md · text/markdown")
        await stage.press("l")
        await stage.shows("references/table.csv")
        await stage.press("enter")
        await stage.shows("size and digest are as listed", "4.2,0.9")
        await stage.press("escape")
        await stage.shows("SKILL.md · text/markdown")
        await stage.press("escape")
        assert pane(stage).step == "list"
        await stage.press(*["down"] * 3, "enter")
        await stage.shows("◌ read ", "SKILL.md, 130 B: its server vouches for no file")
        await stage.press("escape")
        (listed,) = (
            each for each in card(stage.host.servers["harbour"], time.monotonic(), 0) if each.label == "skills"
        )
        assert listed.value.plain == "6 listed · their folders can be listed"
        await stage.press("ctrl+p")
        await stage.write("waits outside")
        await stage.shows("skill · harbour")
        await stage.press("enter")
        await stage.shows("Skill · harbour › skill://harbour/pilots/SKILL.md", "✓ verified")


async def test_there_is_no_tab_without_skills_and_its_key_does_nothing() -> None:
    async with on_stage(echo(), size=WIDE, all_panes=True) as stage:
        await stage.ready()
        await stage.press("I")
        assert not stage.app.main.has_skills
        assert stage.app.main.skills is None
        assert "Skills" not in stage.text
