"""The script that stands in for a language model in the demo."""

from __future__ import annotations

import json

import pytest

from mcphost.demo.server import TOOLS
from mcphost.protocol.models.sampling import Block, SamplingMessage, ToolResult, ToolUse, text_block
from mcphost.protocol.models.tools import Tool
from mcphost.providers.base import (
    AnswerCollector,
    AnswerFinished,
    CollectedAnswer,
    ModelCapabilities,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ToolUseBegun,
)
from mcphost.providers.demo_script import NAME, PHRASES, DemoScript

ABLE = ModelCapabilities(tools=True)
DEMO_TOOLS = tuple(Tool(name=f"demo__{each.name}", input_schema={"type": "object"}) for each in TOOLS)
WINDOW = Tool(name="look_out", input_schema={"type": "object"})


def user(*blocks: Block | str) -> SamplingMessage:
    return SamplingMessage.create("user", *(text_block(each) if isinstance(each, str) else each for each in blocks))


def request(*messages: SamplingMessage, tools: tuple[Tool, ...] = DEMO_TOOLS, **more: object) -> ModelRequest:
    return ModelRequest(messages, **{"max_tokens": 1000, "tools": tools, **more})  # type: ignore[arg-type]


def used(name: str, *texts: str, is_error: bool = False) -> tuple[SamplingMessage, SamplingMessage]:
    """A tool use of the script, and its result."""
    content = [{"type": "text", "text": each} for each in texts]
    use = ToolUse.create("demo-1", name, {})
    return SamplingMessage.create("assistant", use), user(ToolResult.create("demo-1", content, is_error=is_error))


async def events(asked: ModelRequest) -> list[ProviderEvent]:
    return [event async for event in DemoScript("demo-script", ABLE, word_seconds=0).stream(asked)]


async def answer(*messages: SamplingMessage, **more: object) -> CollectedAnswer:
    collector = AnswerCollector()
    for event in await events(request(*messages, **more)):  # type: ignore[arg-type]
        collector.add(event)
    return collector.gathered


async def test_an_unknown_phrase_is_answered_with_the_known_ones() -> None:
    said = (await answer(user("What is the meaning of life?"))).result.message.text
    assert said.startswith(f"I am a script, not a language model: I know {len(PHRASES)} phrases")
    assert all(phrase.example in said for phrase in PHRASES)


async def test_an_answer_streams_word_by_word_with_the_name_and_the_usage() -> None:
    found = await events(request(user("Write a verse about gulls")))
    assert len([each for each in found if isinstance(each, TextDelta)]) > 20
    assert found[-1] == AnswerFinished("endTurn", NAME)
    assert "no model" in NAME
    usage = (await answer(user("Write a verse about gulls"))).usage
    assert (usage.input_tokens, (usage.output_tokens or 0) > 20) == (7, True)


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.example)
async def test_each_example_leads_to_its_phrase_and_tool(phrase: object) -> None:
    example = phrase.example  # type: ignore[attr-defined]
    assert [each for each in PHRASES if each.pattern.search(example)] == [phrase]
    gathered = await answer(user(example))
    assert not gathered.flawed
    assert "I am a script" not in gathered.result.message.text
    assert gathered.result.stop_reason == ("toolUse" if gathered.result.message.uses else "endTurn")


async def test_the_ships_are_listed_and_the_foghorn_is_asked_for() -> None:
    ships = json.dumps({"ships": [{"name": "Far", "distance_miles": 9}, {"name": "Near", "distance_miles": 1}]})
    said = user("Who is out there?")
    first = await answer(said)
    assert [use.name for use in first.result.message.uses] == ["demo__ships_in_sight"]
    second = await answer(said, *used("demo__ships_in_sight", ships))
    assert second.result.message.text.startswith("I see 2 ships; the Near is nearest.")
    assert [(use.name, use.input) for use in second.result.message.uses] == [("demo__sound_foghorn", {"blasts": 2})]
    both = (said, *used("demo__ships_in_sight", ships), *used("demo__sound_foghorn", "no", is_error=True))
    assert (await answer(*both)).result.message.text == "No foghorn, then. The answer was: no"


@pytest.mark.parametrize("text", ["", "not JSON", "[" * 5000, '{"ships": 3}', '[{"name": 3, "distance_miles": "x"}]'])
@pytest.mark.parametrize("phrase", ["Who is out there?", "Write a verse about gulls"])
async def test_an_unexpected_result_of_the_demo_is_tolerated(text: str, phrase: str) -> None:
    gathered = await answer(user(phrase), *used("demo__ships_in_sight", text))
    assert gathered.result.message.text
    assert not gathered.flawed


async def test_a_tool_that_is_not_on_offer_is_not_used() -> None:
    gathered = await answer(user("Climb the tower"), tools=())
    assert gathered.result.message.text == "For that I need the tool climb_tower, which is not on offer here."


async def test_the_words_of_an_attached_file_go_into_the_logbook() -> None:
    message = user(
        "Attached from the user: notes.txt", "\nThe relief boat leaves at nine.\n", "Copy @notes.txt into the logbook"
    )
    (use,) = (await answer(message)).result.message.uses
    assert use.input == {"keeper": "the script", "entry": "The relief boat leaves at nine."}


async def test_a_verse_that_a_server_asks_for_looks_out_of_the_window_first() -> None:
    asked = user("Write a verse of four lines about the fog.")
    found = await events(request(asked, tools=(WINDOW,)))
    assert ToolUseBegun("demo-1", "look_out", True) in found
    gathered = await answer(asked, *used("look_out", '[{"name": "Kittiwake"}]'), tools=(WINDOW,))
    lines = gathered.result.message.text.splitlines()
    assert lines[1:3] == ["of the fog the keeper hums a song;", "the Kittiwake holds on her way,"]


@pytest.mark.parametrize(
    ("more", "stop", "words"), [({"max_tokens": 5}, "maxTokens", 3), ({"stop": ("goes",)}, "stopSequence", 2)]
)
async def test_the_limits_of_a_request_hold(more: dict[str, object], stop: str, words: int) -> None:
    gathered = await answer(user("Write a verse about gulls"), **more)
    assert (gathered.result.stop_reason, len(gathered.result.message.text.split())) == (stop, words)
