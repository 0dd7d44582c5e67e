"""Takes what a server sends unprompted: keeps log lines, stderr and violations, and passes on what changed.

Specification: server/utilities/logging; basic/transports, stdio.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mcphost.host.connections.context import ConnectionContext
from mcphost.host.connections.listings import Listings
from mcphost.host.connections.subscriptions import Subscriptions
from mcphost.host.logs import LINE_CHARACTERS, LogSource
from mcphost.host.traffic.request_state import hide_state
from mcphost.json_values import as_text
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.jsonrpc import Malformed

if TYPE_CHECKING:
    from mcphost.protocol.models.tasks import Task


QUOTED: Final = 120
"""Characters quoted of text that is not a message: enough to recognise it."""


@dataclass(slots=True)
class ProtocolViolations:
    """Counts and samples of a server's violations of the protocol."""

    malformed: int = 0
    last_malformed: str = ""
    stray: int = 0
    first_stray: str = ""


class ConnectionObserver:
    """Receives a client's notifications (`mcphost.client.observer.NotificationObserver`)."""

    def __init__(
        self,
        server: str,
        context: ConnectionContext,
        listings: Listings,
        subscriptions: Subscriptions,
        changed: Callable[[], None],
        disconnected: Callable[[Exception], None],
    ) -> None:
        self._server, self._context = server, context
        self._listings, self._subscriptions = listings, subscriptions
        self._changed, self._disconnected = changed, disconnected
        self.violations = ProtocolViolations()

    def logged(self, params: Mapping[str, Any]) -> None:
        """Keep a log message, whatever its level and data are."""
        self._context.server_logged(self._server, params)
        data, level = params.get("data"), LogLevel.read(params.get("level"))
        text = data if isinstance(data, str) else _compact(data)
        if level is None:
            text = f"[{_compact(params.get('level'))[:QUOTED]}] {text}"
        self._log(LogSource.SERVER, LogLevel.INFO if level is None else level, text, as_text(params.get("logger")))

    def list_changed(self, kind: str) -> None:
        """Pass on that a list is stale."""
        self._listings.mark_stale(kind)

    def resource_updated(self, uri: str) -> None:
        """Pass on that a resource changed."""
        self._subscriptions.updated(uri)

    def listening_changed(self) -> None:
        """Show that the state of announcements changed."""
        self._changed()

    def served_from_cache(self, method: str, params: Mapping[str, Any], freshness: Freshness) -> None:
        """Show in the traffic why there is no request."""
        left = freshness.until - time.monotonic()
        how_long = f"{duration_text(left)} left" if left > 0 else f"stale: {freshness.problem}"
        what = params.get("uri", params.get("cursor", ""))
        self._context.served_from_cache(
            self._server, " ".join(filter(None, (method, what, "from the cache,", how_long)))
        )

    def elicitation_completed(self, elicitation: str) -> None:
        """Pass on that a page is done with."""
        self._context.server_requests.elicitation_completed(self._server, elicitation)

    def task_changed(self, task: Task) -> None:
        """Log the reported state of a task; the client itself informs those who wait for it."""
        self.note(LogLevel.DEBUG, f"task {task.task_id[:QUOTED]} is {task.words[:QUOTED]}")

    def forget_violations(self) -> None:
        """The program is started again, and will say the same once more."""
        self.violations = ProtocolViolations()

    def malformed(self, problem: Malformed) -> None:
        """Count text that is not a message, and quote it."""
        found = self.violations
        quoted = self._context.reporting.mask(_text(problem.data, LINE_CHARACTERS))[:QUOTED]
        if problem.is_json:
            found.malformed += 1
            found.last_malformed = self._context.reporting.mask(problem.reason)  # it may quote what the server says
            self.note(LogLevel.WARNING, f"dropped a message ({found.last_malformed}): {quoted}")
        else:
            found.stray += 1
            found.first_stray = found.first_stray or quoted
            self._log(LogSource.STDOUT, LogLevel.WARNING, _text(problem.data, LINE_CHARACTERS))
        self._changed()

    def stderr(self, line: str) -> None:
        """Log a line at INFO: that it is on stderr does not mean that it is an error."""
        self._log(LogSource.STDERR, LogLevel.INFO, line)

    def noted(self, text: str) -> None:
        """Keep what the client decided."""
        self.note(LogLevel.DEBUG, text)

    def remarked(self, text: str) -> None:
        """Keep how the server breaks the specification."""
        self.note(LogLevel.NOTICE, text)

    def lost(self, reason: Exception) -> None:
        """Pass on that the connection was lost."""
        self._disconnected(reason)

    def note(self, level: LogLevel, text: str) -> None:
        """Log a message of mcphost itself."""
        self._log(LogSource.MCPHOST, level, text)

    def _log(self, source: LogSource, level: LogLevel, text: str, logger: str = "") -> None:
        self._context.reporting.logs.add(self._server, source, level, text, logger=logger)


def _text(data: bytes, most: int) -> str:
    """The start of what is quoted of a server, a ``requestState`` only by its size and digest."""
    if b"\0" in data[:most] or data[:most].decode("utf-8", "replace").count("\ufffd") > len(data[:most]) // 10:
        return f"{len(data)} bytes that are not text"
    more = f"… {len(data) - most} bytes more" if len(data) > most else ""
    return hide_state(data[:most].decode("utf-8", "replace")) + more


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
