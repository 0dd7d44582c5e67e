"""The input of the chat, alone on a screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mcphost.tui.chat.input import ChatInput, Suggestion

TYPED = "/demo:watch_report watch="


class Writing(App[None]):
    """Holds the input, and records what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.input, self.sent = ChatInput(), list[str]()

    def compose(self) -> ComposeResult:
        yield self.input

    def on_mount(self) -> None:
        self.input.focus()

    def on_chat_input_entered(self, event: ChatInput.Entered) -> None:
        self.sent.append(event.text)


@asynccontextmanager
async def writing(suggested: Sequence[str]) -> AsyncIterator[tuple[Writing, Pilot[None]]]:
    app = Writing()
    async with app.run_test(size=(80, 24)) as pilot:
        app.input.write(TYPED)
        await pilot.pause()
        app.input.suggest(TYPED, [Suggestion(len(TYPED), len(TYPED), each) for each in suggested])
        yield app, pilot


async def test_enter_sends_a_word_typed_before_newer_suggestions() -> None:
    async with writing(["first", "middle", "last"]) as (app, pilot):
        await pilot.press(*"first", "enter")
        assert app.sent == [f"{TYPED}first"]


@pytest.mark.parametrize("key", ["tab", "enter"])
async def test_a_suggestion_completes_the_letters_typed_since_it_came(key: str) -> None:
    async with writing(["first", "middle", "last"]) as (app, pilot):
        await pilot.press("m", "i", key)
        assert app.input.text == f"{TYPED}middle "
        assert not app.sent


async def test_a_suggestion_that_no_longer_fits_is_not_taken() -> None:
    async with writing(["first", "middle", "last"]) as (app, pilot):
        await pilot.press("x")
        assert not app.input.suggestions.values
        await pilot.press("enter")
        assert app.sent == [f"{TYPED}x"]
