"""Which tool call the running task belongs to, and with it what the task sends and what a server asks it for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

current_call: Final[ContextVar[int | None]] = ContextVar("current_call", default=None)
"""The number of the call; None outside a call's own task."""
