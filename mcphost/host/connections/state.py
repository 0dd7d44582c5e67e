"""The states of a server, and the settings that may change without a restart."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mcphost.config import Limits
from mcphost.protocol.models.logging import LogLevel


class ServerState(Enum):
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
    "alias", "idle_stop", "roots", "sampling", "share", "start", "startup_timeout_sec", "tool_timeout_max_sec",
    "tool_timeout_sec", "tools", "trust_hints",
}  # fmt: skip
"""Settings that are read when they are needed: an open connection goes on when they change."""

LIVE_LIMITS: Final = frozenset({
    "log_bytes", "log_lines", "log_lines_per_second", "process_bytes", "resource_bytes", "traffic_bytes",
    "traffic_frames",
})  # fmt: skip
"""Limits that are read each time they are used; a connection is built with the others."""


def same_for_connection(before: Limits, after: Limits) -> bool:
    """True if two ``[limits]`` differ at most in settings that are read when they are needed."""
    return all(getattr(before, name) == getattr(after, name) for name in Limits.model_fields.keys() - LIVE_LIMITS)
