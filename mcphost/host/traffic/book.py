"""Keeps the traffic of all servers in memory, within a budget for each server and one for all.

Taking a message costs a few microseconds; it is parsed when the traffic is shown. `TrafficBook.raw` and
`TrafficBook.pretty` mask secrets; `TrafficMessage.data` holds them.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from copy import copy
from itertools import count, takewhile
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mcphost import __version__
from mcphost.config.files import read_regular
from mcphost.errors import NotDone
from mcphost.host.tool_calls.current import current_call
from mcphost.host.traffic.message import (
    LISTEN,
    Abandoned,
    CallWaits,
    MessagePairing,
    TrafficMessage,
    is_answer,
    is_cancellation,
    pretty,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.mirrors import Mirror, mirrors_of
from mcphost.protocol.wire.jsonrpc import RequestId
from mcphost.redaction import MASK, Mask, redacted, safe_command

if TYPE_CHECKING:
    from mcphost.host.recordings.recording import RecordingFacts

START: Final = 64 << 10
"""Bytes kept of a message that is too large to be kept whole."""

WINDOW: Final = 500
"""Messages that are paired in one step of some milliseconds."""

PINS: Final = 500
"""Messages that may be pinned at once."""


@dataclass(frozen=True, slots=True)
class TrafficBudget:
    """The most messages to keep, and the most bytes."""

    messages: int = 20_000
    bytes: int = 16_000_000


MIRRORED: Final = 256 << 10
"""Bytes of a request up to which its values are compared with its headers."""

EVERYTHING: Final = TrafficBudget(200_000, 256 << 20)
"""The budget of all servers together; the server with most loses its oldest messages first."""


class _Share:
    """The messages kept of one server."""

    __slots__ = ("budget", "bytes", "connections", "ended", "evicted", "longest", "messages", "server")

    def __init__(self, server: str, budget: TrafficBudget) -> None:
        self.server = server
        self.messages: deque[TrafficMessage] = deque()
        self.bytes, self.evicted, self.connections, self.ended = 0, 0, 0, 0
        self.bound(budget)

    def bound(self, budget: TrafficBudget) -> None:
        self.budget = budget
        # One message that filled the whole share would push out all that led to it.
        self.longest = max(budget.bytes // 4, 1)

    def since(self, number: int) -> Iterator[TrafficMessage]:
        return takewhile(lambda message: message.number > number, reversed(self.messages))

    def first_after(self, number: int) -> TrafficMessage | None:
        place = bisect_right(self.messages, number, key=attrgetter("number"))
        return self.messages[place] if place < len(self.messages) else None

    def between(self, number: int, last: int) -> Iterator[TrafficMessage]:
        """The messages after ``number``, up to ``last``."""
        first, end = (bisect_right(self.messages, bound, key=attrgetter("number")) for bound in (number, last))
        return (self.messages[place] for place in range(first, end))

    def find(self, number: int) -> TrafficMessage | None:
        found = self.first_after(number - 1)
        return found if found is not None and found.number == number else None


class ServerTap:
    """A `mcphost.transports.base.MessageObserver` that records one connection in the book."""

    __slots__ = ("_book", "_connection", "_share")

    def __init__(self, book: TrafficBook, share: _Share) -> None:
        share.connections += 1
        self._book, self._share, self._connection = book, share, share.connections

    def sent(self, data: bytes) -> None:
        self._book.take(self._share, self._connection, True, "", data, current_call.get())

    def received(self, data: bytes) -> None:
        self._book.take(self._share, self._connection, False, "", data, None)

    def noted(self, kind: str, text: str) -> None:
        sent = kind == "http" and not text.startswith("HTTP ")
        call = current_call.get() if kind == "http" else None
        self._book.take(self._share, self._connection, sent, kind, text.encode("utf-8", "replace"), call)


OLDEST_COPY: Final = 600.0
"""Seconds between the time that a copy claims and its arrival; an earlier time is not believed."""

HELD: Final = 1_000
"""Calls of agents whose waits are looked up; older ones are forgotten."""


class HeldCall(NamedTuple):
    """A call of an agent: its waits, and its number among mcphost's tool calls if mcphost carries it out."""

    waits: CallWaits | None
    call: int | None


