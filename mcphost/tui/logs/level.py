"""Choosing which log messages a server should send."""

from __future__ import annotations

from textual.content import Content

from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.pick import PickScreen
from mcphost.tui.kit.rows import Cell, columns


class LevelScreen(PickScreen[LogLevel, LogLevel]):
    """The eight levels; dismissed with the chosen one."""

    HELP = "The least severe log message that this server should send. enter chooses, esc leaves it as it is."

    DEFAULT_CSS = """
    LevelScreen { & > Vertical { width: 44; } }
    """

    def __init__(self, server: str, level: LogLevel | None) -> None:
        super().__init__(f"Log level of {server}", "choose", list(LogLevel), at=(level or LogLevel.INFO).value)

    def row(self, item: LogLevel, width: int) -> Content:
        return columns(width, [Cell(f"{item.wire} and above")])

    def value(self, item: LogLevel) -> LogLevel:
        return item
