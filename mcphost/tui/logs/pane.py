"""The log of all servers: what they logged and wrote to stderr, and what mcphost decided."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from mcphost.host.logs import LogBook, LogRecord, LogSource
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.messages import CallChosen, LogLevelRequested
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.logs.dialogs import LogDetail, log_line
from mcphost.tui.logs.filter import EXAMPLES, OWN_NAME, LogFilter, parse_filter


def log_row(record: LogRecord, width: int, name_width: int, search: Search) -> Content:
    """Time, server, level or source, the text with its matches marked, and the call that was running."""
    mark, style = _look(record.level)
    word = record.level.wire if record.source is LogSource.SERVER else record.source.value
    cells = [
        Cell(_clock(int(record.time)), "$foreground-muted", 8, 8),
        Cell(show_line(record.server, 40) or OWN_NAME, "", min(8, name_width), name_width),
        Cell(f"{mark} {word}", style, 11, 11),
        Cell(_text(record, width, search), style if record.level >= LogLevel.WARNING else "", 10),
    ]
    if record.call is not None:
        cells.append(Cell(f"↗{record.call}", "$text-accent", 4, len(str(record.call)) + 1, "right"))
    return columns(width, cells)


def _text(record: LogRecord, width: int, search: Search) -> Content:
    text = search.mark(show_line(record.text, width))
    if not record.logger:
        return text
    return Content.assemble((show_line(record.logger, 24), "$foreground-muted"), " ", text)


def _look(level: LogLevel) -> tuple[str, str]:
    """A mark that is seen without colours, and a style."""
    if level >= LogLevel.ERROR:
        return "✖", "bold $text-error"
    if level >= LogLevel.WARNING:
        return "▲", "$text-warning"
    return " ", "$foreground-muted" if level is LogLevel.DEBUG else ""


@lru_cache(maxsize=256)
def _clock(second: int) -> str:
    """The local time of a second since the epoch; ``--:--:--`` if the clock is set to nonsense."""
    try:
        return f"{datetime.fromtimestamp(second):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--"


FEW: Final = 8
"""Lines for which the pane asks for room."""

LINES: Final = 20_000
CHARACTERS: Final = 20 << 20
"""Limits of what is shown; the oldest lines go first. A change of the filter reads from the book again."""

_LEAST: Final = (LogLevel.DEBUG, LogLevel.INFO, LogLevel.WARNING, LogLevel.ERROR)
_NOTHING_YET: Final = (
    "No log lines yet.\n\nServers' log messages, their stderr and mcphost's own decisions appear here.\n"
    "L makes a server log more."
)
_NOTHING_PASSES: Final = "No lines match.\n\n/ changes the filter · l shows lower levels"


def _key(key: str, action: str, description: str, tooltip: str, *, show: bool = True) -> Binding:
    return Binding(key, action, description, show=show, tooltip=tooltip, id=f"logs.{action}")


class LogsPane(Vertical):
    """A live view of ``book``; the app calls `refresh_logs` when records were added, at most once a frame."""

    HELP = (
        "The logs of all servers: their log messages, stderr and stray stdout, and mcphost's own decisions.\n"
        f"Filter: {EXAMPLES}"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("slash", "filter", "filter", "Show only some lines"),
        _key("f", "follow", "follow", "Follow the newest line, or pause"),
        _key("l", "least", "level", "Lowest level shown here: debug, info, warning, error"),
        _key("L", "server_level", "server level", "Make this line's server log more or less", show=False),
        _key("C", "call", "call", "Open the call that was running"),
        _key("y", "copy", "copy", "Copy this line"),
        _key("w", "save", "save", "Save the lines shown to a file"),
        _key("x", "clear", "clear", "Clear the list; X restores it", show=False),
        _key("X", "restore", "restore", "Show cleared lines again", show=False),
        _key("escape", "unfilter", "clear filter", "Show all lines again"),
    ]
    DEFAULT_CSS = """
    LogsPane {
        height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
    }
    """

    class Grown(Message):
        """The pane needs room for more lines: `most_lines`."""

    @dataclass
    class Warned(Message):
        """Servers logged so many warnings or worse."""

        count: int

    def __init__(
        self, book: LogBook, *, least: LogLevel = LogLevel.INFO, limit: int = LINES, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._book, self._limit = book, limit
        self._last_number = self._cleared = self._paused_at = 0  # numbers of records
        self._total = self._missed = self._characters = 0
        self._least = least
        self._filter = LogFilter()
        self._servers: set[str] = set()
        self._name_width = len(OWN_NAME)
        self._title, self._active_keys = "", (False, False)
        self.most_lines = 0
        """The most lines that there were, up to `FEW`, so that a filter makes the pane no smaller."""
        self._search = Search()
        self._filter_line = FilterLine(parse_filter, EXAMPLES)
        self._rows = RowList[LogRecord](self.row, empty=_NOTHING_YET, tails=True, id="log-rows")

    def compose(self) -> ComposeResult:
        yield self._filter_line
        yield self._rows

    def on_mount(self) -> None:
        self._rebuild()
        self._tell_warnings(self._book.since(0))

    def focus_rows(self) -> None:
        self._rows.focus()

    def refresh_logs(self) -> None:
        """Show the records since the last call. The cost does not depend on how many are kept."""
        if not self.is_mounted:
            return  # mounting reads all of them
        fresh = self._book.since(self._last_number - 1) if self._last_number else self._book.since(0)
        if self._last_number and (not fresh or fresh[0].number != self._last_number):
            self._rebuild()  # the last record we saw was cleared or evicted
            return
        self._add(fresh[1:] if self._last_number else fresh)

    def passes(self, record: LogRecord) -> bool:
        return record.level >= self._bound and self._filter.passes(record)

    @property
    def _bound(self) -> LogLevel:
        return LogLevel.DEBUG if self._filter.names_level else self._least

    def _add(self, fresh: list[LogRecord]) -> None:
        if not fresh:
            return
        self._remember(fresh)
        self._tell_warnings(fresh)
        shown = [record for record in fresh if self.passes(record)]
        self._rows.append(shown)
        self._total += len(fresh)
        self._missed += len(shown)
        self._enforce_limits(shown)

    def _tell_warnings(self, records: list[LogRecord]) -> None:
        count = sum(record.level >= LogLevel.WARNING for record in records)
        if count:
            self.post_message(self.Warned(count))

    def _rebuild(self) -> None:
        """Read all records again."""
        kept = self._book.since(self._cleared)
        self._remember(kept)
        shown = [record for record in kept if self.passes(record)]
        self._rows.set_items(shown, keep=lambda record: record.number)
        self._total, self._characters = len(kept), 0
        self._missed = sum(record.number > self._paused_at for record in shown)
        self._enforce_limits(shown)

    def _enforce_limits(self, added: list[LogRecord]) -> None:
        """Enforce the limits, and update the title."""
        self._characters += sum(len(record.text) for record in added)
        gone, items = 0, self._rows.items
        while gone < len(items) and (len(items) - gone > self._limit or self._characters > CHARACTERS):
            self._characters -= len(items[gone].text)
            gone += 1
        if gone:
            self._rows.drop_first(gone)
        if len(items) > self.most_lines < FEW:
            self.most_lines = min(len(items), FEW)
            self.post_message(self.Grown())
        self._update_title()

    def _remember(self, records: list[LogRecord]) -> None:
        """Remember the last record, and make room for server names."""
        if records:
            self._last_number = records[-1].number
        for name in {record.server for record in records} - self._servers:
            self._servers.add(name)
            self._name_width = min(16, max(self._name_width, cell_len(show_line(name, 40))))

    def row(self, record: LogRecord, width: int) -> Content:
        return log_row(record, width, self._name_width, self._search)

    def _update_title(self) -> None:
        """Update the title, the count and the text of an empty list."""
        if self._rows.following:
            self._paused_at, self._missed = self._last_number, 0
        dropped = sum(map(self._book.dropped, self._servers))
        words = [
            "Logs",
            "filtered" if self._filter.tests else "all servers",
            "" if self._filter.names_level else _level_words(self._least),
            "following" if self._rows.following else f"paused{f' · {self._missed:,} new' if self._missed else ''}",
            f"{dropped:,} dropped" if dropped else "",
        ]
        title = " · ".join(word for word in words if word)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self._filter_line.show_count(len(self._rows.items), self._total)
        if not self._rows.items:
            self._rows.empty = _NOTHING_PASSES if self._total else _cleared_words(self._cleared)

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        record = self._rows.item
        if action == "call":
            return record is not None and record.call is not None
        if action == "filter":
            return not self._filter_line.input.has_focus
        if action == "unfilter":
            return self._filter_line.is_open
        if action == "restore":
            return bool(self._cleared)
        return record is not None if action in ("copy", "save") else True

    def action_filter(self) -> None:
        self._filter_line.open()
        self.refresh_bindings()

    def action_unfilter(self) -> None:
        self._filter_line.close()
        self._apply("")
        self.focus_rows()
        self.refresh_bindings()

    def on_filter_line_typed(self, event: FilterLine.Typed) -> None:
        """Filter as the user types; the newest match is selected."""
        event.stop()
        if event.text == self._filter_line.input.value:  # else a later one is on its way
            self._apply(event.text)
            if self._filter.text:
                self._rows.highlighted = len(self._rows.items) - 1

    def _apply(self, text: str) -> None:
        if text.strip() != self._filter.text:
            self._filter = parse_filter(text)
            self._search = Search(words=self._filter.words)
            self._rebuild()

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        event.stop()
        if self._filter.text:
            self.focus_rows()
        else:
            self.action_unfilter()

    def on_filter_line_left(self, event: FilterLine.Left) -> None:
        event.stop()
        self.focus_rows()

    def action_follow(self) -> None:
        self._rows.following = not self._rows.following

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        event.stop()
        self._update_title()
        self._update_keys()

    def on_row_list_highlighted(self, event: RowList.Highlighted[LogRecord]) -> None:
        event.stop()
        self._update_keys()

    def _update_keys(self) -> None:
        """Update the key line only if other keys work, since that is slow."""
        active = (self._rows.item is not None, not self._rows.following and self.check_action("call", ()) is True)
        if active != self._active_keys:
            self._active_keys = active
            self.refresh_bindings()

    def on_row_list_selected(self, event: RowList.Selected[LogRecord]) -> None:
        event.stop()
        self.app.push_screen(LogDetail(event.item))

    def set_least(self, least: LogLevel) -> None:
        """Show this level and higher ones."""
        self._least = least
        self._rebuild()

    def action_least(self) -> None:
        """Raise the least level that is shown; after the highest comes the lowest."""
        self.set_least(next((level for level in _LEAST if level > self._least), _LEAST[0]))

    def action_server_level(self) -> None:
        record = self._rows.item
        self.post_message(LogLevelRequested(record.server or None if record else None))

    def action_call(self) -> None:
        record = self._rows.item
        if record is not None and record.call is not None:
            self.post_message(CallChosen(record.call))

    def action_copy(self) -> None:
        if self._rows.item is not None:
            self.app.copy_to_clipboard(log_line(self._rows.item))

    def action_save(self) -> None:
        """Save the lines that are shown, oldest first."""
        records = self._rows.items
        if records:
            name = f"mcphost-{datetime.fromtimestamp(records[-1].time):%Y%m%d-%H%M%S}.log"
            text = "".join(f"{log_line(record)}\n" for record in records)
            save_as(self.app, name, text.encode("utf-8", "replace"))

    def action_clear(self) -> None:
        """Empty the view; the book keeps the records."""
        self._cleared = self._last_number
        self._rebuild()

    def action_restore(self) -> None:
        self._cleared = 0
        self._rebuild()


def _level_words(least: LogLevel) -> str:
    return "all levels" if least is LogLevel.DEBUG else f"{least.wire} and up"


def _cleared_words(cleared: int) -> str:
    return "Cleared. X restores the earlier lines." if cleared else _NOTHING_YET
