"""Observes the bytes that a transport sends and receives, for the traffic view.

A tap is called for each message, so it must be cheap: it stores now and interprets later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

from mcphost.redaction import MASK, is_secret_header, safe_url

NoteKind = Literal["stderr", "stray", "malformed", "http"]
"""What is no message: a line of stderr, stray text, a message over the limit, an HTTP head."""

HEADERS: Final = 100
"""Headers of one head that are reported."""

HEADER_CHARACTERS: Final = 1000
"""Characters of one header value that are reported."""


class Tap(Protocol):
    """Observes one transport, in order. Called synchronously: may neither block nor raise."""

    def sent(self, data: bytes) -> None:
        """One message was sent; ``data`` is without newline or framing."""

    def received(self, data: bytes) -> None:
        """One message was received, or stray text in its place."""

    def noted(self, kind: NoteKind, text: str) -> None:
        """Something else happened. `request_head` and `response_head` write HTTP heads."""


Headers = Iterable[tuple[str, str]]


def request_head(method: str, url: str, headers: Headers, *, about: str = "") -> str:
    """``POST https://…`` and its headers, one per line, secrets masked, for `Tap.noted`.

    ``about`` is a remark at the end of the first line.
    """
    return "\n".join((f"{method} {safe_url(url)}{f'  ({about})' if about else ''}", *_lines(headers)))


def response_head(status: int, reason: str, headers: Headers) -> str:
    """``HTTP 200 OK`` and its headers, one per line, secrets masked, for `Tap.noted`."""
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
