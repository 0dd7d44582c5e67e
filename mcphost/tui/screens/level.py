"""Choosing which log messages a server should send."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mcphost.protocol.types import LogLevel
from mcphost.tui.screens.dialog import KEYS


class LevelScreen(ModalScreen[LogLevel | None]):
    """The eight levels; dismissed with the chosen one."""

    HELP = "The least severe log message that this server should send. enter chooses, esc leaves it as it is."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="level.back", tooltip="Leave it as it is"),
        KEYS,
    ]

    DEFAULT_CSS = """
    LevelScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical { width: 44; height: auto; border: round $accent; background: $surface; }
        OptionList { height: auto; background: $surface; &, &:focus { border: none; } }
    }
    """

    def __init__(self, server: str, level: LogLevel | None) -> None:
        super().__init__()
        self._server, self._level = server, level

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Log level of {self._server}")
            yield OptionList(*(Option(f"{level.wire} and above", id=level.wire) for level in LogLevel))

    def on_mount(self) -> None:
        """Begin at the level it has."""
        self.query_one(OptionList).highlighted = (self._level or LogLevel.INFO).value

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(LogLevel.read(event.option.id))

    def action_back(self) -> None:
        """Close without a choice."""
        self.dismiss(None)
