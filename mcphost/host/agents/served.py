"""An agent to which mcphost is the server, and its calls: tool calls as all others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from mcphost.host.agents.connected import DECLINING, MOST_WAITING, TOO_MANY
from mcphost.host.agents.session import KEPT_CALLS, AgentCall, AgentCallState, AgentSession
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.traffic.book import AgentTap
from mcphost.lazy_dataclass import dataclass
from mcphost.serving.agents import AgentLimits, limits_of
from mcphost.serving.ports import GateDecision


class ServedPort(Protocol):
    """The endpoint of an agent. None of its methods waits."""

    def decline(self, call: int, words: str) -> None:
        """End a tool call that waits for the user, and tell the agent in these words."""

    def disconnect(self) -> None:
        """End the agent's session."""


@dataclass(frozen=True, slots=True)
class ServedContext:
    """The services that a served agent uses."""

    calls: CallRegistry
    asks: Callable[[int], bool]
    """True if the user is asked about the call of this number now."""
    changed: Callable[[int], None]
    """Called with a session's number when anything of it changed."""
    ended: Callable[[AgentSession], None]


class ServedAgent:
    """Shows a served agent to the user. A `MessageObserver` of the messages with it."""

    def __init__(self, session: AgentSession, port: ServedPort, tap: AgentTap, context: ServedContext) -> None:
        self.session = session
        self._port, self._tap, self._context = port, tap, context
        self._waiting: set[int] = set()
        """The numbers of the calls about which the user is asked."""

    def named(self, name: str, version: str, revision: str) -> None:
        """The agent has said who it is."""
        agent = self.session.agent.introduced(name, version)
        if (agent, revision) != (self.session.agent, self.session.revision):
            self.session.agent, self.session.revision = agent, revision
            self._tap.named(agent.label)
            self._changed()

    def uses(self, entry: str, server: str) -> None:
        """From now on, the agent uses this running server of the entry."""
        if self.session.servers.get(entry) != server:
            self.session.servers[entry] = server
            self._changed()

    # Messages.

    def received(self, data: bytes) -> None:
        """The agent has sent this."""
        self._copied("agent", data)

    def sent(self, data: bytes) -> None:
        """The agent gets this."""
        self._copied("server", data)

    def noted(self, kind: str, text: str) -> None:
        """Heads of HTTP are not kept: they hold the agent's token."""

    def _copied(self, source: str, data: bytes) -> None:
        self.session.messages += 1
        self._tap.copied(source, data, time.time())

    # Calls.

    @property
    def limits(self) -> AgentLimits:
        """The limits within which the agent waits for a call."""
        agent = self.session.agent
        return limits_of(agent.given or agent.claimed or agent.label)

    @property
    def refusal(self) -> str:
        """Why a call that comes now is declined; empty if it is not."""
        if self.session.declining:
            return DECLINING
        return TOO_MANY if len(self._waiting) >= MOST_WAITING else ""

    def began(self, call: ToolCall, request_id: str | int, answer_within: float | None = None) -> AgentCall:
        """A tool call of the agent has begun, which is answered within these seconds, decided or not."""
        request = call.request
        shown = AgentCall(
            call.number, request.tool, request_id, call.asked_at, answer_within, AgentCallState.BEGUN,
            server=request.server,
        )  # fmt: skip
        self.session.calls[call.number] = shown
        self.session.call_count += 1
        self._tap.held(request_id, shown, call.number)
        self._follow(shown, call)
        self._make_room()
        return shown

    def asked(
        self, number: int, server: str, tool: str, request_id: str | int, answer_within: float | None
    ) -> AgentCall:
        """The agent asks whether it may run a tool of its own."""
        shown = AgentCall(number, tool, request_id, time.monotonic(), answer_within, server=server)
        self.session.calls[number] = shown
        self.session.call_count += 1
        self._tap.held(request_id, shown)
        self._make_room()
        self._changed()
        return shown

    def answered(self, call: AgentCall, decision: GateDecision | None) -> None:
        """Take the decision about a tool of the agent; None: the agent has given up."""
        call.answered_at = time.monotonic()
        if decision is None:
            call.state = AgentCallState.WITHDRAWN
        else:
            call.allowed, call.by, call.decided_at = decision.allow, decision.by, call.answered_at
            call.state = AgentCallState.DONE if decision.allow else AgentCallState.DECLINED
        self._changed()

    def call_changed(self, number: int) -> None:
        """A tool call has another state, be it one of the agent or not."""
        shown = self.session.calls.get(number)
        call = None if shown is None else self._context.calls.get(number)
        if shown is not None and call is not None and not shown.state.ended:
            self._follow(shown, call)

    def overdue(self, number: int) -> None:
        """The agent was answered "not decided yet"; the question stays."""
        call = self.session.calls.get(number)
        if call is not None and call.state is AgentCallState.WAITING:
            call.state = AgentCallState.OVERDUE
            self._changed()

    def repeated(self, number: int, request_id: str | int, answer_within: float | None) -> None:
        """The agent has repeated an overdue call, and waits for it again."""
        call = self.session.calls.get(number)
        if call is not None and not call.state.ended:
            if call.state is AgentCallState.OVERDUE:
                call.wait_again(answer_within)
            self._tap.held(request_id, call, number)
            self._changed()

    def doubted(self, number: int) -> None:
        """The agent may have given up without a word."""
        call = self.session.calls.get(number)
        if call is not None and call.state.waits:
            call.doubted = True
            self._changed()

    # The session.

    def decline_all(self, on: bool) -> None:
        """Decline what is open and what comes, or take questions again."""
        self.session.declining = on
        if on:
            for call in [call for call in self.session.calls.values() if call.state.waits]:
                self._port.decline(call.number, DECLINING)
        self._changed()

    def disconnect(self) -> None:
        """End the agent's session."""
        self._port.disconnect()

    def closed(self) -> None:
        """The session is over. The endpoint ends its calls."""
        if not self.session.connected:
            return
        for call in self.session.calls.values():
            if not call.state.ended:
                call.state = AgentCallState.LOST if call.sent_at is not None else AgentCallState.WITHDRAWN
                call.answered_at = time.monotonic()
        self._tap.ended()
        self.session.ended_at = time.time()
        self._context.ended(self.session)

    # Inside.

    def _follow(self, shown: AgentCall, call: ToolCall) -> None:
        asked = self._context.asks(call.number)
        if asked and shown.put_at is None:
            shown.put_at = time.monotonic()
        if not (asked and shown.state is AgentCallState.OVERDUE):
            shown.state = _state_of(call, asked=asked)
        (self._waiting.add if shown.state.waits else self._waiting.discard)(call.number)
        shown.allowed = call.allowed if call.decided_by else None
        shown.by, shown.decided_at = call.decided_by, call.decided_at
        shown.sent_at, shown.answered_at = call.sent_at, call.ended_at
        self._changed()

    def _make_room(self) -> None:
        """Forget the oldest ended calls."""
        calls = self.session.calls
        while len(calls) > KEPT_CALLS:
            oldest = next((number for number, call in calls.items() if call.state.ended), None)
            if oldest is None:
                return
            del calls[oldest]

    def _changed(self) -> None:
        self._context.changed(self.session.number)


def _state_of(call: ToolCall, *, asked: bool) -> AgentCallState:
    if call.state is CallState.ASKING:
        decided = AgentCallState.BEGUN if call.decided_at is None else AgentCallState.ALLOWED
        return AgentCallState.WAITING if asked else decided
    if call.state is CallState.CANCELLED and call.sent_at is None:
        return AgentCallState.WITHDRAWN
    return _STATES.get(call.state, AgentCallState.SENT)


_STATES: Final = {
    CallState.DONE: AgentCallState.DONE,
    CallState.FAILED: AgentCallState.FAILED,
    CallState.ERROR: AgentCallState.FAILED,
    CallState.TIMED_OUT: AgentCallState.FAILED,
    CallState.DECLINED: AgentCallState.DECLINED,
    CallState.CANCELLED: AgentCallState.CANCELLED,
}
