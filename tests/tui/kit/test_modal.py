"""The answers of a question."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from mcphost.tui.kit.modal import AnswerOption, AnswerOptions, _row, naming


@pytest.mark.parametrize("locked", [False, True])
def test_a_name_in_an_answer_is_set_off_from_the_sentence(locked: bool) -> None:
    row = _row(AnswerOption("M", naming("mute ", "[b]srv", " until mcphost exits"), "mute", locked=locked), 60)
    assert row.plain.rstrip() == "M   mute [b]srv until mcphost exits"
    assert [row.plain[start:end] for start, end, style in row.spans if style == "bold"] == ["[b]srv"]


@pytest.mark.parametrize("had_focus", [True, False])
async def test_answers_that_are_listed_again_take_back_only_their_own_focus(had_focus: bool) -> None:
    answers, field = AnswerOptions(), Input(disabled=had_focus)

    class Asking(App[None]):
        def compose(self) -> ComposeResult:
            yield from (answers, field)

    async with Asking().run_test() as pilot:
        answers.offer([AnswerOption("y", "yes", "allow")])
        (answers if had_focus else field).focus()
        await pilot.pause()
        answers.display = False
        await pilot.pause()
        pilot.app.screen.set_focus(None)  # as where the window of the terminal is left
        answers.display = True
        await pilot.pause()
        assert pilot.app.focused is (answers if had_focus else None)