class AgentTap:
    """Records what passes between an agent and its server, from copies of it."""

    __slots__ = ("_agent", "_book", "_connection", "_share")

    def __init__(self, book: TrafficBook, share: _Share, agent: str) -> None:
        share.connections += 1
        self._book, self._share, self._connection, self._agent = book, share, share.connections, agent

    def named(self, agent: str) -> None:
        """The agent has this name, now that it has said who it is."""
        for message in () if agent == self._agent else self._share.messages:
            if message.connection == self._connection:
                message.agent = agent
        self._agent = agent

    def copied(
        self, source: str, data: bytes, time: float, *, to_server: bool = False, whole: int = 0, left_out: int = 0
    ) -> None:
        """Take a copy of what the ``agent``, the ``server`` or a ``gate`` wrote, or of a line of ``stderr``.

        ``to_server`` is where a gate sent it, and ``time`` in seconds since the epoch. ``whole`` counts the bytes of a
        line whose start ``data`` is, and ``left_out`` the copies that are missing before this one.
        """
        if left_out:
            words = f"{left_out:,} copies are missing here: there were too many at once"
            self._take(False, "malformed", words.encode(), time)
            if not data:
                return
        note, injected = "stderr" if source == "stderr" else "", source == "gate"
        self._take(source == "agent" or (injected and to_server), note, data, time, whole, injected)

    def held(self, request_id: RequestId, waits: CallWaits, call: int | None = None) -> None:
        """Note that a request is a call, which may wait; ``waits`` is read whenever its messages are shown.

        ``call`` is the number of the tool call by which mcphost carries it out.
        """
        self._book.hold(self._share.server, self._connection, request_id, HeldCall(waits, call))

    def ended(self) -> None:
        """The agent or the server is gone: requests that wait are not answered any more."""
        self._book.disconnected(self._share.server, self._connection)

    def _take(self, sent: bool, note: str, data: bytes, time: float, whole: int = 0, injected: bool = False) -> None:
        share, connection, agent = self._share, self._connection, self._agent
        self._book.take(share, connection, sent, note, data, None, agent, passed=time, whole=whole, injected=injected)


