"""State files in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.config.state import StateStore


class MemoryStore(StateStore):
    """One state file, whatever its name."""

    def __init__(self, content: Mapping[str, Any] | None = None) -> None:
        super().__init__(Path("nowhere"), pytest.fail)
        self.content: Mapping[str, Any] = content or {}

    def read(self, name: str) -> Mapping[str, Any]:
        return self.content

    def version(self, name: str) -> object:
        return None

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.content = change(self.content)


class BrokenStore(MemoryStore):
    """A disk that fails."""

    def read(self, name: str) -> Mapping[str, Any]:
        raise OSError("disk gone")

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        raise OSError("disk gone")
