"""Where a server stands."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mcphost.protocol.types import LogLevel


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
