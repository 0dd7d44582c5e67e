"""The tool ``approve``: an agent asks the user whether it may run a tool of its own.

Its arguments and answers are those of the option ``--permission-prompt-tool`` of Claude Code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

from mcphost.config.gated import GatedProgram
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.host.agents.served import ServedAgent
from mcphost.serving.heartbeat import Heartbeat
from mcphost.serving.negotiation import InvalidParamsError
from mcphost.serving.ports import GateDecision
from mcphost.serving.served_request import ServedRequest

APPROVE: Final = "approve"

OWN_TOOLS: Final = "agent"
"""The server in rules for the own tools of agents, such as ``agent:Bash`` or ``claude-code>agent:Bash``."""

OVERDUE: Final = "the user did not decide in time; nothing has run"

DEFINITION: Final[Mapping[str, Any]] = {
    "name": APPROVE,
    "title": "Ask for permission",
    "description": "Asks the user in mcphost whether the agent may run one of its tools.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "minLength": 1, "maxLength": 200},
            "input": {"type": "object"},
            "tool_use_id": {"type": "string"},
        },
        "required": ["tool_name", "input"],
    },
}


class AgentPermissions:
    """The questions of one agent about its own tools, decided as tool calls are: by the rules and the user.

    ``answer_within`` are the configured seconds for an answer; None: by the agent.
    """

    def __init__(
        self,
        gated: GatedCalls,
        next_number: Callable[[], int],
        shown: ServedAgent,
        answer_within: Callable[[], float | None],
    ) -> None:
        self._gated, self._next_number, self._shown, self._within = gated, next_number, shown, answer_within
        self._deciding: dict[int, asyncio.Future[GateDecision]] = {}
        self._declined: dict[int, str] = {}

    async def answer(self, request: ServedRequest) -> Mapping[str, Any]:
        """The result of a call of ``approve``. Raises InvalidParamsError; cancelled when the agent gives up."""
        tool, arguments = _read(request.params.get("arguments"))
        agent, refusal = self._shown.session.agent, self._shown.refusal
        within = self._shown.limits.seconds(self._within(), progress=request.has_token)
        number = self._next_number()
        key = "" if request.key is None else request.key
        shown = self._shown.asked(number, OWN_TOOLS, tool, key, None if within == inf else within)
        decision: GateDecision | None = None
        try:
            decision = await self._decided(number, request, agent, tool, arguments, refusal, within)
        finally:
            self._shown.answered(shown, decision)
        return _result(decision, arguments)

    def decline(self, number: int, words: str) -> None:
        """Decline what waits under this number, in these words."""
        if (deciding := self._deciding.get(number)) is not None:
            self._declined[number] = words
            deciding.cancel()

    async def _decided(
        self,
        number: int,
        request: ServedRequest,
        agent: AgentFacts,
        tool: str,
        arguments: Mapping[str, Any],
        refusal: str,
        within: float,
    ) -> GateDecision:
        server = GatedServer(OWN_TOOLS, GatedProgram(folder=agent.folder), own=True)
        definition = {"name": tool, "inputSchema": {"type": "object"}}
        deciding = self._deciding[number] = asyncio.ensure_future(
            self._gated.decide(number, server, agent, tool, definition, arguments, refusal=refusal)
        )
        loop = asyncio.get_running_loop()
        until, heartbeat = loop.time() + within, Heartbeat(None, loop.time())
        try:
            while not deciding.done() and loop.time() < until:
                await asyncio.wait([deciding], timeout=min(until, heartbeat.next_at) - loop.time())
                if not deciding.done() and (report := heartbeat.report(loop.time())) is not None:
                    request.progress(report)
            if deciding.cancelled():
                return GateDecision(False, words=self._declined.get(number, OVERDUE), by="user")
            return deciding.result() if deciding.done() else GateDecision(False, words=OVERDUE)
        finally:
            deciding.cancel()
            del self._deciding[number]
            self._declined.pop(number, None)


def _read(arguments: object) -> tuple[str, Mapping[str, Any]]:
    match arguments:
        case {"tool_name": str(tool), "input": dict(given)} if 0 < len(tool) <= 200:
            return tool, given
    raise InvalidParamsError("approve needs tool_name, a text of 1 to 200 characters, and input, an object.")


def _result(decision: GateDecision, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer as Claude Code reads it."""
    if decision.allow:
        allowed = arguments if decision.arguments is None else decision.arguments
        answer: dict[str, Any] = {"behavior": "allow", "updatedInput": dict(allowed)}
    else:
        answer = {"behavior": "deny", "message": decision.words}
    return {"content": [{"type": "text", "text": json.dumps(answer, ensure_ascii=False)}]}
