"""A frame of the traffic as one line of the pane.

Knows marks, columns and the first words of a body. Text from a frame is shown without its secrets only.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.frames import Frame, FrameKind
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.ranking import Search
from mcphost.tui.widgets.columns import Cell, columns

ROOMY: Final = 100
"""Cells from which a row has room for the kind of a frame, and for more of its method."""

PREVIEW_BYTES: Final = 4 << 10
"""Bytes of a frame that are read for its line: rows are drawn while somebody scrolls."""

_REMEMBERED: Final = 2_000
_BODY: Final = re.compile(r'"(?:params|result|error)"\s*:\s*')
_SHORTER: Final = (
    (re.compile(r'^\{"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*'), r"\1 ", "}"),
    (re.compile(r'^\{"content"\s*:\s*\[\s*\{"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*'), "", "}]}"),
)
"""How nearly all calls and results begin and end: what differs comes between."""

_FAILURES: Final = frozenset({FrameKind.ERROR, FrameKind.MALFORMED, FrameKind.STRAY})


class Words(NamedTuple):
    """What a row quotes of its frame, safe to show and without secrets."""

    title: str
    id: str
    preview: str


class TrafficRows:
    """Draws frames of ``book``; ``servers`` names them where there are several."""

    def __init__(self, book: TrafficBook) -> None:
        self.book = book
        self.server_width = 0
        self.search = Search()
        """The words that are marked."""
        self._words: dict[int, Words] = {}

    def name_servers(self, servers: set[str]) -> None:
        """Make room for these names, or none for a single one."""
        widths = [cell_len(show_line(name, 40)) for name in servers] if len(servers) > 1 else [0]
        self.server_width = min(16, max(widths))

    def row(self, frame: Frame, width: int) -> Content:
        """Time, direction, server, kind, method, id, size, latency, call, and how it begins.

        Where there are several servers and little room, the arrow alone tells the direction, and the frame its id.
        """
        roomy, style = width >= ROOMY, "$text-error" if failed(frame) else ""
        server = min(self.server_width, 16 if roomy else 8)
        tight = bool(server) and not roomy
        arrow, span = direction(frame), (1, 1) if tight else (5, 5)
        name, words = min(self.server_width, 5), self.words(frame)
        cells = [
            Cell(self._marks(frame), f"bold {style}".strip(), 2, 2),
            Cell(clock(frame.time), "$text-muted", 12, 12),
            Cell(arrow[0] if tight else arrow, "$text-accent" if frame.sent else "$text-primary", *span),
            Cell(show_line(frame.server, 40), "$text-muted", name, server) if server else None,
            Cell(frame.kind.value, style, 12, 12) if roomy else None,
            Cell(
                self.search.mark("" if roomy and words.title == frame.kind.value else words.title),
                f"bold {style}".strip(),
                10,
                min(28, width // 7) if roomy else 15,
            ),
            None if tight else Cell(words.id, "$text-muted", 3, 9 if roomy else 4, "right", keep="end"),
            Cell(size_text(frame.size), "", 6, 7, "right"),
            Cell(_latency(frame), "", 7, 9 if roomy else 7, "right"),
            Cell("" if frame.call is None else f"↗{frame.call}", "$text-accent", 3, 4),
            Cell(self.search.mark(words.preview), style or "$text-muted", 0),
        ]
        return columns(width, [cell for cell in cells if cell is not None])

    def words(self, frame: Frame) -> Words:
        """What is quoted of it; found out once."""
        found = self._words.get(frame.number)
        if found is None:
            if len(self._words) >= _REMEMBERED:
                self._words.clear()
            found = Words(title(self.book, frame), shown_id(self.book, frame), _preview(self.book, frame))
            self._words[frame.number] = found
        return found

    def _marks(self, frame: Frame) -> str:
        return ("◆" if self.book.is_pinned(frame) else " ") + ("✖" if failed(frame) else " ")


def failed(frame: Frame) -> bool:
    """Does it tell of a failure? Told by a mark and a colour."""
    facts = frame.facts
    if frame.kind is FrameKind.HTTP:
        return (facts.code or 0) >= 400
    return facts.failed or facts.kind in _FAILURES or any(part.kind is FrameKind.ERROR for part in facts.parts)


def direction(frame: Frame) -> str:
    """The arrow and the word, seen from mcphost."""
    return "→ out" if frame.sent else "← in"


def title(book: TrafficBook, frame: Frame) -> str:
    """The method, without what all notifications begin with; what has none is called by its kind."""
    facts = frame.facts
    if facts.kind is FrameKind.BATCH:
        return f"batch of {len(facts.parts)}"
    if facts.kind is FrameKind.HTTP and facts.code is not None:
        return f"http {facts.code}"
    method = _masked(book, frame.method[:1000]) if frame.method else ""
    return show_line(method, 100).removeprefix("notifications/") or facts.kind.value


def shown_id(book: TrafficBook, frame: Frame) -> str:
    """The id of a request or response; empty where there is none."""
    if isinstance(frame.id, str):
        return show_line(_masked(book, frame.id[:1000]), 60)
    return "" if frame.id is None else str(frame.id)


def _latency(frame: Frame) -> str:
    if frame.latency is not None:
        return duration_text(max(0.0, frame.latency))
    return "waiting" if frame.kind is FrameKind.REQUEST and frame.partner is None else ""


def _preview(book: TrafficBook, frame: Frame) -> str:
    text = book.raw(frame) if len(frame.data) <= PREVIEW_BYTES else _start(book, frame)
    body = None if frame.note else _BODY.search(text, 0, 400)
    if body is None:
        return show_line(text, 300)
    text = text[body.end() :].removesuffix("}")
    for beginning, instead, end in _SHORTER:
        if beginning.match(text):
            text = beginning.sub(instead, text).removesuffix(end)
    return show_line(text, 300)


def _start(book: TrafficBook, frame: Frame) -> str:
    """The start of a long frame. A secret is only found whole: a word that is cut, or holds an escape, is left out."""
    start = frame.data[:PREVIEW_BYTES].partition(b"\\")[0]
    end = max(start.rfind(b" "), start.rfind(b'"')) + 1
    return f"{_masked(book, start[:end].decode('utf-8', 'replace'))}…"


def _masked(book: TrafficBook, text: str) -> str:
    """A part of a frame without its secrets."""
    data = text.encode("utf-8", "replace")
    return book.raw(Frame(0, 0.0, 0.0, "", 0, False, "", data, len(data), None))


def clock(moment: float) -> str:
    """The local time with milliseconds; a clock set to nonsense is no reason to fail."""
    return f"{_second(int(moment // 1))}.{int(moment % 1 * 1000):03}"


@lru_cache(maxsize=512)
def _second(second: int) -> str:
    try:
        return f"{datetime.fromtimestamp(second):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--"
