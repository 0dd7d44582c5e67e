"""Facts about blocks of results, which go up to the app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from mcphost.tui.results.content import Block


@dataclass
class OpenRequested(Message):
    """The user asked to see or hear a block in a program of the desktop."""

    block: Block
