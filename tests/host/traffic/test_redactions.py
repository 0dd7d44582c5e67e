"""``--redact``: places in messages and patterns that are in no file of traffic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcphost.errors import UsageError
from mcphost.host.traffic.redactions import Redactions

MESSAGE = {"id": 1, "params": {"name": "pay", "arguments": {"card": 4111111111111111, "to": {"email": "a@b.example"}}}}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["$.params.arguments.card"], {"card": "•••", "to": {"email": "a@b.example"}}),
        (["$..email"], {"card": 4111111111111111, "to": {"email": "•••"}}),
        ([r"\d{16}"], {"card": "•••", "to": {"email": "a@b.example"}}),
        (["[a-z]+@[a-z.]+", "$..card"], {"card": "•••", "to": {"email": "•••"}}),
        (["$..to", "$..email"], {"card": 4111111111111111, "to": "•••"}),
    ],
)
def test_what_was_named_is_masked_and_json_stays_json(given: list[str], left: Any) -> None:
    text = json.dumps(MESSAGE)
    hidden = json.loads(Redactions(given).applied(text))
    assert hidden == {**MESSAGE, "params": {"name": "pay", "arguments": left}}
    assert json.loads(Redactions(given).applied(f"[{text}]")) == [hidden]


def test_a_member_that_is_there_twice_hides_nothing() -> None:
    assert Redactions(["4[0-9]{3}"]).applied('{"card": "4111", "card": "none"}') == '{"card":"none"}'


def test_a_pattern_masks_what_is_not_json_too() -> None:
    assert Redactions([r"pin=\d+"]).applied("starting, pin=1234") == "starting, •••"


def test_a_message_that_was_cut_is_left_out_where_places_were_named() -> None:
    text = json.dumps(MESSAGE)[:60]
    assert Redactions(["$..card"]).applied(text, cut=True) == ""
    assert Redactions(["pay"]).applied(text, cut=True) == text.replace("pay", "•••")


@pytest.mark.parametrize(
    "given", [r"[A-Z]{2}[0-9]{6}", r"(?:\d++,)+;", "[(a+)+]x", r"\(a+\)+b", "(ab)+", r"(\d{4}-)+", "a+b*c"]
)
def test_a_pattern_without_repeated_repetitions_is_taken(given: str) -> None:
    assert Redactions([given]).applied("none of it", cut=False) == "none of it"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("$.a[", "not a JSON path"),
        ("$", "the whole message"),
        ("(", "not a regular expression"),
        ("x*", "matches everywhere"),
        ("(a+)+$", "can take for ever"),
        (r"(?:\d+,?)*;", "can take for ever"),
        ("((ab)*c?){2,}x", "can take for ever"),
        ("(a{2,4})+b", "can take for ever"),
    ],
)
def test_a_mistake_is_explained(given: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Redactions([given])
