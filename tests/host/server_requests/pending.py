"""A host whose server asks: what `tests/servers/asks.py` is told to ask, and an approver that answers by a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcphost.host.consent.questions import Answer, Question, ToolCallQuestion
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.tool_calls.call import ToolCall
from tests.host.conftest import RecordingHost, ScriptedApprover, open_stdio, script, settings

YES, NO, LATER = Answer(True), Answer(False, reason="no"), Answer(False, cancelled=True)
NEVER = object()
Step = Answer | Exception | object | Callable[[Any], Awaitable[Answer]]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}}


class Person(ScriptedApprover):
    """Allows every call; answers what servers ask by the script, step by step, and then by never answering."""

    def __init__(self, *script: Step) -> None:
        super().__init__()
        self.steps = list(script)
        self.asked: list[Any] = []
        self.calls: list[ToolCallQuestion] = []
        self.left = 0
        """Questions that were taken away."""

    async def ask(self, question: Question) -> Answer:
        if isinstance(question, ToolCallQuestion):
            self.calls.append(question)
            return YES
        self.asked.append(question)
        step = self.steps.pop(0) if self.steps else NEVER
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Answer):
            return step
        try:
            if step is NEVER:
                await asyncio.Event().wait()
            assert callable(step)
            answer: Answer = await step(question)
            return answer
        except asyncio.CancelledError:
            self.left += 1
            raise


class AskedHost(RecordingHost):
    """A host with one server, `a`, that asks."""

    person: Person

    def ask(self, *requests: Mapping[str, Any]) -> ToolCall:
        return self.tool_calls.call("a", "ask", {"requests": list(requests)})

    async def replies(self, *requests: Mapping[str, Any]) -> list[Any]:
        """The responses to the server's requests."""
        found: list[Any] = await told(self.ask(*requests))
        return found

    async def use(self, tool: str, **arguments: Any) -> Any:
        return await told(self.tool_calls.call("a", tool, arguments))


async def told(call: ToolCall) -> Any:
    async with asyncio.timeout(30):
        return json.loads((await call.result()).raw["content"][0]["text"])


def asked_host(
    *steps: Step,
    args: tuple[object, ...] = (),
    answers: frozenset[str] = DIALOG_KINDS,
    entry: Any = None,
    **dependencies: Any,
) -> AskedHost:
    """`async with asked_host(YES, args=("--revision", …), entry={…}, store=…) as host:`"""
    opener = dependencies.pop("open_transport", open_stdio)
    person = Person(*steps)
    server = script("asks.py", *args, **(entry or {}))
    config = settings(policy={"default": "allow"}, a=server)
    host = AskedHost(config, person, answers=answers, open_transport=opener, **dependencies)
    host.person = person
    return host


def form(schema: Any = SCHEMA, message: Any = "Who are you?", **more: Any) -> dict[str, Any]:
    params = {"message": message, "requestedSchema": schema, **more}
    return {"method": "elicitation/create", "params": params}


def page(url: Any = "https://example.com/x", elicitation: Any = "e1", **more: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": required(url, elicitation, **more)}


def required(url: Any = "https://example.com/x", elicitation: Any = "e1", **more: Any) -> dict[str, Any]:
    return {"mode": "url", "message": "Come and see", "url": url, "elicitationId": elicitation, **more}


ROOTS = {"method": "roots/list"}
