"""What the demo server asks of its host."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from tests.demo.conftest import Json, Keeper

BOTH: Json = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}


def asked(keeper: Keeper) -> Json:
    """The next request of the server's."""
    while True:
        message: Json = keeper.hear()
        keeper.heard.append(message)
        if "id" in message and "method" in message:
            return message


def reply(keeper: Keeper, request: Json, **answer: Any) -> str:
    """Answer it; what the tool says then."""
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
def test_the_guest_book_asks_with_a_form(newcomer: Keeper, revision: str, answer: Json, words: str) -> None:
    newcomer.greet(revision, **(BOTH if revision == "2025-11-25" else {"elicitation": {}}))
    newcomer.start("sign_guest_book")
    request = asked(newcomer)
    fields = request["params"]["requestedSchema"]["properties"]
    assert ("liked" in fields) is (revision == "2025-11-25")
    assert reply(newcomer, request, **answer) == words


def test_a_ticket_is_stamped_once_somebody_was_at_the_office(newcomer: Keeper) -> None:
    newcomer.greet(**BOTH)
    newcomer.start("stamp_ticket")
    request = asked(newcomer)
    with urllib.request.urlopen(request["params"]["url"], timeout=10) as page:
        assert b"Stamped" in page.read()
    assert reply(newcomer, request, result={"action": "accept"}).endswith("is stamped. Mind the steps.")
    assert newcomer.notices("elicitation/complete") == [{"elicitationId": request["params"]["elicitationId"]}]
    newcomer.start("stamp_ticket")
    assert "the answer was cancel" in reply(newcomer, asked(newcomer), result={"action": "cancel"})


def test_charts_are_folders_and_a_host_without_them_is_told(newcomer: Keeper) -> None:
    newcomer.greet(roots={})
    roots = [{"uri": "file:///a%20b", "name": "mine"}, {"uri": "file:///c"}]
    for told, words in ((roots, "On the table:\nmine: /a b\nunnamed: /c"), ([], "You brought no charts")):
        newcomer.start("look_at_charts")
        assert reply(newcomer, asked(newcomer), result={"roots": told}).startswith(words)
    for name in ("sign_guest_book", "stamp_ticket"):
        result = newcomer.call(name)
        assert (result["isError"], "Your host" in result["content"][0]["text"]) == (True, True)


def test_a_cancelled_call_takes_its_question_back(newcomer: Keeper) -> None:
    newcomer.greet(**BOTH)
    call = newcomer.start("look_at_charts")
    request = asked(newcomer)
    newcomer.send("notifications/cancelled", {"requestId": call})
    while not newcomer.notices("cancelled"):
        newcomer.heard.append(newcomer.hear())
    assert newcomer.notices("cancelled")[0]["requestId"] == request["id"]
