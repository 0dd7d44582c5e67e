"""Signing in to a real server that requires it, from the list of servers to its first answer and out again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcphost.composition import dependencies, values_for
from mcphost.config import Config, ServerConfig
from mcphost.host.connections.state import ServerState
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.sign_in.screen import SignInScreen
from mcphost.tui.start_info import StartInfo
from tests.auth.people import Guarded, Web, browse
from tests.tui.sign_in.sign_ins import at_sign_in, listens
from tests.tui.stage import NARROW, WIDE, Stage

pytestmark = pytest.mark.slow


class Browser:
    """Visits the page and returns; ``absent``: this machine has no browser, and the page is opened elsewhere."""

    def __init__(self, *, absent: bool = False) -> None:
        self.absent = absent
        self.pages: list[str] = []
        self.visits: list[asyncio.Task[httpx.Response]] = []

    async def __call__(self, url: str) -> str:
        self.pages.append(url)
        if not self.absent:
            self.visits.append(asyncio.create_task(browse(url)))
        return "there is no desktop here" if self.absent else ""


@asynccontextmanager
async def protected_stage(guard: Guarded, browser: Browser, size: tuple[int, int]) -> AsyncIterator[Stage]:
    """Run the app on a server that accepts only tokens of its authorization server."""
    with Web(guard) as web:
        config, approver = Config(servers={"web": ServerConfig(url=web.url, transport="http")}), ScreenApprover()
        folder = Path.cwd() / "state"
        folder.mkdir(exist_ok=True)
        parts = dependencies(approver, values_for(config, os.environ), state=folder, open_url=browser)
        async with Host(config, parts) as host:
            app = McphostApp(host, approver, StartInfo(None, False, (), folder, ""))
            app.guard_seconds = 0.0
            async with app.run_test(size=size, notifications=True) as pilot:
                stage = Stage(app, host, pilot)
                await stage.until(lambda app: app.host.servers["web"].state is ServerState.NEEDS_SIGN_IN)
                await stage.until(lambda app: app.main.servers.rows.items)
                yield stage
    for visit in browser.visits:
        await visit


def secrets_of(guard: Guarded) -> set[str]:
    return guard.valid | guard.current | set(guard.codes)


async def agreed(stage: Stage) -> None:
    await stage.shows("waiting for you to agree", "don't sign in")
    await stage.until(lambda app: app.approver.open)
    await listens(stage)
    await stage.press("y")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_a_person_signs_in_calls_a_tool_and_signs_out(size: tuple[int, int]) -> None:
    guard, browser = Guarded(), Browser()
    async with protected_stage(guard, browser, size) as stage:
        await at_sign_in(stage)
        await agreed(stage)
        await stage.shows("● signed in", "▲ kept", "in memory", "4 Exchange the code")
        assert len(browser.pages) == 1
        await listens(stage)
        await stage.press("enter")
        await stage.shows("grant_type=authorization_code", "characters)")
        assert not [each for each in secrets_of(guard) if each in stage.text]
        await stage.press("escape")
        await listens(stage)
        await stage.press("escape")
        await stage.gone()
        await stage.until(lambda app: app.host.servers["web"].ready)
        call = stage.call("echo", {"text": "hi"})
        await stage.call_dialog()
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE
        await stage.press("s", "enter")
        await stage.shows("signed in", "then renewed automatically", "S sign out")
        await stage.press("S")
        await stage.until(lambda app: isinstance(app.screen, AskScreen) and app.screen.shown_for() >= 0)
        await stage.press("y")
        await stage.shows("web: signed out; the tokens")
        await stage.until(lambda app: app.host.servers["web"].state is ServerState.NEEDS_SIGN_IN)
        await stage.shows("press S to sign in")
        assert not guard.valid


async def test_a_call_begins_a_sign_in_that_a_pasted_address_ends() -> None:
    guard, browser = Guarded(), Browser(absent=True)
    async with protected_stage(guard, browser, NARROW) as stage:
        call = stage.call("echo", {"text": "hi"})
        await stage.at(SignInScreen)
        await agreed(stage)
        await stage.shows("there is no desktop here", "ssh -L")
        await listens(stage)
        await stage.press("escape")
        await stage.gone()
        assert call.state is CallState.SIGNING_IN
        await stage.press("s", "down", "S")
        await listens(stage)
        async with httpx.AsyncClient(trust_env=False) as elsewhere:
            back = (await elsewhere.get(browser.pages[0])).headers["location"]
        await stage.press("v")
        stage.app.copy_to_clipboard(back)
        await stage.press("ctrl+v")
        await stage.shows("hidden): enter")
        assert not [each for each in guard.codes if each in stage.text]
        await stage.press("enter")
        await stage.shows("● signed in")
        await listens(stage)
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE


async def test_a_server_author_sees_where_it_fails() -> None:
    guard = Guarded(spoiled={"token": "invalid-grant"})
    async with protected_stage(guard, Browser(), NARROW) as stage:
        await at_sign_in(stage)
        await agreed(stage)
        await stage.shows("✖ failed", "invalid_grant", "Exchange the code", "400", "r try again")
        await listens(stage)
        await stage.press("enter")
        await stage.shows('"error": "invalid_grant"', r"no \u001b[2J")


async def test_a_refusal_right_after_a_sign_in_is_explained_on_the_card() -> None:
    guard = Guarded(says=', error_description="audience is api://other"')
    signing_in = guard.grant

    def forgets(*words: Any, **more: Any) -> None:
        signing_in(*words, **more)
        guard.valid.clear()

    guard.grant = forgets  # type: ignore[method-assign]
    async with protected_stage(guard, Browser(), WIDE) as stage:
        await at_sign_in(stage)
        await stage.shows("after HTTP 401: audience is api://other")
        await agreed(stage)
        await stage.shows("● signed in")
        await listens(stage)
        await stage.press("escape")
        await stage.gone()
        said = ("the server refuses this sign-in (HTTP 401): audience is api://other", "next step ask whoever runs the")
        await stage.until(lambda app: all(words in " ".join(app.main.card.text.split()) for words in said))


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
async def test_a_token_answer_that_cannot_be_read_is_nowhere_on_screen() -> None:
    async with protected_stage(Guarded(spoiled={"token": "token-form"}), Browser(), WIDE) as stage:
        await at_sign_in(stage)
        await agreed(stage)
        await stage.shows("✖ failed", "is not JSON", "(application/x-www-form-urlencoded)")
        assert "CANARY" not in stage.text
        await listens(stage)
        await stage.press("enter")
        await stage.shows("bytes that are not a JSON object")
        assert "CANARY" not in stage.text
