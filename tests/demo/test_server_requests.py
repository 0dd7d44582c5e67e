"""The demo server's requests to its host: elicitation, roots, sampling."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from tests.demo.conftest import Json, Keeper

BOTH: Json = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}


def asked(keeper: Keeper) -> Json:
    """The next request of the server."""
    while True:
        message: Json = keeper.hear()
        keeper.heard.append(message)
        if "id" in message and "method" in message:
            return message


def reply(keeper: Keeper, request: Json, **answer: Any) -> str:
    """Answer it, and return the text of the tool's result."""
    keeper.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode())
    words: str = keeper.answer()["result"]["content"][0]["text"]
    return words


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"result": {"action": "accept", "content": {"name": "Ada"}}}, 'The guest book says: {"name": "Ada"}'),
        ({"result": {"action": "decline"}}, "The page stays empty: the answer was decline."),
        ({"error": {"code": -32602, "message": "no"}}, "Your host refused: no (-32602)"),
    ],
)
def test_a_form_has_the_fields_of_the_revision(newcomer: Keeper, revision: str, answer: Json, words: str) -> None:
    newcomer.greet(revision, **(BOTH if revision == "2025-11-25" else {"elicitation": {}}))
    newcomer.start("sign_guest_book")
    request = asked(newcomer)
    fields = request["params"]["requestedSchema"]["properties"]
    assert ("liked" in fields) is (revision == "2025-11-25")
    assert reply(newcomer, request, **answer) == words


def test_a_url_elicitation_completes_with_a_visit(newcomer: Keeper) -> None:
    newcomer.greet(**BOTH)
    newcomer.start("stamp_ticket")
    request = asked(newcomer)
    with urllib.request.urlopen(request["params"]["url"], timeout=10) as page:
        assert b"Stamped" in page.read()
    assert reply(newcomer, request, result={"action": "accept"}).endswith("is stamped. Mind the steps.")
    assert newcomer.notices("elicitation/complete") == [{"elicitationId": request["params"]["elicitationId"]}]
    newcomer.start("stamp_ticket")
    assert "the answer was cancel" in reply(newcomer, asked(newcomer), result={"action": "cancel"})


ROOTS = [{"uri": "file:///a%20b", "name": "mine"}, {"uri": "file:///c"}]


@pytest.mark.parametrize(
    ("roots", "words"),
    [(ROOTS, "On the table:\nmine: /a b\nunnamed: /c"), ([], "You brought no charts")],
)
def test_roots_are_listed(newcomer: Keeper, roots: list[Json], words: str) -> None:
    newcomer.greet(roots={})
    newcomer.start("look_at_charts")
    assert reply(newcomer, asked(newcomer), result={"roots": roots}).startswith(words)


@pytest.mark.parametrize("name", ["sign_guest_book", "stamp_ticket"])
def test_a_tool_without_its_capability_fails(newcomer: Keeper, name: str) -> None:
    newcomer.greet(roots={})
    result = newcomer.call(name)
    assert (result["isError"], "Your host" in result["content"][0]["text"]) == (True, True)


def test_a_cancelled_call_cancels_its_request(newcomer: Keeper) -> None:
    newcomer.greet(**BOTH)
    call = newcomer.start("look_at_charts")
    request = asked(newcomer)
    newcomer.send("notifications/cancelled", {"requestId": call})
    while not newcomer.notices("cancelled"):
        newcomer.heard.append(newcomer.hear())
    assert newcomer.notices("cancelled")[0]["requestId"] == request["id"]


VERSE: Json = {"role": "assistant", "content": {"type": "text", "text": "Fog."}, "model": "m", "stopReason": "endTurn"}
LOOKS: Json = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "look_out", "input": {}}],
    "model": "m",
    "stopReason": "toolUse",
}


@pytest.mark.parametrize("tools", [False, True])
def test_sampling_returns_the_words_of_the_model(newcomer: Keeper, tools: bool) -> None:
    newcomer.greet(sampling={"tools": {}} if tools else {})
    newcomer.start("write_verse", about="gulls")
    request = asked(newcomer)["params"]
    assert request["messages"][0]["content"]["text"] == "Write a verse of four lines about gulls."
    assert ("tools" in request) is tools
    assert reply(newcomer, newcomer.heard[-1], result=VERSE) == "Fog.\n\n(by m; it stopped: endTurn)"


def test_sampling_offers_a_tool_for_three_rounds(newcomer: Keeper) -> None:
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


def test_sampling_fails_without_the_capability(newcomer: Keeper) -> None:
    newcomer.greet()
    assert "declares no sampling" in newcomer.call("write_verse")["content"][0]["text"]
