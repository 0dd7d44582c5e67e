"""Messages to the app that several panes and screens post: what the user asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from textual.binding import Binding
from textual.message import Message

from mcphost.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mcphost.host.tool_calls.call import ArgumentReferences
    from mcphost.tui.results.content import Block


@dataclass
class CallChosen(Message):
    """The user chose the call of this ``number``."""

    number: int


class RoomChanged(Message):
    """Another part of a pane has the user's attention, or its form has more rows."""


@dataclass
class CancelRequested(Message):
    """The user stopped the call of this ``number``."""

    number: int


@dataclass
class SaveCallRequested(Message):
    """The user asked to save a call of the ``target``, a tool, prompt or resource (``kind``), under a name."""

    server: str
    target: str
    arguments: Mapping[str, Any]
    references: ArgumentReferences | None = None
    """Those in the arguments."""
    kind: str = "tool"
    schema: Any = None
    """Of the arguments of a prompt or a template."""
    unfit: tuple[str, ...] = ()
    """The arguments that are missing or invalid in the form."""


@dataclass
class RepetitionRequested(Message):
    """The user asked to run a call again and again."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    references: ArgumentReferences | None = None
    """Those in the arguments."""
    recalled: bool = False
    """True if the arguments are those of an earlier run of mcphost, whose secrets are masked."""


@dataclass
class ResourceLinkFollowed(Message):
    """The user followed a link to a resource of ``server``; ``size`` in bytes, if the link said so."""

    server: str
    uri: str
    size: int | None = None


@dataclass
class LogLevelRequested(Message):
    """The user asked to set the log level of this server; None: of the selected server."""

    server: str | None


@dataclass
class RelistRequested(Message):
    """The user asked to list again what this server offers."""

    server: str


@dataclass
class SignInRequested(Message):
    """The user asked to sign in to this server, or to see the sign-in that runs."""

    server: str


class IdentitiesRequested(Message):
    """The user asked for the list of identities."""


@dataclass
class MuteToggled(Message):
    """The user muted this server until mcphost exits, or unmuted it."""

    server: str
    muted: bool


@dataclass
class AgentDisconnectRequested(Message):
    """The user asked to end these sessions of one agent."""

    sessions: tuple[int, ...]


@dataclass
class AgentMuteToggled(Message):
    """The user declined all that one agent asks in these sessions until mcphost exits, or took that back."""

    sessions: tuple[int, ...]
    muted: bool


@dataclass
class QuestionsDeclined(Message):
    """The user declined the questions of these numbers, or ``cancelled`` them."""

    numbers: tuple[int, ...]
    cancelled: bool = False


@dataclass
class RootsShared(Message):
    """The user shared folders with all servers, and so answered these numbers' questions for roots."""

    numbers: tuple[int, ...]


@dataclass
class WithdrawnRemoved(Message):
    """The user removed the withdrawn question of this ``number`` from the inbox."""

    number: int


@dataclass
class RootsRequested(Message):
    """The user asked for the roots of this server (None: of every server)."""

    server: str | None


@dataclass
class BudgetRequested(Message):
    """The user asked for a larger sampling budget of this server."""

    server: str


@dataclass
class CopyAsRequested(Message):
    """The user asked to copy a call of this tool as a command, JSON-RPC, curl or a rule."""

    server: str
    tool: str
    arguments: Mapping[str, Any] | None
    """None: they are not known."""


COPY_AS_KEY: Final = "alt+y,f11"
"""In forms, where letters are text. More than one key, since some terminals write a letter for alt+y."""


@dataclass
class OpenRequested(Message):
    """The user asked to open a block with a program of the desktop."""

    block: Block


EDITOR_BINDING: Final = Binding(
    "alt+e,f10",
    "open_editor",
    "editor",
    id="text.editor",
    priority=True,
    tooltip="Write it in your editor: $VISUAL, else $EDITOR",
)
"""For boxes that hold more than a few words. More than one key, since some terminals write a letter for alt+e."""

MOST_EDITED: Final = 1_000_000
"""Characters from an editor; a text area lays out all of them at once."""


class EditedBox(Protocol):
    """A widget whose text an editor changes."""

    @property
    def is_attached(self) -> bool: ...

    def take_edited(self, text: str) -> None:
        """Put in ``text``, as if it were typed."""


@dataclass
class EditorRequested(Message):
    """The user asked to write the ``text`` of this box in an editor; ``suffix`` is that of its file."""

    box: EditedBox
    text: str
    suffix: str
    most_characters: int = MOST_EDITED


@dataclass
class PagerRequested(Message):
    """The user asked to read this text, as it came, in a pager."""

    text: str
