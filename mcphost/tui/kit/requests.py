"""What the user may want of an answer, a line or a frame, whichever pane shows it.

Knows wishes only: a view posts them, and whoever can fulfils them.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class CopyWanted(Message):
    """The user wants ``text`` on the clipboard."""

    text: str


@dataclass
class SaveWanted(Message):
    """The user wants ``content`` in a file called ``name``, which is ours: for `mcphost.tui.results.saving.save`."""

    name: str
    content: bytes


@dataclass
class ResourceWanted(Message):
    """The user wants to read what an answer links to, from ``server``; ``size`` in bytes, if it said so."""

    server: str
    uri: str
    size: int | None = None


@dataclass
class RestartWanted(Message):
    """Restart this server, or try it again now."""

    server: str


@dataclass
class MuteWanted(Message):
    """Decline everything this server asks until mcphost exits; or, not ``muted``, listen to it again."""

    server: str
    muted: bool


@dataclass
class FoldersWanted(Message):
    """Choose which folders this server (None: every server) may know of."""

    server: str | None


@dataclass
class BudgetWanted(Message):
    """Let this server use more of the language models; asks how much."""

    server: str
