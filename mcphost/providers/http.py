"""One request to a model's endpoint over HTTP, and the events of its answer as they come.

Knows httpx, the limits of size and time, and how an exchange fails. Follows no redirect, keeps no cookie, decodes
nothing. Refuses to know what an event means.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import httpx
from httpx_sse import EventSource

from mcphost import __version__
from mcphost.errors import ModelAnswerCut, ModelAnswerMalformed, ModelError, ModelOverloaded, ModelUnreachable
from mcphost.net.proxies import proxy_for
from mcphost.net.tls import trusted_authorities
from mcphost.protocol.display import size_text
from mcphost.protocol.wire.framing import LineFramer, Overlong
from mcphost.providers.base import ModelCapabilities, ModelRequest, ProviderEvent, RetryScheduled, TokenUsage, check
from mcphost.providers.context_window import fitted
from mcphost.providers.endpoint import ModelEndpoint, checked, joined
from mcphost.providers.errors import Refusal, error_of
from mcphost.providers.retry import RetryLimits, told_wait
from mcphost.providers.tool_names import NameMapping, tool_names


class StreamFraming(Protocol):
    """Cuts chunks of any size into documents; raises Oversized for one with more bytes than the limit.

    Never holds more than the limit and one chunk. Whoever made the generator of chunks closes it.
    """

    def __call__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
        """The documents, in order."""


# The byte order mark that a stream may begin with is dropped, and what is no UTF-8 is replaced.
_AS_EVENTS: Final = {"Content-Type": "text/event-stream; charset=utf-8-sig"}


_BLANK_LINES: Final = re.compile(rb"[\r\n]{4,}")
"""An end of a line and at least one blank line. Of a run of those, httpx-sse makes an event each."""


class Oversized(Exception):
    """A document is larger than the limit."""


async def events(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """The data of server-sent events; see `StreamFraming`. An event that no blank line ends is none."""
    lines = _WholeLines(chunks, limit)
    source = EventSource(httpx.Response(200, headers=_AS_EVENTS, stream=lines))
    async with aclosing(source.aiter_sse()) as found:
        async for event in found:
            lines.event_ended()
            if event.data:
                yield event.data


class _WholeLines(httpx.AsyncByteStream):
    """Feeds httpx-sse, which has no limit of its own: whole lines only, and no more than ``limit`` bytes an event."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> None:
        self._chunks, self._limit = chunks, limit
        self._size = 0

    def event_ended(self) -> None:
        """What follows belongs to the next event."""
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line = bytearray()  # one growing buffer: httpx-sse keeps the pieces of a line as a list of strings
        async for chunk in self._chunks:
            self._size += len(chunk)
            if self._size > self._limit:
                raise Oversized
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            line += chunk[:end] or chunk
            if end:
                yield _BLANK_LINES.sub(b"\n\n", line)
                line = bytearray(chunk[end:])


async def lines(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """A document on each line; see `StreamFraming`. Blank lines are none; the last line may lack its end."""
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


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


MOST_EVENT: Final = 4_000_000
"""Bytes of one document of a stream; real ones have a few hundred, unless a tool's arguments come in one piece."""

MOST_ANSWER: Final = 64_000_000
"""Bytes of a whole answer: the longest that models write, a few hundred bytes around each token."""

MOST_REFUSAL: Final = 64_000
"""Bytes of a refusal that are read."""

REFUSAL_SECONDS: Final = 5.0
"""For what is told beyond the status of a refusal."""

ENDING: Final = 0.5
"""Seconds that an endpoint has to close a stream whose answer is whole."""

AT_A_TIME: Final = 8
"""Documents after which others get their turn: hundreds may come in one piece, and keys want to be heard meanwhile."""

FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError)

_T = TypeVar("_T")


class RefusedAnswer(ModelError):
    """A refusal with all that was told of it; whoever asked may know a remedy. Raised inside this package only."""

    def __init__(self, endpoint: ModelEndpoint, refusal: Refusal, wait: float | None) -> None:
        self.refusal, self.error = refusal, error_of(endpoint, refusal, wait)
        super().__init__(endpoint.entry, "refused")


