"""The call, or the agent's request, that the running task belongs to: with it what the task sends, and is asked for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mcphost.host.tool_calls.call import CallQuestions


class AskedAgent(NamedTuple):
    """An agent that answers what a server asks in the agent's request."""

    questions: CallQuestions
    origin: str
    """Its name in the audit log."""


current_call: Final[ContextVar[int | None]] = ContextVar("current_call", default=None)
"""The number of the call; None outside a call's own task."""

current_agent: Final[ContextVar[AskedAgent | None]] = ContextVar("current_agent", default=None)
"""The agent of a request that is not a tool call; None outside the task of such a request."""
