"""The list of frames with its filter: followed, sorted, cleared."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import EXAMPLES, TrafficFilter, parse_traffic_filter
from mcphost.host.traffic.message import INPUT_REQUIRED, Abandoned, MessageKind, TrafficMessage
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, RowList, columns

SLICE: Final = 0.02
"""Seconds for which unseen frames are paired before the screen gets its turn."""

STALE_FRAMES: Final = 2_000
STALE_BYTES: Final = 32 << 20
"""How much the list may hold that the book has evicted; reading everything again is slow."""

_NUMBER: Final = attrgetter("number")


class FrameOrder(Enum):
    """Frames as they passed, or the largest first."""

    TIME = "time"
    LATENCY = "latency"
    SIZE = "size"

    @property
    def next(self) -> FrameOrder:
        """The next order, in a circle."""
        orders = list(FrameOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


_ORDER_WORDS: Final = {FrameOrder.LATENCY: "slowest first", FrameOrder.SIZE: "largest first"}

_LARGEST: Final[dict[FrameOrder, Callable[[TrafficMessage], tuple[float, int]]]] = {
    FrameOrder.LATENCY: lambda frame: (1.0 if frame.latency is None else -frame.latency, frame.number),
    FrameOrder.SIZE: lambda frame: (-float(frame.size), frame.number),
}


class TrafficFeed:
    """Fills ``rows`` from a book. Sorted by anything but time the list stands still, and new frames are counted."""

    def __init__(self, rows: RowList[TrafficMessage], book: TrafficBook) -> None:
        self._rows, self.book = rows, book
        self.filter, self.order = TrafficFilter(), FrameOrder.TIME
        self.servers: set[str] = set()
        self.total = self.unseen = self.cleared = 0
        self._last_number = self._evicted = self._added_bytes = self._disconnects = 0

    def show_book(self, book: TrafficBook) -> None:
        self.book, self.servers, self.cleared, self._last_number = book, set(), 0, 0
        self._rows.set_items(())

    def passes(self, frame: TrafficMessage) -> bool:
        kept = frame.number > self.cleared or self.book.is_pinned(frame)
        return kept and self.filter.passes(frame)

    def refresh(self) -> bool:
        """Take in new frames; return False if there are so many that it should be called again soon."""
        if not self.book.pair(SLICE):
            return False
        if not self._last_number or self._outdated() or self._stale():
            self.rebuild()
            return True
        fresh = self.book.since(self._last_number)
        if fresh:
            self._add(fresh)
        return True

    def rebuild(self) -> None:
        """Read all frames again."""
        kept = self.book.since(0)
        self._remember(kept)
        self.total, self.unseen, self._added_bytes = len(kept), 0, 0
        self._evicted = self._evictions()
        shown = [frame for frame in kept if self.passes(frame)]
        if self.order is not FrameOrder.TIME:
            shown.sort(key=_LARGEST[self.order])
        self._rows.set_items(shown, keep=_NUMBER)

    def clear(self) -> None:
        """Empty the view; the book keeps the frames."""
        self.cleared = self._last_number
        self.rebuild()

    def place_of(self, frame: TrafficMessage) -> int | None:
        """The row of a frame, if it is listed."""
        if self.order is FrameOrder.TIME:
            place = self._place(frame)
            return place if self._has(place, frame) else None
        return next((place for place, each in enumerate(self._rows.items) if each.number == frame.number), None)

    def _add(self, fresh: list[TrafficMessage]) -> None:
        self._remember(fresh)
        self.total += len(fresh)
        shown = [frame for frame in fresh if self.passes(frame)]
        if not self._rows.following:
            self.unseen += len(shown)
        if self.order is FrameOrder.TIME:
            self._added_bytes += sum(len(frame.data) for frame in shown)
            self._update_requests(fresh)
            self._rows.append(shown)

    def _update_requests(self, fresh: list[TrafficMessage]) -> None:
        """Add or remove requests whose kind has changed by their response."""
        if not self.filter.tests:
            return
        answered = {frame.partner for frame in fresh if frame.partner is not None and frame.partner < fresh[0].number}
        requests = [frame for number in answered if (frame := self.book.message(number))]
        changed = [each for each in requests if self._has(self._place(each), each) != self.passes(each)]
        if changed:
            self._rows.set_items(_toggled(self._rows.items, changed))

    def _place(self, frame: TrafficMessage) -> int:
        return bisect_left(self._rows.items, frame.number, key=_NUMBER)

    def _has(self, place: int, frame: TrafficMessage) -> bool:
        return place < len(self._rows.items) and self._rows.items[place].number == frame.number

    def _remember(self, frames: list[TrafficMessage]) -> None:
        if frames:
            self._last_number = frames[-1].number
            self.servers |= {frame.server for frame in frames}

    def _outdated(self) -> bool:
        """Has a connection ended, so that the kind of its requests has changed?"""
        ended = self._disconnects != self.book.disconnects
        self._disconnects = self.book.disconnects
        if ended:
            self._rows.refresh()
        return ended and bool(self.filter.tests)

    def _stale(self) -> bool:
        """Does the list hold too much that the book has evicted?"""
        if self.order is not FrameOrder.TIME:
            return False
        gone = self._evictions() - self._evicted
        lost_track = self.book.message(self._last_number) is None
        many = gone > max(STALE_FRAMES, len(self._rows.items) // 4)
        return lost_track or many or bool(gone and self._added_bytes > STALE_BYTES)

    def _evictions(self) -> int:
        return sum(map(self.book.evicted, self.servers))


def _toggled(items: Iterable[TrafficMessage], changed: Iterable[TrafficMessage]) -> list[TrafficMessage]:
    """The items in order, with those of ``changed`` added if missing and removed if present."""
    found = {frame.number: frame for frame in items}
    for frame in changed:
        if found.pop(frame.number, None) is None:
            found[frame.number] = frame
    return sorted(found.values(), key=_NUMBER)


ROOMY: Final = 100
"""Cells from which a row has room for the kind of the frame."""

PREVIEW_BYTES: Final = 4 << 10
"""Bytes of a frame that are read for its row, since rows are drawn while the user scrolls."""

_REMEMBERED: Final = 2_000
_BODY: Final = re.compile(r'"(?:params|result|error)"\s*:\s*')
_SHORTER: Final = (
    (re.compile(r'^\{"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*'), r"\1 ", "}"),
    (re.compile(r'^\{"content"\s*:\s*\[\s*\{"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*'), "", "}]}"),
)
"""How nearly all calls and results start and end; the row shows what is between."""

_FAILURES: Final = frozenset({MessageKind.ERROR, MessageKind.MALFORMED, MessageKind.STRAY})


class Words(NamedTuple):
    """What a row quotes of its frame, safe to show and without secrets."""

    title: str
    id: str
    preview: str


class TrafficRows:
    """Draws frames of ``book``."""

    def __init__(self, book: TrafficBook) -> None:
        self.book = book
        self.server_width = 0
        self.search = Search()
        """The words that are marked."""
        self._words: dict[int, Words] = {}

    def name_servers(self, servers: set[str]) -> None:
        """Make room for these names; a single one is not shown."""
        widths = [cell_len(show_line(name, 40)) for name in servers] if len(servers) > 1 else [0]
        self.server_width = min(16, max(widths))

    def row(self, frame: TrafficMessage, width: int) -> Content:
        """Time, direction, server, kind, method, id, size, latency, call and a preview.

        If several servers share little room, only an arrow shows the direction, and the id is left out.
        """
        roomy, style = width >= ROOMY, "$text-error" if failed(frame) else ""
        server = min(self.server_width, 16 if roomy else 8)
        tight = bool(server) and not roomy
        arrow, span = direction(frame), (1, 1) if tight else (5, 5)
        name, words = min(self.server_width, 5), self.words(frame)
        cells = [
            Cell(self._marks(frame), f"bold {style}".strip(), 2, 2),
            Cell(clock(frame.time), "$foreground-muted", 12, 12),
            Cell(arrow[0] if tight else arrow, "$text-accent" if frame.sent else "$text-primary", *span),
            Cell(show_line(frame.server, 40), "$foreground-muted", name, server) if server else None,
            Cell(frame.kind.value, style, 12, 12) if roomy else None,
            Cell(
                self.search.mark("" if roomy and words.title == frame.kind.value else words.title),
                f"bold {style}".strip(),
                10,
                min(28, width // 7) if roomy else 15,
            ),
            None if tight else Cell(words.id, "$foreground-muted", 3, 9 if roomy else 4, "right", keep="end"),
            Cell(size_text(frame.size), "", 6, 7, "right"),
            Cell(_latency(frame), "", 7, 9 if roomy else 7, "right"),
            Cell("" if frame.call is None else f"↗{frame.call}", "$text-accent", 3, 4),
            Cell(self.search.mark(words.preview), style or "$foreground-muted", 0),
        ]
        return columns(width, [cell for cell in cells if cell is not None])

    def words(self, frame: TrafficMessage) -> Words:
        """The quoted words, computed once."""
        found = self._words.get(frame.number)
        if found is None:
            if len(self._words) >= _REMEMBERED:
                self._words.clear()
            found = Words(title(self.book, frame), shown_id(self.book, frame), _preview(self.book, frame))
            self._words[frame.number] = found
        return found

    def _marks(self, frame: TrafficMessage) -> str:
        return ("◆" if self.book.is_pinned(frame) else " ") + ("✖" if failed(frame) else " ")


def failed(frame: TrafficMessage) -> bool:
    """Does the frame report a failure?"""
    facts = frame.facts
    if frame.kind is MessageKind.HTTP:
        return (facts.code or 0) >= 400
    return facts.failed or facts.kind in _FAILURES or any(part.kind is MessageKind.ERROR for part in facts.parts)


def direction(frame: TrafficMessage) -> str:
    """The arrow and the word, seen from mcphost."""
    return "→ out" if frame.sent else "← in"


def title(book: TrafficBook, frame: TrafficMessage) -> str:
    """The method without ``notifications/``; without a method, the kind."""
    facts = frame.facts
    if facts.kind is MessageKind.BATCH:
        return f"batch of {len(facts.parts)}"
    if facts.kind is MessageKind.HTTP and facts.code is not None:
        return f"http {facts.code}"
    method = _masked(book, frame.method[:1000]) if frame.method else ""
    if frame.probe:
        method = f"probe {method}"
    return show_line(method, 100).removeprefix("notifications/") or facts.kind.value


def shown_id(book: TrafficBook, frame: TrafficMessage) -> str:
    """The id of a request or response; empty without one."""
    if isinstance(frame.id, str):
        return show_line(_masked(book, frame.id[:1000]), 60)
    return "" if frame.id is None else str(frame.id)


def _latency(frame: TrafficMessage) -> str:
    if frame.latency is not None:
        return duration_text(max(0.0, frame.latency))
    if frame.kind is not MessageKind.REQUEST or frame.partner is not None or frame.abandoned is Abandoned.EXPORTED:
        return ""
    return " ".join(frame.status)


def needs_words(frame: TrafficMessage) -> str:
    """What an ``input_required`` result needs and which round it is, or which round a retry answers; else empty."""
    facts = frame.facts
    needs = ", ".join(f"{count} × {show_line(method, 60)}" for method, count in facts.needs)
    words = [f"needs {needs}"] if needs else ["needs nothing but another try"] if frame.status == NEEDS_INPUT else []
    if facts.state is not None:
        words.append(f"requestState {facts.state}")
    return " · ".join([f"round {frame.round}", *words]) if words or frame.round > 1 else ""


NEEDS_INPUT: Final = (INPUT_REQUIRED,)


def _preview(book: TrafficBook, frame: TrafficMessage) -> str:
    if frame.status == NEEDS_INPUT:
        return needs_words(frame)
    text = book.raw(frame) if len(frame.data) <= PREVIEW_BYTES else _start(book, frame)
    body = None if frame.note else _BODY.search(text, 0, 400)
    if body is None:
        return show_line(text, 300)
    text = text[body.end() :].removesuffix("}")
    for beginning, instead, end in _SHORTER:
        if beginning.match(text):
            text = beginning.sub(instead, text).removesuffix(end)
    return show_line(text, 300)


def _start(book: TrafficBook, frame: TrafficMessage) -> str:
    """The start of a long frame. Only whole secrets are recognised, so a word that is cut or holds an escape is left
    out.
    """
    start = frame.data[:PREVIEW_BYTES].partition(b"\\")[0]
    end = max(start.rfind(b" "), start.rfind(b'"')) + 1
    return f"{_masked(book, start[:end].decode('utf-8', 'replace'))}…"


def _masked(book: TrafficBook, text: str) -> str:
    """Mask the secrets in a part of a frame."""
    data = text.encode("utf-8", "replace")
    return book.raw(TrafficMessage(0, 0.0, 0.0, "", 0, False, "", data, len(data), None))


def clock(moment: float) -> str:
    """The local time with milliseconds; ``--:--:--`` if the clock is set to nonsense."""
    return f"{_second(int(moment // 1))}.{int(moment % 1 * 1000):03}"


@lru_cache(maxsize=512)
def _second(second: int) -> str:
    try:
        return f"{datetime.fromtimestamp(second):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--"


_NOTHING_YET: Final = (
    "No traffic yet.\n\nEvery message to and from every server appears here, with stderr and HTTP headers.\n"
    "Start a server (s), or call a tool (t)."
)
_NOTHING_PASSES: Final = "No messages match.\n\n/ changes the filter · esc shows all"
_CLEARED: Final = "Cleared. X restores the earlier messages."


def key(
    pressed: str, action: str, description: str, tooltip: str, *, show: bool = True, system: bool = False
) -> Binding:
    """A binding of this pane; ``system`` keeps it out of the help."""
    name = f"traffic.{action}"
    return Binding(pressed, action, description, show=show, tooltip=tooltip, id=name, system=system)


class TrafficList(Vertical):
    """Shows a traffic book; call `refresh_traffic` to update it."""

    HELP = (
        "Every message to and from every server: → out, ← in; ✖ failed, ◆ pinned, ↗12 part of call 12.\n"
        f"Filter: {EXAMPLES}\nS sorts, the slowest first. Secrets are masked here, in copies and in files."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "unfilter", "clear filter", "Show all messages again"),
        key("slash", "filter", "filter", "Show only some messages"),
        key("S", "sort", "sort", "Sort by latency, by size, or by time"),
        key("f", "follow", "follow", "Follow the newest message, or pause"),
        key("x", "clear", "clear", "Clear the list; pinned messages stay", show=False),
        key("X", "restore", "restore", "Show cleared messages again", show=False),
    ]
    DEFAULT_CSS = """
    TrafficList {
        height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
    }
    """

    @dataclass
    class Highlighted(Message):
        """The cursor is on another frame, or on none."""

        frame: TrafficMessage | None

    class Followed(Message):
        """The list started or stopped following the newest frame."""

    def __init__(self, book: TrafficBook) -> None:
        super().__init__()
        self.file = ""
        """The name of the imported file; empty for live traffic."""
        self._title = ""
        self.filter_line = FilterLine(parse_traffic_filter, EXAMPLES)
        self._drawer = TrafficRows(book)
        self.rows = RowList[TrafficMessage](
            lambda frame, width: self._drawer.row(frame, width), empty=_NOTHING_YET, tails=True
        )
        self.feed = TrafficFeed(self.rows, book)

    def compose(self) -> ComposeResult:
        yield self.filter_line
        yield self.rows

    def refresh_traffic(self) -> bool:
        """Take in new frames; return False if there are so many that it should be called again soon."""
        done = self.feed.refresh()
        if done:
            self._update_labels()
        else:
            self._update_title("reading")
        return done

    def show_filtered(self, text: str) -> None:
        """Show the frames that pass this filter, and focus them."""
        self.filter_line.show_filter(text)
        self._apply(text)
        self.rows.focus()

    def show_book(self, book: TrafficBook, file: str = "") -> None:
        """Show another book, imported from ``file`` unless it is live."""
        self.file, self._drawer = file, TrafficRows(book)
        self._drawer.search = Search(words=self.feed.filter.words)
        self.feed.show_book(book)
        self.rows.focus()

    def _update_labels(self) -> None:
        """Update the title, the names and the text of an empty list."""
        self._drawer.name_servers(self.feed.servers)
        if not self.rows.items:
            self.rows.empty = _CLEARED if self.feed.cleared else _NOTHING_PASSES if self.feed.total else _NOTHING_YET
        self._update_title()

    def _update_title(self, state: str = "") -> None:
        if self.rows.following:
            self.feed.unseen = 0
        gone = sum(map(self.feed.book.evicted, self.feed.servers))
        words = [
            "Traffic",
            f"file {show_line(self.file, 40)}, read only" if self.file else "",
            "filtered" if self.feed.filter.tests else "",
            state or self._state,
            f"{gone:,} older dropped" if gone else "",
        ]
        title = " · ".join(word for word in words if word)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self.filter_line.show_count(len(self.rows.items), self.feed.total)

    @property
    def _state(self) -> str:
        new = f" · {self.feed.unseen:,} new" if self.feed.unseen else ""
        if self.feed.order is not FrameOrder.TIME:
            return f"{_ORDER_WORDS[self.feed.order]}{new}"
        return f"paused{new}" if not self.rows.following else "" if self.file else "following"

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        event.stop()
        self._update_title()
        self.post_message(self.Followed())

    def on_row_list_highlighted(self, event: RowList.Highlighted[TrafficMessage]) -> None:
        event.stop()
        self.post_message(self.Highlighted(event.item))

    def action_filter(self) -> None:
        self.filter_line.open()
        self.refresh_bindings()

    def on_filter_line_typed(self, event: FilterLine.Typed) -> None:
        """Filter as the user types; the newest match, or the first in another order, is selected."""
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self._apply(event.text)
            if self.feed.filter.text:
                self.rows.highlighted = len(self.rows.items) - 1 if self.feed.order is FrameOrder.TIME else 0

    def _apply(self, text: str) -> None:
        if text.strip() != self.feed.filter.text:
            self.feed.filter = parse_traffic_filter(text)
            self._drawer.search = Search(words=self.feed.filter.words)
            self._rebuild()

    def _rebuild(self) -> None:
        self.feed.rebuild()
        self._update_labels()

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        event.stop()
        if self.feed.filter.text:
            self.rows.focus()
        else:
            self.action_unfilter()

    def on_filter_line_left(self, event: FilterLine.Left) -> None:
        event.stop()
        self.rows.focus()

    def action_unfilter(self) -> None:
        self.filter_line.close()
        self._apply("")
        self.rows.focus()
        self.refresh_bindings()

    def action_sort(self) -> None:
        """Sort by the next of latency, size and time; the largest is selected, or by time the same frame as before."""
        self._sort(self.feed.order.next)

    def _sort(self, order: FrameOrder) -> None:
        self.feed.order = order
        self.rows.following, self.rows.tails = False, order is FrameOrder.TIME
        self._rebuild()
        if order is not FrameOrder.TIME:
            self.rows.highlighted = 0

    def action_follow(self) -> None:
        """Follow the newest frame, or pause; in another order, return to the order of time."""
        if self.feed.order is not FrameOrder.TIME:
            self._sort(FrameOrder.TIME)
            return
        self.rows.following = not self.rows.following

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "unfilter":
            return self.filter_line.is_open
        if action == "filter":
            return not self.filter_line.input.has_focus
        return bool(self.feed.cleared) if action == "restore" else True

    def action_clear(self) -> None:
        """Empty the view except for pinned frames; the book keeps all."""
        self.feed.clear()
        self._update_labels()

    def action_restore(self) -> None:
        self.feed.cleared = 0
        self._rebuild()
