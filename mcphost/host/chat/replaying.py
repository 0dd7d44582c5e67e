"""Turns from the records of an earlier run.

Knows the shapes of `mcphost.host.chat.records`, and that a file may have been cut off or tampered with: what is of the
wrong shape is left out. Refuses to make anything happen again: calls of then are only told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcphost.errors import InvalidResult
from mcphost.host.chat.choices import ChatSettings
from mcphost.host.chat.turns import Attachment, ModelRound, ModelToolUse, PromptUsed, Turn, TurnState, UserMessage
from mcphost.protocol.sampling import SamplingMessage, ToolResult, read_block
from mcphost.protocol.types import MediaContent, TextContent
from mcphost.providers.base import TokenUsage

MEANWHILE = "mcphost ended meanwhile"


def replay(records: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns that these records tell of."""
    turns: list[Turn] = []
    for record in records:
        try:
            _take(turns, record)
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError, InvalidResult):
            continue
    for turn in turns:
        _settle(turn)
    return turns


def branch_of(records: Iterable[Mapping[str, Any]]) -> tuple[str, int] | None:
    """The conversation it was branched from, and how many of its turns it shares."""
    for record in records:
        match record:
            case {"event": "chat", "branch_of": {"id": str(origin), "turns": int(number)}}:
                return origin, number
    return None


def choices_of(records: Iterable[Mapping[str, Any]]) -> ChatSettings | None:
    """What the user had set of it at its end; None: nothing was written down of that."""
    found = [record for record in records if record.get("event") == "choices"]
    return ChatSettings.read(found[-1]) if found else None


def _take(turns: list[Turn], record: Mapping[str, Any]) -> None:
    match record.get("event"):
        case "turn" if record["turn"] == len(turns) + 1:
            turns.append(Turn(len(turns) + 1, _message(record["message"])))
        case "turn" if record["turn"] == len(turns):
            for each in turns[-1].rounds[-1:]:
                each.superseded = not each.stop_reason
        case "answer":
            _answer(turns[record["turn"] - 1], record)
        case "results":
            _results(turns[record["turn"] - 1].rounds[record["round"] - 1], record["uses"])
        case "end":
            turn = turns[record["turn"] - 1]
            turn.state, turn.reason = TurnState[record["state"]], str(record["reason"])


def _settle(turn: Turn) -> None:
    if not turn.state.ended:
        turn.state, turn.reason = TurnState.STOPPED, MEANWHILE
    for use in turn.uses:
        if not use.outcome:
            use.outcome = MEANWHILE
    last = turn.rounds[-1] if turn.rounds else None
    if last is not None and turn.state is TurnState.FAILED and not last.stop_reason:
        last.error = turn.reason


def _message(told: Mapping[str, Any]) -> UserMessage:
    attachments = tuple(map(_attachment, told["attachments"]))
    return UserMessage(str(told["text"]), attachments, tuple(map(_prompt, told["prompts"])))


def _attachment(told: Mapping[str, Any]) -> Attachment:
    blocks = tuple(block for block in map(read_block, told["blocks"]) if isinstance(block, TextContent | MediaContent))
    names = str(told["server"]), str(told["name"]), str(told["title"])
    return Attachment(*names, blocks, int(told["size"]), int(told["tokens"]), bool(told["outside"]), str(told["note"]))


def _prompt(told: Mapping[str, Any]) -> PromptUsed:
    messages = tuple(map(SamplingMessage.read, told["messages"]))
    arguments = {str(name): str(value) for name, value in told["arguments"].items()}
    names = str(told["server"]), str(told["prompt"])
    return PromptUsed(*names, arguments, messages, bool(told["outside"]), str(told["note"]))


def _answer(turn: Turn, told: Mapping[str, Any]) -> None:
    answer = ModelRound(str(told["entry"]), str(told["outside"]), str(told["model"]))
    answer.say(str(told["text"]))
    answer.think(str(told["thought"]))
    answer.stop_reason, answer.guessed = str(told["stop"]), bool(told["guessed"])
    answer.superseded = bool(told["superseded"])
    answer.usage = TokenUsage(*(each if type(each) is int and each >= 0 else None for each in told["tokens"][:2]))
    answer.uses = [_use(each) for each in told["uses"]]
    turn.rounds[int(told["round"]) - 1 :] = [answer]


def _use(told: Mapping[str, Any]) -> ModelToolUse:
    problem, raw = str(told.get("problem", "")), str(told.get("raw", ""))
    return ModelToolUse(str(told["id"]), str(told["name"]), dict(told["arguments"]), problem=problem, raw=raw)


def _results(answer: ModelRound, told: Iterable[Mapping[str, Any]]) -> None:
    known = {use.id: use for use in answer.uses}
    for each in told:
        use = known[each["id"]]
        use.server, use.tool, use.outcome = str(each["server"]), str(each["tool"]), str(each["outcome"])
        use.sent = None if each["sent"] is None else dict(each["sent"])
        use.seconds, use.outside = float(each["seconds"]), bool(each["outside"])
        use.notes = tuple(map(str, each["notes"]))
        use.result = None if each["result"] is None else ToolResult.read(each["result"])
