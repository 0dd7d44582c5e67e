"""A long text that wraps or scrolls sideways, and can be searched; fast whatever its length.

Textual's TextArea lays out a whole text before it shows it: 10 MB open in 3.9 seconds, here in 66 ms.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import ClassVar, Final

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from mcphost.protocol.display import TAB
from mcphost.tui.textual_private.corrections import ScrollbarsOnLayout

Spans = Iterable[tuple[int, int, str]]
"""Start, end and part: key, string, number, constant, added or removed."""

WRAP_LINES: Final = 20_000
WRAP_CHARACTERS: Final = 500_000
"""Above either limit lines are not wrapped, since that would need the rows of all lines before."""

LONGEST_LINE: Final = 5_000
"""Characters of an unwrapped line."""

MATCHES: Final = 1_000


class TextView(ScrollView, ScrollbarsOnLayout, can_focus=True):
    """``fit`` makes it as high as its text, for a parent that scrolls."""

    DEFAULT_CSS = """
    TextView { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    TextView.-fit { height: auto; padding: 0; overflow: hidden hidden; }
    TextView > .text-view--key { color: $text-primary; }
    TextView > .text-view--string { color: $text-success; }
    TextView > .text-view--number { color: $text-warning; }
    TextView > .text-view--constant { color: $text-accent; text-style: bold; }
    TextView > .text-view--added { color: $text-success; }
    TextView > .text-view--removed { color: $text-error; }
    TextView > .text-view--match { background: $warning-muted; color: $text-warning; text-style: underline; }
    TextView > .text-view--selection {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: $block-cursor-text-style;
    }
    TextView > .text-view--current {
        color: $text-warning; text-style: bold reverse;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"text-view--{part}"
        for part in ("key", "string", "number", "constant", "added", "removed", "match", "current", "selection")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "toggle_wrap", "wrap", id="text.wrap", tooltip="Wrap long lines, or scroll sideways"),
    ]
    HELP = "The arrows and page keys scroll."

    def __init__(
        self,
        lines: Sequence[str] = (),
        *,
        spans: Callable[[str], Spans] | None = None,
        wrap: bool = True,
        fit: bool = False,
    ) -> None:
        super().__init__(classes="-fit" if fit else "")
        self._spans, self._wrap, self._fit = spans, wrap, fit
        self._lines: Sequence[str] = ()
        self._rows: list[tuple[int, int, int]] = []
        self._rows_width = -1
        self._matches: dict[int, list[tuple[int, int]]] = {}
        self._current: tuple[int, int] | None = None
        self._set(lines)
        if fit:
            self.can_focus = False

    @property
    def lines(self) -> Sequence[str]:
        return self._lines

    @property
    def wraps(self) -> bool:
        """True if long lines are wrapped, which they never are in a very long text."""
        return self._wrap and self._wrappable

    def load(self, lines: Sequence[str], *, home: bool = True) -> None:
        """Show other lines, from the top (``home``) or at the same position."""
        self._set(lines)
        self._relayout()
        if home:
            self.scroll_home(animate=False)

    def find(self, query: str) -> list[tuple[int, int]]:
        """Mark the matches, `MATCHES` at most, and return their (line, column); an empty query removes the marks."""
        self._matches, self._current = {}, None
        found = list(islice(matches_in(self._lines, query), MATCHES)) if query else []
        for line, start, end in found:
            self._matches.setdefault(line, []).append((start, end))
        self.refresh()
        return [(line, start) for line, start, _ in found]

    def go_to(self, match: tuple[int, int] | None) -> None:
        """Make this match the current one, and scroll to it."""
        self._current = match
        self.refresh()
        if match is not None:
            region = Region(max(0, match[1] - 10) if not self.wraps else 0, self._row_of(match), 20, 1)
            self._scroll_here(region)

    def spans_of(self, number: int, text: str) -> Spans:
        """The styled spans of a line."""
        return () if self._spans is None else self._spans(text)

    def hang_of(self, number: int) -> str:
        """The prefix of further rows of a wrapped line."""
        return ""

    def action_toggle_wrap(self) -> None:
        self._wrap = not self._wrap
        self._relayout()
        self.scroll_to(x=0, animate=False)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._lay_out(width)
        return self._row_count

    def on_resize(self, event: events.Resize) -> None:
        self._relayout()

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        super().watch_show_vertical_scrollbar(shown)
        self.call_after_refresh(self._relayout)  # the scrollbar takes a column, and no resize follows

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The text that was chosen with the mouse, of the lines as they are shown."""
        start, end = selection.start or Offset(0, 0), selection.end
        last = len(self._lines) - 1 if end is None else min(end.y, len(self._lines) - 1)
        lines = list(self._lines[start.y : last + 1])
        if lines and end is not None and end.y == last:
            lines[-1] = lines[-1][: end.x]
        if lines:
            lines[0] = lines[0][max(0, start.x) :]
        return "\n".join(lines), "\n"

    def render_line(self, y: int) -> Strip:
        x, row = self.scroll_offset.x, self.scroll_offset.y + y
        width, base = self.scrollable_content_region.width, self.rich_style
        if not 0 <= row < self._row_count:
            return Strip.blank(width, base)
        line, start, end = self._rows[row] if self.wraps else (row, 0, LONGEST_LINE)
        hang = len(self.hang_of(line)) if start else 0
        strip = Strip(self._segments(line, start, end, base)).apply_offsets(start - hang, line)
        return strip.crop_extend(x, x + width, base)

    # What is shown.

    def _set(self, lines: Sequence[str]) -> None:
        self._lines = [expand_tabs(line) for line in lines] if any("\t" in line for line in lines) else lines
        fits = len(lines) <= WRAP_LINES and sum(map(len, lines)) <= WRAP_CHARACTERS
        self._wrappable, self._rows_width, self._rows = fits, -1, []
        self._widest = max(map(_width, self._lines), default=0)
        self._matches, self._current = {}, None

    @property
    def _row_count(self) -> int:
        return len(self._rows) if self.wraps else len(self._lines)

    def _relayout(self) -> None:
        self._rows_width = -1
        self._lay_out(self.scrollable_content_region.width)
        width = 0 if self.wraps else self._widest
        self.virtual_size = Size(width, self._row_count)
        self.refresh(layout=self._fit)

    def _lay_out(self, width: int) -> None:
        if self.wraps and width > 0 and width != self._rows_width:
            self._rows = [
                (number, *part)
                for number, line in enumerate(self._lines)
                for part in wrap_line(line, width, cell_len(self.hang_of(number)))
            ]
            self._rows_width = width

    def _segments(self, line: int, start: int, end: int, base: Style) -> Iterable[Segment]:
        full_line = self._lines[line]
        hang = self.hang_of(line) if start else ""
        text = Text(hang + full_line[start:end], end="")
        for first, last, part in self._parts(line, full_line):
            if first < end and last > start:
                style = self.get_component_rich_style(f"text-view--{part}", partial=True)
                text.stylize(style, len(hang) + max(0, first - start), len(hang) + min(last, end) - start)
        if end < len(full_line) and not self.wraps:
            text.append(f" ⟨{len(full_line) - end} characters more; W wraps⟩")
        return Segment.apply_style(text.render(self.app.console), base)

    def _parts(self, line: int, full_line: str) -> Iterator[tuple[int, int, str]]:
        yield from self.spans_of(line, full_line)
        for start, end in self._matches.get(line, ()):
            yield start, end, "current" if (line, start) == self._current else "match"
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(line)) is not None:
            yield span[0], len(full_line) if span[1] == -1 else span[1], "selection"

    # Positions.

    def _row_of(self, match: tuple[int, int]) -> int:
        line, column = match
        if not self.wraps:
            return line
        rows = (row for row, (number, _, end) in enumerate(self._rows) if number == line and column < end)
        return next(rows, 0)

    def _scroll_here(self, region: Region) -> None:
        if not self._fit:
            self.scroll_to_region(region, center=True, animate=False, immediate=True)
            return
        on_screen = region.translate(self.content_region.offset)
        for parent in self.ancestors:
            if isinstance(parent, Widget) and parent.allow_vertical_scroll:
                inside = on_screen.translate(parent.scroll_offset - parent.scrollable_content_region.offset)
                parent.scroll_to_region(inside, center=True, animate=False, immediate=True, x_axis=False)
                return


def expand_tabs(line: str) -> str:
    """Put blanks in place of tabs, up to the stops of a terminal."""
    if line.isascii():
        return line.expandtabs(TAB)
    first, *others = line.split("\t")
    parts, column = [first], cell_len(first)
    for part in others:
        blanks = TAB - column % TAB
        parts += (" " * blanks, part)
        column += blanks + cell_len(part)
    return "".join(parts)


def matches_in(lines: Iterable[str], query: str) -> Iterator[tuple[int, int, int]]:
    """The line, start and end of each match of ``query``, ignoring case."""
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    for number, line in enumerate(lines):
        for match in pattern.finditer(line):
            yield number, *match.span()


def wrap_line(line: str, width: int, hang: int = 0) -> Iterator[tuple[int, int]]:
    """The start and end of each row of a line, at most ``width`` cells each; rows end at a blank if there is one.

    All rows but the first have ``hang`` cells less.
    """
    reach = _reach_of(line)
    start = 0
    while True:
        end = reach(start, width)
        if end >= len(line):
            yield start, len(line)
            return
        blank = line.rfind(" ", start + 1, end + 1)
        stop = blank if blank > start else end
        yield start, stop
        start = stop + 1 if blank > start else stop
        width, hang = max(width - hang, 1), 0


def _reach_of(line: str) -> Callable[[int, int], int]:
    """A function that tells how far ``width`` cells reach from a start: one character at least."""
    if line.isascii():
        return int.__add__
    ends = list(accumulate(map(get_character_cell_size, line)))
    return lambda start, width: max(start + 1, bisect_right(ends, width + (ends[start - 1] if start else 0)))


def _width(line: str) -> int:
    if line.isascii():
        return min(len(line), LONGEST_LINE + 40)
    return cell_len(line[:LONGEST_LINE]) + (40 if len(line) > LONGEST_LINE else 0)
