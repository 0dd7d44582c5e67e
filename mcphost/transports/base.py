"""What a transport is: it turns a request into that request's response, and hands on whatever else arrives.

A transport waits and does not decide. It knows nothing of methods, revisions or retries; failure is an exception of
ours, raised to the caller who waits, and never turned into a made-up JSON-RPC error.

Specification: basic/transports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mcphost.protocol.eras.revisions import Revision
from mcphost.protocol.limits import BATCH_ITEMS, EXIT_SECONDS, JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, Response


class Inbound(Protocol):
    """Takes what a server sends unasked, in the order it came. Called synchronously: may neither wait nor raise."""

    def message(self, message: Request | Notification) -> None:
        """A server's request or notification."""

    def malformed(self, problem: Malformed) -> None:
        """What is no message; the connection goes on. `Malformed.is_json` tells bad JSON-RPC from stray text."""

    def unmatched(self, response: Response) -> None:
        """An answer nobody waits for: late, cancelled, repeated or invented."""

    def stderr(self, text: str) -> None:
        """What the server's process wrote to its standard error, in whole lines where there are any."""

    def closed(self, reason: Exception) -> None:
        """The connection ended by itself; sent at most once, and never after ``aclose`` was called."""


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """What a transport lets a server make it hold; who has a configuration fills it in from there."""

    message_bytes: int = MESSAGE_BYTES
    message_items: int = MESSAGE_ITEMS
    json_depth: int = JSON_DEPTH
    batch_items: int = BATCH_ITEMS
    write_seconds: float = 30.0
    """How long a full pipe may refuse to take more before the server counts as gone."""
    exit_grace: float = EXIT_SECONDS
    """Seconds between closing stdin, SIGTERM and SIGKILL."""


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What is known of a server's process, for its card."""

    pid: int | None = None
    command: Sequence[str] = ()
    exit_code: int | None = None
    stderr_tail: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class ProcessUsageReport:
    """What a program and all it started take of the machine."""

    processes: int
    memory: int
    """Bytes in memory; what several of them share counts for each."""
    cpu: float
    """Seconds of processors, since each of them began."""


class Transport(Protocol):
    """One way to speak to one server."""

    own_stream: bool
    """Does each request have a response stream of its own?"""

    async def open(self, inbound: Inbound) -> None:
        """Connect. Raises SpawnFailed or ConnectionLost."""

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Send, and return the response. Cancelling the await abandons the request.

        Raises ConnectionLost, InvalidResult (an answer that is none), or another TransportError.
        """

    def agreed(self, revision: Revision) -> None:
        """The handshake settled this revision: what is sent and taken from now on follows its rules."""

    async def send(self, message: Notification | Response) -> None:
        """Send what nobody answers. Raises ConnectionLost or another TransportError."""

    async def listen(self) -> None:
        """Keep open whatever the server needs to speak unasked; returns where nothing is needed, or nothing offered.

        Raises a TransportError when it was there and could not be had again, and InvalidResult when it cannot be read:
        requests may still be answered.
        """

    async def aclose(self) -> None:
        """End the connection in the specification's order. Never raises; a second call waits for the first."""

    def report(self) -> ProcessReport:
        """What is known of the server's process; empty where there is none."""
