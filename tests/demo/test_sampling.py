"""What the demo server has a language model write."""

from __future__ import annotations

import json

import pytest

from tests.demo.conftest import Json, Keeper
from tests.demo.test_elicitation import asked, reply

VERSE: Json = {"role": "assistant", "content": {"type": "text", "text": "Fog."}, "model": "m", "stopReason": "endTurn"}
LOOKS: Json = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "look_out", "input": {}}],
    "model": "m",
    "stopReason": "toolUse",
}


@pytest.mark.parametrize("tools", [False, True])
def test_a_verse_is_what_the_model_wrote(newcomer: Keeper, tools: bool) -> None:
    newcomer.greet(sampling={"tools": {}} if tools else {})
    newcomer.start("write_verse", about="gulls")
    request = asked(newcomer)["params"]
    assert request["messages"][0]["content"]["text"] == "Write a verse of four lines about gulls."
    assert ("tools" in request) is tools
    assert reply(newcomer, newcomer.heard[-1], result=VERSE) == "Fog.\n\n(by m; it stopped: endTurn)"


def test_the_poet_may_look_out_of_the_window_three_times(newcomer: Keeper) -> None:
    newcomer.greet(sampling={"tools": {}})
    newcomer.start("write_verse")
    for looks in range(3):
        request = asked(newcomer)
        assert (len(request["params"]["messages"]), request["params"]["toolChoice"]["mode"]) == (1 + 2 * looks, "auto")
        newcomer.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": LOOKS}).encode())
    last = asked(newcomer)
    assert last["params"]["toolChoice"] == {"mode": "none"}
    assert last["params"]["messages"][-1]["content"][0]["toolUseId"] == "u1"
    assert reply(newcomer, last, result=LOOKS).startswith("Not a word came.")


def test_a_host_that_has_no_model_or_refuses_is_told(newcomer: Keeper) -> None:
    newcomer.greet()
    assert "declares no sampling" in newcomer.call("write_verse")["content"][0]["text"]