class TrafficBook:
    """The traffic of all servers, in one order.

    ``mask`` removes secrets from a text; ``on_added`` is called at the first new message after `since`.
    """

    def __init__(
        self,
        mask: Mask = lambda text: text,
        on_added: Callable[[], None] = lambda: None,
        *,
        total: TrafficBudget = EVERYTHING,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_added = on_added
        self.sink: Callable[[TrafficMessage], None] | None = None
        """Called with every message, to write a file."""
        self.running_call: Callable[[str], int | None] = lambda server: None
        """Returns the number of the call on which a server is at work."""
        self.identities: Callable[[], Mapping[str, str]] = dict
        """Returns the identities of the servers, without values."""
        self.read_only = False
        """True if it was read from a file; nothing can then be sent again."""
        self._mask, self._clock, self._monotonic = mask, clock, monotonic
        self._total = total
        self._shares: dict[str, _Share] = {}
        self._pinned: dict[int, TrafficMessage] = {}
        self._pairing = MessagePairing()
        self._held: dict[tuple[str, int, RequestId], HeldCall] = {}
        self._listening: dict[str, int] = {}
        """The number of the last request that listens, by server."""
        self._numbers = count(1)
        self._messages = self._bytes = self._paired = 0
        self._reported = False
        self.disconnects = 0
        """Number of connections that have ended."""

    # What comes in.

    def tap(self, server: str) -> ServerTap:
        """The tap for a new connection to this server."""
        return ServerTap(self, self._share(server))

    def agent_tap(self, name: str, agent: str) -> AgentTap:
        """The tap for a new session of ``agent``, whose messages are kept under this ``name``."""
        return AgentTap(self, self._share(name), agent)

    def hold(self, server: str, connection: int, request_id: RequestId, held: HeldCall) -> None:  # for `AgentTap`
        if len(self._held) >= HELD:
            del self._held[next(iter(self._held))]
        self._held[server, connection, request_id] = held
        number = self._pairing.request(server, connection, request_id)
        if number is not None and (message := self._find(number)) is not None:
            message.waits, message.call = held
        self._report_added()

    def served_from_cache(self, server: str, words: str) -> None:
        """A kept result answered a request, so that nothing was sent."""
        share = self._share(server)
        self.take(share, share.connections, False, "cache", words.encode("utf-8", "replace"), current_call.get())

    def disconnected(self, server: str, connection: int | None = None) -> None:
        """A connection of this server has ended, or all: requests that wait there are not answered any more."""
        share = self._share(server)
        if connection is None:
            share.ended = share.connections
        for message in (*share.messages, *(each for each in self._pinned.values() if each.server == server)):
            if message.abandoned is Abandoned.NOT and connection in (None, message.connection):
                message.abandoned = Abandoned.LOST
        self.disconnects += 1
        self._report_added()

    def set_budget(self, server: str, budget: TrafficBudget) -> None:
        """Change the budget of this server."""
        self._share(server).bound(budget)

    def take(
        self,
        share: _Share,
        connection: int,
        sent: bool,
        note: str,
        data: bytes,
        call: int | None,
        agent: str = "",
        *,
        passed: float | None = None,
        whole: int = 0,
        injected: bool = False,
    ) -> None:  # for the taps; by position, since it is called for each message
        now, at = self._clock(), self._monotonic()
        if passed is not None:
            late = min(max(0.0, now - passed), OLDEST_COPY)
            now, at = now - late, at - late
        number, size = next(self._numbers), max(whole, len(data))
        message = TrafficMessage(
            number, now, at, share.server, connection, sent, note, data, size, call, agent, injected=injected
        )
        if not sent and not note:
            message.during = current_call.get() or self.running_call(share.server)
        if sent and not note:
            message.head = _head_before(share, connection)
        if connection <= share.ended:
            message.abandoned = Abandoned.LOST
        self._keep(share, message)
        self._report_added()

    def _report_added(self) -> None:
        if not self._reported:
            self._reported = True
            self.on_added()

    # What there is.

    def pair(self, seconds: float = inf) -> bool:
        """Parse and pair new messages for at most ``seconds``; return True when none are left.

        The other methods do it without a limit. After a flood, call it repeatedly with few ``seconds`` first, so that
        the event loop stays free.
        """
        end = time.perf_counter() + seconds
        while window := self._window():
            for message in window:
                self._pair_one(message)
            self._paired = window[-1].number
            if time.perf_counter() > end:
                return False
        return True

    @property
    def newest(self) -> int:
        """The number of the newest message that is kept; 0 without any."""
        return max((share.messages[-1].number for share in self._shares.values() if share.messages), default=0)

    def since(self, number: int) -> list[TrafficMessage]:
        """The kept messages after this number, oldest first, parsed and paired."""
        self.pair()
        self._reported = False
        found = [message for share in self._shares.values() for message in share.since(number)]
        found += (message for message in self._pinned.values() if message.number > number)
        found.sort(key=attrgetter("number"))
        return found

    def message(self, number: int) -> TrafficMessage | None:
        """The message of this number; None if it is no longer kept."""
        self.pair()
        return self._find(number)

    def partner(self, message: TrafficMessage) -> TrafficMessage | None:
        """The response to a request; the request of other messages. None if it is missing or no longer kept."""
        self.pair()
        return None if message.partner is None else self._find(message.partner)

    def session_of(self, message: TrafficMessage) -> list[TrafficMessage]:
        """The kept messages of the connection of this one, oldest first."""
        pinned = (each for each in self._pinned.values() if each.server == message.server)
        found = [
            each for each in (*self._share(message.server).messages, *pinned) if each.connection == message.connection
        ]
        return sorted(found, key=attrgetter("number"))

    def mirrors(self, message: TrafficMessage) -> list[Mirror]:
        """The headers of a modern request beside the values of its body, without secrets; empty for anything else."""
        head = None if message.head is None else self._find(message.head)
        if head is None or message.cut or len(message.data) > MIRRORED:
            return []
        headers = dict(_header_lines(self.raw(head)))
        try:
            body = json.loads(self.raw(message))
        except (ValueError, RecursionError):
            return []
        return mirrors_of(headers, body, hidden=MASK) if isinstance(body, dict) else []

    def evicted(self, server: str) -> int:
        """Number of messages of this server that were dropped for newer ones."""
        return self._share(server).evicted

    def raw(self, message: TrafficMessage) -> str:
        """The text of a message with secrets masked."""
        return redacted(message.raw(), self._mask)

    def pretty(self, message: TrafficMessage) -> str:
        """The same, with JSON indented."""
        return pretty(self.raw(message))

    # Keeping and clearing.

    def pin(self, message: TrafficMessage) -> None:
        """Exempt this message from the budgets. Raises NotDone if too many are pinned."""
        if len(self._pinned) >= PINS and message.number not in self._pinned:
            raise NotDone(f"{PINS} messages are pinned already; unpin some first")
        self.pair()
        if self._find(message.number) is message and message.number not in self._pinned:
            self._pinned[message.number] = message
            self._drop(message)

    def unpin(self, message: TrafficMessage) -> None:
        """End a pin."""
        if self._pinned.pop(message.number, None) is not None:
            share = self._share(message.server)
            share.messages.insert(bisect_left(share.messages, message.number, key=attrgetter("number")), message)
            self._count(share, 1, len(message.data))
            self._make_room(share)

    def is_pinned(self, message: TrafficMessage) -> bool:
        return message.number in self._pinned

    def clear(self) -> None:
        """Forget every message that is not pinned."""
        self.pair()
        for share in self._shares.values():
            share.messages.clear()
            share.bytes = 0
        self._messages = self._bytes = 0

    # Files.

    def export(self, messages: Iterable[TrafficMessage]) -> bytes:
        """These messages as lines of JSON, without secrets. See `mcphost.host.traffic.file`."""
        from mcphost.host.traffic.file import lines_of  # late: few runs write traffic to a file

        kept = tuple(messages)
        facts = self.facts("screen", {message.server for message in kept})
        return b"".join(lines_of(kept, self._mask, facts))

    def facts(self, recorded_by: str, names: Container[str], seen: str = "") -> RecordingFacts:
        """The facts for a file with messages of the servers of these names."""
        from mcphost.host.recordings.recording import RecordingFacts  # late: few runs write one

        known = self.identities()
        servers = {name: self._mask(safe_command(words)) for name, words in known.items() if name in names}
        return RecordingFacts(mcphost=__version__, recorded_by=recorded_by, seen=seen, servers=servers)

    # Inside.

    def _share(self, server: str) -> _Share:
        share = self._shares.get(server)
        if share is None:
            share = self._shares[server] = _Share(server, TrafficBudget())
        return share

    def _keep(self, share: _Share, message: TrafficMessage) -> None:
        if self.sink is not None:  # a file gets messages whole
            self.sink(copy(message) if message.size > share.longest else message)
        if message.size > share.longest:
            message.keep_start(min(START, share.longest))
        share.messages.append(message)
        self._count(share, 1, len(message.data))
        self._make_room(share)

    def _count(self, share: _Share, messages: int, size: int) -> None:
        share.bytes += size
        self._bytes += size
        self._messages += messages

    def _make_room(self, share: _Share) -> None:
        while len(share.messages) > share.budget.messages or share.bytes > share.budget.bytes:
            self._evict(share)
        while self._bytes > self._total.bytes:
            self._evict(max(self._shares.values(), key=attrgetter("bytes")))
        while self._messages > self._total.messages:
            self._evict(max(self._shares.values(), key=lambda each: len(each.messages)))

    def _evict(self, share: _Share) -> None:
        message = share.messages.popleft()
        share.evicted += 1
        self._count(share, -1, -len(message.data))

    def _drop(self, message: TrafficMessage) -> None:
        share = self._share(message.server)
        share.messages.remove(message)
        self._count(share, -1, -len(message.data))

    def _find(self, number: int) -> TrafficMessage | None:
        if number in self._pinned:
            return self._pinned[number]
        return next((found for share in self._shares.values() if (found := share.find(number))), None)

    def _window(self) -> list[TrafficMessage]:
        """The next at most `WINDOW` messages to pair, in order."""
        fresh = [first for share in self._shares.values() if (first := share.first_after(self._paired))]
        if not fresh:
            return []
        last = min(message.number for message in fresh) + WINDOW
        found = [message for share in self._shares.values() for message in share.between(self._paired, last)]
        return sorted(found, key=attrgetter("number"))

    def _pair_one(self, message: TrafficMessage) -> None:
        if message.sent and message.facts.method == LISTEN:
            self._replace_listening(message)
        if message.agent and message.sent and message.id is not None and not message.injected:
            held = self._held.get((message.server, message.connection, message.id))
            message.waits, message.call = held or (message.waits, message.call)
        asked = self._pairing.add(message)
        if asked is None:
            return
        message.partner, message.asked = asked.number, asked.method
        message.call = asked.call if message.call is None else message.call
        if is_answer(message):
            message.latency = message.at - asked.at
            request = self._find(asked.number)
            message.call = request.call if request is not None and message.call is None else message.call
            if request is not None and request.partner is None:
                request.partner, request.latency = message.number, message.latency
        elif is_cancellation(message) and (request := self._find(asked.number)) is not None:
            request.abandoned = Abandoned.CANCELLED

    def _replace_listening(self, message: TrafficMessage) -> None:
        """Of the requests that listen at one server, only the last is open."""
        before = self._listening.get(message.server)
        self._listening[message.server] = message.number
        earlier = None if before is None else self._find(before)
        if earlier is not None and earlier.partner is None and earlier.abandoned is Abandoned.NOT:
            earlier.abandoned = Abandoned.REPLACED


def _header_lines(head: str) -> Iterator[tuple[str, str]]:
    for line in head.split("\n")[1:]:
        name, colon, value = line.partition(": ")
        if colon:
            yield name, value


def _head_before(share: _Share, connection: int) -> int | None:
    """The number of the HTTP head that the message after it was sent with."""
    last = share.messages[-1] if share.messages else None
    with_it = last is not None and last.sent and last.note == "http" and last.connection == connection
    return last.number if last is not None and with_it else None


def read_traffic(path: Path) -> TrafficBook:
    """A read-only book of exported traffic. Blocks on the disk: call it in a thread.

    Raises NotDone for a line that is not a message, ConfigError for what cannot be read, FileNotFoundError.
    """
    from mcphost.host.recordings.first_line import META  # late: few runs read one
    from mcphost.host.traffic.file import IMPORT_BYTES, read_lines

    book = TrafficBook(total=TrafficBudget(1_000_000, IMPORT_BYTES))
    for record in read_lines(read_regular(path, IMPORT_BYTES), path.name):
        if record.note == META:
            continue
        share = book._share(record.server)
        share.bound(TrafficBudget(1_000_000, IMPORT_BYTES))
        number = next(book._numbers)
        message = TrafficMessage(
            number,
            record.time,
            record.time,
            record.server,
            record.connection,
            record.sent,
            record.note,
            record.data,
            record.size,
            record.call,
            record.agent,
            injected=record.injected,
        )
        message.waits = record.waits
        message.abandoned = Abandoned.EXPORTED
        if record.sent and not record.note:
            message.head = _head_before(share, record.connection)
        book._keep(share, message)
    book.read_only = True
    return book
