"""Reads HTTP responses: their type, their body within a limit, and what a refusal says.

Of content codings only gzip and deflate are decoded, and never two at once: decompressed size must stay bounded.

Specification: basic/transports, sending messages.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any, Final, Protocol

import httpx

from mcphost.errors import (
    HELD_SIGN_IN,
    AuthorizationRequired,
    HeldSignIn,
    HttpStatusError,
    InvalidResult,
    MessageTooLarge,
    TransportError,
)
from mcphost.protocol.challenge import read_challenge
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Message, Response, answered_by, decode_in_steps
from mcphost.protocol.wire.strict_json import Refused, parse
from mcphost.redaction import MASK, mask_credentials, mask_doubtful
from mcphost.time_slices import in_turns
from mcphost.transports.base import MessageObserver, TransportLimits


class MessageReader:
    """Decodes bodies and events to messages, within the limits of one connection."""

    def __init__(self, limits: TransportLimits, observer: MessageObserver | None) -> None:
        self.limits = limits
        self._observer = observer
        self._batch_items = 0

    def agreed(self, revision: Revision) -> None:
        self._batch_items = self.limits.batch_items if revision.batches else 0

    async def messages(self, data: bytes) -> Sequence[Message | Malformed]:
        """The messages in a body or in the data of an event."""
        if self._observer is not None:
            self._observer.received(data)
        items, limits = self._batch_items, self.limits
        return await in_turns(
            decode_in_steps(data, batch_items=items, max_items=limits.message_items, max_depth=limits.json_depth)
        )

    def too_large(self, event: Overlong) -> Malformed:
        """Describe an event over the limit."""
        reason = f"an event over the limit of {size_text(self.limits.message_bytes)}"
        if self._observer is not None:
            self._observer.noted("malformed", f"{reason}: {event.start.decode('utf-8', 'replace')}…")
        limit = self.limits.message_bytes
        return Malformed(reason, event.start, answers=answered_by(event.start), limit=limit)


JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

QUOTED: Final = 200
"""Characters of an unexpected body that an error quotes."""

WORDS_SECONDS: Final = 2.0
"""Seconds that a sign-in waits for the body of the refusal; its headers say what to do."""

READ_TO_QUOTE: Final = 4096
"""Bytes read for the quotation, since a character may take several bytes."""

SPARE: Final = 64 << 10
"""Bytes of an unneeded body that are read to keep its connection; beyond that, reconnecting is cheaper."""


PIECE: Final = 64 << 10
"""Bytes of one decompressed piece at most."""

_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


def media_type(response: httpx.Response) -> str:
    """The content type without parameters, in lower case; empty without one."""
    named: str = response.headers.get("content-type", "")
    return named.partition(";")[0].strip().lower()


async def chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body as it arrives, decompressed, in bounded pieces. Raises InvalidResult if it cannot be decompressed."""
    try:
        coding = coding_of(response.headers.get("content-encoding", ""))
        async for chunk in response.aiter_raw():
            several = False
            for piece in coding.pieces(chunk):
                if several:
                    await asyncio.sleep(0)  # a few compressed bytes may expand to seconds of work
                several = True
                yield piece
    except ValueError as error:
        raise InvalidResult(f"the server's answer cannot be read: {error}") from None


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """The whole body, decompressed. Raises MessageTooLarge, InvalidResult, and what the engine raises."""
    body = bytearray()
    async with aclosing(chunks(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > limit:
                raise MessageTooLarge(f"the server's answer is over the limit of {size_text(limit)}", limit)
    return bytes(body)


async def skip_body(response: httpx.Response) -> None:
    """Read the rest of a small body, so that its connection can be reused."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > SPARE:
            return


async def read_refusal(response: httpx.Response, incoming: MessageReader) -> tuple[Response | None, bytes]:
    """The JSON-RPC error in the body of a refusal, None if it holds none, and the body as far as it was read."""
    if media_type(response) != JSON:
        return None, await _start_of(response)
    body = await read_body(response, incoming.limits.message_bytes)
    messages = await incoming.messages(body)
    found = [message for message in messages if isinstance(message, Response) and message.error]
    return (found[0] if found else None), body


async def challenge_in(response: httpx.Response) -> AuthorizationRequired | None:
    """The exception for a 401, or for a 403 because of a missing scope; else None."""
    header = _challenge(response)
    wants_scope = response.status_code == 403 and "insufficient_scope" in header
    if response.status_code != 401 and not wants_scope:
        return None
    challenge = read_challenge(header)
    words = challenge.description or await _brief_words(response) or ("" if wants_scope else challenge.error)
    held: HeldSignIn | None = response.extensions.get(HELD_SIGN_IN)
    return AuthorizationRequired(header, status=response.status_code, reason=_reason(response, words), held=held)


def _challenge(response: httpx.Response) -> str:
    return ", ".join(response.headers.get_list("www-authenticate"))


async def _brief_words(response: httpx.Response) -> str:
    """The words in the body of a refusal; empty for a page, or if they do not come at once."""
    try:
        async with asyncio.timeout(WORDS_SECONDS):
            return "" if media_type(response) == "text/html" else words_in(await _start_of(response))
    except TimeoutError:
        return ""


def _reason(response: httpx.Response, words: str) -> str:
    """Words about the credentials of a request, which may quote them."""
    _, _, token = response.request.headers.get("authorization", "").partition(" ")
    words = words.replace(token, MASK) if token else words
    return quoted(mask_doubtful(words[:READ_TO_QUOTE]), "")


async def unexpected(
    response: httpx.Response, body: bytes | None = None, *, hide: str = "", reason: str = ""
) -> HttpStatusError:
    """The exception for a response of the wrong status or type; quotes ``body`` (None: not read yet), not ``hide``."""
    words = words_in(await _start_of(response) if body is None else body)
    if not words.strip() and (described := read_challenge(_challenge(response)).description):
        words = _reason(response, described)
    kind = show_line(response.headers.get("content-type", ""), 80)
    reason = reason or _retry_after(response)
    return HttpStatusError(response.status_code, kind, quoted(words, hide), reason=reason)


def refused(response: httpx.Response, error: ErrorObject, *, hide: str = "") -> TransportError:
    """The exception for a JSON-RPC error that answers a notification or a response."""
    words = f"{quoted(error.message, hide)} ({error.code})"
    return HttpStatusError(response.status_code, reason=words)


def quoted(text: str, hide: str) -> str:
    """The start of a server's text, safe to show, without credentials and ``hide``."""
    text = mask_credentials(" ".join(text[:READ_TO_QUOTE].split()))
    text = text.replace(hide, "…") if hide else text
    return show_line(text if len(text) <= QUOTED else f"{text[:QUOTED]}…", 2 * QUOTED)


SAID_IN: Final = (
    "title",
    "error",
    "code",
    "error_description",
    "message",
    "msg",
    "detail",
    "details",
    "reason",
    "errors",
)
"""The members in which gateways, web frameworks and problem documents (RFC 9457) say what is wrong, in this order."""

MOST_SENTENCES: Final = 5
"""Sentences quoted of one body."""


def words_in(body: bytes) -> str:
    """The words of a body: the sentences in the JSON members meant for them, else all of its text."""
    sentences: list[str] = []
    if body.lstrip()[:1] in (b"{", b"["):
        with suppress(Refused):
            sentences = list(dict.fromkeys(islice(_sentences(parse(body[:SPARE], WORDS_DEPTH)), MOST_SENTENCES)))
    return ": ".join(sentences) or _text_in(body[:READ_TO_QUOTE])


def _text_in(start: bytes) -> str:
    text = start.decode("utf-8", "replace")
    odd = sum(letter == "\ufffd" or (letter < "\x1b" and not letter.isspace()) for letter in text)
    return text if odd * ODD_SHARE <= len(text) else "(bytes that are not text)"


ODD_SHARE: Final = 4
"""A body is not quoted if one character in this many is not text, as in compressed data; Latin-1 has fewer."""


WORDS_DEPTH: Final = 8
"""Maximum nesting of a body that is searched for sentences."""


def _sentences(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value.strip()
    elif isinstance(value, list):
        for each in value:
            yield from _sentences(each)
    elif isinstance(value, dict):
        members = {name.lower(): each for name, each in value.items()}
        if isinstance(where := members.get("loc"), list):  # of a web framework's check: which field it is about
            yield ".".join(map(str, where))
        for name in SAID_IN:
            yield from _sentences(members.get(name))


def _retry_after(response: httpx.Response) -> str:
    """A clause about when to try again, from the refusal; empty if it does not say."""
    given = response.headers.get("retry-after", "").strip()
    if not given:
        return ""
    return f"it asks to wait {given[:10]} s" if given.isdigit() else f"it asks to wait until {show_line(given, 40)}"


async def _start_of(response: httpx.Response) -> bytes:
    start = b""
    try:
        async with aclosing(chunks(response)) as pieces:
            async for piece in pieces:
                start += piece[:READ_TO_QUOTE]
                if len(start) >= READ_TO_QUOTE:
                    break
    except (InvalidResult, httpx.HTTPError, httpx.StreamError, OSError):
        pass  # quote what arrived
    return start


class _UnknownCoding(ValueError):
    """The body has a coding that was not requested."""


class Coding(Protocol):
    """Decodes the chunks of one body."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Decode ``chunk``, in pieces of at most `PIECE` bytes. Raises ValueError if it cannot be decoded."""


def coding_of(header: str) -> Coding:
    """The decoder for a Content-Encoding header. Raises ValueError for one that was not asked for."""
    name = header.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Deflated()
    raise _UnknownCoding(f"the content coding {name[:40]!r} was not asked for")


class _Plain:
    """No coding."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]


class _Deflated:
    """gzip, or deflate with or without the zlib header."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        while not self._inflater.eof:
            piece = self._inflate(chunk)
            yield piece
            chunk = self._inflater.unconsumed_tail
            if not chunk and len(piece) < PIECE:
                return

    def _inflate(self, chunk: bytes) -> bytes:
        try:
            piece = self._inflater.decompress(chunk, PIECE)
        except zlib.error as error:
            if self._begun:
                raise ValueError(f"the compressed body is broken: {error}") from None
            self._begun, self._inflater = True, zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate(chunk)
        self._begun = True
        return piece
