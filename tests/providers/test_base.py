from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from mcphost.errors import Declined, ModelError, ModelUnreachable
from mcphost.providers.base import AnswerFinished, Price, TokenUsage, estimate_tokens, gather
from mcphost.providers.manual import ManualAnswer, ManualProvider
from tests.conftest import Until
from tests.providers.endpoints import ASKED


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("four", 1), ("five!", 2), ("x" * 4000, 1000), ("日本語", 3), ("né", 2), ("\U0001f600", 1)],
)
def test_tokens_are_estimated_by_a_rule_of_thumb(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (TokenUsage(1_000_000, 100_000), 4.5),
        (TokenUsage(0, 0), 0),
        (TokenUsage(None, 5), None),
        (TokenUsage(5, None), None),
    ],
)
def test_a_cost_is_known_or_unknown_and_never_a_guess(usage: TokenUsage, cost: float | None) -> None:
    """M06"""
    assert Price(input=3, output=15).of(usage) == cost


async def test_a_person_answers_for_a_model(until: Until) -> None:
    asked: list[ManualAnswer] = []
    provider = ManualProvider("me", asked.append)
    task = asyncio.create_task(gather(provider, ASKED))
    await until(lambda: asked)
    (question,) = asked
    assert (question.request, question.waiting) == (ASKED, True)
    question.give("yes")
    question.give("no")
    question.refuse()
    told = (await task).result
    assert (told.message.text, told.model, told.stop_reason, question.waiting) == ("yes", "human", "endTurn", False)


@pytest.mark.parametrize("how", ["refused", "closed", "cancelled"])
async def test_a_person_may_not_answer(how: str, until: Until) -> None:
    asked: list[ManualAnswer] = []
    provider = ManualProvider("me", asked.append)
    task = asyncio.create_task(gather(provider, ASKED))
    await until(lambda: asked)
    failures = {"refused": Declined, "closed": ModelUnreachable, "cancelled": asyncio.CancelledError}
    if how == "refused":
        asked[0].refuse()
    elif how == "closed":
        await provider.aclose()
    else:
        task.cancel()
    with pytest.raises(failures[how]):
        await task
    assert not asked[0].waiting
    asked[0].give("too late")


async def test_each_request_waits_for_its_own_answer(until: Until) -> None:
    asked: list[ManualAnswer] = []
    provider = ManualProvider("me", asked.append, model="Ada")
    tasks = [asyncio.create_task(gather(provider, ASKED)) for _ in range(2)]
    await until(lambda: len(asked) == 2)
    for number in (1, 0):
        asked[number].give(str(number))
    assert [(await task).result.message.text for task in tasks] == ["0", "1"]
    async with aclosing(ManualProvider("me", lambda answer: answer.give("")).stream(ASKED)) as events:
        assert [event async for event in events] == [AnswerFinished("endTurn", "human")]


def test_an_error_says_which_model_it_is_about() -> None:
    assert str(ModelError("big", "went away")) == "model big: went away"
    assert ModelError("big", "x").partial is None
