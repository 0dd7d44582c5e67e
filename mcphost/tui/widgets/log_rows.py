"""A record of the log as one line of the pane, and as text for a file."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from textual.content import Content

from mcphost.host.logs import LogRecord, LogSource
from mcphost.protocol.display import show, show_line
from mcphost.protocol.types import LogLevel
from mcphost.tui.log_filter import OWN_NAME
from mcphost.tui.ranking import Search
from mcphost.tui.widgets.columns import Cell, columns


def log_row(record: LogRecord, width: int, name_width: int, search: Search) -> Content:
    """One line: time, server, level or source, text with the words that are searched, and the call that was running."""
    mark, style = _look(record.level)
    word = record.level.wire if record.source is LogSource.SERVER else record.source.value
    cells = [
        Cell(_clock(int(record.time)), "$text-muted", 8, 8),
        Cell(show_line(record.server, 40) or OWN_NAME, "", min(8, name_width), name_width),
        Cell(f"{mark} {word}", style, 11, 11),
        Cell(_text(record, width, search), style if record.level >= LogLevel.WARNING else "", 10),
    ]
    if record.call is not None:
        cells.append(Cell(f"↗{record.call}", "$text-accent", 4, len(str(record.call)) + 1, "right"))
    return columns(width, cells)


def log_line(record: LogRecord) -> str:
    """A record as text for a file or the clipboard; later lines of its text are indented."""
    words = [
        f"{datetime.fromtimestamp(record.time).astimezone().isoformat(timespec='milliseconds')}",
        show_line(record.server, 100) or OWN_NAME,
        record.source.value,
        record.level.wire,
        "" if record.call is None else f"call:{record.call}",
        f"{show_line(record.logger, 100)}:" if record.logger else "",
        show(record.text).replace("\n", "\n    "),
    ]
    return " ".join(word for word in words if word)


def _text(record: LogRecord, width: int, search: Search) -> Content:
    text = search.mark(show_line(record.text, width))
    if not record.logger:
        return text
    return Content.assemble((show_line(record.logger, 24), "$text-muted"), " ", text)


def _look(level: LogLevel) -> tuple[str, str]:
    """A mark that is seen without colour, and a style."""
    if level >= LogLevel.ERROR:
        return "✖", "bold $text-error"
    if level >= LogLevel.WARNING:
        return "!", "$text-warning"
    return " ", "$text-muted" if level is LogLevel.DEBUG else ""


@lru_cache(maxsize=256)
def _clock(second: int) -> str:
    """The local time of a second since the epoch; a clock set to nonsense is no reason to fail."""
    try:
        return f"{datetime.fromtimestamp(second):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--"
