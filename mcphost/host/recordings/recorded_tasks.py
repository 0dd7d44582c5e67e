"""Joins calls that were answered with a task, in either dialect, with what the task brought.

Specification: 2025-11-25 basic/utilities/tasks; extensions/tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcphost.host.recordings.recording import RecordedEvent, RecordedExchange, RecordedNotice, RecordedSession
from mcphost.json_values import as_dict, as_text

_PROGRESS: Final = "notifications/progress"


def task_in(result: Mapping[str, Any] | None) -> str:
    """The id of the task that a result is; empty for any other result."""
    found = as_dict(result)
    return as_text((found if found.get("resultType") == "task" else as_dict(found.get("task"))).get("taskId"))


def with_tasks(session: RecordedSession) -> tuple[RecordedSession, frozenset[int]]:
    """The session with each task's outcome in place of the task, and the places of these calls."""
    tasks: dict[str, _Task] = {}
    for place, exchange in enumerate(session.exchanges):
        if task := task_in(exchange.result):
            tasks.setdefault(task, _Task(place, exchange))
    if not tasks:
        return session, frozenset()
    for exchange in session.exchanges:
        if (found := tasks.get(as_text(exchange.params.get("taskId")))) is not None:
            found.take_exchange(exchange)
    for notice in session.notices:
        if (found := tasks.get(as_text(notice.params.get("taskId")))) is not None:
            found.take_state(notice.params, notice.at)
    for found in tasks.values():
        found.take_progress(session.notices)
    exchanges = list(session.exchanges)
    for found in tasks.values():
        exchanges[found.place] = found.exchange()
    return session._replace(exchanges=tuple(exchanges)), frozenset(found.place for found in tasks.values())


class _Task:
    def __init__(self, place: int, call: RecordedExchange) -> None:
        self.place, self._call = place, call
        self._events = list(call.events)
        self._asked: dict[str, tuple[Mapping[str, Any], float]] = {}
        """The questions of the newer dialect by their keys, each with the time at which it was seen."""
        self._answers: dict[str, Any] = {}
        self._outcome: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None)
        self._ended: float | None = None

    def take_exchange(self, exchange: RecordedExchange) -> None:
        """Take a request about the task."""
        at = exchange.at + (exchange.seconds or 0.0)
        if exchange.method == "tasks/get":
            self.take_state(as_dict(exchange.result), at)
        elif exchange.method == "tasks/update":
            self._answers |= as_dict(exchange.params.get("inputResponses"))
        elif exchange.method == "tasks/result":
            before = exchange.at - self._call.at
            self._events += [event._replace(after=event.after + before) for event in exchange.events]
            if exchange.result is not None or exchange.error is not None:
                self._end(exchange.result, exchange.error, at)

    def take_state(self, state: Mapping[str, Any], at: float) -> None:
        """Take the task as the server showed it."""
        for key, asked in as_dict(state.get("inputRequests")).items():
            self._asked.setdefault(key, (as_dict(asked), at))
        if isinstance(state.get("result"), dict):
            self._end(state["result"], None, at)
        elif isinstance(state.get("error"), dict):
            self._end(None, state["error"], at)

    def take_progress(self, notices: tuple[RecordedNotice, ...]) -> None:
        """Take the progress that came after the task had begun."""
        token = as_dict(self._call.params.get("_meta")).get("progressToken")
        for notice in notices if token is not None else ():
            if notice.method == _PROGRESS and notice.params.get("progressToken") == token:
                self._events.append(RecordedEvent("progress", _PROGRESS, notice.params, self._after(notice.at)))

    def exchange(self) -> RecordedExchange:
        """The call with all that the task brought."""
        for key, (asked, at) in self._asked.items():
            answer = {"result": as_dict(self._answers[key])} if key in self._answers else None
            params, method = as_dict(asked.get("params")), as_text(asked.get("method"))
            self._events.append(RecordedEvent("question", method, params, self._after(at), key, answer))
        events = tuple(sorted(self._events, key=lambda event: event.after))
        result, error = self._outcome
        return self._call._replace(events=events, result=result, error=error, seconds=self._ended)

    def _end(self, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None, at: float) -> None:
        if self._ended is None:
            self._outcome, self._ended = (result, error), self._after(at)

    def _after(self, at: float) -> float:
        return max(0.0, at - self._call.at)
