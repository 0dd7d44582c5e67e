"""Facts about blocks of results, which go up to the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from mcphost.dataclass import dataclass

if TYPE_CHECKING:
    from mcphost.tui.results.content import Block


@dataclass
class OpenRequested(Message):
    """The user asked to see or hear a block in a program of the desktop."""

    block: Block
