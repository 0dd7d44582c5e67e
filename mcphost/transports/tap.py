"""What a transport tells of the bytes it sends and takes, so that every one of them can be looked at.

Knows what went over the wire and when a header's value must not be seen. Refuses to know what a message means, who
keeps it, and for how long. A tap is called for each message, so that it must be cheap: it keeps, and looks later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

from mcphost.redaction import MASK, is_secret_header, safe_url

NoteKind = Literal["stderr", "stray", "malformed", "http"]
"""What was no message by itself: a line of stderr, text amid messages, what was too large to take, an HTTP head."""

HEADERS: Final = 100
"""Headers of one head that are told; more serve nobody."""

HEADER_CHARACTERS: Final = 1000
"""Characters of one header's value that are told."""


class Tap(Protocol):
    """Told by a transport what passed, in order. Called synchronously: may neither wait nor raise."""

    def sent(self, data: bytes) -> None:
        """One message as it goes out, without its newline or frame."""

    def received(self, data: bytes) -> None:
        """One message as it came, or the text that stood in its place."""

    def noted(self, kind: NoteKind, text: str) -> None:
        """What belongs between the messages. HTTP heads are written by `request_head` and `response_head`."""


Headers = Iterable[tuple[str, str]]


def request_head(method: str, url: str, headers: Headers, *, about: str = "") -> str:
    """``POST https://…`` and its headers, a line each, for `Tap.noted`; no secret is left in it.

    ``about`` is what there is to say of this request, in words of ours; it ends the first line.
    """
    return "\n".join((f"{method} {safe_url(url)}{f'  ({about})' if about else ''}", *_lines(headers)))


def response_head(status: int, reason: str, headers: Headers) -> str:
    """``HTTP 200 OK`` and its headers, a line each, for `Tap.noted`; no secret is left in it."""
    return "\n".join((f"HTTP {status} {reason}".rstrip(), *_lines(headers)))


def _lines(headers: Headers) -> Iterable[str]:
    for number, (name, value) in enumerate(headers):
        if number == HEADERS:
            yield "…"
            return
        yield f"{name}: {_shown(name, value)}"


def _shown(name: str, value: str) -> str:
    if is_secret_header(name):
        return MASK
    return safe_url(value if len(value) <= HEADER_CHARACTERS else f"{value[:HEADER_CHARACTERS]}…")
