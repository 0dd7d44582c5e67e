"""The rows of the traffic list."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import INPUT_REQUIRED, Abandoned, MessageKind, TrafficMessage
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, columns

ROOMY: Final = 100
"""Cells from which a row has room for the kind of the message."""

PREVIEW_BYTES: Final = 4 << 10
"""Bytes of a message that are read for its row, since rows are drawn while the user scrolls."""

_REMEMBERED: Final = 2_000
_BODY: Final = re.compile(r'"(?:params|result|error)"\s*:\s*')
_SHORTER: Final = (
    (re.compile(r'^\{"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*'), r"\1 ", "}"),
    (re.compile(r'^\{"content"\s*:\s*\[\s*\{"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*'), "", "}]}"),
)
"""The start and end of nearly all calls and results; the row shows the text between them."""

_FAILURES: Final = frozenset({MessageKind.ERROR, MessageKind.MALFORMED, MessageKind.STRAY})


class Quotes(NamedTuple):
    """The texts of a message in its row, safe to show and without secrets."""

    title: str
    id: str
    preview: str


class TrafficRows:
    """Draws messages of ``book``."""

    def __init__(self, book: TrafficBook) -> None:
        self.book = book
        self.server_width = 0
        self._quotes: dict[int, Quotes] = {}

    def name_servers(self, servers: set[str]) -> None:
        """Make room for these names; a single one is not shown."""
        widths = [cell_len(show_line(name, 40)) for name in servers] if len(servers) > 1 else [0]
        self.server_width = min(16, max(widths))

    def row(self, message: TrafficMessage, width: int, search: Search) -> Content:
        """Time, direction, server, kind, method, id, size, latency, call and a preview.

        If several servers share little room, only an arrow shows the direction, and the id is left out.
        """
        roomy, style = width >= ROOMY, "$text-error" if failed(message) else ""
        server = min(self.server_width, 16 if roomy else 8)
        tight = bool(server) and not roomy
        arrow, span = direction(message), (1, 1) if tight else (5, 5)
        name, quotes = min(self.server_width, 5), self.quotes(message)
        cells = [
            Cell(self._marks(message), f"bold {style}".strip(), 2, 2),
            Cell(clock_text(message.time, milliseconds=True), "$foreground-muted", 12, 12),
            Cell(arrow[0] if tight else arrow, "$text-accent" if message.sent else "$text-primary", *span),
            Cell(show_line(message.server, 40), "$foreground-muted", name, server) if server else None,
            Cell(message.kind.value, style, 12, 12) if roomy else None,
            Cell(
                search.mark("" if roomy and quotes.title == message.kind.value else quotes.title),
                f"bold {style}".strip(),
                10,
                min(28, width // 7) if roomy else 15,
            ),
            None if tight else Cell(quotes.id, "$foreground-muted", 3, 9 if roomy else 4, "right", keep="end"),
            Cell(size_text(message.size), "", 6, 7, "right"),
            Cell(_latency(message), "", 7, 9 if roomy else 7, "right"),
            Cell("" if message.call is None else f"↗{message.call}", "$text-accent", 3, 4),
            Cell(search.mark(quotes.preview), style or "$foreground-muted", 0),
        ]
        return columns(width, [cell for cell in cells if cell is not None])

    def quotes(self, message: TrafficMessage) -> Quotes:
        """The quoted texts, computed once."""
        found = self._quotes.get(message.number)
        if found is None:
            if len(self._quotes) >= _REMEMBERED:
                self._quotes.clear()
            found = Quotes(title(self.book, message), shown_id(self.book, message), _preview(self.book, message))
            self._quotes[message.number] = found
        return found

    def _marks(self, message: TrafficMessage) -> str:
        return ("◆" if self.book.is_pinned(message) else " ") + ("✖" if failed(message) else " ")


def failed(message: TrafficMessage) -> bool:
    """True if the message reports a failure."""
    facts = message.facts
    if message.kind is MessageKind.HTTP:
        return (facts.code or 0) >= 400
    return facts.failed or facts.kind in _FAILURES or any(part.kind is MessageKind.ERROR for part in facts.parts)


def direction(message: TrafficMessage) -> str:
    """The arrow and the word, seen from mcphost."""
    return "→ out" if message.sent else "← in"


def title(book: TrafficBook, message: TrafficMessage) -> str:
    """The method without ``notifications/``; without a method, the kind."""
    facts = message.facts
    if facts.kind is MessageKind.BATCH:
        return f"batch of {len(facts.parts)}"
    if facts.kind is MessageKind.HTTP and facts.code is not None:
        return f"http {facts.code}"
    method = _masked(book, message.method[:1000]) if message.method else ""
    if message.probe:
        method = f"probe {method}"
    return show_line(method, 100).removeprefix("notifications/") or facts.kind.value


def shown_id(book: TrafficBook, message: TrafficMessage) -> str:
    """The id of a request or response; empty without one."""
    if isinstance(message.id, str):
        return show_line(_masked(book, message.id[:1000]), 60)
    return "" if message.id is None else str(message.id)


def _latency(message: TrafficMessage) -> str:
    if message.latency is not None:
        return duration_text(max(0.0, message.latency))
    is_open = message.partner is None and message.abandoned is not Abandoned.EXPORTED
    return " ".join(message.status) if message.kind is MessageKind.REQUEST and is_open else ""


def needs_text(message: TrafficMessage) -> str:
    """The inputs that an ``input_required`` result needs, and its round or that of a retry; empty for others."""
    facts = message.facts
    needs = ", ".join(f"{count} × {show_line(method, 60)}" for method, count in facts.needs)
    words = [f"needs {needs}"] if needs else ["needs nothing but another try"] if message.status == NEEDS_INPUT else []
    if facts.state is not None:
        words.append(f"requestState {facts.state}")
    return " · ".join([f"round {message.round}", *words]) if words or message.round > 1 else ""


NEEDS_INPUT: Final = (INPUT_REQUIRED,)


def _preview(book: TrafficBook, message: TrafficMessage) -> str:
    if message.status == NEEDS_INPUT:
        return needs_text(message)
    text = book.raw(message) if len(message.data) <= PREVIEW_BYTES else _start(book, message)
    body = None if message.note else _BODY.search(text, 0, 400)
    if body is None:
        return show_line(text, 300)
    text = text[body.end() :].removesuffix("}")
    for beginning, instead, end in _SHORTER:
        if beginning.match(text):
            text = beginning.sub(instead, text).removesuffix(end)
    return show_line(text, 300)


def _start(book: TrafficBook, message: TrafficMessage) -> str:
    """The start of a long message. Only whole secrets are recognised, so a word that is cut or holds an escape is left
    out.
    """
    start = message.data[:PREVIEW_BYTES].partition(b"\\")[0]
    end = max(start.rfind(b" "), start.rfind(b'"')) + 1
    return f"{_masked(book, start[:end].decode('utf-8', 'replace'))}…"


def _masked(book: TrafficBook, text: str) -> str:
    """Mask the secrets in a part of a message."""
    data = text.encode("utf-8", "replace")
    return book.raw(TrafficMessage(0, 0.0, 0.0, "", 0, False, "", data, len(data), None))
