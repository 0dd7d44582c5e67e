"""The log of all servers: their log messages and stderr, and the decisions of mcphost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.logs import LogBook, LogRecord, LogSource
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.clock import clock_text, file_stamp
from mcphost.tui.kit.followed_list import FollowedList, list_keys
from mcphost.tui.kit.messages import CallChosen, LogLevelRequested
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.logs.dialogs import LogDetail, log_line
from mcphost.tui.logs.filter import EXAMPLES, OWN_NAME, LogFilter, parse_filter


class LogWidths(NamedTuple):
    """Cells of the columns that are as wide as what is in them."""

    name: int
    call: int
    """0 if no line belongs to a call; the column is then left out."""


def log_row(record: LogRecord, width: int, widths: LogWidths, search: Search) -> Content:
    """Time, server, level or source, the text with its matches marked, and the call that was running."""
    mark, style = _mark_of(record.level)
    word = record.level.wire if record.source is LogSource.SERVER else record.source.value
    return columns(
        width,
        [
            Cell(clock_text(record.time), "$foreground-muted", 8, 8),
            Cell(show_line(record.server, 40) or OWN_NAME, "", min(8, widths.name), widths.name),
            Cell(f"{mark} {word}", style, 11, 11),
            Cell(_text(record, width, search), style if record.level >= LogLevel.WARNING else "", 10),
            Cell("" if record.call is None else f"↗{record.call}", "$text-accent", widths.call, widths.call, "right"),
        ],
    )


def log_head(width: int, widths: LogWidths) -> Content:
    """The heads of the columns that `log_row` makes."""
    return columns(
        width,
        [
            Cell("time", "", 8, 8),
            Cell("server", "", min(8, widths.name), widths.name),
            Cell("  level", "", 11, 11),
            Cell("message", "", 10),
            Cell("call", "", widths.call, widths.call, "right"),
        ],
    )


def _text(record: LogRecord, width: int, search: Search) -> Content:
    text = search.mark(show_line(record.text, width))
    if not record.logger:
        return text
    return Content.assemble((show_line(record.logger, 24), "$foreground-muted"), " ", text)


def _mark_of(level: LogLevel) -> tuple[str, str]:
    """The mark of a level, which is seen without colours, and its style."""
    if level >= LogLevel.ERROR:
        return "✖", "bold $text-error"
    if level >= LogLevel.WARNING:
        return "▲", "$text-warning"
    return " ", "$foreground-muted" if level is LogLevel.DEBUG else ""


FEW: Final = 8
"""Lines for which the pane asks for room."""

LINES: Final = 20_000
CHARACTERS: Final = 20 << 20
"""Limits of the list; the oldest lines go first. A change of the filter reads from the book again."""

_LEAST: Final = (LogLevel.DEBUG, LogLevel.INFO, LogLevel.WARNING, LogLevel.ERROR)


def _key(key: str, action: str, description: str, tooltip: str, *, show: bool = True) -> Binding:
    return Binding(key, action, description, show=show, tooltip=tooltip, id=f"logs.{action}")


class LogsPane(FollowedList[LogRecord]):
    """A live view of ``book``; the app calls `refresh_logs` when records were added, at most once a frame."""

    EMPTY = (
        "No log lines yet.\n\nServers' log messages, their stderr and mcphost's own decisions appear here.\n"
        "L makes a server log more."
    )
    NO_MATCH = "No lines match.\n\nesc shows all · / changes the filter · l shows lower levels"
    CLEARED = "Cleared. X restores the earlier lines."
    HELP = (
        "The logs of all servers: their log messages, stderr and stray stdout, and mcphost's own decisions.\n"
        f"Filter: {EXAMPLES}"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *list_keys("logs", "line", "lines", clear="Clear the list; X restores it"),
        Binding("escape", "screen.logs", "back", id="logs.back", tooltip="Close the logs, and go back"),
        _key("l", "least", "level", "Lowest level shown here: debug, info, warning, error"),
        _key("L", "server_level", "server level", "Make this line's server log more or less", show=False),
        _key("C", "call", "call", "Open the call that was running"),
        _key("y", "copy", "copy", "Copy this line"),
        _key("w", "save", "save", "Export the lines shown to a file"),
    ]

    class Grown(Message):
        """The pane needs room for more lines: `most_lines`."""

    @dataclass
    class Warned(Message):
        """Servers logged this many warnings or worse."""

        count: int

    def __init__(
        self, book: LogBook, *, least: LogLevel = LogLevel.INFO, limit: int = LINES, id: str | None = None
    ) -> None:
        super().__init__(parse_filter, EXAMPLES, id=id, rows_id="log-rows")
        self.filter: LogFilter
        self._book, self._limit, self._least = book, limit, least
        self._characters = 0
        self._servers: set[str] = set()
        self._widths = LogWidths(len(OWN_NAME), 0)
        self._active_keys = (False, False)
        self.most_lines = 0
        """The most lines that there were, up to `FEW`, so that a filter makes the pane no smaller."""

    def on_mount(self) -> None:
        self.rebuild()
        self._post_warnings(self._book.since(0))

    def refresh_logs(self) -> None:
        """Show the records since the last call. The cost does not depend on how many are kept."""
        if not self.is_mounted:
            return  # mounting reads all of them
        fresh = self._book.since(self.last_number - 1) if self.last_number else self._book.since(0)
        if self.last_number and (not fresh or fresh[0].number != self.last_number):
            self.rebuild()  # the last record we saw was cleared or evicted
            return
        self._add(fresh[1:] if self.last_number else fresh)

    def passes(self, record: LogRecord) -> bool:
        return record.level >= self._bound and self.filter.passes(record)

    @property
    def _bound(self) -> LogLevel:
        return LogLevel.DEBUG if self.filter.names_level else self._least

    def _add(self, fresh: list[LogRecord]) -> None:
        if not fresh:
            return
        self._remember(fresh)
        self._post_warnings(fresh)
        shown = [record for record in fresh if self.passes(record)]
        self.rows.append(shown)
        self.total += len(fresh)
        self.unseen += len(shown)
        self._enforce_limits(shown)

    def _post_warnings(self, records: list[LogRecord]) -> None:
        count = sum(record.level >= LogLevel.WARNING for record in records)
        if count:
            self.post_message(self.Warned(count))

    def rebuild(self) -> None:
        kept = self._book.since(self.cleared)
        self._remember(kept)
        shown = [record for record in kept if self.passes(record)]
        self.list_items(shown)
        self.total, self._characters = len(kept), 0
        self._enforce_limits(shown)

    def _enforce_limits(self, added: list[LogRecord]) -> None:
        """Enforce the limits, and update the title."""
        self._characters += sum(len(record.text) for record in added)
        gone, items = 0, self.rows.items
        while gone < len(items) and (len(items) - gone > self._limit or self._characters > CHARACTERS):
            self._characters -= len(items[gone].text)
            gone += 1
        if gone:
            self.rows.drop_first(gone)
        if len(items) > self.most_lines < FEW:
            self.most_lines = min(len(items), FEW)
            self.post_message(self.Grown())
        self.update_title()

    def _remember(self, records: list[LogRecord]) -> None:
        """Remember the last record, and make room for server names."""
        if records:
            self.last_number = records[-1].number
        name, call = self._widths
        for server in {record.server for record in records} - self._servers:
            self._servers.add(server)
            name = min(16, max(name, cell_len(show_line(server, 40))))
        last_call = max((record.call or 0 for record in records), default=0)
        self._widths = LogWidths(name, max(call, 4, len(str(last_call)) + 1) if last_call else call)

    def row(self, item: LogRecord, width: int) -> Content:
        return log_row(item, width, self._widths, self.search)

    def head(self, width: int) -> Content:
        return log_head(width, self._widths)

    def title_words(self) -> Iterable[str]:
        dropped = sum(map(self._book.dropped, self._servers))
        return (
            "Logs",
            "filtered" if self.filter.tests else "all servers",
            "" if self.filter.names_level else _level_words(self._least),
            self.following_words,
            f"{dropped:,} dropped" if dropped else "",
        )

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        record = self.rows.item
        if action == "call":
            return record is not None and record.call is not None
        return record is not None if action in ("copy", "save") else super().check_action(action, parameters)

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        self._update_keys()

    def on_row_list_highlighted(self, event: RowList.Highlighted[LogRecord]) -> None:
        event.stop()
        self._update_keys()

    def _update_keys(self) -> None:
        """Update the key line only if other keys work, since that is slow."""
        active = (self.rows.item is not None, not self.rows.following and self.check_action("call", ()) is True)
        if active != self._active_keys:
            self._active_keys = active
            self.refresh_bindings()

    def on_row_list_selected(self, event: RowList.Selected[LogRecord]) -> None:
        event.stop()
        self.app.push_screen(LogDetail(event.item))

    def set_least(self, least: LogLevel) -> None:
        """Show this level and higher ones."""
        self._least = least
        self.rebuild()

    def action_least(self) -> None:
        """Raise the least level that is shown; after the highest comes the lowest."""
        self.set_least(next((level for level in _LEAST if level > self._least), _LEAST[0]))

    def action_server_level(self) -> None:
        record = self.rows.item
        self.post_message(LogLevelRequested(record.server or None if record else None))

    def action_call(self) -> None:
        record = self.rows.item
        if record is not None and record.call is not None:
            self.post_message(CallChosen(record.call))

    def action_copy(self) -> None:
        if self.rows.item is not None:
            self.app.copy_to_clipboard(log_line(self.rows.item))

    async def exported(self, items: Sequence[LogRecord]) -> tuple[str, bytes]:
        text = "".join(f"{log_line(record)}\n" for record in items)
        return f"mcphost-{file_stamp()}.log", text.encode("utf-8", "replace")


def _level_words(least: LogLevel) -> str:
    return "all levels" if least is LogLevel.DEBUG else f"{least.wire} and up"
