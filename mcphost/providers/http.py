"""Sends one request to a model over HTTP, and streams the events of its answer, within limits of time and size.

Follows no redirect, keeps no cookie and decompresses nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import httpx
from httpx_sse import EventSource

from mcphost.errors import ModelAnswerCut, ModelAnswerMalformed, ModelError, ModelOverloaded, ModelUnreachable
from mcphost.json_values import as_dict, as_list, as_text
from mcphost.net.client import new_client
from mcphost.protocol.display import size_text
from mcphost.protocol.wire.framing import EventLineFramer, LineFramer, Overlong
from mcphost.providers.base import (
    ModelCapabilities,
    ModelRequest,
    ProviderEvent,
    RetryScheduled,
    SurrogatePairs,
    TokenUsage,
    check,
)
from mcphost.providers.context_window import fitted
from mcphost.providers.endpoint import ModelEndpoint, check_endpoint, joined
from mcphost.providers.errors import Refusal, error_of
from mcphost.providers.retry import RetryLimits, requested_wait
from mcphost.providers.tool_names import NameMapping, tool_names

DONE: Final = "[DONE]"
"""Sent by some endpoints in place of a document at the end of a stream."""


class StreamFraming(Protocol):
    """Splits chunks into documents; raises Oversized for one over ``limit`` bytes.

    Never holds more than the limit and one chunk. The caller closes ``chunks``.
    """

    def __call__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
        """The documents, in order."""


class Oversized(Exception):
    """A document is larger than the limit."""


async def events(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """The data of server-sent events; see `StreamFraming`.

    Some endpoints leave out the blank line after the last event: it counts if its data is whole.
    """
    lines = _BoundedEvents(chunks, limit)
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    source = EventSource(httpx.Response(200, headers=headers, stream=lines))
    async with aclosing(source.aiter_sse()) as found:
        async for event in found:
            if event.data and (not lines.closed or event.data == DONE or _is_whole(event.data)):
                yield event.data


class _BoundedEvents(httpx.AsyncByteStream):
    """Feeds whole lines to httpx-sse, which has no limit of its own; at most ``limit`` bytes per event."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> None:
        self._chunks, self._limit = chunks, limit
        self._size = 0
        self.closed = False
        """True once the stream has ended; anything after that is an event without its final blank line."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        framer = EventLineFramer(self._limit)
        async for chunk in self._chunks:
            if whole := self._counted(framer.feed(chunk)):
                yield whole
            if self._size + framer.pending > self._limit:
                raise Oversized
        self.closed = True
        yield self._counted(framer.feed(b"\n")) + b"\n"

    def _counted(self, lines: Iterable[bytes | Overlong]) -> bytes:
        """The lines of events; without repeated blank lines, of each of which httpx-sse would make an event."""
        kept = bytearray()
        for line in map(_checked, lines):
            if line or self._size:
                kept += line + b"\n"
                self._size += len(line) + 1
            if self._size > self._limit:
                raise Oversized
            if not line:
                self._size = 0
        return bytes(kept)


async def lines(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """A document per line; see `StreamFraming`. Skips blank lines; the last line may lack its line end."""
    framer = LineFramer(limit)
    async for chunk in chunks:
        for line in framer.feed(chunk):
            if document := _checked(line).strip():
                yield document
    for line in framer.feed(b"\n"):
        if _is_whole(document := _checked(line)):
            yield document


def _checked(line: bytes | Overlong) -> bytes:
    if isinstance(line, Overlong):
        raise Oversized
    return line


def _is_whole(line: str | bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


MOST_EVENT: Final = 4_000_000
"""Bytes of one document; real ones have a few hundred, unless tool arguments come in one piece."""

MOST_ANSWER: Final = 64_000_000
"""Bytes of a whole answer: the longest that models write, with a few hundred bytes around each token."""

MOST_REFUSAL: Final = 64_000
"""Bytes of a refusal that are read."""

REFUSAL_SECONDS: Final = 5.0
"""For the body of a refusal."""

ENDING: Final = 0.5
"""Seconds that an endpoint has to close the stream of a complete answer."""

COUNTS_SECONDS: Final = 1.0
"""Seconds that an endpoint has to send the token counts, once the model gave its reason to stop. Comments and pings do
not extend them: some endpoints keep the stream of a complete answer open."""

AT_A_TIME: Final = 8
"""Documents between yields to the event loop: hundreds may arrive in one chunk."""

FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError)

_T = TypeVar("_T")


class RefusedAnswer(ModelError):
    """A refusal that a provider may remedy by another dialect. Raised inside this package only."""

    def __init__(self, endpoint: ModelEndpoint, refusal: Refusal, wait: float | None) -> None:
        self.refusal, self.error = refusal, error_of(endpoint, refusal, wait)
        super().__init__(endpoint.entry, "refused")


class ModelConnections:
    """The connections to one endpoint; ``framing`` splits its streams."""

    def __init__(self, endpoint: ModelEndpoint, limits: RetryLimits, framing: StreamFraming) -> None:
        self.endpoint, self.limits, self._framing = endpoint, limits, framing
        self._client: httpx.AsyncClient | None = None
        self._preparing = asyncio.Lock()

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def documents(self, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """POST ``body`` and yield each JSON document of the answer, and None for ``[DONE]``.

        An answer without a stream is one document. Raises ModelError; `RefusedAnswer` for a refusal.
        """
        response = await self._answered(body)
        try:
            if _kind(response) == "application/json":
                yield self._document(await self._whole(response, MOST_EVENT))
                return
            async with aclosing(self._pieces(response)) as pieces:
                count = 0
                async for data in pieces:
                    yield None if data in (DONE, DONE.encode()) else self._document(data)
                    count += 1
                    if count % AT_A_TIME == 0:
                        await asyncio.sleep(0)
        finally:
            await response.aclose()

    async def _answered(self, body: Mapping[str, Any]) -> httpx.Response:
        async with self._preparing:  # encodes long messages and loads certificates: not on the event loop
            client, request = await asyncio.to_thread(self._prepared, body)
        response = await self._timed(client.send(request, stream=True), self.limits.first, ModelUnreachable)
        try:
            if response.status_code != 200:
                raise await self._refused(response)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise self._no_answer("compresses its answer unasked")
            if _kind(response) == "text/html":
                raise self._no_answer("answers with a web page")
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _refused(self, response: httpx.Response) -> RefusedAnswer:
        wait = requested_wait({name.lower(): value for name, value in response.headers.items()}, datetime.now(UTC))
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                body = await self._whole(response, MOST_REFUSAL, cut=True)
        except (ModelError, TimeoutError):
            body = b""
        return RefusedAnswer(self.endpoint, Refusal.read(response.status_code, body), wait)

    async def _whole(self, response: httpx.Response, limit: int, *, cut: bool = False) -> bytes:
        content = bytearray()
        async with aclosing(self._chunks(response)) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > limit:
                    break
        if len(content) > limit and not cut:
            raise self._too_large(limit)
        return bytes(content[:limit])

    async def _pieces(self, response: httpx.Response) -> AsyncGenerator[str | bytes, None]:
        async with (
            aclosing(self._bounded(response)) as chunks,
            aclosing(self._framing(chunks, MOST_EVENT)) as pieces,
        ):
            try:
                async for data in pieces:
                    yield data
            except Oversized:
                raise self._too_large(MOST_EVENT) from None

    async def _bounded(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        size = 0
        async with aclosing(self._chunks(response)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > MOST_ANSWER:
                    raise self._too_large(MOST_ANSWER)
                yield chunk

    async def _chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        chunks, seconds = response.aiter_raw(), self.limits.first
        while True:
            try:
                chunk = await self._timed(anext(chunks), seconds, ModelAnswerCut)
            except StopAsyncIteration:
                return
            yield chunk
            seconds = self.limits.idle

    async def _timed(self, waiting: Awaitable[_T], seconds: float, failure: type[ModelError]) -> _T:
        """Await ``waiting`` within ``seconds``. Raises ``failure`` for a timeout or a network error."""
        origin = self.endpoint.origin
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except (TimeoutError, httpx.ConnectTimeout) as error:
            seconds = self.limits.connect if isinstance(error, httpx.ConnectTimeout) else seconds
            raise failure(self.endpoint.entry, f"{origin} said nothing for {seconds:g} s; try again") from None
        except FAILURES as error:
            reason = self.endpoint.clean(str(error) or type(error).__name__, 120)
            what = "cannot be reached" if failure is ModelUnreachable else "broke off its answer"
            advice = self.endpoint.start_advice if failure is ModelUnreachable else "try again"
            raise failure(self.endpoint.entry, f"{origin} {what} ({reason}); {advice}") from None

    def _document(self, data: str | bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            text = data[:4000].decode("utf-8", "replace") if isinstance(data, bytes) else data[:4000]
            start = self.endpoint.clean(text, 80)
            raise ModelAnswerMalformed(
                self.endpoint.entry, f"{self.endpoint.origin} sent invalid JSON ({start}); try again"
            ) from None

    def _no_answer(self, what: str) -> ModelError:
        return ModelAnswerMalformed(self.endpoint.entry, f"{self.endpoint.origin} {what}; look at base_url")

    def _too_large(self, limit: int) -> ModelError:
        return ModelAnswerMalformed(
            self.endpoint.entry, f"{self.endpoint.origin} sent more than {size_text(limit)} at once; it was left there"
        )

    def _prepared(self, body: Mapping[str, Any]) -> tuple[httpx.AsyncClient, httpx.Request]:
        headers = {"Content-Type": "application/json", **self.endpoint.headers}
        content = json.dumps(body).encode()  # as ASCII: a lone surrogate from a server has no UTF-8
        try:
            client = self._opened()
            return client, client.build_request("POST", self.endpoint.url, content=content, headers=headers)
        except (httpx.InvalidURL, ValueError, OSError) as error:  # unusable proxy or certificates
            reason = self.endpoint.clean(str(error), 120)
            raise ModelUnreachable(
                self.endpoint.entry,
                f"{self.endpoint.origin} cannot be asked ({reason}); look at base_url, and at the proxy and the "
                "certificates that the environment names",
            ) from None

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            headers = {"Accept-Encoding": "identity"}
            self._client = new_client(httpx.URL(self.endpoint.url), connect=self.limits.connect, headers=headers)
        return self._client


def _kind(response: httpx.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


class StreamReader(Protocol):
    """Parses the documents of one answer into events."""

    @property
    def complete(self) -> bool:
        """True once the model has ended its answer; token counts may follow."""

    @property
    def ended(self) -> bool:
        """True once the end of the stream was announced."""

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        """The events of a document (None for ``[DONE]``). Raises ModelError for an error inside the stream."""

    def finish(self) -> Iterator[ProviderEvent]:
        """The last events. Raises ModelAnswerCut if the answer is incomplete."""


async def events_of(
    exchanges: ModelConnections, body: Mapping[str, Any], reading: StreamReader
) -> AsyncGenerator[ProviderEvent, None]:
    """The events of one exchange. Raises ModelError; `RefusedAnswer` for a refusal."""
    pairs = SurrogatePairs()
    async with aclosing(exchanges.documents(body)) as documents:
        async for document in _until_complete(documents, reading):
            for event in reading.feed(document):
                for whole in pairs.feed(event):
                    yield whole
        if reading.ended:
            await _read_rest(documents)
    for event in (*pairs.end(), *reading.finish()):
        yield event


async def _until_complete(documents: AsyncGenerator[Any, None], reading: StreamReader) -> AsyncGenerator[Any, None]:
    """The documents up to the end of the stream; of a complete answer, what comes within `COUNTS_SECONDS`."""
    clock = asyncio.get_running_loop().time
    until: float | None = None
    while not reading.ended:
        if reading.complete and until is None:
            until = clock() + COUNTS_SECONDS
        try:
            async with asyncio.timeout_at(until):
                document = await anext(documents)
        except StopAsyncIteration:
            return
        except (TimeoutError, ModelError):
            if until is None:
                raise
            return  # all of the answer came before
        yield document


async def _read_rest(documents: AsyncGenerator[Any, None]) -> None:
    """Read to the end of the stream, so that the connection can be reused."""
    with suppress(TimeoutError, ModelError):
        async with asyncio.timeout(ENDING):
            async for _ in documents:
                break


async def with_retries(
    endpoint: ModelEndpoint, limits: RetryLimits, attempt: Callable[[], AsyncGenerator[ProviderEvent, None]]
) -> AsyncGenerator[ProviderEvent, None]:
    """The events of ``attempt``, which is retried while the model is overloaded. Raises ModelError.

    Yields `RetryScheduled` before each delay. An attempt that has yielded events is not retried.
    """
    waited, count = 0.0, 0
    while True:
        begun = False
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    begun = begun or not isinstance(event, TokenUsage)  # usage is reported again, and replaced
                    yield event
            return
        except ModelOverloaded as error:
            count += 1
            seconds = None if begun else limits.wait(count, error.seconds, waited, random.random())
            if seconds is None:
                raise
            reason = str(error)
        yield RetryScheduled(seconds, count, limits.retries, reason)
        await asyncio.sleep(seconds)
        waited += seconds


def parts_text(value: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(value, list):
        return "".join(as_text(part) or parts_text(as_dict(part).get("text")) for part in value)
    return as_text(value)


def thoughts_of(value: Any) -> str:
    """The reasoning among the parts of a message's content."""
    return "".join(parts_text(as_dict(part).get("thinking")) for part in as_list(value))


