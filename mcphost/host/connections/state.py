"""The states of a server, and the settings that may change without a restart."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mcphost.protocol.models.logging import LogLevel


class ServerState(Enum):
    """The state of a server."""

    DISABLED = "disabled"
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RECONNECTING = "reconnecting"
    NEEDS_SIGN_IN = "needs sign-in"
    FAILED = "failed"


LOG_LEVELS: Final = {
    ServerState.FAILED: LogLevel.ERROR,
    ServerState.RECONNECTING: LogLevel.WARNING,
    ServerState.NEEDS_SIGN_IN: LogLevel.WARNING,
}

LISTING_FIELDS: Final = frozenset({"enabled_tools", "disabled_tools"})
"""Settings that an open connection adopts by listing its tools again."""

LIVE_FIELDS: Final = LISTING_FIELDS | {
    "roots", "sampling", "start", "startup_timeout_sec", "tool_timeout_max_sec", "tool_timeout_sec", "tools",
    "trust_hints",
}  # fmt: skip
"""Settings that are read when they are needed: an open connection goes on when they change."""
