"""The answers that a gate gives in the server's place, in words for the agent's model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcphost.json_values import as_dict, as_text
from mcphost.serving.gate_lines import Message, MessageId

DECLINED: Final = "The user declined this call. Do not repeat it; ask the user how to go on."
OVERDUE: Final = (
    "This call is not decided yet: mcphost is asking the user. Nothing has run. Call again with the same arguments to "
    "learn the decision."
)
NOT_LISTED: Final = (
    "This call is not decided yet: the server has not listed its tools in time. Nothing has run. Call again later."
)
TOO_MANY: Final = "Too many calls are waiting for the user in mcphost. This one has not run; call again later."
UNSTEADY: Final = "The server changed this tool's definition again and again, so mcphost declined the call."
INPUT_REFUSED: Final = "The server needs an answer that the user did not give, so the call ended."
TOO_MUCH_INPUT: Final = "The server asks more than mcphost answers for one call, so the call ended."

EDIT_LENGTH: Final = 4_000
"""Characters of changed arguments that the note quotes: they would fill the model's context."""


def refusal(request_id: MessageId, words: str, *, modern: bool) -> Message:
    """A result of a tool call that did not run: an error would be shown to the model as a failure of the program."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": words}], "isError": True}
    return {"jsonrpc": "2.0", "id": request_id, "result": {**result, "resultType": "complete"} if modern else result}


def failure(request_id: MessageId | None, code: int, words: str) -> Message:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": words}}


def unanswered(request_id: MessageId, method: str) -> Message:
    """The answer to a server's question whose call has ended meanwhile."""
    if method == "elicitation/create":
        return {"jsonrpc": "2.0", "id": request_id, "result": {"action": "cancel"}}
    return failure(request_id, -1, "The call that this was asked for has ended.")


def edit_note(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    cut = f"{text[:EDIT_LENGTH]}…" if len(text) > EDIT_LENGTH else text
    return f"(The user changed the arguments of this call: {cut})"


def task_of(result: Mapping[str, Any]) -> str:
    """The id of the task that will bring the result of a call; empty where this is the result."""
    started = result.get("task") if result.get("resultType") != "task" else result
    return as_text(as_dict(started).get("taskId"))


def with_note(answer: Message, note: str) -> Message:
    """The server's answer with a note before its content, or before the words of its error."""
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        return {**answer, "error": {**error, "message": f"{note} {error.get('message', '')}"}}
    if not isinstance(result, dict):
        return answer
    if isinstance(inner := result.get("result"), dict):  # of a task that has ended
        return {**answer, "result": {**result, "result": noted(inner, note)}}
    if "task" in result or result.get("resultType") == "task" or "taskId" in result:  # it has no place for a text
        return answer
    return {**answer, "result": noted(result, note)}


def noted(result: Mapping[str, Any], note: str) -> dict[str, Any]:
    """A result with a note before its content."""
    content = result.get("content")
    return {**result, "content": [{"type": "text", "text": note}, *(content if isinstance(content, list) else [])]}
