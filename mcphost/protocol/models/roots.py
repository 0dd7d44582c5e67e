"""Roots: the folders that are offered to a server, as it receives them.

Specification: client/roots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any


@dataclass(frozen=True, slots=True)
class Root:
    """A folder: its percent-encoded ``file://`` URI, and a name."""

    uri: str
    name: str

    @classmethod
    def of(cls, path: PurePath, name: str | None = None) -> Root:
        """The root of an absolute path; the default name is that of the folder. Raises ValueError."""
        called = name or path.name or path.as_posix()
        # A folder's name may hold bytes that are no text; the URI preserves them, JSON could not.
        return cls(path.as_uri(), called.encode("utf-8", "replace").decode())

    def as_object(self) -> dict[str, str]:
        return {"uri": self.uri, "name": self.name}


def roots_result(roots: Iterable[Root]) -> dict[str, Any]:
    """The answer to ``roots/list``."""
    return {"roots": [root.as_object() for root in roots]}
