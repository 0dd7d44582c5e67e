"""One request to a model's endpoint over HTTP, and the events of its answer as they come.

Knows httpx, the limits of size and time, and how an exchange fails. Follows no redirect, keeps no cookie, decodes
nothing. Refuses to know what an event means.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, Protocol, TypeVar

import httpx

from mcphost import __version__
from mcphost.errors import ModelAnswerCut, ModelAnswerMalformed, ModelError, ModelOverloaded, ModelUnreachable
from mcphost.net.proxies import authorities, proxy_for
from mcphost.protocol.display import size_text
from mcphost.providers.base import ProviderEvent, RetryScheduled, TokenUsage
from mcphost.providers.endpoint import ModelEndpoint
from mcphost.providers.framings import Oversized, StreamFraming
from mcphost.providers.patience import RetryLimits, told_wait
from mcphost.providers.refusals import Refusal, error_of

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
                verify=authorities(url, proxy),
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
