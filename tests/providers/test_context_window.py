"""Requests that are longer than their model reads at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcphost.errors import ModelRefused
from mcphost.protocol.models.sampling import SamplingMessage
from tests.providers.endpoints import ASKED, HELLO, VENDORS, each_vendor, meeting, refuses, streams

LONG = "word " * 4_000
"""About 5,000 tokens."""
USE = {"type": "tool_use", "id": "a", "name": "add", "input": {"text": LONG}}
RESULT = {"type": "tool_result", "toolUseId": "a", "content": [{"type": "text", "text": LONG}]}
PICTURE = {"type": "image", "data": "A" * 40_000, "mimeType": "image/png"}


def holding(content: Any) -> Any:
    return replace(ASKED, messages=(SamplingMessage.read({"role": "user", "content": content}),), max_tokens=1_000)


@each_vendor
@pytest.mark.parametrize(
    "request_", [replace(ASKED, system=LONG), *map(holding, ({"type": "text", "text": LONG}, USE, RESULT))]
)
async def test_a_request_beyond_the_context_window_is_not_sent(vendor: str, request_: Any) -> None:
    async with meeting(vendor, refuses(500), context_tokens=5_000) as met:
        with pytest.raises(
            ModelRefused, match=r"about 5,0\d\d tokens.*may be 5,000 .*\[models.big\]\); begin a new"
        ) as caught:
            await met.ask(request_)
    assert not met.web.visits
    assert caught.value.lasting


@each_vendor
@pytest.mark.parametrize(("most", "answer"), [(None, 1_000), (20_000, 1_000), (5_500, range(300, 500))])
async def test_an_answer_is_as_long_as_there_is_room_for(vendor: str, most: int | None, answer: Any) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO)), context_tokens=most) as met:
        await met.ask(holding([{"type": "text", "text": LONG}, PICTURE]))
    (body,) = met.bodies
    told = {**body, **body.get("options", {})}
    length = next(told[name] for name in ("max_tokens", "num_predict") if name in told)
    assert length == answer or length in (answer if isinstance(answer, range) else ())
    assert told.get("num_ctx") == (most if vendor == "ollama" else None)


async def test_ollama_must_not_truncate_and_its_refusal_has_advice() -> None:
    told = {"error": "the input length exceeds the context length"}
    async with meeting("ollama", refuses(400, told)) as met:
        with pytest.raises(ModelRefused, match=r"begin a new conversation, or raise context_tokens in \[models.big\]"):
            await met.ask()
    assert met.bodies[0]["truncate"] is False
