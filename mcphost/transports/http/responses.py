"""Reads HTTP answers: what kind they are, their bodies within a limit, and what a refusal says.

Knows statuses, content types and codings. Refuses to know sessions, and what a message is for.

Specification: basic/transports, sending messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

import httpx

from mcphost.errors import AuthorizationRequired, HttpStatusError, InvalidResult, MessageTooLarge, TransportError
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.eras.revisions import Revision
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Message, Response, answered_by, decode_in_steps
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.decoding import coding_of
from mcphost.transports.tap import Tap
from mcphost.transports.time_slices import in_turns


class MessageReader:
    """Bytes to messages, for one connection."""

    def __init__(self, limits: TransportLimits, tap: Tap | None) -> None:
        self.limits = limits
        self._tap = tap
        self._batch_items = 0

    def agreed(self, revision: Revision) -> None:
        """From now on arrays are taken where the revision has them."""
        self._batch_items = self.limits.batch_items if revision.batches else 0

    async def messages(self, data: bytes) -> Sequence[Message | Malformed]:
        """The messages in a body, or in an event's data."""
        if self._tap is not None:
            self._tap.received(data)
        items, limits = self._batch_items, self.limits
        return await in_turns(
            decode_in_steps(data, batch_items=items, max_items=limits.message_items, max_depth=limits.json_depth)
        )

    def too_large(self, event: Overlong) -> Malformed:
        """What to make of an event over the limit."""
        reason = f"an event over the limit of {size_text(self.limits.message_bytes)}"
        if self._tap is not None:
            self._tap.noted("malformed", f"{reason}: {event.start.decode('utf-8', 'replace')}…")
        limit = self.limits.message_bytes
        return Malformed(reason, event.start, answers=answered_by(event.start), limit=limit)


JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

QUOTED: Final = 200
"""Characters of a body that are shown when it is not what was due."""

READ_TO_QUOTE: Final = 4096
"""Bytes read for them: they may stand for fewer characters."""

SPARE: Final = 64 << 10
"""Bytes of an unwanted body that are read so that its connection can be used again; more is not worth it."""


def media_type(response: httpx.Response) -> str:
    """The content type without its parameters, in lower case; empty where there is none."""
    named: str = response.headers.get("content-type", "")
    return named.partition(";")[0].strip().lower()


async def chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body as it comes, decoded, in pieces of a bounded size. Raises InvalidResult where it cannot be decoded."""
    try:
        coding = coding_of(response.headers.get("content-encoding", ""))
        async for chunk in response.aiter_raw():
            several = False
            for piece in coding.pieces(chunk):
                if several:
                    await asyncio.sleep(0)  # a few compressed bytes may stand for seconds of work
                several = True
                yield piece
    except ValueError as error:
        raise InvalidResult(f"the server's answer cannot be read: {error}") from None


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """The whole body, decoded. Raises MessageTooLarge, InvalidResult, and what the engine raises."""
    body = bytearray()
    async with aclosing(chunks(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > limit:
                raise MessageTooLarge(f"the server's answer is over the limit of {size_text(limit)}", limit)
    return bytes(body)


async def skip_body(response: httpx.Response) -> None:
    """Read what is left of a small body, so that its connection can be used again."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > SPARE:
            return


async def error_in(response: httpx.Response, incoming: MessageReader) -> Response | None:
    """The JSON-RPC error in the body of a refusal, if it holds one."""
    if media_type(response) != JSON:
        return None
    messages = await incoming.messages(await read_body(response, incoming.limits.message_bytes))
    found = [message for message in messages if isinstance(message, Response) and message.error]
    return found[0] if found else None


def challenge_in(response: httpx.Response) -> AuthorizationRequired | None:
    """The sign-in that a 401, or a 403 for want of a scope, asks for."""
    challenge = ", ".join(response.headers.get_list("www-authenticate"))
    wants_scope = response.status_code == 403 and "insufficient_scope" in challenge
    if response.status_code == 401 or wants_scope:
        return AuthorizationRequired(challenge, status=response.status_code)
    return None


async def unexpected(response: httpx.Response, *, hide: str = "", reason: str = "") -> HttpStatusError:
    """What to raise for an answer that is none: status, type, and how its body begins without ``hide``."""
    start = await _start_of(response)
    kind = show_line(response.headers.get("content-type", ""), 80)
    return HttpStatusError(response.status_code, kind, _shown(start, hide), reason=reason)


def refused(response: httpx.Response, error: ErrorObject, *, hide: str = "") -> TransportError:
    """What to raise where a JSON-RPC error came back to a message that has no answer."""
    words = f"{_shown(error.message, hide)} ({error.code})"
    return HttpStatusError(response.status_code, reason=words)


def _shown(text: str, hide: str) -> str:
    text = " ".join(text.split())
    text = text.replace(hide, "…") if hide else text
    return show_line(text if len(text) <= QUOTED else f"{text[:QUOTED]}…", 2 * QUOTED)


async def _start_of(response: httpx.Response) -> str:
    if response.is_stream_consumed:
        return ""
    start = b""
    try:
        async with aclosing(chunks(response)) as pieces:
            async for piece in pieces:
                start += piece[:READ_TO_QUOTE]
                if len(start) >= READ_TO_QUOTE:
                    break
    except (InvalidResult, httpx.HTTPError, httpx.StreamError, OSError):
        pass  # what came until then is shown
    return start.decode("utf-8", "replace")
