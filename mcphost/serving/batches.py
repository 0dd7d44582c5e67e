"""The answers to a JSON-RPC batch, which are sent together.

Specification: 2025-03-26 basic (batching).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AnswerBatch:
    """Collects the answers, and sends them when no request of the batch is open."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._answers: list[Any] = []
        self._open = 0

    def __enter__(self) -> AnswerBatch:
        self._open += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self.settle(None)

    def add(self) -> None:
        """Wait for one more answer."""
        self._open += 1

    def settle(self, answer: Any) -> None:
        """Take an answer; None: a request ended without one."""
        if answer is not None:
            self._answers.append(answer)
        self._open -= 1
        if not self._open and self._answers:
            self._send(self._answers)
