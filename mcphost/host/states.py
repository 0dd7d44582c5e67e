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
    FAILED = "failed"


WEIGHTS: Final = {ServerState.FAILED: LogLevel.ERROR, ServerState.RECONNECTING: LogLevel.WARNING}
