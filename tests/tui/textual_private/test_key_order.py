"""Keys that come faster than the screen follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Event, Key
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from mcphost.tui.textual_private import corrections
from mcphost.tui.textual_private.corrections import KeyOrder
from tests.conftest import Until


class SlowList(OptionList):
    """Handles one key slowly, for as long as the test says."""

    async def key_z(self) -> None:
        assert isinstance(self.app, Quick)
        await self.app.action_slow_filter()


class Ask(ModalScreen[str]):
    """A dialog that enter closes."""

    def compose(self) -> ComposeResult:
        yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Quick(App[None]):
    """A list, and a field that a key opens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("s", "slow_filter", "filter on a busy machine"),
        Binding("w", "worker_filter", "filter by a worker"),
        Binding("x", "leave", "leave"),
        Binding("a", "ask", "two dialogs, one after the other"),
    ]

    def compose(self) -> ComposeResult:
        yield SlowList("one", "two")
        yield Input()

    def on_mount(self) -> None:
        self.order = KeyOrder(self, super().on_event, lambda: self.focused or self.screen)
        self.idle = asyncio.Event()
        self.query_one(Input).display = False
        self.query_one(OptionList).focus()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and not event.is_forwarded:
            await self.order.take(event)
        else:
            await super().on_event(event)

    def action_filter(self) -> None:
        self.query_one(Input).display = True
        self.query_one(Input).focus()

    async def action_slow_filter(self) -> None:
        await self.idle.wait()
        self.action_filter()

    def action_worker_filter(self) -> None:
        self.order.wait_for(self.run_worker(self.action_slow_filter()))

    def action_ask(self) -> None:
        self.push_screen(Ask(), self.ask_again)

    def ask_again(self, _: str | None) -> None:
        """Some messages later, as where a part of a screen that is in front again asks for the next dialog."""
        self._hop(3)

    def _hop(self, left: int) -> None:
        if left:
            self.query_one(OptionList).call_later(self.call_later, self._hop, left - 1)
        else:
            self.push_screen(Ask())

    async def action_leave(self) -> None:
        await self.query_one(OptionList).remove()


def type_at_once(app: Quick, *keys: str) -> None:
    for key in keys:
        app.post_message(Key(key, {"slash": "/", "enter": "\r"}.get(key, key)))


@asynccontextmanager
async def typed(*keys: str) -> AsyncIterator[Pilot[None]]:
    """A running app that got these keys at once."""
    app = Quick()
    async with app.run_test() as pilot:
        await pilot.pause()
        type_at_once(app, *keys)
        yield pilot


async def written(pilot: Pilot[None], text: str) -> None:
    """Wait until the field holds this text."""
    async with asyncio.timeout(20):
        while pilot.app.query_one(Input).value != text:
            await pilot.pause(0.02)


async def test_letters_follow_a_key_that_moves_the_focus() -> None:
    async with typed("slash", *"storm") as pilot:
        await written(pilot, "storm")


async def test_keys_work_at_once_after_their_target_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corrections, "KEY_SECONDS", 3600.0)
    async with typed("x", "slash", "a") as pilot:
        await written(pilot, "a")


async def test_keys_after_a_closing_one_reach_the_next_dialog(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr(corrections, "KEY_SECONDS", 3600.0)
    async with typed("a", "b", "enter", "c") as pilot:
        app = pilot.app
        # The dialog is there before its field.
        await until(lambda: len(app.screen_stack) == 2 and [each.value for each in app.screen.query(Input)] == ["c"])


@pytest.mark.parametrize("opener", ["s", "w", "z"])
async def test_letters_wait_until_their_screen_has_opened(opener: str) -> None:
    app = Quick()
    async with app.run_test() as pilot:
        await pilot.pause()
        type_at_once(app, opener, *"torm")
        asyncio.get_running_loop().call_later(0.6, app.idle.set)
        await written(pilot, "torm")


async def test_keys_do_not_wait_for_a_worker_without_end(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr(corrections, "KEY_SECONDS", 0.05)
    app = Quick()
    async with app.run_test() as pilot:
        await pilot.pause()
        type_at_once(app, "w", "slash", "a")
        await until(lambda: app.query_one(Input).value == "a")
        app.idle.set()


async def test_letters_of_an_unbracketed_paste_do_not_wait() -> None:
    app = Quick()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.action_filter()
        passed_on: list[int] = []
        begin = app.order._begin

        async def counted(key: Key) -> None:
            passed_on.append(len(app.order.waiting))
            await begin(key)

        app.order._begin = counted  # type: ignore[method-assign]
        type_at_once(app, *"xy" * 500)
        await written(pilot, "xy" * 500)
        assert len(passed_on) < 100
