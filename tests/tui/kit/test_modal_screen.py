"""The frame of a modal screen, as tall as its content where the screen has the rows."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.tui.kit.answers import AnswerOption, AnswerOptions, ReadToEnd
from mcphost.tui.kit.modal_screen import Dialog
from mcphost.tui.kit.rows import RowList

ANSWERS, FRAME = 3, 2


class Asking(Dialog[None]):
    """Shows ``rows`` lines between a line above and three answers."""

    def __init__(self, between: RowList[str] | ReadToEnd) -> None:
        super().__init__()
        self.between, self.answers = between, AnswerOptions()
        self.between.add_class("between")

    def compose(self) -> ComposeResult:
        with self.framed(Content("title")):
            yield Static("above", classes="above")
            yield self.between
            with Vertical(classes="below"):
                yield self.answers

    def on_mount(self) -> None:
        self.answers.offer([AnswerOption(key, key, key) for key in "ynp"])


def rows_of(length: int) -> RowList[str]:
    rows = RowList[str](lambda item, _: Content(item), empty="nothing\nhere")
    rows.set_items([str(number) for number in range(length)])
    return rows


def text_of(length: int) -> ReadToEnd:
    return ReadToEnd(Static("\n".join(str(number) for number in range(length))))


@pytest.mark.parametrize("kind", [rows_of, text_of])
@pytest.mark.parametrize(("length", "shown"), [(1, 1), (10, 10), (14, 14), (15, 14), (500, 14)])
async def test_the_part_between_takes_the_rows_that_are_left(kind: type[RowList[str]], length: int, shown: int) -> None:
    dialog = Asking(kind(length))  # type: ignore[arg-type]
    async with App[None]().run_test(size=(60, 24)) as pilot:
        await pilot.app.push_screen(dialog)
        await pilot.pause()
        assert dialog.between.size.height == shown
        assert dialog.answers.size.height == ANSWERS
        assert dialog.answers.region.y == dialog.between.region.bottom
        assert dialog.frame.outer_size.height == FRAME + 1 + shown + 1 + ANSWERS


async def test_a_list_grows_and_shrinks_with_its_rows() -> None:
    rows = rows_of(0)
    dialog = Asking(rows)
    async with App[None]().run_test(size=(60, 24)) as pilot:
        await pilot.app.push_screen(dialog)
        for length, height in ((0, 2), (5, 5), (500, 14), (3, 3)):
            rows.set_items([str(number) for number in range(length)])
            await pilot.pause()
            assert rows.size.height == height
