"""Requests that begin like the one before them, and the marks by which a vendor caches that beginning."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mcphost.errors import ModelRefused
from mcphost.providers import anthropic
from mcphost.providers.base import ModelRequest
from mcphost.providers.tool_names import tool_names
from tests.providers.endpoints import DOTTED, HELLO, VENDORS, meeting, refuses, streams
from tests.providers.messages import IMAGE, TEXT, USE, asking, result

RESULT = [result(TEXT, IMAGE), TEXT]
BRIEF = asking(("user", TEXT), system="be brief", tools=(DOTTED,), temperature=0.5)


def longer(request: ModelRequest, answer: Any = USE, reply: Any = RESULT) -> ModelRequest:
    """The next request of a conversation."""
    more = asking(("assistant", answer), ("user", reply))
    return replace(request, messages=(*request.messages, *more.messages))


def unmarked(value: Any) -> Any:
    """A part of a request without the marks, which are not cached."""
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_request_begins_with_the_bytes_of_the_previous_one(vendor: str) -> None:
    requests = [BRIEF, longer(BRIEF), longer(longer(BRIEF), TEXT, TEXT)]
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        for request in requests:
            await met.ask(request)
        bodies = met.bodies
    for before, after in pairwise(bodies):
        said = before.pop("messages"), after["messages"]
        assert json.dumps(before) == json.dumps({name: value for name, value in after.items() if name != "messages"})
        first, second = (json.dumps(unmarked(each)).removesuffix("]") for each in said)
        assert second.startswith(first + ", ")


def marks(body: dict[str, Any]) -> list[Any]:
    """Where a request is marked: numbers of messages, each at its last block."""
    parts: dict[Any, Any] = {name: body[name] for name in ("tools", "system") if name in body}
    parts |= {number: message["content"] for number, message in enumerate(body["messages"])}
    assert not any("cache_control" in block for blocks in parts.values() for block in blocks[:-1])
    return [place for place, blocks in parts.items() if blocks[-1].get("cache_control") == {"type": "ephemeral"}]


@pytest.mark.parametrize(
    ("request_", "marked"),
    [
        (BRIEF, ["tools", "system", 0]),
        (longer(BRIEF), ["tools", "system", 0, 2]),
        (longer(longer(BRIEF), TEXT, TEXT), ["tools", "system", 2, 4]),
        (longer(longer(BRIEF), TEXT, {"type": "text", "text": " "}), ["tools", "system", 0, 2]),
        (asking(("user", [TEXT, IMAGE])), [0]),
        (asking(("assistant", TEXT)), []),
    ],
)
def test_requests_to_anthropic_mark_the_parts_to_cache(request_: ModelRequest, marked: list[Any]) -> None:
    """Where the request before was marked is marked again: that is what the vendor finds."""
    assert marks(anthropic.body("m", request_, tool_names(request_))) == marked


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("tools.0.cache_control: Extra inputs are not permitted", 2),
        ("system: Input should be a valid string", 2),
        ("system: too long", 1),
    ],
)
async def test_an_endpoint_without_a_cache_gets_no_marks(message: str, asked: int) -> None:
    refusal = refuses(400, VENDORS["anthropic"].error("invalid_request_error", message))
    async with meeting("anthropic", refusal, streams(*VENDORS["anthropic"].stream(HELLO))) as met:
        if asked == 1:
            with pytest.raises(ModelRefused, match=message):
                await met.ask(BRIEF)
        else:
            await met.ask(BRIEF)
            await met.ask(BRIEF)
        bodies = met.bodies
    assert ["cache_control" in json.dumps(body) for body in bodies] == [True, False, False][: 2 * asked - 1]
