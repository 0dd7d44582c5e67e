"""The answers of a question."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from mcphost.tui.kit.answers import AnswerOption, AnswerOptions, _in_short, _packed, _row, naming


@pytest.mark.parametrize("locked", [False, True])
def test_a_name_in_an_answer_is_set_off_from_the_sentence(locked: bool) -> None:
    row = _row(AnswerOption("M", naming("mute ", "[b]srv", " until mcphost exits"), "mute", locked=locked), 60)
    assert row.plain.rstrip() == "M   mute “[b]srv” until mcphost exits"
    assert [row.plain[start:end] for start, end, style in row.spans if style == "bold"] == ["“[b]srv”"]


SHORT = [("y", "once"), ("u", "until exit"), ("n", "don't run"), ("p", "later")]


@pytest.mark.parametrize("width", range(14, 60))
def test_no_line_ends_between_a_key_and_its_words(width: int) -> None:
    answers = _in_short([AnswerOption(key, "", "", short) for key, short in SHORT], "y")
    lines = [line.plain for line in _packed(answers, width)]
    assert " · ".join(lines).split(" · ") == ["▸y once", "u until exit", "n don't run", "p later"]
    assert all(len(line) <= width for line in lines)
    assert len(lines) == 1 or width < len(" · ".join(lines))


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
