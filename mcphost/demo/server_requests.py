"""Requests of a running call to its host: one answer for each, until either side gives up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from mcphost.demo.tool import Json

LOOK_SECONDS = 0.1
"""How often a waiting call looks whether somebody cancelled it."""


class RefusedError(Exception):
    """The host answered with an error: its code and message."""


class ServerRequests:
    """What was asked and waits for its answer; ``send`` writes a message, ``notify`` a notification."""

    def __init__(self, send: Callable[[Json], None], notify: Callable[[str, Json], None]) -> None:
        self._send, self._notify = send, notify
        self._numbers = count(1)
        self._open: dict[str, _Question] = {}

    def ask(self, method: str, params: Json, cancelled: threading.Event) -> Json | None:
        """The result; None as soon as the call is cancelled. Raises RefusedError."""
        number, question = f"keeper-{next(self._numbers)}", _Question()
        self._open[number] = question
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while not question.answered.wait(LOOK_SECONDS):
            if cancelled.is_set():
                del self._open[number]
                self._notify("notifications/cancelled", {"requestId": number, "reason": "nobody waits for it now"})
                return None
        return question.result()

    def answered(self, message: Json) -> None:
        """Take an answer; one that nobody waits for is dropped."""
        number = message.get("id")
        question = self._open.pop(number, None) if isinstance(number, str) else None
        if question is not None:
            question.message = message
            question.answered.set()


class _Question:
    def __init__(self) -> None:
        self.answered = threading.Event()
        self.message: Json = {}

    def result(self) -> Json:
        error: Any = self.message.get("error")
        if isinstance(error, dict):
            raise RefusedError(f"{error.get('message')} ({error.get('code')})")
        result = self.message.get("result")
        return result if isinstance(result, dict) else {}