def arguments_text(value: Any) -> str:
    """The arguments of a tool use, which some endpoints send as JSON in a string and others as a value."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def number(value: Any, default: int = 0) -> int:
    """``value`` if it is an integer, else ``default``."""
    return value if type(value) is int else default


Dialect = TypeVar("Dialect")
"""A variant of one API, as compatible servers expect it: a hashable value."""


class HostedProvider(ABC, Generic[Dialect]):
    """Base of the providers of HTTP APIs, also for compatible servers at ``base_url``; see `Provider`."""

    HOME: ClassVar[str]
    """The API's own base URL."""
    VERSION: ClassVar[str] = "/v1"
    """Appended to a base URL that does not end in it."""
    PATH: ClassVar[str]
    """The path below the version that requests are posted to."""
    CAPABILITIES: ClassVar[ModelCapabilities]
    """The default capabilities of its models."""
    KEY_AT_HOME: ClassVar[bool] = True
    """True if `HOME` requires a key."""
    FRAMING: ClassVar[StreamFraming] = staticmethod(events)
    """Splits its streams into documents."""

    def __init__(
        self,
        entry: str,
        model: str,
        *,
        key: str = "",
        base_url: str | None = None,
        limits: RetryLimits = RetryLimits(),  # noqa: B008 - a frozen value
        capabilities: ModelCapabilities | None = None,
        context_tokens: int | None = None,
    ) -> None:
        """``context_tokens``: the size of the context window; None: unknown."""
        self.entry, self.capabilities = entry, capabilities or self.CAPABILITIES
        self.key_refused = False
        """True once the key was rejected; the stored key may have changed since."""
        self._model, self._context = model, context_tokens
        self._key_needed = base_url is None and self.KEY_AT_HOME
        self._dialect = self._first_dialect(at_home=base_url is None)
        url = joined(base_url or self.HOME, self.VERSION, self.PATH)
        self._endpoint = ModelEndpoint(entry, url, key, self._headers(key))
        self._exchanges = ModelConnections(self._endpoint, limits, self.FRAMING)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        check_endpoint(self._endpoint, key_needed=self._key_needed)
        check(self.entry, request, self.capabilities)
        limits, fitting = self._exchanges.limits, fitted(self.entry, request, self._context)
        async with aclosing(with_retries(self._endpoint, limits, lambda: self._attempt(fitting))) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        await self._exchanges.aclose()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Send the request; after a refusal, again in each dialect that `_remedy` suggests. Remembers the last one."""
        names, dialect = tool_names(request), self._dialect
        tried = {dialect}
        while True:
            asking = events_of(self._exchanges, self._body(request, names, dialect), self._reader(request, names))
            try:
                async with aclosing(asking) as events:
                    async for event in events:
                        yield event
                return
            except RefusedAnswer as refused:
                self.key_refused |= refused.refusal.status == 401
                other = self._remedy(refused.refusal, dialect)
                if other is None or other in tried:
                    raise self._error_of(refused) from None
                tried.add(other)
                self._dialect = dialect = other

    @abstractmethod
    def _headers(self, key: str) -> Mapping[str, str]:
        """The headers of every request; ``key`` may be empty."""

    @abstractmethod
    def _first_dialect(self, *, at_home: bool) -> Dialect:
        """The dialect to try first; ``at_home``: at the API's own base URL."""

    @abstractmethod
    def _body(self, request: ModelRequest, names: NameMapping, dialect: Dialect) -> dict[str, Any]:
        """The request body in this dialect."""

    @abstractmethod
    def _reader(self, request: ModelRequest, names: NameMapping) -> StreamReader:
        """The reader of the answer."""

    def _remedy(self, refusal: Refusal, dialect: Dialect) -> Dialect | None:
        """The dialect to try after this refusal, or None."""
        return None

    def _error_of(self, refused: RefusedAnswer) -> ModelError:
        """The exception for a refusal without remedy."""
        return refused.error
