"""A message of the traffic in full: its facts, and its text, laid out or as it came."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import Abandoned, MessageKind, TrafficMessage, metadata_words
from mcphost.protocol.display import duration_text, show, show_line, size_text
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.json_text import LINES, json_lines, json_spans, parse
from mcphost.tui.kit.search import SearchArea
from mcphost.tui.kit.text_view import Spans, TextView
from mcphost.tui.traffic.rows import direction, failed, needs_text, shown_id, title, waits_text

AT_ONCE: Final = 100_000
"""Bytes that are laid out at once; longer messages are laid out in a thread."""

NO_ANSWER: Final = {
    Abandoned.CANCELLED.value: "not answered: cancelled",
    Abandoned.LOST.value: "not answered: connection lost",
    Abandoned.REPLACED.value: "replaced by another that listens",
    Abandoned.EXPORTED.value: "not answered",
}

_HEADER: Final = re.compile(r"^[\w!#$%&'*+.^`|~-]+:")
_EMPTY: Final = "No message selected. enter opens the one under the cursor."


class MessageLayout(NamedTuple):
    """Lines that are safe to show, and whether they are JSON."""

    lines: list[str]
    is_json: bool


class MessageText(TextView):
    """JSON and HTTP headers are coloured."""

    HELP = "The text of a message."
    is_json = False
    is_head = False

    def spans_of(self, number: int, text: str) -> Spans:
        if self.is_json:
            return json_spans(text)
        name = _HEADER.match(text) if self.is_head and number else None
        return ((0, name.end(), "key"),) if name else ()


class TrafficDetail(SearchArea):
    DEFAULT_CSS = """
    TrafficDetail {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
        & > #message-facts { height: auto; padding: 0 1; color: $foreground; }
        & > MessageText { height: 1fr; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.message: TrafficMessage | None = None
        self.raw = False
        self._facts = Static(markup=False, id="message-facts")
        self.text = MessageText()

    def compose(self) -> ComposeResult:
        self.border_title = "Message"
        yield self._facts
        yield self.text
        yield from super().compose()

    def show_message(self, book: TrafficBook, message: TrafficMessage | None) -> None:
        self.message = message
        self.show_facts(book)
        self.forget_search()
        if message is None:
            self._load(MessageLayout([_EMPTY], False))
        elif len(message.data) <= AT_ONCE:
            self._load(lay_out(book, message, self.raw))
        else:
            self._load(MessageLayout(["reading…"], False))
            _: Worker[None] = self.run_worker(partial(self._read, book, message), exclusive=True)

    def show_facts(self, book: TrafficBook) -> None:
        """Update the facts: the message may have been answered or pinned."""
        self._facts.update("" if self.message is None else facts_of(book, self.message))

    async def _read(self, book: TrafficBook, message: TrafficMessage) -> None:
        laid = await asyncio.to_thread(lay_out, book, message, self.raw)
        if self.is_attached and self.message is message:
            self._load(laid)

    def _load(self, laid: MessageLayout) -> None:
        self.text.is_json = laid.is_json
        self.text.is_head = self.message is not None and self.message.kind is MessageKind.HTTP
        self.text.load(laid.lines)


def lay_out(book: TrafficBook, message: TrafficMessage, raw: bool) -> MessageLayout:
    """The message's text without secrets. Slow for large messages: call it in a thread."""
    text = book.raw(message)
    try:
        lines, more = json_lines(parse("" if raw else text))
    except ValueError:
        return MessageLayout(show(text).split("\n"), False)
    return MessageLayout([*lines, f"⟨… more than {LINES:,} lines: y copies all⟩"] if more else lines, True)


def facts_of(book: TrafficBook, message: TrafficMessage) -> Content:
    """The facts of a message: two lines, those about headers that repeat its body, and one about its partner."""
    mark = ("✖ " if failed(message) else "", "bold $text-error")
    lines = [
        Content.assemble(mark, (f"{direction(message)} · {message.kind.value} · {title(book, message)}", "bold")),
        Content(" · ".join(word for word in _words(book, message) if word)),
        *_waits(message),
        *_mirrors(book, message),
        *_partner(book, message),
    ]
    return Content("\n").join(lines)


def _words(book: TrafficBook, message: TrafficMessage) -> Iterator[str]:
    yield show_line(message.place, 60)
    yield f"{date_text(message.time)} {clock_text(message.time, milliseconds=True)}"
    yield f"id {shown_id(book, message)}" if message.id is not None else ""
    yield f"{message.size:,} bytes"
    yield f"only the first {size_text(len(message.data))} kept" if message.cut else ""
    yield NO_ANSWER.get(" ".join(message.status), " ".join(message.status))
    yield needs_text(message)
    yield "" if message.latency is None else duration_text(max(0.0, message.latency))
    yield "" if message.call is None else f"call {message.call}"
    yield f"connection {message.connection}" if message.connection > 1 else ""
    yield "◆ pinned" if book.is_pinned(message) else ""
    yield "written by mcphost" if message.injected else ""


def _waits(message: TrafficMessage) -> Iterator[Content]:
    """The three times of a call that a gate held: the agent's, the user's and the server's."""
    if waits := waits_text(message):
        total = "" if message.latency is None else f"agent {duration_text(max(0.0, message.latency))} · "
        yield Content.styled(f"waited: {total}{waits}", "$text-accent")


REFUSED: Final = frozenset({-32020, -32021})
"""Errors that find fault with how the request was sent."""


def _mirrors(book: TrafficBook, message: TrafficMessage) -> Iterator[Content]:
    """The headers of a modern request beside its values; also below an error that finds fault with them."""
    request: TrafficMessage | None = message
    if message.facts.code in REFUSED:
        request = book.partner(message)
        yield Content.styled("The request, as mcphost sent it:", "$foreground-muted")
    found = [] if request is None else book.mirrors(request)
    agreeing = [each for each in found if each.agrees]
    if agreeing:
        yield Content.styled(show_line(" · ".join(map(str, agreeing)), 600), "$foreground-muted")
    for each in found:
        if not each.agrees:
            yield Content.styled(f"≠ {show_line(str(each), 300)}", "bold $text-error")
    if request is not None and (words := metadata_words(book.raw(request) if len(request.data) <= AT_ONCE else "")):
        yield Content.styled(show_line(f"_meta: {words}", 400), "$foreground-muted")


def _partner(book: TrafficBook, message: TrafficMessage) -> Iterator[Content]:
    if message.partner is None:
        return
    partner = book.partner(message)
    words = "the other message of this pair is no longer kept" if partner is None else f"r opens {_described(partner)}"
    yield Content.styled(words, "$foreground-muted")


def _described(message: TrafficMessage) -> str:
    at = clock_text(message.time, milliseconds=True)
    return f"its {message.kind.value}: {direction(message)} at {at}, {size_text(message.size)}"
