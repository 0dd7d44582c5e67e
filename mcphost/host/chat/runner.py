"""Runs a turn: asks the model, calls its tools and returns their results to it, until it is done or at a limit."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from mcphost.errors import McphostError, ModelAnswerCut
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.context import ChatContext
from mcphost.host.chat.tool_execution import ToolExecution
from mcphost.host.chat.transcript_store import ended_record, round_record, turn_record
from mcphost.host.chat.turns import ModelRound, ModelToolUse, Turn, TurnState
from mcphost.host.internal_error import internal_error, without_secrets
from mcphost.host.models import AvailableModel
from mcphost.host.sampling.draft import estimate
from mcphost.protocol.display import duration_text, size_text
from mcphost.providers.base import (
    AnswerFinished,
    ModelRequest,
    ProviderEvent,
    RetryScheduled,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolUseBegun,
    ToolUseReady,
    estimate_tokens,
)

MOST_TEXT: Final = 4_000_000
"""Characters of one answer: far more than the most tokens any vendor allows."""


class LimitReached(Exception):
    """A limit of ``[chat]`` is reached; ``str()`` is a sentence."""


class TurnRunner:
    """Works on turns of any conversation."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._tools = ToolExecution(context)

    async def run(self, chat: Chat, turn: Turn) -> None:
        """Run a turn until it ends; its state says how."""
        self._context.keep(chat.id, turn_record(turn))
        try:
            await self._rounds(chat, turn)
        except asyncio.CancelledError:
            self._end(chat, turn, TurnState.STOPPED)
        except LimitReached as limit:
            self._end(chat, turn, TurnState.BOUNDED, str(limit))
        except McphostError as error:
            self._end(chat, turn, TurnState.FAILED, str(without_secrets(error, self._context.reporting.mask)))
        except Exception as error:  # a fault in here must end neither the servers nor other conversations
            self._end(chat, turn, TurnState.FAILED, str(internal_error(error)))
        else:
            self._end(chat, turn, TurnState.DONE)

    def _end(self, chat: Chat, turn: Turn, state: TurnState, reason: str = "") -> None:
        turn.state, turn.reason = state, reason
        last = turn.rounds[-1] if turn.rounds else None
        if last is not None:
            last.waiting, last.writing = None, ""
            if state is TurnState.FAILED and not last.stop_reason:
                last.error = reason
        self._context.keep(chat.id, ended_record(turn))
        chat.changed()

    async def _rounds(self, chat: Chat, turn: Turn) -> None:
        clock = _Clock(time.monotonic)
        await self._context.servers.refresh_lists()
        while True:
            self._within_bounds(chat, turn, clock)
            model = chat.model
            turn.state = TurnState.ANSWERING
            answer = ModelRound(model.entry, outside=chat.outside)
            turn.rounds.append(answer)
            try:
                async with asyncio.timeout(max(self._left(clock), 0.001)) as deadline:
                    with clock:
                        await self._answer(chat, answer, model)
            except TimeoutError:
                if deadline.expired():
                    raise LimitReached(self._too_long()) from None
                raise
            finally:
                self._context.keep(chat.id, round_record(turn, answer))
            if not answer.uses:
                return
            turn.state = TurnState.CALLING
            chat.changed()
            await self._tools.run_tool_calls(chat, turn, answer, model)
            clock.add(max((use.seconds for use in answer.uses), default=0.0))
            chat.changed()

    def _within_bounds(self, chat: Chat, turn: Turn, clock: _Clock) -> None:
        settings = self._context.settings
        answers = sum(not each.superseded for each in turn.rounds)
        if answers >= settings.max_rounds * turn.allowance:
            raise LimitReached(f"the model answered {answers} times to this message (chat.max_rounds)")
        if turn.uses and self._tools.calls(turn) > settings.max_calls * turn.allowance:
            raise LimitReached(f"there were {settings.max_calls} calls for this message (chat.max_calls)")
        if chat.over_budget:
            raise LimitReached(chat.over_budget)
        if self._left(clock) <= 0:
            raise LimitReached(self._too_long())

    def _left(self, clock: _Clock) -> float:
        return self._context.settings.turn_seconds - clock.seconds

    def _too_long(self) -> str:
        return (
            f"this message was worked on for {duration_text(self._context.settings.turn_seconds)} (chat.turn_seconds)"
        )

    async def _answer(self, chat: Chat, answer: ModelRound, model: AvailableModel) -> None:
        await chat.tools_checked()
        request = chat.request()
        known = {use.id for turn in chat.turns for use in turn.uses}
        provider = await self._context.models.provider(model)
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    _take(answer, event, known)
                    chat.changed()
            if not answer.stop_reason:
                raise ModelAnswerCut(model.entry, "the answer has no end; try again")
        finally:
            _count(answer, request)
            chat.usage = chat.usage.with_answer(answer.usage, model, guessed=answer.guessed)


def _take(answer: ModelRound, event: ProviderEvent, known: set[str]) -> None:
    answer.waiting = event if isinstance(event, RetryScheduled) else None
    match event:
        case TextDelta():
            answer.say(event.text)
            if answer.size > MOST_TEXT:
                raise LimitReached(f"the model wrote more than {size_text(MOST_TEXT)}")
        case ThoughtDelta():
            answer.think(event.text)
        case ToolUseBegun():
            answer.writing = event.name
        case ToolUseReady():
            answer.writing = ""
            answer.uses.append(_use(event, known))
        case TokenUsage():
            answer.usage = answer.usage.later(event)
        case AnswerFinished():
            answer.stop_reason, answer.model = event.stop_reason or "endTurn", event.model


def _use(event: ToolUseReady, known: set[str]) -> ModelToolUse:
    """Make the id unique in the conversation: some vendors repeat ids, others refuse repeated ones."""
    use_id, number = event.id, 1
    while use_id in known:
        number += 1
        use_id = f"{event.id}_{number}"
    known.add(use_id)
    return ModelToolUse(use_id, event.name, event.input, problem=event.problem, raw=event.raw)


def _count(answer: ModelRound, request: ModelRequest) -> None:
    """Estimate the tokens that the model did not report, so that budgets hold.

    A report of zero tokens counts as none.
    """
    told, silent = answer.usage, not (answer.size or answer.thought or answer.uses or answer.stop_reason)
    if silent or (told.input_tokens and told.output_tokens):
        return
    wrote = (json.dumps(dict(use.arguments)) for use in answer.uses)
    written = sum(map(estimate_tokens, (answer.text, answer.thought, *wrote)))
    answer.guessed = True
    asked = told.input_tokens or estimate(request, None).input_tokens
    answer.usage = TokenUsage(asked, told.output_tokens or written)


class _Clock:
    """Adds up seconds of work: of the block it is used for as a context, or passed to it afterwards."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._began = now, 0.0
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = self._now()

    def __exit__(self, *_: object) -> None:
        self.add(self._now() - self._began)

    def add(self, seconds: float) -> None:
        """Add work that was timed elsewhere."""
        self.seconds += seconds
