"""Carries out the tool uses of one answer: finds the tool of each, calls it, and makes the results for the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from mcphost.host.chat.acting_skills import READ_FILE, SkillFileReading, server_meant
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.context import ChatContext
from mcphost.host.chat.provenance_search import ReadTexts
from mcphost.host.chat.tool_results import ModelResult, failure, links_in, said, stopped, told
from mcphost.host.chat.tool_selection import SEARCH, SelectedTool, ToolSelection
from mcphost.host.chat.transcript_store import results_record
from mcphost.host.chat.turns import NOT_RUN, ModelRound, ModelToolUse, Turn, TurnState
from mcphost.host.consent.questions import ResultQuestion
from mcphost.host.models import AvailableModel
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.protocol.display import hidden_count, show_line
from mcphost.protocol.models.content import MediaContent
from mcphost.protocol.models.sampling import ToolResult
from mcphost.providers.base import estimate_tokens

RAW: Final = 500
"""Characters of unreadable arguments that the model is shown again."""


class ToolExecution:
    """Carries out the tool uses of any conversation."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._readings: WeakKeyDictionary[Chat, ReadTexts] = WeakKeyDictionary()
        self._skill_files = SkillFileReading(context)

    def calls(self, turn: Turn) -> int:
        """The number of calls this turn led to, including those that its limits prevented."""
        return sum(bool(use.server) for use in turn.uses)

    async def run_tool_calls(self, chat: Chat, turn: Turn, answer: ModelRound, model: AvailableModel) -> None:
        """All tools of this answer; each use has a result at the end, also when this is cancelled."""
        try:
            await self._run_tool_calls(chat, turn, answer, model)
        finally:  # the model gets the results that there are
            for use in answer.uses:
                if use.outside:
                    chat.read_outside(f"what {use.server}:{use.tool} answered")

    async def _run_tool_calls(self, chat: Chat, turn: Turn, answer: ModelRound, model: AvailableModel) -> None:
        tools = chat.tools
        try:
            wanted = [use for use in answer.uses if self._settled(chat, turn, use, tools) is None]
            await self._run(chat, answer, wanted, model, await self._read(chat) if wanted else ReadTexts())
        finally:
            for use in answer.uses:
                self._close(use, tools, model)
            held = [_held_back(use) for use in answer.uses if _waits(chat, use)]
            self._context.keep(chat.id, results_record(turn, answer))
        if held:
            await self._review(chat, turn, answer, held, model)

    async def _read(self, chat: Chat) -> ReadTexts:
        """All that the model knew when it wanted these tools."""
        readings = self._readings.setdefault(chat, ReadTexts())
        for _ in readings.take(chat.passages()):
            await asyncio.sleep(0)  # others have things to do
        return readings

    async def _run(
        self, chat: Chat, answer: ModelRound, uses: list[ModelToolUse], model: AvailableModel, readings: ReadTexts
    ) -> None:
        """Read the files of skills; then run the calls.

        They run in parallel if none needs consent, else one after the other in the model's order.
        """
        for use in uses:
            if use.name == READ_FILE:
                await self._skill_files.run(chat.skills, use, model)
                chat.changed()
        uses, acting = [use for use in uses if use.result is None], chat.acting
        if len(uses) > 1 and all(
            self._context.runs_unasked(use.server, use.tool, use.arguments, answer.outside, acting) for use in uses
        ):
            calls = [self._begin(use, answer, model, readings, acting) for use in uses]
            chat.changed()
            for call in calls:
                await call.ended()
            return
        for use in uses:
            call = self._begin(use, answer, model, readings, acting)
            chat.changed()
            await call.ended()

    def _begin(
        self, use: ModelToolUse, answer: ModelRound, model: AvailableModel, readings: ReadTexts, acting: str
    ) -> ToolCall:
        provenance = readings.compare(use.server, use.arguments)
        request = CallRequest(
            use.server,
            use.tool,
            use.arguments,
            model.name,
            outside=answer.outside,
            skill=acting,
            provenance=provenance,
        )
        call = self._context.tool_calls.begin(request)
        use.call, use.number = call, call.number
        return call

    def _settled(self, chat: Chat, turn: Turn, use: ModelToolUse, tools: ToolSelection) -> ToolResult | None:
        """The result of a use that leads to no call; None where one is to be made."""
        entry = tools.find(use.name)
        if use.name == SEARCH and not use.problem:
            use.outcome, use.result = CallState.DONE.value, _search(chat, tools, use)
        elif use.problem:
            raw = f" You wrote: {use.raw[:RAW]}" if use.raw else ""
            self._not_run(use, f"Not called: {use.problem}.{raw}")
        elif use.name == READ_FILE and (skills := chat.skills):
            use.server, use.tool = server_meant(skills, use.arguments), READ_FILE
            if reason := self._too_much(turn, use):
                self._not_run(use, f"Not read: {reason}")
        elif entry is None:
            self._not_run(use, "Not called: there is no tool of exactly this name any more.")
        else:
            use.server, use.tool = entry.server, entry.tool.name
            if reason := self._too_much(turn, use):
                self._not_run(use, f"Not called: {reason}")
        return use.result

    def _too_much(self, turn: Turn, use: ModelToolUse) -> str:
        settings = self._context.settings
        uses = turn.uses[: next(place for place, each in enumerate(turn.uses) if each is use)]
        if sum(bool(each.server) for each in uses) >= settings.max_calls * turn.allowance:
            return f"{settings.max_calls} calls were made for this message, which is the most there may be."
        key = _key(use)
        if sum(_key(each) == key for each in uses) >= settings.same_calls * turn.allowance:
            return f"this very call was made {settings.same_calls} times already; use what it answered."
        return ""

    @staticmethod
    def _not_run(use: ModelToolUse, text: str) -> None:
        use.outcome, use.result = NOT_RUN, failure(use.id, text)

    def _close(self, use: ModelToolUse, tools: ToolSelection, model: AvailableModel) -> None:
        """Set the outcome of a use; stop its call if it still runs."""
        if use.result is not None:
            return
        call = use.call
        if call is None:
            self._not_run(use, "Not called: the user stopped you before.")
            return
        if not call.state.ended:
            call.cancel()
            use.outcome, use.result = CallState.CANCELLED.value, failure(use.id, stopped(call))
        else:
            found = self._told(use, call, model)
            use.outcome, use.result, use.notes = call.state.value, found.result, found.notes
        use.sent = call.arguments if call.edited else None
        use.seconds = round(call.elapsed, 3) if call.sent_at is not None else 0.0
        use.outside = call.sent_at is not None and _may_be_from_outside(tools.find(use.name))

    def _told(self, use: ModelToolUse, call: ToolCall, model: AvailableModel) -> ModelResult:
        return told(use.id, call, model.able, self._context.settings.result_characters)

    # Results that wait for the user.

    async def _review(
        self, chat: Chat, turn: Turn, answer: ModelRound, held: list[_Held], model: AvailableModel
    ) -> None:
        """Ask about each result; what is not answered when this is cancelled stays with the user."""
        turn.state = TurnState.REVIEWING
        chat.changed()
        try:
            for use, result, outside in held:
                use.outside = await self._passed_on(use, result, model) and outside
        finally:
            self._context.keep(chat.id, results_record(turn, answer))

    async def _passed_on(self, use: ModelToolUse, result: ToolResult, model: AvailableModel) -> bool:
        """True if the model gets it, in these words or the user's."""
        reply = await self._context.approver.ask(_question(use, result, model))
        if not reply.allow:
            why = f", who says: {reply.reason}" if reply.reason else ""
            use.result = failure(use.id, f"What it answered was kept back by the user{why}.")
            use.notes = (*use.notes, "kept back by you")
        elif isinstance(reply.content, str):
            use.result = ToolResult.create(use.id, [{"type": "text", "text": reply.content}])
            use.notes = (*use.notes, "in your words")
        else:
            use.result = result
        return reply.allow


