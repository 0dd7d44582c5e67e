"""Frames of a traffic book as a list with a filter above it: followed, sorted, cleared."""

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

from mcphost.dataclass import dataclass
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import EXAMPLES, TrafficFilter, parse_traffic_filter
from mcphost.host.traffic.message import MessageKind, TrafficMessage
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.tui.kit.filter_line import FilterLine
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, RowList, columns

SLICE: Final = 0.02
"""Seconds in which frames that passed unseen are paired before the screen gets its turn again."""

STALE_FRAMES: Final = 2_000
STALE_BYTES: Final = 32 << 20
"""What the list may hold beyond what the book still keeps: reading all again costs more the more often it is done."""

_NUMBER: Final = attrgetter("number")


class FrameOrder(Enum):
    """How frames are sorted: as they passed, or the largest first."""

    TIME = "time"
    LATENCY = "latency"
    SIZE = "size"

    @property
    def next(self) -> FrameOrder:
        """The order after this one; after the last comes the first."""
        orders = list(FrameOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


_LARGEST: Final[dict[FrameOrder, Callable[[TrafficMessage], tuple[float, int]]]] = {
    FrameOrder.LATENCY: lambda frame: (1.0 if frame.latency is None else -frame.latency, frame.number),
    FrameOrder.SIZE: lambda frame: (-float(frame.size), frame.number),
}


class TrafficFeed:
    """Feeds ``rows``. Sorted by anything but time the list stands still, and what comes is counted."""

    def __init__(self, rows: RowList[TrafficMessage], book: TrafficBook) -> None:
        self._rows, self.book = rows, book
        self.filter, self.order = TrafficFilter(), FrameOrder.TIME
        self.servers: set[str] = set()
        self.total = self.unseen = self.cleared = 0
        self._seen = self._evicted = self._added_bytes = 0

    def show_book(self, book: TrafficBook) -> None:
        """Read another book from its beginning."""
        self.book, self.servers, self.cleared, self._seen = book, set(), 0, 0
        self._rows.set_items(())

    def passes(self, frame: TrafficMessage) -> bool:
        """Is this frame shown?"""
        kept = frame.number > self.cleared or self.book.is_pinned(frame)
        return kept and self.filter.passes(frame)

    def refresh(self) -> bool:
        """Take in what came; False: there is so much that it should be called again soon."""
        if not self.book.pair(SLICE):
            return False
        if not self._seen or self._stale():
            self.rebuild()
            return True
        fresh = self.book.since(self._seen)
        if fresh:
            self._take(fresh)
        return True

    def rebuild(self) -> None:
        """Read all that is kept: at the beginning, and when it has changed what passes, or in which order."""
        kept = self.book.since(0)
        self._note(kept)
        self.total, self.unseen, self._added_bytes = len(kept), 0, 0
        self._evicted = self._evictions()
        shown = [frame for frame in kept if self.passes(frame)]
        if self.order is not FrameOrder.TIME:
            shown.sort(key=_LARGEST[self.order])
        self._rows.set_items(shown, keep=_NUMBER)

    def clear(self) -> None:
        """Begin with an empty view; the book keeps what it has."""
        self.cleared = self._seen
        self.rebuild()

    def place_of(self, frame: TrafficMessage) -> int | None:
        """The row of a frame, if it is shown."""
        if self.order is FrameOrder.TIME:
            place = self._place(frame)
            return place if self._has(place, frame) else None
        return next((place for place, each in enumerate(self._rows.items) if each.number == frame.number), None)

    def _take(self, fresh: list[TrafficMessage]) -> None:
        self._note(fresh)
        self.total += len(fresh)
        shown = [frame for frame in fresh if self.passes(frame)]
        if not self._rows.following:
            self.unseen += len(shown)
        if self.order is FrameOrder.TIME:
            self._added_bytes += sum(len(frame.data) for frame in shown)
            self._amend(fresh)
            self._rows.append(shown)

    def _amend(self, fresh: list[TrafficMessage]) -> None:
        """An answer changes of what kind its request is: it may pass now, or pass no longer."""
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

    def _note(self, frames: list[TrafficMessage]) -> None:
        if frames:
            self._seen = frames[-1].number
            self.servers |= {frame.server for frame in frames}

    def _stale(self) -> bool:
        """Does the list hold much that the book let go of?"""
        if self.order is not FrameOrder.TIME:
            return False
        gone = self._evictions() - self._evicted
        lost_track = self.book.message(self._seen) is None
        many = gone > max(STALE_FRAMES, len(self._rows.items) // 4)
        return lost_track or many or bool(gone and self._added_bytes > STALE_BYTES)

    def _evictions(self) -> int:
        return sum(map(self.book.evicted, self.servers))


def _toggled(items: Iterable[TrafficMessage], changed: Iterable[TrafficMessage]) -> list[TrafficMessage]:
    """The items in order, with those of ``changed`` that were missing and without those that were there."""
    found = {frame.number: frame for frame in items}
    for frame in changed:
        if found.pop(frame.number, None) is None:
            found[frame.number] = frame
    return sorted(found.values(), key=_NUMBER)


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

_FAILURES: Final = frozenset({MessageKind.ERROR, MessageKind.MALFORMED, MessageKind.STRAY})


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

    def row(self, frame: TrafficMessage, width: int) -> Content:
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
        """What is quoted of it; found out once."""
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
    """Does it tell of a failure? Told by a mark and a colour."""
    facts = frame.facts
    if frame.kind is MessageKind.HTTP:
        return (facts.code or 0) >= 400
    return facts.failed or facts.kind in _FAILURES or any(part.kind is MessageKind.ERROR for part in facts.parts)


def direction(frame: TrafficMessage) -> str:
    """The arrow and the word, seen from mcphost."""
    return "→ out" if frame.sent else "← in"


def title(book: TrafficBook, frame: TrafficMessage) -> str:
    """The method, without what all notifications begin with; what has none is called by its kind."""
    facts = frame.facts
    if facts.kind is MessageKind.BATCH:
        return f"batch of {len(facts.parts)}"
    if facts.kind is MessageKind.HTTP and facts.code is not None:
        return f"http {facts.code}"
    method = _masked(book, frame.method[:1000]) if frame.method else ""
    return show_line(method, 100).removeprefix("notifications/") or facts.kind.value


def shown_id(book: TrafficBook, frame: TrafficMessage) -> str:
    """The id of a request or response; empty where there is none."""
    if isinstance(frame.id, str):
        return show_line(_masked(book, frame.id[:1000]), 60)
    return "" if frame.id is None else str(frame.id)


def _latency(frame: TrafficMessage) -> str:
    if frame.latency is not None:
        return duration_text(max(0.0, frame.latency))
    return "waiting" if frame.kind is MessageKind.REQUEST and frame.partner is None else ""


def _preview(book: TrafficBook, frame: TrafficMessage) -> str:
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
    """The start of a long frame. A secret is only found whole: a word that is cut, or holds an escape, is left out."""
    start = frame.data[:PREVIEW_BYTES].partition(b"\\")[0]
    end = max(start.rfind(b" "), start.rfind(b'"')) + 1
    return f"{_masked(book, start[:end].decode('utf-8', 'replace'))}…"


def _masked(book: TrafficBook, text: str) -> str:
    """A part of a frame without its secrets."""
    data = text.encode("utf-8", "replace")
    return book.raw(TrafficMessage(0, 0.0, 0.0, "", 0, False, "", data, len(data), None))


def clock(moment: float) -> str:
    """The local time with milliseconds; a clock set to nonsense is no reason to fail."""
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
_NOTHING_PASSES: Final = "No frame passes.\n\n/ changes the filter · esc shows all"
_CLEARED: Final = "Cleared. X brings the earlier frames back."


def key(
    pressed: str, action: str, description: str, tooltip: str, *, show: bool = True, system: bool = False
) -> Binding:
    """A key of this pane; ``system`` keeps it out of the help."""
    name = f"traffic.{action}"
    return Binding(pressed, action, description, show=show, tooltip=tooltip, id=name, system=system)


class TrafficList(Vertical):
    """A view of a traffic book, kept up to date by ``refresh_traffic``; the parent acts on highlighted frames."""

    HELP = (
        "Every message to and from every server: → out, ← in; ✖ failed, ◆ pinned, ↗12 belongs to call 12.\n"
        f"A filter: {EXAMPLES}\nThe slowest: S, or /latency>1s. Secrets are masked here, in copies and in files."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "unfilter", "no filter", "Show all frames again"),
        key("slash", "filter", "filter", "Show only some frames"),
        key("S", "sort", "sort", "Sort by latency, by size, or by time"),
        key("f", "follow", "follow", "Follow the newest frame, or pause"),
        key("x", "clear", "clear", "Clear the view; pinned frames stay", show=False),
        key("X", "restore", "unclear", "Bring cleared frames back", show=False),
    ]
    DEFAULT_CSS = """
    TrafficList {
        height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
    }
    """

    @dataclass
    class Highlighted(Message):
        """Another frame is under the cursor, or none. Textual carries the rows' own word no further than its cause."""

        frame: TrafficMessage | None

    class Followed(Message):
        """The list began or ceased to follow the newest frame."""

    def __init__(self, book: TrafficBook) -> None:
        super().__init__()
        self.file = ""
        """The name of the file that is looked at; empty: it is the live traffic."""
        self._title = ""
        self.filter_line = FilterLine(parse_traffic_filter, EXAMPLES)
        self._look = TrafficRows(book)
        self.rows = RowList[TrafficMessage](
            lambda frame, width: self._look.row(frame, width), empty=_NOTHING_YET, tails=True
        )
        self.feed = TrafficFeed(self.rows, book)

    def compose(self) -> ComposeResult:
        """The filter line and the frames."""
        yield self.filter_line
        yield self.rows

    def refresh_traffic(self) -> bool:
        """Take in what came, at the cost of what came; False: there is so much that it should be called again soon."""
        done = self.feed.refresh()
        if done:
            self._settle()
        else:
            self._say("reading")
        return done

    def show_filtered(self, text: str) -> None:
        """Show the frames that pass this filter, and go there."""
        self.filter_line.show_filter(text)
        self._apply(text)
        self.rows.focus()

    def show_book(self, book: TrafficBook, file: str = "") -> None:
        """Show another book; ``file`` is where it comes from, if it is not live."""
        self.file, self._look = file, TrafficRows(book)
        self._look.search = Search(words=self.feed.filter.words)
        self.feed.show_book(book)
        self.rows.focus()

    def _settle(self) -> None:
        """Say what there is, after it changed."""
        self._look.name_servers(self.feed.servers)
        if not self.rows.items:
            self.rows.empty = _CLEARED if self.feed.cleared else _NOTHING_PASSES if self.feed.total else _NOTHING_YET
        self._say()

    def _say(self, state: str = "") -> None:
        """The title and the count."""
        if self.rows.following:
            self.feed.unseen = 0
        gone = sum(map(self.feed.book.evicted, self.feed.servers))
        words = [
            "Traffic",
            f"file {show_line(self.file, 40)}, read only" if self.file else "",
            "filtered" if self.feed.filter.tests else "",
            state or self._state,
            f"{gone:,} older gone" if gone else "",
        ]
        title = " · ".join(word for word in words if word)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self.filter_line.say_count(len(self.rows.items), self.feed.total)

    @property
    def _state(self) -> str:
        new = f" · {self.feed.unseen:,} new" if self.feed.unseen else ""
        if self.feed.order is not FrameOrder.TIME:
            return f"largest {self.feed.order.value} first{new}"
        return f"paused{new}" if not self.rows.following else "" if self.file else "following"

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        """Say whether new frames come into view."""
        event.stop()
        self._say()
        self.post_message(self.Followed())

    def on_row_list_highlighted(self, event: RowList.Highlighted[TrafficMessage]) -> None:
        event.stop()
        self.post_message(self.Highlighted(event.item))

    def action_filter(self) -> None:
        """Open the filter line."""
        self.filter_line.open()
        self.refresh_bindings()

    def on_filter_line_typed(self, event: FilterLine.Typed) -> None:
        """Filter as it is typed; the newest frame that passes, or the first in another order, is under the cursor."""
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self._apply(event.text)
            if self.feed.filter.text:
                self.rows.highlighted = len(self.rows.items) - 1 if self.feed.order is FrameOrder.TIME else 0

    def _apply(self, text: str) -> None:
        if text.strip() != self.feed.filter.text:
            self.feed.filter = parse_traffic_filter(text)
            self._look.search = Search(words=self.feed.filter.words)
            self._rebuild()

    def _rebuild(self) -> None:
        self.feed.rebuild()
        self._settle()

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        """Go on to the frames that pass."""
        event.stop()
        if self.feed.filter.text:
            self.rows.focus()
        else:
            self.action_unfilter()

    def on_filter_line_left(self, event: FilterLine.Left) -> None:
        """Down is enough to go there."""
        event.stop()
        self.rows.focus()

    def action_unfilter(self) -> None:
        """Close the filter line and show all frames."""
        self.filter_line.close()
        self._apply("")
        self.rows.focus()
        self.refresh_bindings()

    def action_sort(self) -> None:
        """Latency, size, time: the largest first, under the cursor; by time the cursor stays on its frame."""
        self._sort(self.feed.order.next)

    def _sort(self, order: FrameOrder) -> None:
        self.feed.order = order
        self.rows.following, self.rows.tails = False, order is FrameOrder.TIME
        self._rebuild()
        if order is not FrameOrder.TIME:
            self.rows.highlighted = 0

    def action_follow(self) -> None:
        """Follow the newest frame, or pause; from another order go to the order of time, where the cursor is."""
        if self.feed.order is not FrameOrder.TIME:
            self._sort(FrameOrder.TIME)
            return
        self.rows.following = not self.rows.following

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key works where it has something to work on."""
        if action == "unfilter":
            return self.filter_line.is_open
        if action == "filter":
            return not self.filter_line.input.has_focus
        return bool(self.feed.cleared) if action == "restore" else True

    def action_clear(self) -> None:
        """Begin with an empty view; the frames are still in the book, and pinned ones in the view."""
        self.feed.clear()
        self._settle()

    def action_restore(self) -> None:
        """Show the frames again that were cleared from the view."""
        self.feed.cleared = 0
        self._rebuild()
