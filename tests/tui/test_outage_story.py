"""A server that goes away for a while and comes back while the user is busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcphost.config import ServerConfig
from mcphost.host.connections import reconnection as retry
from mcphost.transports.http import resumption
from tests.transports.http.http_connection import Echo, Talk, Web
from tests.tui.stage import NARROW, WIDE, Stage, on_stage, servers

pytestmark = pytest.mark.slow
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": "What to say"},
        "times": {"type": "integer", "title": "How often"},
        "loud": {"type": "boolean", "title": "Loud"},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["text"],
}
TOOLS = [{"name": "echo", "description": "Says it again.", "inputSchema": FORM}]
TRIES = 3
"""In vain, at least, before it comes back."""


def echo(listens: bool) -> Callable[[Talk], None]:
    """A server that, once stopped, does not answer on connections that were open."""
    serve = Echo(tools=list(TOOLS), listens=listens)

    def answer(talk: Talk) -> None:
        if talk.web.stopped.is_set():
            talk.close_connection = True
        else:
            serve(talk)

    return answer


async def said_yes(stage: Stage) -> None:
    await stage.press("ctrl+r")
    await stage.call_dialog()
    await stage.press("y")
    await stage.ended()


@pytest.mark.requirement("LIFE-27")
@pytest.mark.parametrize("listens", [True, False], ids=["with-a-stream", "without"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_what_was_typed_and_what_was_answered_outlive_an_outage(
    size: tuple[int, int], listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With short delays; in real life the server was away for 20 seconds."""
    monkeypatch.setattr(retry, "FIRST", 0.05)
    monkeypatch.setattr(resumption, "FIRST_WAIT", 0.05)
    with Web(echo(listens)) as web:
        config = servers(web=ServerConfig(url=web.url))
        async with on_stage(config, size=size) as stage:
            server = stage.host.servers["web"]
            await stage.ready()
            await stage.press("enter")
            await stage.shows("What to say")
            await stage.write("before")
            await said_yes(stage)
            await stage.shows("● done", "before")
            await stage.press("escape", "ctrl+u")
            await stage.write("half a")
            await stage.press("tab")
            await stage.write("7")
            web.__exit__()
            if not listens:  # then only a request can find out
                stage.call("echo", {"text": "?"})
                await stage.call_dialog()
                await stage.press("y")
            await stage.until(lambda _: not server.ready)
            await stage.shows("7", "half a")
            await stage.press("shift+tab", "end")
            await stage.write(" sentence")
            await stage.until(lambda _: server.restarts >= TRIES)
            await stage.shows("half a sentence", "7", "↻")
            with Web(echo(listens), at=web.port):
                await stage.until(lambda _: server.ready)
                await stage.shows("half a sentence", "7", "● 1 ready")
                if size == WIDE:
                    await stage.shows("● done", "before")
                await said_yes(stage)
                await stage.shows("● done", "half a sentence")
                call = list(stage.host.tool_calls.calls.values())[-1]
                assert call.arguments == {"text": "half a sentence", "times": 7}
                await stage.press("h", "end", "enter")
                await stage.shows("before")
                await stage.press("ctrl+q")
