"""The tool that asks the host's language model to write something, and offers it a tool of its own."""

from __future__ import annotations

import json

from mcphost.demo.lighthouse import SHIPS
from mcphost.demo.tool import DemoCall, Json, text, tool

ROUNDS = 3
"""How often the poet may look out of the window."""

WINDOW: Json = {
    "name": "look_out",
    "description": "The ships that can be seen from the gallery right now.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
}


@tool(
    "Have a verse written",
    {"about": {"type": "string", "maxLength": 200, "default": "the fog", "title": "What it is about"}},
    hints={"readOnlyHint": True, "openWorldHint": True},
    slow=True,
)
def write_verse(call: DemoCall) -> Json:
    """Asks your host to have a language model write a verse for the logbook. You see what it is asked and answers."""
    messages = [_said(f"Write a verse of four lines about {call.arguments['about']}.")]
    looks = call.offers("sampling", "tools")
    for left in reversed(range(ROUNDS + 1)):
        answer = call.ask("sampling", "sampling/createMessage", **_request(messages, looks, left))
        uses = [block for block in _blocks(answer) if block.get("type") == "tool_use"]
        if not uses or not left:
            break
        call.log("info", f"the poet looks out of the window ({left} looks left)", "poets")
        messages.append({"role": "assistant", "content": _blocks(answer)})
        messages.append({"role": "user", "content": [_seen(use) for use in uses]})
    verse = "\n".join(str(block.get("text")) for block in _blocks(answer) if block.get("type") == "text")
    return text(f"{verse or 'Not a word came.'}\n\n(by {answer.get('model')}; it stopped: {answer.get('stopReason')})")


def _request(messages: list[Json], looks: bool, left: int) -> Json:
    request: Json = {
        "messages": messages,
        "systemPrompt": "You are the poet of a lighthouse. Four lines, plain words, no title.",
        "maxTokens": 200,
        "temperature": 0.8,
        "modelPreferences": {"hints": [{"name": "haiku"}], "speedPriority": 0.7, "costPriority": 0.5},
    }
    tools: Json = {"tools": [WINDOW], "toolChoice": {"mode": "auto" if left else "none"}} if looks else {}
    return request | tools


def _said(words: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": words}}


def _seen(use: Json) -> Json:
    ships = json.dumps([ship.row() for ship in SHIPS[:3]])
    return {"type": "tool_result", "toolUseId": use.get("id"), "content": [{"type": "text", "text": ships}]}


def _blocks(answer: Json) -> list[Json]:
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if isinstance(block, dict)]


TOOLS = (write_verse,)
