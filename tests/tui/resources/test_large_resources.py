"""Size, age, priority and audience of resources on screen, as servers declare them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.catalog import CatalogResource
from mcphost.tui.kit.modal_screen import AskScreen
from tests.tui.resources.resources import SIZES, go, offers, pane, seen
from tests.tui.stage import NARROW, WIDE, Stage, on_stage

pytestmark = pytest.mark.slow
HUGE = "memo:///huge"


async def question(stage: Stage) -> None:
    """Wait until the question is drawn and takes keys."""
    await stage.until(lambda app: isinstance(app.screen, AskScreen) and app.screen.shown_for() >= 0)


@SIZES
@pytest.mark.requirement("RES-09")
async def test_a_resource_declared_large_is_read_only_after_a_question(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--huge", "--record", record), size=size) as stage:
        await go(stage, "huge")
        await stage.press("enter")
        await question(stage)
        await stage.until(lambda _: "offers says that this resource is large. Read it?" in stage.flat)
        await stage.until(lambda _: "500 MB, as offers says" in stage.flat and "message_bytes" in stage.flat)
        await stage.press("enter", "escape")
        await stage.shows("◌ not read: you said no")
        assert not seen(record, "resources/read")
        await stage.press("escape", "space")
        await question(stage)
        await stage.press("n")
        await stage.gone()
        assert not seen(record, "resources/subscribe")
        await stage.press("enter")
        await question(stage)
        await stage.press("y")
        await stage.shows("so small")
        assert seen(record, "resources/read") == [{"uri": HUGE}]


@pytest.mark.requirement("RES-09")
async def test_a_link_may_say_that_what_it_leads_to_is_large(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await go(stage)
        stage.app.catalog.open("offers", "memo:///readme.md", 10_000_001)
        await question(stage)
        await stage.press("escape")
        await stage.shows("◌ not read")
        stage.app.catalog.open("offers", "memo:///readme.md", -1)
        await stage.shows("Read me", "Markdown")


@pytest.mark.requirement("RES-09")
async def test_resources_are_sorted_by_their_annotations() -> None:
    async with on_stage(offers("--huge"), size=WIDE) as stage:

        def listed() -> list[str]:
            entries = [each for each in pane(stage).list.rows.items if isinstance(each, CatalogResource)]
            return [each.key[1].partition("///")[2] for each in entries[:3]]

        await go(stage)
        await stage.press("greater_than_sign", "greater_than_sign", "greater_than_sign")
        await stage.shows("for you", "for models")
        await stage.until(lambda _: any(" / " in line and "folder" in line for line in stage.text.split("\n")))
        assert listed() == ["readme.md", "pixel.png", "folder"]
        await stage.press("o")
        await stage.shows("newest first", "2025-06-01", "2025-01-12")
        assert listed() == ["huge", "readme.md", "pixel.png"]
        await stage.press("o")
        await stage.shows("by priority", "0.8")
        assert listed() == ["readme.md", "huge", "pixel.png"]
        await stage.press("o")
        await stage.until(lambda _: "first ─" not in stage.text)
        assert listed() == ["readme.md", "pixel.png", "folder"]
        await go(stage, "for models")
        await stage.shows("1 of 7", "huge")
