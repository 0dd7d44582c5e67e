"""The calls and questions of one connected agent, from its gate's messages to the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

from mcphost.client.server_requests import InputRefused
from mcphost.errors import McphostError
from mcphost.host.agents.facts import claim_in
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.host.agents.server_questions import AgentServerQuestions
from mcphost.host.agents.session import KEPT_CALLS, AgentCall, AgentCallState, AgentSession
from mcphost.host.background import BackgroundTasks
from mcphost.host.internal_error import internal_error
from mcphost.host.traffic.book import AgentTap
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.ports import GateDecision

MOST_WAITING: Final = 50
"""Calls of one session that wait for a decision; more are declined, since no person reads as many."""

MOST_QUESTIONS: Final = 20
"""Questions of one server that are answered at once."""

CALL: Final = b'"tools/call"'
CALL_BYTES: Final = 400
"""Bytes of the start of a message, in which its method is: all SDKs write it before the params."""

DECLINING: Final = "the user declines everything from this agent for now; do not try again"
TOO_MANY: Final = f"{MOST_WAITING} calls of this agent wait for the user already; try again when they are decided"


class AgentPort(Protocol):
    """The connection to an agent's tap or gate. None of its methods waits."""

    def decided(self, call: int, decision: GateDecision) -> None:
        """Pass on the decision about the call that the gate gave this number."""

    def replied(self, number: int, result: Mapping[str, Any]) -> None:
        """Pass on the answer to a question of the server."""

    def refused(self, number: int, code: int, message: str) -> None:
        """Pass on the refusal of a question of the server."""

    def disconnect(self) -> None:
        """End the agent's session with its server, and this connection."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The services that a connected agent uses."""

    gated: GatedCalls
    questions: AgentServerQuestions
    background: BackgroundTasks
    next_number: Callable[[], int]
    """Returns a number that no other call of this run has."""
    changed: Callable[[int], None]
    """Called with a session's number when anything of it changed."""
    ended: Callable[[AgentSession], None]


