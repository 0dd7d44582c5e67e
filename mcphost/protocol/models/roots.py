"""Folders as a server is told of them.

Knows URIs. Refuses to know which folders there are, and who may know of them.

Specification: client/roots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any


@dataclass(frozen=True, slots=True)
class Root:
    """A folder under its ``file://`` URI, percent-encoded, and what it is called."""

    uri: str
    name: str

    @classmethod
    def of(cls, path: PurePath, name: str | None = None) -> Root:
        """The root of an absolute path; without a name it is called as its folder is. Raises ValueError."""
        called = name or path.name or path.as_posix()
        # A folder's name may hold bytes that are no text, which JSON could not carry; the URI has them in full.
        return cls(path.as_uri(), called.encode("utf-8", "replace").decode())

    def as_object(self) -> dict[str, str]:
        """As it stands in the answer."""
        return {"uri": self.uri, "name": self.name}


def roots_result(roots: Iterable[Root]) -> dict[str, Any]:
    """The answer to ``roots/list``."""
    return {"roots": [root.as_object() for root in roots]}
