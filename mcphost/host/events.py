"""Facts the host publishes: small, frozen, in the past tense.

An event only says what changed; whoever cares reads the state again. Observers are called synchronously, may neither
block nor raise, and one that raises all the same is reported and stays its own problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcphost.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerChanged:
    """A server's state, counts or session changed."""

    server: str


@dataclass(frozen=True, slots=True)
class ServersChanged:
    """Servers were added or removed."""


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's tools were listed again, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class ResourcesChanged:
    """A server's resources or resource templates were listed again, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class PromptsChanged:
    """A server's prompts were listed again, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class SkillsChanged:
    """A server's skills were listed again, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class SkillRead:
    """A file of a skill was read, and is verified or differs."""

    server: str
    skill: str
    """The URI of its SKILL.md."""
    uri: str
    """That of the file."""


@dataclass(frozen=True, slots=True)
class SkillLoaded:
    """A skill was allowed, verified and loaded for a model."""

    server: str
    skill: str


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """The watch of a resource changed: begun, out of date, read again, refused or ended."""

    server: str
    uri: str


@dataclass(frozen=True, slots=True)
class Logged:
    """There are new log lines; how many is the log book's to say."""


@dataclass(frozen=True, slots=True)
class TrafficAdded:
    """There are new messages in the traffic book. Not published again until they are read."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call was asked for."""

    call: int


@dataclass(frozen=True, slots=True)
class CallChanged:
    """A call's state or progress changed."""

    call: int


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call has its outcome."""

    call: int


@dataclass(frozen=True, slots=True)
class RepetitionChanged:
    """A call that is repeated began another run, ended one, or is not repeated any more."""

    repetition: int


@dataclass(frozen=True, slots=True)
class SignInChanged:
    """A sign-in went on or ended."""

    server: str
    sign_in: int


@dataclass(frozen=True, slots=True)
class RootsChanged:
    """The folders shared with a server, or sent to it, changed; None: perhaps those of every server."""

    server: str | None


@dataclass(frozen=True, slots=True)
class ElicitationChanged:
    """A page that a server asked to visit was opened, done with, or given up."""

    server: str
    elicitation: int


@dataclass(frozen=True, slots=True)
class FormAnswered:
    """A form was sent with ``content`` by the rule ``by``, without asking a person."""

    server: str
    by: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SamplingChanged:
    """A server's request for a language model's answer went on or ended."""

    server: str
    sampling: int


@dataclass(frozen=True, slots=True)
class ChatChanged:
    """A conversation with a language model went on, was begun, or is another in some way."""

    chat: int


@dataclass(frozen=True, slots=True)
class GrantsChanged:
    """The approvals changed."""


@dataclass(frozen=True, slots=True)
class AgentsChanged:
    """An agent's session began, ended or changed; None: perhaps several."""

    session: int | None = None


@dataclass(frozen=True, slots=True)
class Alarmed:
    """Something the user should know now, whatever is on screen."""

    text: str


Event = (
    ServerChanged
    | ServersChanged
    | ToolsChanged
    | ResourcesChanged
    | PromptsChanged
    | SkillsChanged
    | SkillRead
    | SkillLoaded
    | ResourceUpdated
    | Logged
    | TrafficAdded
    | CallStarted
    | CallChanged
    | CallFinished
    | RepetitionChanged
    | SignInChanged
    | RootsChanged
    | ElicitationChanged
    | FormAnswered
    | SamplingChanged
    | ChatChanged
    | GrantsChanged
    | AgentsChanged
    | Alarmed
)
_E = TypeVar("_E", bound=Event)


class EventBus:
    """Hands each event to every observer, in the order they came."""

    def __init__(self) -> None:
        self._observers: list[tuple[Callable[[Any], None], tuple[type, ...]]] = []

    def observe(self, observer: Callable[[_E], None], *kinds: type[_E]) -> Callable[[], None]:
        """Call ``observer`` for every event of these kinds, or of all, from now on; the returned function ends that."""
        entry = observer, kinds
        self._observers.append(entry)

        def stop() -> None:
            if entry in self._observers:
                self._observers.remove(entry)

        return stop

    def publish(self, event: Event) -> None:
        kind = type(event)
        for observer, kinds in tuple(self._observers):
            if kinds and kind not in kinds:
                continue
            try:
                observer(event)
            except Exception:  # an observer's failure is its own
                _log.exception("an observer failed on %s", type(event).__name__)

    def alarm(self, text: str) -> None:
        """Publish a sentence that the user must see."""
        self.publish(Alarmed(text))
