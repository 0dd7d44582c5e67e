"""The port through which the host reads and writes its state files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class StateStore(Protocol):
    """State files by name: what is kept between runs. Every call blocks on the disk: make it in a thread."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none. Raises ConfigError."""

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file by what ``change`` makes of it, under a lock. Raises ConfigError."""
