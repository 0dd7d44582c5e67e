"""One-shot timers that fire however busy the machine is."""

from __future__ import annotations

from textual.timer import Timer


def unskipped(timer: Timer) -> Timer:
    """Make a timer that was just set fire although its time is over before Textual first looks at it.

    Textual takes that for a missed tick and waits for the next one, which a one-shot timer does not have.
    """
    timer._skip = False
    return timer
