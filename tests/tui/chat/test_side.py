"""Facts of a conversation beside it, or in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult

from mcphost.tui.chat.side import ChatFacts, ChatLine, facts_of


class LineApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ChatLine()


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (100, "big · ▲ has read from outside · 24 tools, 2,006 tokens · used about 7,817 of 2,000,000 tokens"),
        (80, "big · ▲ has read from outside · 24 tools, 2,006 tokens"),
        (40, "big · ▲ has read from outside"),
        (20, "big"),
    ],
)
async def test_the_line_about_a_conversation_has_only_whole_parts(width: int, line: str) -> None:
    used = "about 7,817 of 2,000,000 tokens"
    facts = ChatFacts("big", "", 24, 2006, (), False, 0, used, "a handbook", "never", False, (), ())
    app = LineApp()
    async with app.run_test(size=(width, 5)) as pilot:
        shown = app.query_one(ChatLine)
        shown.show_chat_facts(facts)
        await pilot.pause()
        assert shown.render().plain == line


ACTING = (("tides of charts", ""), ("pilots of charts", "It changed."))


async def test_the_line_names_the_skills_that_the_model_acts_on() -> None:
    facts = ChatFacts("big", "", 24, 2006, (), False, 0, "0", "a skill", "never", False, (), (), ACTING)
    app = LineApp()
    async with app.run_test(size=(85, 5)) as pilot:
        shown = app.query_one(ChatLine)
        shown.show_chat_facts(facts)
        await pilot.pause()
        assert shown.render().plain == "big · acting on tides of charts, pilots of charts · ▲ It changed."
        shown.show_chat_facts(replace(facts, acting=ACTING[:1]))
        await pilot.pause()
        assert (
            shown.render().plain == "big · acting on tides of charts · ▲ has read from outside · 24 tools, 2,006 tokens"
        )
    rows = [str(each.value) for each in facts_of(facts) if each.label == "skill"]
    assert rows == ["acting on tides of charts", "acting on pilots of charts: It changed."]
