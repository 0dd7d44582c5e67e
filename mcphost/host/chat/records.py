"""What is written down of a conversation: one JSON object for each thing that happened, in order.

Knows the shapes; `mcphost.host.chat.replaying` reads them. Refuses to know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mcphost.host.chat.choices import ChatSettings
from mcphost.host.chat.turns import Attachment, ModelRound, ModelToolUse, PromptUsed, Turn, UserMessage
from mcphost.protocol.sampling import block_object

VERSION: Final = 1
"""Of the shapes below."""


def all_records(
    chat_id: str, branch_of: tuple[str, int] | None, choices: ChatSettings, turns: Iterable[Turn]
) -> Iterator[dict[str, Any]]:
    """A whole conversation, from its first record."""
    began = datetime.now().astimezone().isoformat(timespec="seconds")
    origin = None if branch_of is None else {"id": branch_of[0], "turns": branch_of[1]}
    yield {"event": "chat", "version": VERSION, "id": chat_id, "began": began, "branch_of": origin}
    yield choices_record(choices)
    for turn in turns:
        yield turn_record(turn)
        for answer in turn.rounds:
            yield round_record(turn, answer)
            yield results_record(turn, answer)
        yield ended_record(turn)


def choices_record(choices: ChatSettings) -> dict[str, Any]:
    """What the user set of it, from here on."""
    return {"event": "choices", **choices.plain()}


def turn_record(turn: Turn) -> dict[str, Any]:
    """A message of the user's, or a turn taken up again."""
    return {"event": "turn", "turn": turn.number, "message": _message_record(turn.message)}


def round_record(turn: Turn, answer: ModelRound) -> dict[str, Any]:
    """An answer of the model's, as far as it came."""
    usage = answer.usage
    return {
        "event": "answer",
        "turn": turn.number,
        "round": _place(turn, answer),
        "entry": answer.entry,
        "model": answer.model,
        "outside": answer.outside,
        "text": answer.text,
        "thought": answer.thought,
        "stop": answer.stop_reason,
        "tokens": [usage.input_tokens, usage.output_tokens],
        "guessed": answer.guessed,
        "superseded": answer.superseded,
        "uses": [_use_record(use) for use in answer.uses],
    }


def results_record(turn: Turn, answer: ModelRound) -> dict[str, Any]:
    """What became of the tool uses of an answer."""
    return {
        "event": "results",
        "turn": turn.number,
        "round": _place(turn, answer),
        "uses": [_result(use) for use in answer.uses],
    }


def ended_record(turn: Turn) -> dict[str, Any]:
    """How a turn ended."""
    return {"event": "end", "turn": turn.number, "state": turn.state.name, "reason": turn.reason}


def _place(turn: Turn, answer: ModelRound) -> int:
    return next(place for place, each in enumerate(turn.rounds, 1) if each is answer)


def _message_record(message: UserMessage) -> dict[str, Any]:
    return {
        "text": message.text,
        "attachments": [_attachment_record(each) for each in message.attachments],
        "prompts": [_prompt_record(each) for each in message.prompts],
    }


def _attachment_record(each: Attachment) -> dict[str, Any]:
    return {
        "server": each.server,
        "name": each.name,
        "title": each.title,
        "size": each.size,
        "tokens": each.tokens,
        "outside": each.outside,
        "note": each.note,
        "blocks": [block_object(block) for block in each.blocks],
    }


def _prompt_record(each: PromptUsed) -> dict[str, Any]:
    return {
        "server": each.server,
        "prompt": each.prompt,
        "arguments": dict(each.arguments),
        "outside": each.outside,
        "note": each.note,
        "messages": [message.as_object() for message in each.messages],
    }


def _use_record(use: ModelToolUse) -> dict[str, Any]:
    found: dict[str, Any] = {"id": use.id, "name": use.name, "arguments": dict(use.arguments)}
    return found | ({"problem": use.problem, "raw": use.raw} if use.problem else {})


def _result(use: ModelToolUse) -> dict[str, Any]:
    return {
        "id": use.id,
        "server": use.server,
        "tool": use.tool,
        "call": use.number,
        "outcome": use.outcome,
        "sent": None if use.sent is None else dict(use.sent),
        "seconds": use.seconds,
        "outside": use.outside,
        "notes": list(use.notes),
        "result": _object(use),
    }


def _object(use: ModelToolUse) -> Mapping[str, Any] | None:
    return None if use.result is None else use.result.definition()
