"""What a server says unasked, turned into log lines and counts.

Knows notifications, stray output and stderr. Refuses to know what follows from them: a stale list and a lost
connection are passed on.

Specification: server/utilities/logging; basic/transports, stdio.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcphost.client.server_requests import InputHandler
from mcphost.config import Config
from mcphost.host.catalog import CatalogKind
from mcphost.host.logs import LINE_CHARACTERS, LogSource
from mcphost.protocol.eras.capabilities import ClientCapabilities
from mcphost.protocol.models.tools import LogLevel
from mcphost.protocol.wire.jsonrpc import Malformed
from mcphost.transports.base import Transport

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import Task


QUOTED: Final = 120
"""Characters quoted of what was no message: enough to recognise it."""


@dataclass(slots=True)
class ProtocolViolations:
    """What a server sent that it must not send."""

    malformed: int = 0
    last_malformed: str = ""
    stray: int = 0
    first_stray: str = ""


@dataclass(frozen=True, slots=True)
class Ears:
    """Who is told what: ``log`` takes source, level, text and logger; the others are told that it happened.

    ``mask`` takes secrets out of what is kept here.
    """

    log: Callable[[LogSource, LogLevel, str, str], None]
    list_changed: Callable[[str], None]
    updated: Callable[[str], None]
    completed: Callable[[str], None]
    lost: Callable[[Exception], None]
    irregular: Callable[[], None]
    mask: Callable[[str], str]


class ConnectionObserver:
    """Takes what a client hands on (`mcphost.client.notifications.NotificationObserver`)."""

    def __init__(self, ears: Ears) -> None:
        self._ears = ears
        self.irregularities = ProtocolViolations()

    def logged(self, params: Mapping[str, Any]) -> None:
        """Keep a log message, whatever its level and data are."""
        data, logger, level = params.get("data"), params.get("logger"), LogLevel.read(params.get("level"))
        text = data if isinstance(data, str) else _compact(data)
        if level is None:
            text = f"[{_compact(params.get('level'))[:QUOTED]}] {text}"
        name = logger if isinstance(logger, str) else ""
        self._ears.log(LogSource.SERVER, LogLevel.INFO if level is None else level, text, name)

    def list_changed(self, kind: str) -> None:
        """Pass on that a list is stale."""
        self._ears.list_changed(kind)

    def resource_updated(self, uri: str) -> None:
        """Pass on that a resource changed."""
        self._ears.updated(uri)

    def elicitation_completed(self, elicitation: str) -> None:
        """Pass on that a page is done with."""
        self._ears.completed(elicitation)

    def task_changed(self, task: Task) -> None:
        """Keep what is told of a task; whoever waits for it was told by the client."""
        self.note(LogLevel.DEBUG, f"task {task.task_id[:QUOTED]} is {task.words[:QUOTED]}")

    def malformed(self, problem: Malformed) -> None:
        """Count what was no message, and quote it."""
        odd = self.irregularities
        quoted = self._ears.mask(_text(problem.data, LINE_CHARACTERS))[:QUOTED]
        if problem.is_json:
            odd.malformed += 1
            odd.last_malformed = problem.reason
            self.note(LogLevel.WARNING, f"dropped a message ({problem.reason}): {quoted}")
        else:
            odd.stray += 1
            odd.first_stray = odd.first_stray or quoted
            self._ears.log(LogSource.STDOUT, LogLevel.WARNING, _text(problem.data, LINE_CHARACTERS), "")
        self._ears.irregular()

    def stderr(self, line: str) -> None:
        """Keep a line; programs use stderr for everything, so it says nothing about failure."""
        self._ears.log(LogSource.STDERR, LogLevel.INFO, line, "")

    def noted(self, text: str) -> None:
        """Keep what the client decided."""
        self.note(LogLevel.DEBUG, text)

    def lost(self, reason: Exception) -> None:
        """Pass on that the connection ended by itself."""
        self._ears.lost(reason)

    def note(self, level: LogLevel, text: str) -> None:
        """Keep a line of mcphost's own."""
        self._ears.log(LogSource.MCPHOST, level, text, "")


def _text(data: bytes, most: int) -> str:
    return data[:most].decode("utf-8", "replace") + (f"… {len(data) - most} bytes more" if len(data) > most else "")


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class Surroundings(Protocol):
    """What a connection is given by its host."""

    async def open_transport(self, name: str) -> Transport:
        """The transport for a server, its references resolved. Raises ConfigError."""

    def current_config(self) -> Config:
        """The configuration as it is now."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""

    def random(self) -> float:
        """Between 0 and 1."""

    def mask(self, text: str) -> str:
        """The text without secrets."""

    def busy(self, server: str) -> bool:
        """Is a call running on it?"""

    def log(self, server: str, source: LogSource, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line."""

    def state_changed(self, server: str) -> None:
        """The connection's state changed."""

    def listed(self, server: str, kind: CatalogKind, items: Sequence[Any]) -> None:
        """These are the server's offers of this kind now: `Tool`, `Resource`, `ResourceTemplate` or `Prompt`."""

    def answers_for(self, server: str) -> tuple[InputHandler, ClientCapabilities]:
        """Who answers what this server asks, and what it is told that it may ask."""

    def elicitation_completed(self, server: str, elicitation: str) -> None:
        """The server says that a page is done with."""

    def resource_updated(self, server: str, uri: str) -> None:
        """The watch of a resource changed."""
