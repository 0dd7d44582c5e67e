"""The port through which the host reads and writes its state files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class StateStore(Protocol):
    """State files by name: what is kept between runs. `read` and `update` block on the disk: call them in a thread."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none. Raises ConfigError."""

    def version(self, name: str) -> object:
        """Equal as long as nobody writes the state file; takes no longer than one look at its entry in the folder."""

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file by what ``change`` makes of it, under a lock. Raises ConfigError."""
