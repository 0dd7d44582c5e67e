"""Keeps the app running after an exception of the screen, and says what happened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from mcphost.lazy_dataclass import dataclass

CRASHES: Final = 20
"""Exceptions after which the app gives up."""

OWN: Final = os.path.dirname(os.path.dirname(__file__))


@dataclass(slots=True)
class FailureCounter:
    limit: int = CRASHES
    count: int = 0

    def within_limit(self) -> bool:
        """Count one more; return whether to continue."""
        self.count += 1
        return self.count <= self.limit


def sentence(error: BaseException, traceback: Path) -> str:
    """What the user is told: the type, the place, and the file with the traceback."""
    what = f"{type(error).__name__} at {place(error)}"
    return f"mcphost could not show something ({what}). The traceback, without values, is in {traceback}"


def place(error: BaseException) -> str:
    """The innermost line of mcphost in the traceback."""
    found, step = "an unknown place", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(OWN):
            found = f"mcphost{file.removeprefix(OWN)}:{step.tb_lineno}"
        step = step.tb_next
    return found
