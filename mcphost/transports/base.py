"""The `Transport` protocol, and the values that its users share.

A failure is an exception raised to the caller who waits, never a made-up JSON-RPC error.

Specification: basic/transports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple, Protocol

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.limits import BATCH_ITEMS, EXIT_SECONDS, JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, Response


class Inbound(Protocol):
    """Receives what answers no request, in order. Called synchronously: may neither block nor raise."""

    def message(self, message: Request | Notification) -> None:
        """The server sent a request or a notification."""

    def malformed(self, problem: Malformed) -> None:
        """The server sent something that is not a message; the connection continues."""

    def unmatched(self, response: Response) -> None:
        """The server answered a request that is not pending: late, cancelled, repeated or invented."""

    def stderr(self, text: str) -> None:
        """The server's process wrote a line to its standard error."""

    def authorization_changed(self) -> None:
        """Requests carry other credentials from now on: another token, or none."""

    def closed(self, reason: Exception) -> None:
        """The connection was lost. Called at most once, and never after ``aclose``."""


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """The limits of what a server may send. Sizes are bytes, times seconds."""

    message_bytes: int = MESSAGE_BYTES
    message_items: int = MESSAGE_ITEMS
    json_depth: int = JSON_DEPTH
    batch_items: int = BATCH_ITEMS
    write_seconds: float = 30.0
    """Seconds that a write may block on a full pipe before the server counts as gone."""
    exit_grace: float = EXIT_SECONDS
    """Seconds between closing stdin, SIGTERM and SIGKILL."""


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """A server's process: the command, and how it ended."""

    pid: int | None = None
    command: Sequence[str] = ()
    exit_code: int | None = None
    stderr_tail: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class ProcessUsageReport:
    """Resources that a process and its descendants use."""

    processes: int
    memory: int
    """Resident bytes; shared memory counts once for each process."""
    cpu: float
    """CPU seconds since the start of each process."""


NoteKind = Literal["stderr", "stray", "malformed", "http"]
"""Observed things other than messages: a line of stderr, stray text, a message over the limit, an HTTP head."""


class MessageObserver(Protocol):
    """Observes the bytes of one transport, in order, for the traffic view.

    Called synchronously for each message: may neither block nor raise, and should store now and interpret later.
    """

    def sent(self, data: bytes) -> None:
        """One message was sent; ``data`` is without newline or framing."""

    def received(self, data: bytes) -> None:
        """One message was received, or stray text in its place."""

    def noted(self, kind: NoteKind, text: str) -> None:
        """Something else happened. HTTP heads are given with secrets masked."""


class ProbedAnswer(NamedTuple):
    """The answer to one HTTP request of a probe, as it came."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """Decompressed; its start if more came than was wanted."""
    ended: bool
    """True if the body came to its end."""


class Transport(Protocol):
    """A connection to one server."""

    own_stream: bool
    """True if each request has its own response stream."""
    handshake_only: bool
    """True for the transport of 2024-11-05, whose servers all begin with ``initialize``."""

    async def open(self, inbound: Inbound) -> None:
        """Connect. Raises SpawnFailed or ConnectionLost."""

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Send, and return the response. Cancelling the await abandons the request.

        ``headers`` are those that a modern revision demands, empty in a session with a handshake; only HTTP sends them.

        Raises ConnectionLost, InvalidResult for an invalid response, or another TransportError.
        """

    def agreed(self, revision: Revision) -> None:
        """Follow the rules of this revision from now on."""

    async def send(self, message: Notification | Response) -> None:
        """Send a notification or a response. Raises ConnectionLost or another TransportError."""

    async def listen(self) -> None:
        """Keep open the stream for messages that answer no request; return if the transport or server needs none.

        Raises a TransportError if the stream was lost for good, and InvalidResult if it cannot be read. Requests may
        still work.
        """

    async def aclose(self) -> None:
        """End the connection in the specification's order. Never raises; a second call waits for the first."""

    def report(self) -> ProcessReport:
        """Describe the server's process; empty over HTTP."""
