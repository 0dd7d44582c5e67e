"""Moments of the monotonic clock, which the host keeps, as a person reads them off the wall."""

from __future__ import annotations

import time
from datetime import datetime, timedelta


def wall_clock(moment: float) -> str:
    """A moment of the monotonic clock (seconds), as that on the wall has it: ``14:05:30``."""
    return f"{datetime.now() + timedelta(seconds=moment - time.monotonic()):%H:%M:%S}"
