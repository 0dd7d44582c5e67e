"""Sends single HTTP requests exactly as they are given, also wrong ones, and returns what came back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress

import httpx

from mcphost.errors import TransportError
from mcphost.transports.base import MessageObserver, ProbedAnswer
from mcphost.transports.http import redirects, responses
from mcphost.transports.http.endpoint import FAILURES, PhaseTimeouts, open_client, request_head, response_head
from mcphost.transports.http.failures import lost

LINGER = 1.0
"""Seconds that a stream may take to end after its answer."""


class HttpProbing:
    """Probes one URL; ``limit`` is the most bytes of a body."""

    def __init__(
        self,
        url: str,
        limit: int,
        *,
        headers: Mapping[str, str],
        auth: httpx.Auth | None,
        observer: MessageObserver,
    ) -> None:
        self._url, self._limit, self._observer = url, limit, observer
        self._client = open_client(url, PhaseTimeouts(), headers=headers, auth=auth)

    async def send(
        self, method: str, headers: Mapping[str, str], content: bytes | None, enough: Callable[[bytes], bool]
    ) -> ProbedAnswer:
        """Send once; read until the end, the limit, or shortly after ``enough`` is true of a piece of the body.

        Nothing of the body is read if it is true of an empty piece. The caller bounds the time.

        Raises a TransportError.
        """
        try:
            request = self._client.build_request(method, self._url, headers=headers, content=content)
            self._observer.noted("http", request_head(method, str(request.url), request.headers.multi_items()))
            if content is not None:
                self._observer.sent(content)
            response = await redirects.send(self._client, request)
            head = response_head(response.status_code, response.reason_phrase, response.headers.multi_items())
            self._observer.noted("http", head)
            async with aclosing(response):
                body, ended = await self._read(response, enough)
        except FAILURES as error:
            raise error if isinstance(error, TransportError) else lost(error, httpx.URL(self._url)) from None
        return ProbedAnswer(response.status_code, {**response.headers}, body, ended)

    async def _read(self, response: httpx.Response, enough: Callable[[bytes], bool]) -> tuple[bytes, bool]:
        if enough(b""):
            return b"", False
        body = bytearray()
        async with aclosing(responses.chunks(response)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > self._limit:
                    return bytes(body), False
                if enough(piece):
                    break
            else:
                return bytes(body), True
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    async for piece in pieces:
                        body += piece
                        if len(body) > self._limit:
                            return bytes(body), False
                    return bytes(body), True
        return bytes(body), False

    async def aclose(self) -> None:
        with suppress(*FAILURES):
            await self._client.aclose()
