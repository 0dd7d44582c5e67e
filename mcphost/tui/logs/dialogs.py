"""Dialogs of the log: a record in full, and the choice of a server's log level."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from mcphost.host.logs import LogRecord, LogSource
from mcphost.protocol.display import show, show_line
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.framed import PickScreen
from mcphost.tui.kit.json_text import json_lines, json_spans, parse
from mcphost.tui.kit.messages import CallChosen
from mcphost.tui.kit.modal_screen import Modal
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.logs.filter import OWN_NAME


class LogDetail(Modal[None]):
    """A record in full, in the upper part of the screen, since the log is in the lower; JSON is laid out."""

    HELP = "A log line in full."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "back", "back", tooltip="Back to the log", id="log_detail.back"),
        Binding("y", "copy", "copy", tooltip="Copy this line", id="log_detail.copy"),
        Binding("C", "call", "call", tooltip="Open the call that was running", id="log_detail.call"),
    ]
    DEFAULT_CSS = """
    LogDetail {
        align: center top;
        & > Vertical {
            width: 100%; height: auto; padding: 0 1;
            border: round $border; background: $surface; border-subtitle-color: $foreground-muted;
        }
        & TextView { height: auto; max-height: 60vh; }
    }
    """

    def __init__(self, record: LogRecord) -> None:
        super().__init__()
        self.record = record

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(_title(self.record))
            keys = ("C call", "y copy", "esc back") if self.record.call is not None else ("y copy", "esc back")
            frame.border_subtitle = Content(" · ".join(keys))
            yield text_view(self.record.text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not (action == "call" and self.record.call is None)

    def action_back(self) -> None:
        self.dismiss(None)

    def action_copy(self) -> None:
        self.dismiss()
        self.app.copy_to_clipboard(log_line(self.record))

    def action_call(self) -> None:
        if self.record.call is not None:
            self.dismiss()
            self.app.post_message(CallChosen(self.record.call))


def log_line(record: LogRecord) -> str:
    """A record as text for a file or the clipboard; further lines of its text are indented."""
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


def text_view(text: str) -> TextView:
    """A view of the text; JSON is laid out and coloured."""
    try:
        lines, _ = json_lines(parse(text))
    except ValueError:
        return TextView(show(text).split("\n"))
    return TextView(lines, spans=json_spans)


def _title(record: LogRecord) -> str:
    words = [
        f"{date_text(record.time)} {clock_text(record.time, milliseconds=True)}",
        show_line(record.server, 40) or OWN_NAME,
        record.level.wire if record.source is LogSource.SERVER else f"{record.source.value} ({record.level.wire})",
        show_line(record.logger, 40),
        "" if record.call is None else f"call {record.call}",
    ]
    return " · ".join(word for word in words if word)


class LevelScreen(PickScreen[LogLevel, LogLevel]):
    """Dismissed with the chosen level."""

    HELP = "The lowest log level that this server should send."

    DEFAULT_CSS = """
    LevelScreen { & > .frame { width: 44; } }
    """

    def __init__(self, server: str, level: LogLevel | None) -> None:
        super().__init__(f"Log level of “{server}”", "choose", list(LogLevel), at=(level or LogLevel.INFO).value)

    def row(self, item: LogLevel, width: int) -> Content:
        return columns(width, [Cell(f"{item.wire} and above")])

    def value(self, item: LogLevel) -> LogLevel:
        return item
