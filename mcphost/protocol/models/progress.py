"""The progress of a request.

Specification: basic/utilities/progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from mcphost.json_values import is_number
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The latest progress of a request."""

    progress: float
    total: float | None = None
    message: str | None = None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1; None if the total is unknown or invalid."""
        if self.total is None or self.total <= 0:
            return None
        return min(max(self.progress / self.total, 0.0), 1.0)

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Progress | None:
        """Parse the params of notifications/progress; None if they are invalid."""
        done, total, message = params.get("progress"), params.get("total"), params.get("message")
        if not _is_number(done):
            return None
        return cls(done, total if _is_number(total) else None, message if isinstance(message, str) else None)


def _is_number(value: object) -> TypeGuard[float]:
    # JSON integers are unbounded; one beyond the range of floats would fail in a division.
    return is_number(value) and abs(value) < 1e300
