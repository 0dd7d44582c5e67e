"""Where a server stands, and which settings may change while it does."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mcphost.protocol.models.tools import LogLevel


class ServerState(Enum):
    """Where a server stands."""

    DISABLED = "disabled"
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RECONNECTING = "reconnecting"
    NEEDS_SIGN_IN = "needs sign-in"
    FAILED = "failed"


WEIGHTS: Final = {
    ServerState.FAILED: LogLevel.ERROR,
    ServerState.RECONNECTING: LogLevel.WARNING,
    ServerState.NEEDS_SIGN_IN: LogLevel.WARNING,
}

LISTING_FIELDS: Final = frozenset({"enabled_tools", "disabled_tools"})
"""Settings that a standing connection goes over to by listing its tools again."""

LIVE_FIELDS: Final = LISTING_FIELDS | {
    "roots", "sampling", "start", "startup_timeout_sec", "tool_timeout_max_sec", "tool_timeout_sec", "tools",
    "trust_hints",
}  # fmt: skip
"""Settings that are read when they are needed: a standing connection goes on when they change."""
