"""The severities of log messages.

Specification: server/utilities/logging.
"""

from __future__ import annotations

from enum import IntEnum


class LogLevel(IntEnum):
    """The severities of RFC 5424, least first."""

    DEBUG = 0
    INFO = 1
    NOTICE = 2
    WARNING = 3
    ERROR = 4
    CRITICAL = 5
    ALERT = 6
    EMERGENCY = 7

    @property
    def wire(self) -> str:
        return self.name.lower()

    @classmethod
    def read(cls, name: object) -> LogLevel | None:
        """The level of this name; None for an unknown name."""
        return cls.__members__.get(name.upper()) if isinstance(name, str) and name.islower() else None
