"""The parts of sampling requests and answers: which of a long one are shown, edits, and growing texts."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from mcphost.host.sampling.request import SamplingState
from mcphost.protocol.models.sampling import Block, read_block
from mcphost.providers.base import AnswerFinished, TextDelta
from mcphost.tui.sampling.board import WINDOW, StreamView
from mcphost.tui.sampling.parts import LAST, PAGE, PartPage, draft_of, last_page, rewritten
from tests.host.sampling.sampling_host import Attempt, create
from tests.tui.elicitation.questions import got
from tests.tui.sampling.samplings import sampling_config, sampling_stage


@pytest.mark.parametrize("count", [0, 1, LAST + 2, LAST + 3, PAGE + LAST, PAGE + LAST + 1, 2000])
def test_every_block_of_a_conversation_comes_into_view_once_before_the_last_ones_come_again(count: int) -> None:
    first = page = last_page(count)
    seen: list[int] = []
    while True:
        seen = [*range(page.start, page.end), *seen]
        assert page.end - page.start <= max(PAGE, LAST + 2)
        page = page.turned()
        if page == first:
            break
    assert seen == list(range(count))
    assert first.later == 0
    assert PartPage(0, 5, 9).later == 4


TEXT = {"type": "text", "text": "a", "annotations": {"priority": 0.5}, "_meta": {"k": 1}}
USE = {"type": "tool_use", "id": "u", "name": "n", "input": {"a": 1}, "_meta": {"k": 2}}
RESULT = {"type": "tool_result", "toolUseId": "u", "content": [{"type": "text", "text": "r"}], "isError": True}


def block(value: Any) -> Block:
    return read_block(value)


@pytest.mark.requirement("SAMP-16")
@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (TEXT, "b\u202e", {**TEXT, "text": "b\u202e"}),
        (USE, '{"b": [2]}', {**USE, "input": {"b": [2]}}),
        (RESULT, "[]", {**RESULT, "content": []}),
        (USE, "[]", "it must be an object"),
        (USE, "{", "this is no JSON"),
        (RESULT, "{}", "it must be a list"),
    ],
)
def test_an_edit_changes_what_was_edited_and_nothing_else(before: Any, text: str, after: Any) -> None:
    assert draft_of(block(before)) is not None
    if isinstance(after, str):
        with pytest.raises(ValueError, match=after):
            rewritten(block(before), text)
    else:
        assert rewritten(block(before), text) == block(after)
    assert draft_of(block({"type": "image", "data": "", "mimeType": "image/png"})) is None


def flood(count: int) -> Attempt:
    """Many deltas, with a pause after each hundred."""
    steps: list[Any] = []
    for number in range(count):
        steps.append(TextDelta(f"word{number} " + "\n" * (number % 10 == 0)))
        steps += [lambda: asyncio.sleep(0)] if number % 100 == 0 else []
    return (*steps, AnswerFinished("endTurn", "m"))


@pytest.mark.hostile("M05")
@pytest.mark.slow
async def test_ten_thousand_pieces_of_an_answer_cost_no_more_than_some_frames() -> None:
    config = sampling_config(sampling={"max_tokens": 100_000})
    async with sampling_stage({"claude": [flood(10_000)]}, config) as stage:
        call, _ = await stage.request_sampling(create(maxTokens=100_000))
        started, used = time.perf_counter(), time.process_time()
        await stage.press("y")
        await stage.listens()
        took = time.perf_counter() - started
        assert time.process_time() - used < 3.0
        assert stage.sampling.state is SamplingState.REVIEWING
        await stage.shows("word12")
        await stage.press("y")
        assert (await got(stage, call))["content"]["text"].endswith("word9999 ")
        assert took < 10.0


@pytest.mark.hostile("F04")
@pytest.mark.slow
async def test_a_prompt_of_ten_megabytes_is_there_at_once_and_can_be_read_to_its_end() -> None:
    async with sampling_stage() as stage:
        used = time.process_time()
        _, screen = await stage.request_sampling(create("x" * 10_000_000 + "end"))
        await stage.shows("1 · user · text · 10 MB · truncated", "f read all", "about 2,500,001 tokens")
        await stage.press("e")
        assert not screen.screen_state.editing
        assert time.process_time() - used < 3.0
        await stage.press("x", "t", "escape")
        await stage.listens()
        await stage.press("n")
        await stage.gone()


@pytest.mark.slow
async def test_what_comes_is_followed_to_its_end_until_one_scrolls_back_and_each_look_costs_the_same() -> None:
    async with sampling_stage() as stage:
        _, screen = await stage.request_sampling(create())
        view = screen.query_one(StreamView)
        screen._board.set_class(True, "-streaming")
        await stage.pilot.pause()
        text = "line of words\n" * (4 * WINDOW // 14)
        for end in range(0, len(text) + 1, WINDOW // 4):
            view.show_text(text[:end])
            assert sum(map(len, view.lines)) <= 2 * WINDOW + 100
            await stage.pilot.pause()
        await stage.until(lambda _: view.max_scroll_y and view.scroll_offset.y == view.max_scroll_y)
        assert "⟨the first" in view.lines[0]
        view.scroll_to(y=3, animate=False)
        await stage.until(lambda _: not view.following)
        view.show_text(text + "more\n" * 50)
        await stage.pilot.pause()
        assert not view.following
        view.show_text("another")
        assert list(view.lines) == ["another"]
