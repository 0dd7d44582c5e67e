"""A conversation, with a model that answers by a script and servers that are real."""

from __future__ import annotations

import pytest

from mcphost.host.chat.turns import TurnState
from mcphost.host.events import ChatChanged
from tests.host.conftest import echo
from tests.host.scripted_model import chat_host, text, use, uses

ALLOW = {"default": "allow"}


async def test_an_answer_streams_and_is_kept() -> None:
    async with chat_host(text("Hel|lo"), servers={}) as host:
        turn = await host.say("hi")
        assert (turn.state, turn.text, turn.rounds[0].model) == (TurnState.DONE, "Hello", "scripted-1")
        assert ChatChanged(1) in host.events
        (message,) = host.model.requests[0].messages
    assert (message.role, message.text) == ("user", "hi")


@pytest.mark.requirement("HOST-06")
async def test_tools_of_two_servers_are_called_and_their_results_told() -> None:
    script = uses(use("a__echo", "1", text="one"), use("b__echo", "2", text="two"), say="Let me see."), text("done")
    async with chat_host(*script, servers={"a": echo(), "b": echo()}, policy=ALLOW) as host:
        await host.ready()
        turn = await host.say("echo both")
        assert host.model.results() == [("one", False), ("two", False)]
        assert [(each.request.server, each.request.origin) for each in host.calls.values()] == [
            ("a", "scripted"), ("b", "scripted"),
        ]  # fmt: skip
    assert turn.text == "done"
    assert [(each.server, each.tool, each.state) for each in turn.uses] == [
        ("a", "echo", "done"),
        ("b", "echo", "done"),
    ]
