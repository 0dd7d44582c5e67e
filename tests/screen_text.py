"""The words of a screen, wherever its lines end."""

from __future__ import annotations

import re

FRAME = re.compile(r"[\s│▏▁-█]+")
"""Blanks, line ends, the sides of a box and of a scrollbar."""


def says(screen: str, words: str) -> bool:
    """Return True if the words are on the screen, in one line or wrapped."""
    return words in screen or FRAME.sub("", words) in FRAME.sub("", screen)
