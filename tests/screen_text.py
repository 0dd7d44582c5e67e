"""What a screen says, wherever its lines end."""

from __future__ import annotations

import re

FRAME = re.compile(r"[\s│▏▁-█]+")
"""Blanks, line ends, the sides of a box and of a scrollbar."""


def says(screen: str, words: str) -> bool:
    """Do the words stand on the screen, in one line or wrapped, as a path may be in any place?"""
    return words in screen or FRAME.sub("", words) in FRAME.sub("", screen)
