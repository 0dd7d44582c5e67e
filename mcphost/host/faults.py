"""What becomes of an exception nobody planned for: an error with words, kept to where it happened.

It names the place in our code and never what the exception says, which may quote anything.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

from mcphost.errors import McphostError

_log = logging.getLogger(__name__)


class Fault(McphostError):
    """mcphost itself failed; trying the same again would fail again."""


def fault(error: Exception) -> Fault:
    """The error to show for ``error``; the whole of it goes to Python's own log."""
    _log.debug("a fault in mcphost", exc_info=error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return Fault(f"mcphost failed here ({type(error).__name__}{place}); this is a fault of mcphost, please report it")