class ModelConnections:
    """The connections to one endpoint; ``framing`` is how its streams are read."""

    def __init__(self, endpoint: ModelEndpoint, patience: RetryLimits, framing: StreamFraming) -> None:
        self.endpoint, self.patience, self._framing = endpoint, patience, framing
        self._client: httpx.AsyncClient | None = None
        self._preparing = asyncio.Lock()

    async def aclose(self) -> None:
        """Drop all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def documents(self, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Post ``body``; give each JSON document of the answer, then one None for the marker ``[DONE]``.

        An answer that is no stream is one document. Raises ModelError, a refusal as `RefusedAnswer`.
        """
        response = await self._answered(body)
        try:
            if _kind(response) == "application/json":
                yield self._document(await self._whole(response, MOST_EVENT))
                return
            async with aclosing(self._pieces(response)) as pieces:
                count = 0
                async for data in pieces:
                    yield None if data in ("[DONE]", b"[DONE]") else self._document(data)
                    count += 1
                    if count % AT_A_TIME == 0:
                        await asyncio.sleep(0)
        finally:
            await response.aclose()

    async def _answered(self, body: Mapping[str, Any]) -> httpx.Response:
        async with self._preparing:  # long messages are encoded, and certificates read: not on the event loop
            client, request = await asyncio.to_thread(self._prepared, body)
        response = await self._timed(client.send(request, stream=True), self.patience.first, ModelUnreachable)
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
        wait = told_wait({name.lower(): value for name, value in response.headers.items()}, datetime.now(UTC))
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                told = await self._whole(response, MOST_REFUSAL, cut=True)
        except (ModelError, TimeoutError):
            told = b""
        return RefusedAnswer(self.endpoint, Refusal.read(response.status_code, told), wait)

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
        chunks, seconds = response.aiter_raw(), self.patience.first
        while True:
            try:
                chunk = await self._timed(anext(chunks), seconds, ModelAnswerCut)
            except StopAsyncIteration:
                return
            yield chunk
            seconds = self.patience.idle

    async def _timed(self, waiting: Awaitable[_T], seconds: float, failure: type[ModelError]) -> _T:
        """What is waited for, or an exception of ours."""
        origin = self.endpoint.origin
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except (TimeoutError, httpx.ConnectTimeout) as error:
            seconds = self.patience.connect if isinstance(error, httpx.ConnectTimeout) else seconds
            raise failure(self.endpoint.entry, f"{origin} said nothing for {seconds:g} s; try again") from None
        except FAILURES as error:
            reason = self.endpoint.clean(str(error) or type(error).__name__, 120)
            what = "cannot be reached" if failure is ModelUnreachable else "broke off its answer"
            advice = self.endpoint.starting if failure is ModelUnreachable else "try again"
            raise failure(self.endpoint.entry, f"{origin} {what} ({reason}); {advice}") from None

    def _document(self, data: str | bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            text = data[:4000].decode("utf-8", "replace") if isinstance(data, bytes) else data[:4000]
            start = self.endpoint.clean(text, 80)
            raise ModelAnswerMalformed(
                self.endpoint.entry, f"{self.endpoint.origin} sent what is no JSON ({start}); try again"
            ) from None

    def _no_answer(self, what: str) -> ModelError:
        return ModelAnswerMalformed(self.endpoint.entry, f"{self.endpoint.origin} {what}; look at base_url")

    def _too_large(self, limit: int) -> ModelError:
        return ModelAnswerMalformed(
            self.endpoint.entry, f"{self.endpoint.origin} sent more than {size_text(limit)} at once; it was left there"
        )

    def _prepared(self, body: Mapping[str, Any]) -> tuple[httpx.AsyncClient, httpx.Request]:
        headers = {"Content-Type": "application/json", **self.endpoint.headers}
        content = json.dumps(body).encode()  # in ASCII: half a surrogate pair from a server has no UTF-8
        try:
            client = self._opened()
            return client, client.build_request("POST", self.endpoint.url, content=content, headers=headers)
        except (httpx.InvalidURL, ValueError, OSError) as error:  # a proxy or certificates that are none
            reason = self.endpoint.clean(str(error), 120)
            raise ModelUnreachable(
                self.endpoint.entry,
                f"{self.endpoint.origin} cannot be asked ({reason}); look at base_url, and at the proxy and the "
                "certificates that the environment names",
            ) from None

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            url = httpx.URL(self.endpoint.url)
            proxy = proxy_for(url)
            self._client = httpx.AsyncClient(
                verify=trusted_authorities(url, proxy),
                proxy=proxy,
                timeout=httpx.Timeout(None, connect=self.patience.connect),
                headers={"User-Agent": f"mcphost/{__version__}", "Accept-Encoding": "identity"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                follow_redirects=False,
                trust_env=False,
            )
        return self._client


def _kind(response: httpx.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


class StreamReader(Protocol):
    """What a vendor's documents mean, one after the other."""

    @property
    def ended(self) -> bool:
        """Does nothing more belong to the answer?"""

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        """The events of a document, None for ``[DONE]``. Raises ModelError for an error told in the stream."""

    def finish(self) -> Iterator[ProviderEvent]:
        """The last events. Raises ModelAnswerCut where the answer was not whole."""


async def events_of(
    exchanges: ModelConnections, body: Mapping[str, Any], reading: StreamReader
) -> AsyncGenerator[ProviderEvent, None]:
    """One exchange from its request to `AnswerFinished`. Raises ModelError, a refusal as `RefusedAnswer`."""
    async with aclosing(exchanges.documents(body)) as documents:
        async for document in documents:
            for event in reading.feed(document):
                yield event
            if reading.ended:
                await _to_the_end(documents)
                break
    for event in reading.finish():
        yield event


async def _to_the_end(documents: AsyncGenerator[Any, None]) -> None:
    """Read what may still follow, which is nothing, so that the connection serves the next request as well."""
    with suppress(TimeoutError, ModelError):
        async with asyncio.timeout(ENDING):
            async for _ in documents:
                break


async def persistently(
    endpoint: ModelEndpoint, patience: RetryLimits, attempt: Callable[[], AsyncGenerator[ProviderEvent, None]]
) -> AsyncGenerator[ProviderEvent, None]:
    """The events of ``attempt``, begun anew, after a wait that is told, while the model has no room.

    Only what has told nothing yet is begun anew. Raises ModelError.
    """
    waited, count = 0.0, 0
    while True:
        told = False
        try:
            async with aclosing(attempt()) as events:
                async for event in events:
                    told = told or not isinstance(event, TokenUsage)  # which is told again, and replaced
                    yield event
            return
        except ModelOverloaded as error:
            count += 1
            seconds = None if told else patience.wait(count, error.seconds, waited, random.random())
            if seconds is None:
                raise
            reason = str(error)
        yield RetryScheduled(seconds, count, patience.retries, reason)
        await asyncio.sleep(seconds)
        waited += seconds


Dialect = TypeVar("Dialect")
"""The ways in which servers of one API want to be asked: a value that can be compared and hashed."""


class HostedProvider(ABC, Generic[Dialect]):
    """A model of an API's, or of whoever speaks like it at ``base_url``; see `Provider`."""

    HOME: ClassVar[str]
    """The API's own address."""
    VERSION: ClassVar[str] = "/v1"
    """What follows an address that does not end in it."""
    PATH: ClassVar[str]
    """Where its answers are asked for, below its version."""
    CAPABILITIES: ClassVar[ModelCapabilities]
    """What its models take, where nothing else is known."""
    KEY_AT_HOME: ClassVar[bool] = True
    """Does its own address want a key?"""
    FRAMING: ClassVar[StreamFraming] = staticmethod(events)
    """How its streams are read."""

    def __init__(
        self,
        entry: str,
        model: str,
        *,
        key: str = "",
        base_url: str | None = None,
        plain_http: bool = False,
        patience: RetryLimits = RetryLimits(),  # noqa: B008 - a frozen value
        capabilities: ModelCapabilities | None = None,
        context_tokens: int | None = None,
    ) -> None:
        """``plain_http``: the user accepts that the key travels unencrypted to a host that is not this machine.

        ``context_tokens``: the most that it reads and writes for one answer; None: not known.
        """
        self.entry, self.capabilities = entry, capabilities or self.CAPABILITIES
        self.key_refused = False
        """Was its key not accepted? Another may be kept under the same name by now."""
        self._model, self._plain, self._context = model, plain_http, context_tokens
        self._key_needed = base_url is None and self.KEY_AT_HOME
        self._dialect = self._first_dialect(at_home=base_url is None)
        url = joined(base_url or self.HOME, self.VERSION, self.PATH)
        self._endpoint = ModelEndpoint(entry, url, key, self._headers(key))
        self._exchanges = ModelConnections(self._endpoint, patience, self.FRAMING)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """See `Provider.stream`."""
        checked(self._endpoint, key_needed=self._key_needed, plain=self._plain)
        check(self.entry, request, self.capabilities)
        patience, fitting = self._exchanges.patience, fitted(self.entry, request, self._context)
        async with aclosing(persistently(self._endpoint, patience, lambda: self._attempt(fitting))) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._exchanges.aclose()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and again in each other way that a refusal hints at; the one that is taken is kept.

        What a refusal hints at follows from how this request was asked, whatever others learned meanwhile.
        """
        names, dialect = tool_names(request), self._dialect
        tried = {dialect}
        while True:
            asking = events_of(self._exchanges, self._body(request, names, dialect), self._reading(request, names))
            try:
                async with aclosing(asking) as events:
                    async for event in events:
                        yield event
                return
            except RefusedAnswer as refused:
                self.key_refused |= refused.refusal.status == 401
                other = self._remedy(refused.refusal, dialect)
                if other is None or other in tried:
                    raise self._told(refused) from None
                tried.add(other)
                self._dialect = dialect = other

    @abstractmethod
    def _headers(self, key: str) -> Mapping[str, str]:
        """What every request carries; ``key`` may be empty."""

    @abstractmethod
    def _first_dialect(self, *, at_home: bool) -> Dialect:
        """How a server is asked of which nothing is known yet."""

    @abstractmethod
    def _body(self, request: ModelRequest, names: NameMapping, dialect: Dialect) -> dict[str, Any]:
        """The request as the API takes it, in this dialect."""

    @abstractmethod
    def _reading(self, request: ModelRequest, names: NameMapping) -> StreamReader:
        """What reads the answer to it."""

    def _remedy(self, refusal: Refusal, dialect: Dialect) -> Dialect | None:
        """The dialect to ask in instead of the one that was refused, where the refusal hints at one."""
        return None

    def _told(self, refused: RefusedAnswer) -> ModelError:
        """What a person is told of a refusal."""
        return refused.error
