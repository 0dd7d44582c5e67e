"""The marks and styles of states; no state is shown by its colour alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcphost.host.connections.connection import ServerState
from mcphost.host.tool_calls.call import CallState

SERVER_MARKS: Final[Mapping[ServerState, tuple[str, str]]] = {
    ServerState.READY: ("●", "$text-success"),
    ServerState.STARTING: ("◐", "$text-warning"),
    ServerState.RECONNECTING: ("↻", "$text-warning"),
    ServerState.NEEDS_SIGN_IN: ("▲", "$text-warning"),
    ServerState.FAILED: ("✖", "$text-error"),
    ServerState.STOPPED: ("◌", "$foreground-muted"),
    ServerState.DISABLED: ("◌", "$foreground-muted"),
}

CALL_MARKS: Final[Mapping[CallState, tuple[str, str]]] = {
    CallState.ASKING: ("?", "$text-warning"),
    CallState.SIGNING_IN: ("▲", "$text-warning"),
    CallState.VISITING: ("▲", "$text-warning"),
    CallState.RUNNING: ("◐", "$text-warning"),
    CallState.CANCELLING: ("◐", "$text-warning"),
    CallState.DONE: ("●", "$text-success"),
    CallState.FAILED: ("✖", "$text-error"),
    CallState.ERROR: ("✖", "$text-error"),
    CallState.DECLINED: ("◌", "$foreground-muted"),
    CallState.CANCELLED: ("◌", "$foreground-muted"),
    CallState.TIMED_OUT: ("▲", "$text-error"),
}

TASK_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "working": ("◐", "$text-warning"),
    "input_required": ("?", "$text-warning"),
    "completed": ("●", "$text-success"),
    "failed": ("✖", "$text-error"),
    "cancelled": ("◌", "$foreground-muted"),
}
"""A server may send other states."""
