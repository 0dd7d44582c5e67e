"""The demo server's resources, template, prompts and completions, over plain JSON lines."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.demo.conftest import REVISIONS, Json, Keeper

LOGBOOK, SHIP = "lighthouse://logbook", "lighthouse://ships/{kind}/{name}"


def ask(keeper: Keeper, method: str, **params: Any) -> Any:
    keeper.ask(method, params)
    answer = keeper.answer()
    return answer["error"]["code"] if "error" in answer else answer["result"]


def contents(keeper: Keeper, uri: str) -> Json:
    (found,) = ask(keeper, "resources/read", uri=uri)["contents"]
    assert found["uri"] == uri
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_that_is_listed_can_be_read(newcomer: Keeper, revision: str) -> None:
    newcomer.greet(revision)
    listed = ask(newcomer, "resources/list")["resources"]
    assert {each["mimeType"] for each in listed} >= {"text/markdown", "application/json", "text/x-python", "image/png"}
    assert all(("title" in each) == (revision >= "2025-06-18") for each in listed)
    for each in listed:
        found = contents(newcomer, each["uri"])
        assert found["mimeType"] == each["mimeType"]
        assert ("text" in found) != ("blob" in found)
    assert base64.b64decode(contents(newcomer, "lighthouse://view/dusk.png")["blob"]).startswith(b"\x89PNG")
    (prompt, _) = ask(newcomer, "prompts/list")["prompts"]
    assert ("title" in prompt, "title" in prompt["arguments"][0]) == (revision >= "2025-06-18",) * 2


def test_a_ship_is_read_by_the_template(keeper: Keeper) -> None:
    (template,) = ask(keeper, "resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == SHIP
    assert json.loads(contents(keeper, "lighthouse://ships/tall%20ship/Great%20Auk")["text"])["speed_knots"] == 4.2


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resources/read", {"uri": "lighthouse://ships/ferry/Limpet"}, -32002),
        ("resources/read", {}, -32602),
        ("resources/subscribe", {"uri": "lighthouse://attic"}, -32002),
        ("prompts/get", {"name": "ransom_note"}, -32602),
        ("prompts/get", {"name": "watch_report"}, -32602),
        ("prompts/get", {"name": "watch_report", "arguments": {"watch": 1}}, -32602),
        ("prompts/get", {"name": "hail_ship", "arguments": {"ship": "Titanic"}}, -32602),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "x:/"}, "argument": {}}, -32602),
        ("completion/complete", {"ref": 1, "argument": {}}, -32602),
    ],
)
def test_missing_names_and_invalid_params_are_errors(keeper: Keeper, method: str, params: Json, code: int) -> None:
    assert ask(keeper, method, **params) == code


@pytest.mark.parametrize(
    ("ref", "argument", "typed", "known", "values"),
    [
        ({"type": "ref/prompt", "name": "watch_report"}, "watch", "M", {}, ["middle", "morning"]),
        ({"type": "ref/prompt", "name": "watch_report"}, "tone", "s", {}, ["seasick", "sleepless", "smug", "sunny"]),
        ({"type": "ref/prompt", "name": "hail_ship"}, "ship", "", {"kind": "tug"}, ["Limpet"]),
        ({"type": "ref/prompt", "name": "hail_ship"}, "nothing", "", {}, []),
        ({"type": "ref/resource", "uri": SHIP}, "kind", "t", {}, ["tall ship", "trawler", "tug"]),
        ({"type": "ref/resource", "uri": SHIP}, "name", "", {"kind": "tall ship"}, ["Great Auk", "Marie Celestial"]),
    ],
)
def test_suggestions_match_the_text_and_the_other_arguments(
    keeper: Keeper, ref: Json, argument: str, typed: str, known: Json, values: list[str]
) -> None:
    said = ask(
        keeper,
        "completion/complete",
        ref=ref,
        argument={"name": argument, "value": typed},
        context={"arguments": known},
    )
    assert said["completion"] == {"values": values, "total": len(values), "hasMore": False}


def test_a_prompt_embeds_the_logbook(keeper: Keeper) -> None:
    keeper.call("keep_logbook", keeper="Ana", entry="Fog.")
    messages = ask(keeper, "prompts/get", name="watch_report", arguments={"watch": "first"})["messages"]
    assert [each["role"] for each in messages] == ["user", "user", "assistant"]
    assert "Fog." in messages[1]["content"]["resource"]["text"]
    assert "Limpet" in str(ask(keeper, "prompts/get", name="hail_ship", arguments={"ship": "Limpet"}))


def test_only_subscribers_are_notified_of_changes(keeper: Keeper) -> None:
    changes = [("resources/subscribe", 1), ("resources/unsubscribe", 0)]
    keeper.call("keep_logbook", keeper="Ana", entry="Fog.")
    assert keeper.notices("resources/updated") == []
    for method, heard in changes:
        assert ask(keeper, method, uri=LOGBOOK) == {}
        keeper.heard.clear()
        keeper.call("keep_logbook", keeper="Ana", entry="More fog.")
        assert keeper.notices("resources/updated") == [{"uri": LOGBOOK}] * heard
