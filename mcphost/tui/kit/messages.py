"""Facts about what the user chose that several panes and screens have in common; they go up to the app."""

from __future__ import annotations

from textual.message import Message

from mcphost.dataclass import dataclass


@dataclass
class CallChosen(Message):
    """The user chose the call of this ``number``."""

    number: int


@dataclass
class CancelRequested(Message):
    """The user stopped the call of this ``number``."""

    number: int


@dataclass
class ResourceLinkFollowed(Message):
    """The user followed a link to a resource of ``server``; ``size`` in bytes, if the link said so."""

    server: str
    uri: str
    size: int | None = None


@dataclass
class LogLevelRequested(Message):
    """The user asked for another log level of this server; None: of the one under the cursor of the servers."""

    server: str | None


@dataclass
class SignInRequested(Message):
    """The user asked to sign in to this server, or to see the sign-in that runs."""

    server: str


@dataclass
class MuteToggled(Message):
    """The user muted this server until mcphost exits; or, not ``muted``, took that back."""

    server: str
    muted: bool


@dataclass
class QuestionsDeclined(Message):
    """The user declined the questions of these numbers; ``cancelled``: said neither yes nor no."""

    numbers: tuple[int, ...]
    cancelled: bool = False


@dataclass
class RootsRequested(Message):
    """The user asked for the roots of this server (None: of every server)."""

    server: str | None


@dataclass
class BudgetRequested(Message):
    """The user asked for a larger sampling budget of this server."""

    server: str
