"""Copying a call as text: the key in each place, the menu, and what is said about secrets."""

from __future__ import annotations

import shlex

import pytest
from textual.events import Key

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.tools.copying import CopyAsScreen
from tests.tui.stage import echo, on_stage

pytestmark = pytest.mark.slow


@pytest.mark.hostile("P11")
async def test_a_call_is_copied_from_form_result_and_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHO_TOKEN", "hunter2-hunter2")
    monkeypatch.delenv("TMUX", raising=False)
    async with on_stage(echo("--harmless", env={"TOKEN": "${ECHO_TOKEN}"})) as stage:
        await stage.ready()
        await stage.open_tool("echo")
        await stage.write("hi you")
        stage.app.post_message(Key("alt+y", "y"))  # as from a terminal, which names the letter too
        await stage.at(CopyAsScreen)
        await stage.shows("mcphost call echo echo 'text=hi you'", "not here: only for servers with an address")
        await stage.press("u")
        assert isinstance(stage.app.screen, CopyAsScreen)
        await stage.press("c")
        await stage.until(lambda app: app.clipboard == "mcphost call echo echo 'text=hi you'")
        assert any("mcphost call (36 characters)" in words for words in stage.notified)
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        assert (await stage.ended()).state is CallState.DONE
        await stage.press("Y", "r")
        await stage.until(lambda app: "[servers.echo.tools.echo" in app.clipboard)
        secret = stage.call("echo", {"text": "hunter2-hunter2"})
        await stage.call_dialog()
        await stage.press("n")
        await stage.ended(secret)
        await stage.press("h", "Y", "enter")
        await stage.until(lambda app: app.clipboard.startswith("mcphost call echo echo text="))
        assert shlex.split(stage.app.clipboard)[-1] == "text=$SECRET_TEXT"
        assert any("$SECRET_TEXT: no secret is copied" in words for words in stage.notified)
