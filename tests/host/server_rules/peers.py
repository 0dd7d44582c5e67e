"""The scripted servers of `tests/servers` in this process, each as a target of the prober."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcphost.demo.server import Server
from mcphost.errors import ConnectionLost
from mcphost.host.server_rules.ports import Channel, RawHttp
from mcphost.transports.base import Inbound, MessageObserver, NoteKind

SERVERS = Path(__file__).parents[2] / "servers"
sys.path.insert(0, str(SERVERS))  # the scripts there import each other by bare names

import hostile  # noqa: E402
from peer import MODES, Peer  # noqa: E402
from wire import Wire  # noqa: E402

assert hostile.FAMILIES  # each adds its modes to the table


class MemoryWire(Wire):
    """Hands what a peer writes to the prober, line by line."""

    def __init__(self, observer: MessageObserver) -> None:
        self._observer, self._rest = observer, b""
        self.written: list[bytes] = []

    def raw(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.written += lines
        for line in lines:
            self._observer.received(line)


def value_of(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def ends_a_wait(line: bytes) -> bool:
    """True for a response, right or wrong, and for the acknowledgment of a subscription."""
    value = value_of(line)
    return isinstance(value, dict) and bool({"result", "error"} & value.keys() or "acknowledged" in repr(value))


class PeerChannel:
    """A session with a peer, which answers within `write`."""

    def __init__(self, observer: MessageObserver, peer: Callable[[Wire], Peer]) -> None:
        self._wire = MemoryWire(observer)
        self._peer = peer(self._wire)
        self._inbound: Inbound | None = None

    async def open(self, inbound: Inbound) -> None:
        self._inbound = inbound

    async def write(self, line: bytes) -> None:
        if not isinstance(message := value_of(line), dict):
            return
        self._wire.written.clear()
        try:
            self._peer.receive(message)
        except (KeyError, TypeError, AttributeError):  # as a script, it ends with a traceback
            assert self._inbound is not None
            self._inbound.closed(ConnectionLost("the server exited with code 1"))
            return
        if "id" in message and not any(map(ends_a_wait, self._wire.written)):
            raise TimeoutError  # nothing more will come

    async def aclose(self) -> None:
        """Nothing is left behind."""


class Unobserved:
    """Takes what passes, and keeps nothing."""

    def sent(self, data: bytes) -> None:
        """Nothing."""

    def received(self, data: bytes) -> None:
        """Nothing."""

    def noted(self, kind: NoteKind, text: str) -> None:
        """Nothing."""


class PeerTarget:
    """A server in ``mode``; ``options`` are those of its command line."""

    transports: Sequence[str] = ("stdio",)
    loopback = False
    opening_seconds = 0.0

    def __init__(self, mode: str, **options: Any) -> None:
        unset = dict.fromkeys(("at", "protocol", "count", "bytes", "kind", "record"))
        self._mode, self._options = mode, SimpleNamespace(**{**unset, "interval": 0.0, **options})

    def channel(self, observer: MessageObserver) -> Channel:
        return PeerChannel(observer, self._made)

    def http(self, observer: MessageObserver) -> RawHttp:
        raise NotImplementedError

    def traffic(self) -> MessageObserver:
        return Unobserved()

    def _made(self, wire: Wire) -> Peer:
        peer = Peer(wire, self._options)
        MODES[self._mode][0](peer)
        return peer


class DemoChannel(PeerChannel):
    """A session with the built-in demo server."""

    def __init__(self, observer: MessageObserver) -> None:
        self._demo = Server(io.BytesIO(), _Sink(observer))  # type: ignore[arg-type]

    async def write(self, line: bytes) -> None:
        self._demo._session.receive(line)


class _Sink:
    def __init__(self, observer: MessageObserver) -> None:
        self._observer, self._loop = observer, asyncio.get_running_loop()

    def write(self, line: bytes) -> None:
        self._loop.call_soon_threadsafe(self._observer.received, line.rstrip(b"\n"))

    def flush(self) -> None:
        """Nothing waits."""


class DemoTarget(PeerTarget):
    """The built-in demo server."""

    def __init__(self) -> None:
        super().__init__("")

    def channel(self, observer: MessageObserver) -> Channel:
        return DemoChannel(observer)