_Held = tuple[ModelToolUse, ToolResult, bool]
"""A use whose result waits for the user, that result, and whether others may have written it."""


def _waits(chat: Chat, use: ModelToolUse) -> bool:
    came = bool(use.server) and use.outcome in (CallState.DONE.value, CallState.FAILED.value)
    return came and (chat.hold == "always" or (chat.hold == "outside" and use.outside))


def _held_back(use: ModelToolUse) -> _Held:
    """Take its result away until the user passes it on; that may be never, since a turn can be stopped at any time."""
    assert use.result is not None
    held = use, use.result, use.outside
    use.result, use.outside = failure(use.id, "The user has not passed on what it answered."), False
    return held


def _question(use: ModelToolUse, result: ToolResult, model: AvailableModel) -> ResultQuestion:
    text = said(result)
    pictures = sum(isinstance(block, MediaContent) for block in result.blocks)
    tokens = estimate_tokens(text)
    return ResultQuestion(
        use.server, use.tool, use.number, model.name, text, tokens, links_in(text), hidden_count(text), pictures
    )


def _search(chat: Chat, tools: ToolSelection, use: ModelToolUse) -> ToolResult:
    query = use.arguments.get("query")
    entries = tools.search(query) if isinstance(query, str) else []
    for entry in entries:
        chat.found[entry.name] = None
    lines = list(_lines(entries)) or ["Nothing fits; try other words."]
    return ToolResult.create(use.id, [{"type": "text", "text": "\n".join(lines)}])


def _lines(entries: list[SelectedTool]) -> Iterator[str]:
    for entry in entries:
        yield f"{entry.name}: {show_line(entry.tool.description or entry.tool.label)}"


def _may_be_from_outside(entry: SelectedTool | None) -> bool:
    return entry is None or entry.tool.open_world


def _key(use: ModelToolUse) -> Any:
    return use.name, json.dumps(dict(use.arguments), sort_keys=True)
