"""A skill in the chat by keys: suggested, asked about, shown, acted on, and shown again although it is approved."""

from __future__ import annotations

import pytest

from mcphost.host.chat.acting_skills import READ_FILE
from mcphost.tui.chat.dialogs import PreviewScreen
from mcphost.tui.consent.skill import SkillScreen
from tests.host.chat.scripted_model import text, use, uses
from tests.host.conftest import script
from tests.tui.chat.chats import chatting

pytestmark = pytest.mark.slow


@pytest.mark.requirement("SKILL-16", "SKILL-18")
async def test_a_skill_is_shown_before_it_is_sent_and_while_it_is_acted_on() -> None:
    wanted = uses(use(READ_FILE, "1", path="references/table.csv"), use("charts__reads", "2"), say="I look.")
    servers = {"charts": script("skills.py", "--page", "100")}
    async with chatting(wanted, text("At noon."), servers=servers, size=(120, 36)) as stage:
        await stage.until(lambda _: stage.host.catalog.skills("charts"))
        await stage.write("/skill charts:tid")
        await stage.shows("▸ charts:tides", "Works out the depth of water")
        await stage.press("tab")
        assert stage.pane.input.text == "/skill charts:tides "
        await stage.write("When?")
        await stage.press("enter")
        await stage.at(SkillScreen)
        await stage.shows("Use the skill tides of charts?")
        await stage.press("a")
        await stage.at(PreviewScreen)
        await stage.shows("What would be sent to big", "tides of charts: it may read 2 files", "│ # Tides")
        await stage.press("y")
        await stage.call_dialog()
        await stage.shows("the model acts on the skill tides of charts", "● charts › read_skill_file · done")
        await stage.press(*["space"] * 3, "y")
        await stage.rest()
        await stage.shows("▌ /skill charts:skill://tides/SKILL.md", "acting on", "│ At noon.")
        await stage.press("escape", "home", "E")
        assert stage.pane.input.text == "/skill charts:skill://tides/SKILL.md\nWhen?"
        await stage.press("escape")
        await stage.say("/skill charts:tides")
        await stage.at(PreviewScreen)
        await stage.press("escape")
        assert len(stage.chat.turns) == 1
