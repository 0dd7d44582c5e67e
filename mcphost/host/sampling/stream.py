"""Streams one answer of a model into a `Sampling`, within the budget, and stops at once when asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from mcphost.errors import McphostError, ModelAnswerCut, ModelAnswerMalformed, ModelRefused
from mcphost.host.internal_error import internal_error, without_secrets
from mcphost.host.models import ModelCatalog
from mcphost.host.sampling.budgets import SamplingBudgets
from mcphost.host.sampling.request import Sampling
from mcphost.providers.base import AnswerCollector, CollectedAnswer, ModelRequest, TokenUsage, estimate_tokens


async def ask_model(
    sampling: Sampling, models: ModelCatalog, budgets: SamplingBudgets, mask: Callable[[str], str]
) -> None:
    """Ask the model once; ``sampling`` keeps the answer or the error. Raises nothing but CancelledError."""
    sampling.begin()
    sampling.attach(asyncio.current_task())
    gathering, error = AnswerCollector(), None
    try:
        await _gather(sampling, gathering, models, budgets)
    except asyncio.CancelledError:
        if not sampling.interrupted:
            raise
    except McphostError as raised:
        error = without_secrets(raised, mask)
    except Exception as raised:  # a fault in here is one that the user may get over with another model
        error = internal_error(raised)
    finally:
        sampling.attach(None)
        gathered = gathering.gathered
        sampling.gathered(gathered, error or _flaw(sampling, gathered))


async def _gather(
    sampling: Sampling, gathering: AnswerCollector, models: ModelCatalog, budgets: SamplingBudgets
) -> None:
    """Take the events of the answer. Raises ModelError, ConfigError."""
    request, tokens = _within(sampling, budgets)
    provider = await models.provider(sampling.model)
    with budgets.reserve(sampling.server, TokenUsage(tokens, request.max_tokens), sampling.model.price) as used:
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    gathering.add(event)
                    sampling.take(event)
            if gathering.done is None:
                raise ModelAnswerCut(sampling.model.entry, "the answer has no end")
        except McphostError:
            tokens = tokens if gathering.gathered.result.message.text else 0
            raise
        finally:
            used(_usage(gathering.gathered, tokens))


def _within(sampling: Sampling, budgets: SamplingBudgets) -> tuple[ModelRequest, int]:
    """The request with room for no more than the budget has, and about how many tokens it is. Raises ModelRefused."""
    server, tokens, price = sampling.server, sampling.estimate.input_tokens, sampling.model.price
    if why := sampling.problem or budgets.shortage(server, tokens, price):
        raise ModelRefused(sampling.model.entry, why)
    tokens_left = budgets.answer_tokens_left(server, tokens, price)
    most = sampling.request.max_tokens
    return replace(sampling.request, max_tokens=most if tokens_left is None else min(most, tokens_left)), tokens


def _usage(gathered: CollectedAnswer, input_tokens: int) -> TokenUsage:
    """What an answer took: as the model says, and where it says nothing or none, as can be guessed from what came."""
    told = gathered.usage
    return TokenUsage(
        told.input_tokens or input_tokens, told.output_tokens or estimate_tokens(gathered.result.message.text)
    )


def _flaw(sampling: Sampling, gathered: CollectedAnswer) -> McphostError | None:
    """Tool uses that must not be passed on make an answer none."""
    if not gathered.flawed:
        return None
    return ModelAnswerMalformed(sampling.model.entry, f"it wants to use a tool wrongly: {gathered.flawed[0].problem}")
