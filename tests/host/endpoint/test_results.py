"""Large results: the start goes to the agent, and the whole can be read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.host.endpoint.results import KEPT_RESULTS, PREFIX, LargeResults
from mcphost.protocol.lifecycle.revisions import V2025_03_26, V2026_07_28

PICTURE = {"type": "image", "data": "A" * 3000, "mimeType": "image/png"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_without_a_limit_a_result_stays() -> None:
    results = LargeResults(lambda: None)
    result = {"content": [text("a" * 100_000)]}
    assert await results.shortened("t", result, V2026_07_28) is result
    assert results.definition({"outputSchema": {}}) == {"outputSchema": {}}


async def test_a_small_result_stays() -> None:
    result = {"content": [text("a" * 90)], "structuredContent": {"a": "b"}}
    assert await LargeResults(lambda: 100).shortened("t", result, V2026_07_28) is result


@pytest.mark.server_requirement("STOOL-31")
async def test_of_a_large_text_the_start_and_a_link_are_sent() -> None:
    results = LargeResults(lambda: 100)
    result = {"content": [text("a" * 90), text("b" * 90), text("c")], "isError": True, "_meta": {"k": 1}}
    short = await results.shortened("logs", result, V2026_07_28)
    assert short["content"][:2] == [text("a" * 90), text("b" * 10)]
    words, link = short["content"][2:]
    assert link["type"] == "resource_link"
    assert link["uri"].startswith(PREFIX)
    assert link["name"] == "The whole result of logs"
    assert f"181 characters: read the resource {link['uri']}" in words["text"]
    assert (short["isError"], short["_meta"]) == (True, {"k": 1})
    whole = results.read(link["uri"])
    assert whole is not None
    assert [each["text"] for each in whole["contents"]] == ["a" * 90, "b" * 90, "c"]
    assert {each["uri"] for each in whole["contents"]} == {link["uri"]}


async def test_a_large_picture_can_be_read() -> None:
    results = LargeResults(lambda: 1000)
    short = await results.shortened("t", {"content": [PICTURE, text("see above")]}, V2026_07_28)
    assert [block["type"] for block in short["content"]] == ["text", "resource_link"]
    whole = results.read(short["content"][-1]["uri"])
    assert whole is not None
    assert whole["contents"][0]["blob"] == PICTURE["data"]


@pytest.mark.server_requirement("STOOL-39")
async def test_large_structured_content_is_left_out() -> None:
    results = LargeResults(lambda: 100)
    assert results.definition({"name": "t", "outputSchema": {"type": "object"}}) == {"name": "t"}
    short = await results.shortened("t", {"content": [], "structuredContent": {"a": "x" * 200}}, V2026_07_28)
    assert "structuredContent" not in short
    assert short["content"][0]["text"].startswith('{"a": "xxx')
    whole = results.read(short["content"][-1]["uri"])
    assert whole is not None
    assert whole["contents"][0]["mimeType"] == "application/json"


async def test_structured_content_that_a_text_repeats_is_kept_once() -> None:
    results = LargeResults(lambda: 100)
    written = '{"a":"' + "x" * 200 + '"}'
    short = await results.shortened(
        "t", {"content": [text(written)], "structuredContent": {"a": "x" * 200}}, V2026_07_28
    )
    whole = results.read(short["content"][-1]["uri"])
    assert whole is not None
    assert [each["text"] for each in whole["contents"]] == [written]


async def test_the_oldest_results_are_dropped() -> None:
    results = LargeResults(lambda: 1)
    links = [
        (await results.shortened("t", {"content": [text(f"result {number}")]}, V2026_07_28))["content"][-1]["uri"]
        for number in range(KEPT_RESULTS + 1)
    ]
    assert results.read(links[0]) is None
    assert results.read(links[-1]) is not None
    assert results.read(f"{PREFIX}other") is None


@pytest.mark.server_requirement("STOOL-34")
async def test_an_agent_without_links_gets_words() -> None:
    short = await LargeResults(lambda: 1).shortened("t", {"content": [text("long")]}, V2025_03_26)
    assert [block["type"] for block in short["content"]] == ["text", "text"]
    assert f"read the resource {PREFIX}" in short["content"][-1]["text"]


@given(st.lists(st.one_of(st.text(max_size=80).map(text), st.none(), st.just(PICTURE))), st.integers(1, 200))
async def test_nothing_is_lost(blocks: list[Any], limit: int) -> None:
    results = LargeResults(lambda: limit)
    result = {"content": blocks}
    short = await results.shortened("t", result, V2026_07_28)
    if short is not result:
        whole = results.read(short["content"][-1]["uri"])
        assert whole is not None
        texts = [each["text"] for each in whole["contents"] if each.get("mimeType") == "text/plain"]
        assert texts == [block["text"] for block in blocks if block and block["type"] == "text"]
        sent = [block for block in short["content"][:-2] if block and block["type"] == "text"]
        assert sum(len(block["text"]) for block in sent) <= limit
