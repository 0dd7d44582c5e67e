"""Facts the host publishes: small, frozen, in the past tense.

An event only says what changed; whoever cares reads the state again. Observers are called synchronously, may neither
block nor raise, and one that raises all the same is reported and stays its own problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

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
    """A server's tools were listed anew, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class ResourcesChanged:
    """A server's resources or resource templates were listed anew, or are gone."""

    server: str


@dataclass(frozen=True, slots=True)
class PromptsChanged:
    """A server's prompts were listed anew, or are gone."""

    server: str


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
    """There are new frames; which is the traffic book's to say. Not published again until somebody read them."""


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
class SignInChanged:
    """A sign-in went on or ended."""

    server: str
    sign_in: int


@dataclass(frozen=True, slots=True)
class RootsChanged:
    """What a server may know of, or was told, changed; None: perhaps what every server may."""

    server: str | None


@dataclass(frozen=True, slots=True)
class ElicitationChanged:
    """A page that a server asked to visit was opened, done with, or given up."""

    server: str
    elicitation: int


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
    """What is allowed without asking changed."""


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
    | ResourceUpdated
    | Logged
    | TrafficAdded
    | CallStarted
    | CallChanged
    | CallFinished
    | SignInChanged
    | RootsChanged
    | ElicitationChanged
    | SamplingChanged
    | ChatChanged
    | GrantsChanged
    | Alarmed
)
Observer = Callable[[Event], None]


class EventBus:
    """Hands each event to every observer, in the order they came."""

    def __init__(self) -> None:
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call ``observer`` for every event from now on; the returned function ends that."""
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    def publish(self, event: Event) -> None:
        """Tell everyone."""
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:  # an observer's failure is its own
                _log.exception("an observer failed on %s", type(event).__name__)
