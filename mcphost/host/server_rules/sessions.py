"""Sessions of the prober: each sends one message at a time, and keeps all that comes until its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from mcphost.errors import McphostError, PeerError
from mcphost.host.server_rules.ports import Channel, RawHttp
from mcphost.host.server_rules.sighting import ProbeExchange, ReceivedMessage, Sighting, read_message
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.limits import BATCH_ITEMS, MESSAGE_BYTES
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.event_stream import EventParser
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, RequestId, Response, encode_value
from mcphost.protocol.wire.strict_json import IN_STEPS
from mcphost.transports.base import MessageObserver, NoteKind

SECONDS: Final = 10.0
"""For the answer to a probe."""

AFTER_A_WRONG_ANSWER: Final = 1.0
"""Seconds for the right answer once another one came."""

Until = Callable[[ReceivedMessage], bool]
"""True for the message that ends a wait, besides the answer."""

NOTHING: Final[Mapping[str, str]] = {}

HTTP_HEADERS: Final[Mapping[str, str]] = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


class ProbeSession(Protocol):
    async def ask(
        self,
        probe: str,
        message: Mapping[str, Any] | bytes,
        headers: Mapping[str, str] = NOTHING,
        until: Until | None = None,
    ) -> ProbeExchange:
        """Send a message, and wait for its answer, if it is a request. Never raises but for cancellation."""

    async def aclose(self) -> None:
        """End the session."""


async def read(data: bytes, revision: Revision) -> list[ReceivedMessage]:
    """As `read_message`, a large text in a thread; the messages of a batch one by one, where there are batches."""
    message = read_message(data) if len(data) < IN_STEPS else await asyncio.to_thread(read_message, data)
    if not (revision.batches and isinstance(message.value, list)):
        return [message]
    return [read_message(encode_value(item)) for item in message.value[:BATCH_ITEMS]]


def id_of(message: Mapping[str, Any] | bytes) -> RequestId | None:
    found = message.get("id") if isinstance(message, Mapping) else None
    return found if type(found) in (int, str) else None


def is_same(one: RequestId | None, other: RequestId | None) -> bool:
    """True for the same id; 1, true and "1" are three."""
    return type(one) is type(other) and one == other


class ChannelSession:
    """A session over stdio or SSE; ``number`` tells sessions apart. It is its channel's observer and receiver."""

    def __init__(
        self,
        seen: Sighting,
        number: int,
        open_channel: Callable[[ChannelSession], Channel],
        traffic: MessageObserver,
        opening_seconds: float,
    ) -> None:
        self._seen, self._number, self._traffic = seen, number, traffic
        self._seconds = max(opening_seconds, SECONDS)
        self._channel = open_channel(self)
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lost = ""
        self._exchange = ProbeExchange("")
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def open(self) -> None:
        """Raises a TransportError."""
        await self._channel.open(self)
        self._reader = asyncio.create_task(self._read(), name="read probed server")

    async def ask(
        self,
        probe: str,
        message: Mapping[str, Any] | bytes,
        headers: Mapping[str, str] = NOTHING,
        until: Until | None = None,
    ) -> ProbeExchange:
        sent = message if isinstance(message, Mapping) else {}
        exchange = self._exchange = ProbeExchange(probe, sent)
        seconds, self._seconds = self._seconds, SECONDS
        try:
            async with asyncio.timeout(seconds) as deadline:
                await self._channel.write(message if isinstance(message, bytes) else encode_value(message))
                if (asked := id_of(message)) is not None:
                    await self._answered(exchange, asked, until, deadline)
        except TimeoutError:
            exchange.seconds = seconds
        except McphostError as error:
            exchange.lost = str(error)
        return exchange

    async def _answered(
        self, exchange: ProbeExchange, asked: RequestId, until: Until | None, deadline: asyncio.Timeout
    ) -> None:
        looked_at, wrong = 0, False
        while True:
            self._changed.clear()
            for message in exchange.messages[looked_at:]:
                looked_at += 1
                if is_same(message.answers, asked):
                    exchange.response = message
                    return
                if until is not None and until(message):
                    return
                wrong = wrong or message.is_response
            if exchange.unusable:
                return
            if self._lost and self._arrived.empty():
                exchange.lost = self._lost
                return
            if wrong:
                soon = asyncio.get_running_loop().time() + AFTER_A_WRONG_ANSWER
                deadline.reschedule(min(deadline.when() or soon, soon))
            await self._changed.wait()

    async def _read(self) -> None:
        while True:
            data = await self._arrived.get()
            if data is not None:
                for message in await read(data, self._seen.revision):
                    self._seen.received.append((self._number, message))
                    self._exchange.messages.append(message)
                    if message.is_request and "result" not in message.object:
                        await self._reply(message)
            self._arrived.task_done()
            self._changed.set()

    async def _reply(self, message: ReceivedMessage) -> None:
        request_id = id_of(message.object)
        if request_id is None:
            return
        refusal = {"code": int(ErrorCode.METHOD_NOT_FOUND), "message": "this client declared no such capability"}
        outcome = {"result": {}} if message.object.get("method") == "ping" else {"error": refusal}
        answer = {"jsonrpc": "2.0", "id": request_id, **outcome}
        with suppress(McphostError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                await self._channel.write(encode_value(answer))

    async def aclose(self) -> None:
        await self._channel.aclose()
        if self._reader is not None:
            await self._arrived.join()
            self._reader.cancel()

    def sent(self, data: bytes) -> None:
        self._traffic.sent(data)

    def received(self, data: bytes) -> None:
        self._traffic.received(data)
        self._arrived.put_nowait(data)

    def noted(self, kind: NoteKind, text: str) -> None:
        self._traffic.noted(kind, text)
        if kind == "malformed":
            self._exchange.unusable = "it is over a limit of mcphost"
            self._arrived.put_nowait(None)

    def message(self, message: Request | Notification) -> None:
        """For the receiver: `received` has it."""

    def malformed(self, problem: Malformed) -> None:
        """For the receiver: `received` has it."""

    def unmatched(self, response: Response) -> None:
        """For the receiver: `received` has it."""

    def stderr(self, text: str) -> None:
        """For the receiver: stderr is free."""

    def authorization_changed(self) -> None:
        """For the receiver: nothing."""

    def closed(self, reason: Exception) -> None:
        self._lost = str(reason)
        self._arrived.put_nowait(None)


class HttpSession:
    """A session over Streamable HTTP: every message is its own request."""

    def __init__(
        self, seen: Sighting, number: int, client: RawHttp, traffic: MessageObserver, opening_seconds: float
    ) -> None:
        self._seen, self._number, self._client, self._traffic = seen, number, client, traffic
        self._seconds = max(opening_seconds, SECONDS)
        self.headers: dict[str, str] = {}
        """Of every message, besides the usual ones."""

    async def ask(
        self,
        probe: str,
        message: Mapping[str, Any] | bytes,
        headers: Mapping[str, str] = NOTHING,
        until: Until | None = None,
    ) -> ProbeExchange:
        sent = message if isinstance(message, Mapping) else {}
        content = message if isinstance(message, bytes) else encode_value(message)
        return await self.send(probe, "POST", {**HTTP_HEADERS, **self.headers, **headers}, content, sent, until)

    async def send(
        self,
        probe: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        sent: Mapping[str, Any] = NOTHING,
        until: Until | None = None,
    ) -> ProbeExchange:
        """Send any HTTP request; headers with an empty value are left out."""
        exchange, asked = ProbeExchange(probe, sent), id_of(sent)
        parser, texts = EventParser(MESSAGE_BYTES), list[bytes]()

        def enough(piece: bytes) -> bool:
            """True once an event is the answer, or what is waited for."""
            new = [event.data for event in parser.feed(piece) if not isinstance(event.data, Overlong)]
            texts.extend(new)
            if method == "GET":
                return True
            small = [read_message(each) for each in new if len(each) < IN_STEPS]
            return any(is_same(each.answers, asked) or (until is not None and until(each)) for each in small)

        kept = {name: value for name, value in headers.items() if value}
        seconds, self._seconds = self._seconds, SECONDS
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.send(method, kept, content, enough)
        except TimeoutError:
            exchange.seconds = seconds
            await self._keep(exchange, texts, asked)
            return exchange
        except PeerError as error:
            exchange.unusable = str(error)
            return exchange
        except McphostError as error:
            exchange.lost = str(error)
            return exchange
        exchange.status, exchange.headers = answer.status, answer.headers
        exchange.body, exchange.ended = answer.body, answer.ended
        if exchange.media == "text/event-stream":
            whole = EventParser(MESSAGE_BYTES)
            events = whole.feed(answer.body)
            exchange.event_ids = tuple(event.id for event in events if event.id is not None)
            texts = [event.data for event in events if not isinstance(event.data, Overlong)]
        elif exchange.media == "application/json" and not answer.ended:
            exchange.unusable = "it is over a limit of mcphost"
        else:
            texts = [answer.body] if exchange.media == "application/json" and answer.body.strip() else []
        await self._keep(exchange, texts, asked)
        return exchange

    async def _keep(self, exchange: ProbeExchange, texts: list[bytes], asked: RequestId | None) -> None:
        for text in texts:
            self._traffic.received(text)
        exchange.messages = [message for text in texts for message in await read(text, self._seen.revision)]
        self._seen.received += [(self._number, message) for message in exchange.messages]
        found = [message for message in exchange.messages if is_same(message.answers, asked) and asked is not None]
        # An error without id in the only answer of a POST can only be about that POST.
        alone = [each for each in exchange.messages if each.is_response and each.object.get("id") is None]
        exchange.response = next(iter(found or (alone if len(exchange.messages) == 1 else [])), None)

    async def aclose(self) -> None:
        await self._client.aclose()
