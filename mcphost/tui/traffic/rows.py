"""The rows of the traffic list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import INPUT_REQUIRED, Abandoned, MessageKind, TrafficMessage
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, columns

ROOMY: Final = 100
"""Cells from which a row has room for the kind of the message, and for the words of its direction."""

SHOWS_IDS: Final = 140
"""Cells from which a row has room for the id."""

METHODS: Final = range(12, 27)
"""Cells of the method: ``resources/templates/list`` is whole, and so is ``notification`` where a message has none."""

PROBE: Final = "probe "

PREVIEW_BYTES: Final = 4 << 10
"""Bytes of a message that are read for its row, since rows are drawn while the user scrolls."""

_REMEMBERED: Final = 2_000
_BODY: Final = re.compile(r'"(?:params|result|error)"\s*:\s*')
_SHORTER: Final = (
    (re.compile(r'^\{"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*'), r"\1 ", "}"),
    (re.compile(r'^\{"content"\s*:\s*\[\s*\{"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*'), "", "}]}"),
)
"""The start and end of nearly all calls and results; the row shows the text between them."""

_ID: Final = 6
_RIGHT: Final = frozenset({_ID, 7, 8})
"""The columns of numbers."""

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
        self.server_width, self.method_width = 0, METHODS[0]
        self._quotes: dict[int, Quotes] = {}

    def name_servers(self, servers: set[str]) -> None:
        """Make room for these names; a single one is not shown."""
        widths = [cell_len(show_line(name, 40)) for name in servers] if len(servers) > 1 else [0]
        self.server_width = min(16, max(widths))

    def name_methods(self, messages: Iterable[TrafficMessage]) -> None:
        """Make room for the methods of these messages."""
        longest = max((len(_short(each.method)) + len(PROBE) * each.probe for each in messages), default=0)
        self.method_width = min(METHODS[-1], max(self.method_width, longest))

    def row(self, message: TrafficMessage, width: int, search: Search, *, ids: bool = False) -> Content:
        """Time, direction, server, kind, method, id, size, latency, call and a preview.

        In little room only an arrow shows the direction, and kind and id are left out; ``ids`` keeps the id.
        """
        roomy, style, quotes = width >= ROOMY, "$text-error" if failed(message) else "", self.quotes(message)
        way = direction(message)
        return self._columns(
            width,
            ids,
            (self._marks(message), f"bold {style}".strip()),
            (clock_text(message.time, milliseconds=True), "$foreground-muted"),
            (way if roomy else way[0], "$text-accent" if message.sent else "$text-primary"),
            (short_place(show_line(message.place, 40), self._server_cells(width)), "$foreground-muted"),
            (message.kind.value, style),
            (
                search.mark("" if roomy and quotes.title == message.kind.value else quotes.title),
                f"bold {style}".strip(),
            ),
            (quotes.id, "$foreground-muted"),
            (size_text(message.size), ""),
            (_latency(message), ""),
            ("" if message.call is None else f"↗{message.call}", "$text-accent"),
            (_with_waits(message, search.mark(quotes.preview)), style or "$foreground-muted"),
        )

    def head(self, width: int, *, ids: bool = False) -> Content:
        """The heads of the columns, in the words of the filter where it has them."""
        way = "dir" if width >= ROOMY else ""
        words = ("", "time", way, "server", "kind", "method", "id", "size", "latency", "call", "content")
        return self._columns(width, ids, *((word, "") for word in words))

    def _columns(self, width: int, ids: bool, *cells: tuple[str | Content, str]) -> Content:
        """Place a text and its style in each column; what has no room has no width."""
        roomy, server = width >= ROOMY, self._server_cells(width)
        method = min(self.method_width, max(10, width // 3))
        bounds: tuple[tuple[int, int | None], ...] = (
            (2, 2),
            (12, 12),
            (5, 5) if roomy else (1, 1),
            (min(server, 5), server),
            (12, 12) if roomy else (0, 0),
            (method, method),
            (3, 9 if roomy else 4) if ids or width >= SHOWS_IDS else (0, 0),
            (6, 7),
            (7, 9 if roomy else 7),
            (4, 4),
            (8, None),
        )
        return columns(
            width,
            [
                Cell(*cell, *bound, "right" if place in _RIGHT else "left", "end" if place == _ID else "start")
                for place, (cell, bound) in enumerate(zip(cells, bounds, strict=True))
            ],
        )

    def _server_cells(self, width: int) -> int:
        return min(self.server_width, 16 if width >= ROOMY else 8)

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


def short_place(place: str, cells: int) -> str:
    """A server's name, or ``agent>server``, of which the agent is cut first."""
    agent, sign, server = place.rpartition(">")
    if not sign or cell_len(place) <= cells:
        return place
    room = cells - cell_len(server) - len("…>")
    return f"{set_cell_size(agent, room)}…>{server}" if room > 0 else server


def failed(message: TrafficMessage) -> bool:
    """True if the message reports a failure."""
    facts = message.facts
    if message.kind is MessageKind.HTTP:
        return (facts.code or 0) >= 400
    return facts.failed or facts.kind in _FAILURES or any(part.kind is MessageKind.ERROR for part in facts.parts)


def direction(message: TrafficMessage) -> str:
    """The arrow and the word, seen from mcphost or an agent; the arrow is dashed where a gate wrote the message."""
    out, into = ("⇢ out", "⇠ in") if message.injected else ("→ out", "← in")
    return out if message.sent else into


def waits_text(message: TrafficMessage) -> str:
    """For whom the call of an agent waited, such as ``you 40 s · server 1.1 s``; empty for what no gate held."""
    if message.waits is None:
        return ""
    found = {"you": message.waits.waited_for_you, "server": message.waits.waited_for_server}
    return " · ".join(f"{name} {duration_text(seconds)}" for name, seconds in found.items() if seconds is not None)


def _with_waits(message: TrafficMessage, preview: Content) -> Content:
    waits = waits_text(message)
    return Content.assemble((f"{waits} │ ", "$text-accent"), preview) if waits else preview


def title(book: TrafficBook, message: TrafficMessage) -> str:
    """The method without ``notifications/``; without a method, the kind."""
    facts = message.facts
    if facts.kind is MessageKind.BATCH:
        return f"batch of {len(facts.parts)}"
    if facts.kind is MessageKind.HTTP and facts.code is not None:
        return f"http {facts.code}"
    method = _masked(book, message.method[:1000]) if message.method else ""
    if message.probe:
        method = f"{PROBE}{method}"
    return _short(show_line(method, 100)) or facts.kind.value


def _short(method: str) -> str:
    return method.removeprefix("notifications/")


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