class _Asking:
    """A call that waits for its decision in ``task``."""

    task: asyncio.Task[None]

    def __init__(self, call: AgentCall, definition: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> None:
        self.call, self.definition, self.arguments = call, definition, arguments


class ConnectedAgent:
    """Takes the messages of one tap or gate. Numbers are those of its process, and hostile as all that it says."""

    def __init__(
        self, session: AgentSession, server: GatedServer, port: AgentPort, tap: AgentTap, context: AgentContext
    ) -> None:
        self.session = session
        self._server, self._port, self._tap, self._context = server, port, tap, context
        self._calls: dict[int, AgentCall] = {}
        self._asking: dict[int, _Asking] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}

    def named(self, name: str, version: str, revision: str) -> None:
        """The agent has said who it is."""
        self.session.agent = self.session.agent.introduced(name, version)
        self.session.revision = revision
        self._tap.named(self.session.agent.label)
        self._changed()

    def copied(self, source: str, data: bytes, time: float, *, to_server: bool, dropped: int, whole: int = 0) -> None:
        """A copy of what passed; ``dropped`` others are missing before it.

        ``whole`` counts the bytes of a line of which ``data`` may be only the start.
        """
        self.session.messages += 1
        if self.session.role == "tap" and source == "agent":
            self._tapped(data)
        self._tap.copied(source, data, time, to_server=to_server, whole=whole, left_out=dropped)
        if dropped:
            self.session.dropped += dropped
            self._changed()

    def _tapped(self, data: bytes) -> None:
        """Find in a copy what a gate would say by itself: a tap parses nothing."""
        if not self.session.agent.claimed and (claim := claim_in(data)) is not None:
            self.named(*claim)
        if CALL in data[:CALL_BYTES]:
            self.session.call_count += 1
            self._changed()

    # Calls.

    def asked(
        self,
        number: int,
        request_id: str | int | float,
        tool: str,
        definition: Mapping[str, Any] | None,
        arguments: Mapping[str, Any],
        answer_within: float | None,
    ) -> None:
        """A call waits for a decision, or an overdue one waits again."""
        if (known := self._calls.get(number)) is not None:
            if known.state is AgentCallState.OVERDUE:
                known.wait_again(answer_within)
                self._changed()
            return
        call = AgentCall(
            self._context.next_number(), tool, request_id, time.monotonic(), answer_within, server=self._server.name
        )
        self._calls[number] = self.session.calls[call.number] = call
        self.session.call_count += 1
        if not isinstance(request_id, float):
            self._tap.held(request_id, call)
        refusal = DECLINING if self.session.declining else TOO_MANY if len(self._asking) >= MOST_WAITING else ""
        self._decide(number, _Asking(call, definition, arguments), refusal)
        self._make_room()
        self._changed()

    def withdrawn(self, number: int) -> None:
        """A call needs no decision any more, or was not sent although it was allowed."""
        call = self._calls.get(number)
        if call is not None and call.state in _OPEN:
            allowed = call.state is AgentCallState.ALLOWED
            self._drop(number, call, AgentCallState.CANCELLED if allowed else AgentCallState.WITHDRAWN)

    def overdue(self, number: int) -> None:
        """The agent was answered; the question stays."""
        call = self._calls.get(number)
        if call is not None and call.state is AgentCallState.WAITING:
            call.state = AgentCallState.OVERDUE
            self._changed()

    def doubted(self, number: int) -> None:
        """The agent may have given up without a word."""
        call = self._calls.get(number)
        if call is not None and call.state.waits:
            call.doubted = True
            self._changed()

    def sent(self, number: int) -> None:
        """The call went to the server, perhaps for another round."""
        call = self._calls.get(number)
        if call is not None and call.allowed and not call.state.ended:
            call.state = AgentCallState.SENT
            call.sent_at = call.sent_at or time.monotonic()
            self._changed()

    def finished(self, number: int, state: Literal["done", "failed", "cancelled", "lost"], seconds: float) -> None:
        """A call that went to the server has its end, ``seconds`` after that."""
        call = self._calls.get(number)
        if call is not None and call.state is AgentCallState.SENT:
            call.state, call.answered_at = AgentCallState(state), time.monotonic()
            self._note_end(call, seconds)
            self._changed()

    # Questions of the server.

    def requested(self, number: int, method: str, params: Mapping[str, Any], call: int | None = None) -> None:
        """The server asks something that is answered here, for this call if that is known."""
        if number in self._answering:
            return
        if self.session.declining:
            self._port.refused(number, ErrorCode.INTERNAL_ERROR, DECLINING)
        elif len(self._answering) >= MOST_QUESTIONS:
            self._port.refused(number, ErrorCode.INTERNAL_ERROR, f"{MOST_QUESTIONS} questions are open already")
        else:
            task = self._context.background.start(
                self._answer(number, method, params, call), "answer an agent's server"
            )
            self._answering[number] = task
            task.add_done_callback(lambda _: self._answering.pop(number, None))

    def request_gone(self, number: int) -> None:
        """The server's question needs no answer any more."""
        if (task := self._answering.get(number)) is not None:
            task.cancel()

    # The session.

    def decline_all(self, on: bool) -> None:
        """Decline what is open and what comes, or take questions again."""
        self.session.declining = on
        if on:
            waiting = [(number, asking) for number, asking in self._asking.items() if asking.call.state.waits]
            for number, asking in waiting:
                asking.task.cancel()
                self._decide(number, _Asking(asking.call, asking.definition, asking.arguments), DECLINING)
            for number, task in tuple(self._answering.items()):
                task.cancel()
                self._port.refused(number, ErrorCode.INTERNAL_ERROR, DECLINING)
        self._changed()

    def disconnect(self) -> None:
        """End the agent's session with its server."""
        self._port.disconnect()

    def closed(self) -> None:
        """The connection is gone, and with it all that waits."""
        if not self.session.connected:
            return
        for number, call in self._calls.items():
            if call.state in _OPEN:
                self._drop(number, call, AgentCallState.WITHDRAWN)
            elif call.state is AgentCallState.SENT:
                call.state, call.answered_at = AgentCallState.LOST, time.monotonic()
                self._note_end(call, call.waited_for_server or 0.0)
        for task in self._answering.values():
            task.cancel()
        self._tap.ended()
        self.session.ended_at = time.time()
        self._context.ended(self.session)

    # Inside.

    def _decide(self, number: int, asking: _Asking, refusal: str) -> None:
        async def decide() -> None:
            call = asking.call
            decision = await self._context.gated.decide(
                call.number,
                self._server,
                self.session.agent,
                call.tool,
                asking.definition,
                asking.arguments,
                refusal=refusal,
            )
            self._decided(number, call, decision)

        self._asking[number] = asking
        asking.task = self._context.background.start(decide(), f"decide call {asking.call.number} of an agent")
        asking.task.add_done_callback(lambda _: self._asking.pop(number, None) if self._is(number, asking) else None)

    def _is(self, number: int, asking: _Asking) -> bool:
        return self._asking.get(number) is asking

    def _decided(self, number: int, call: AgentCall, decision: GateDecision) -> None:
        call.allowed, call.by, call.decided_at = decision.allow, decision.by, time.monotonic()
        call.state = AgentCallState.ALLOWED if decision.allow else AgentCallState.DECLINED
        self._port.decided(number, decision)
        self._changed()

    async def _answer(self, number: int, method: str, params: Mapping[str, Any], call: int | None) -> None:
        cause = None if call is None else self._calls.get(call)
        try:
            result = await self._context.questions.answer(self.session, self._server, method, params, cause)
        except InputRefused as refused:
            self._port.refused(number, refused.code, str(refused))
        except Exception as error:
            known = error if isinstance(error, McphostError) else internal_error(error)
            self._port.refused(number, ErrorCode.INTERNAL_ERROR, str(known))
        else:
            self._port.replied(number, result)

    def _drop(self, number: int, call: AgentCall, state: AgentCallState) -> None:
        """End a call that was not sent."""
        call.state = state
        call.decided_at = call.decided_at or time.monotonic()
        if (asking := self._asking.get(number)) is not None:
            asking.task.cancel()
        self._note_end(call, 0.0)
        self._changed()

    def _note_end(self, call: AgentCall, seconds: float) -> None:
        self._context.gated.ended(
            call.number,
            self._server,
            self.session.agent,
            call.tool,
            call.state.value,
            seconds,
            sent=call.sent_at is not None,
        )

    def _make_room(self) -> None:
        """Forget the oldest ended calls."""
        ended = [number for number, call in self._calls.items() if call.state.ended]
        for number in ended[: max(len(self._calls) - KEPT_CALLS, 0)]:
            del self.session.calls[self._calls.pop(number).number]

    def _changed(self) -> None:
        self._context.changed(self.session.number)


_OPEN: Final = (AgentCallState.WAITING, AgentCallState.OVERDUE, AgentCallState.ALLOWED)
"""The states of calls that have not been sent."""
