"""Bare transports of a server for the prober, opened for one session each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from mcphost.transports.base import Inbound, MessageObserver, ProbedAnswer


class Channel(Protocol):
    """A transport of one channel in both directions, on which any bytes can be sent."""

    async def open(self, inbound: Inbound) -> None:
        """Raises a TransportError."""

    async def write(self, line: bytes) -> None:
        """Raises ConnectionLost."""

    async def aclose(self) -> None:
        """End the connection in the specification's order. Never raises."""


class RawHttp(Protocol):
    """An HTTP client that sends exactly what it is given."""

    async def send(
        self, method: str, headers: Mapping[str, str], content: bytes | None, enough: Callable[[bytes], bool]
    ) -> ProbedAnswer:
        """Read until the end, or shortly after ``enough`` said yes to a piece. Raises a TransportError."""

    async def aclose(self) -> None:
        """Close all connections."""


class ProbeTarget(Protocol):
    """One server."""

    transports: Sequence[str]
    """The transports to try: ``stdio``, ``http`` or ``sse``."""
    loopback: bool
    """True for an address of this machine."""
    opening_seconds: float
    """For the first answer of a session: programs may be installed first."""

    def channel(self, observer: MessageObserver) -> Channel:
        """A new, unopened channel over stdio or SSE."""

    def http(self, observer: MessageObserver) -> RawHttp:
        """A new client, which lets ``observer`` see heads and what is sent."""

    def traffic(self) -> MessageObserver:
        """The record of one session."""
