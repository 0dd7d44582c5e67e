"""What is written down of a conversation: one JSON object for each thing that happened, in order; and read back.

Knows the shapes. Refuses to know files. A record of the wrong shape is left out: a transcript may have been cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcphost.host.chat.turns import Attachment, Message, PromptUsed, Round, Turn, Use
from mcphost.protocol.sampling import block_object


def turn_record(turn: Turn) -> dict[str, Any]:
    """A message of the user's, or a turn taken up again."""
    return {"event": "turn", "turn": turn.number, "message": _message(turn.message)}


def round_record(turn: Turn, answer: Round) -> dict[str, Any]:
    """An answer of the model's, as far as it came."""
    usage = answer.usage
    return {
        "event": "answer",
        "turn": turn.number,
        "round": len(turn.rounds),
        "entry": answer.entry,
        "model": answer.model,
        "outside": answer.outside,
        "text": answer.text,
        "thought": answer.thought,
        "stop": answer.stop_reason,
        "tokens": [usage.input_tokens, usage.output_tokens],
        "guessed": answer.guessed,
        "uses": [_use(use) for use in answer.uses],
    }


def results_record(turn: Turn, answer: Round) -> dict[str, Any]:
    """What became of the tool uses of an answer."""
    return {
        "event": "results",
        "turn": turn.number,
        "round": len(turn.rounds),
        "uses": [_result(use) for use in answer.uses],
    }


def ended_record(turn: Turn) -> dict[str, Any]:
    """How a turn ended."""
    return {"event": "end", "turn": turn.number, "state": turn.state.name, "reason": turn.reason}


def _message(message: Message) -> dict[str, Any]:
    return {
        "text": message.text,
        "attachments": [_attachment(each) for each in message.attachments],
        "prompts": [_prompt(each) for each in message.prompts],
    }


def _attachment(each: Attachment) -> dict[str, Any]:
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


def _prompt(each: PromptUsed) -> dict[str, Any]:
    return {
        "server": each.server,
        "prompt": each.prompt,
        "arguments": dict(each.arguments),
        "outside": each.outside,
        "note": each.note,
        "messages": [message.as_object() for message in each.messages],
    }


def _use(use: Use) -> dict[str, Any]:
    found: dict[str, Any] = {"id": use.id, "name": use.name, "arguments": dict(use.arguments)}
    return found | ({"problem": use.problem, "raw": use.raw} if use.problem else {})


def _result(use: Use) -> dict[str, Any]:
    return {
        "id": use.id,
        "server": use.server,
        "tool": use.tool,
        "call": use.number,
        "outcome": use.outcome,
        "sent": None if use.sent is None else dict(use.sent),
        "seconds": round(use.seconds, 3),
        "outside": use.outside,
        "notes": list(use.notes),
        "result": _object(use),
    }


def _object(use: Use) -> Mapping[str, Any] | None:
    return None if use.result is None else use.result.definition()
