"""Drives a gate from the threads of a shim: one lock, one clock, and a thread for what is due later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.serving.gate import AgentGate, GateAction, GateOptions, Note, Questions, ToAgent, ToServer
from mcphost.serving.ports import GateDecision


class GateDecider(Protocol):
    """Takes what a gate asks and reports."""

    def take(self, action: GateAction) -> None:
        """Called from any thread, in order; must not wait."""


class GatePump:
    """One gate. All methods may be called from any thread.

    ``to_server`` and ``to_agent`` queue bytes and never wait; ``copy`` takes what mcphost itself sent, ``note`` a
    sentence for the agent's log.
    """

    def __init__(
        self,
        options: GateOptions,
        to_server: Callable[[bytes], None],
        to_agent: Callable[[bytes], None],
        copy: Callable[[str, bytes], None],
        note: Callable[[str], None],
        decider: GateDecider,
    ) -> None:
        self._gate = AgentGate(options)
        self._to_server, self._to_agent, self._copy, self._note = to_server, to_agent, copy, note
        self._decider = decider
        self._changed = threading.Condition()
        self._wakes_at = inf
        """When the thread wakes by itself."""
        threading.Thread(target=self._wake, name="gate", daemon=True).start()

    def from_agent(self, line: bytes, whole: bool) -> None:
        with self._changed:
            self._act(self._gate.agent_line(line, time.monotonic(), whole=whole))

    def from_server(self, line: bytes, whole: bool) -> None:
        with self._changed:
            self._act(self._gate.server_line(line, time.monotonic(), whole=whole))

    def agent_closed(self) -> None:
        with self._changed:
            self._act(self._gate.agent_closed(time.monotonic()))

    def server_closed(self) -> None:
        with self._changed:
            self._act(self._gate.server_closed(time.monotonic()))

    def decide(self, call: int, decision: GateDecision) -> None:
        with self._changed:
            self._act(self._gate.decide(call, decision, time.monotonic()))

    def reply(self, number: int, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None) -> None:
        """Answer a question of the server: with a result, or a JSON-RPC error with code and message."""
        with self._changed:
            self._act(self._gate.reply(number, time.monotonic(), result, error))

    def _act(self, actions: Sequence[GateAction]) -> None:
        others: list[GateAction] = []
        for action in actions:
            if isinstance(action, ToServer):
                self._to_server(action.data)
                if action.ours:
                    self._copy("gate>server", action.data)
            elif isinstance(action, ToAgent):
                self._to_agent(action.data)
                if action.ours:
                    self._copy("gate>agent", action.data)
            else:
                others.append(action)
        for action in others:  # once the bytes are on their way, which others wait for
            if isinstance(action, Note):
                self._note(action.text)
            else:
                self._decider.take(action)
        due = self._gate.wake_at
        if due is not None and due < self._wakes_at:  # an earlier one than needed costs less than a switch of threads
            self._wakes_at = due
            self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            while True:
                left = self._wakes_at - time.monotonic()
                if left > 0:
                    self._changed.wait(None if left == inf else min(left, threading.TIMEOUT_MAX))
                    continue
                self._act(self._gate.wake(time.monotonic()))
                due = self._gate.wake_at
                self._wakes_at = inf if due is None else due


def answers_of(questions: Questions) -> ClientCapabilities:
    """The questions of servers that mcphost answers in the agent's place."""
    if questions == "agent":
        return ClientCapabilities()
    return ClientCapabilities(roots=True, elicitation=frozenset({"form", "url"}), sampling={})
