"""The weight of changes of a server's surface."""

from __future__ import annotations

from enum import Enum


class ChangeSeverity(Enum):
    """The weight of a change, the heaviest first."""

    BREAKING = "breaking"
    """Calls that worked may fail, or a tool claims less safety than before."""
    REVIEW = "review"
    """A person should read it: words steer models, and a new tool is new power."""
    NOTE = "note"
    """Good to know."""

    @property
    def rank(self) -> int:
        return tuple(ChangeSeverity).index(self)


BREAKING, REVIEW, NOTE = ChangeSeverity
