"""The main screen: servers, what one does with them, and the logs below.

It arranges the panes and brings what they ask for to the app; it holds no state of the host's.
"""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer, TabbedContent, TabPane

from mcphost.host.logs import LogBook
from mcphost.tui.widgets.call_list import CallList
from mcphost.tui.widgets.logs import LogsPane
from mcphost.tui.widgets.server_card import ServerCard
from mcphost.tui.widgets.servers import ServersPane
from mcphost.tui.widgets.tools import ToolsPane
from mcphost.tui.widgets.top_line import TopLine

SIDE_BY_SIDE = 130
"""Columns from which list, form and result stand side by side."""

ROOM_FOR_LOGS = 34
"""Rows from which the log drawer is open at the start."""


class MainScreen(Screen[None]):
    """The one screen that is always there."""

    HELP = "s servers, t tools, h calls, c card, f3 logs: go there. tab goes on, esc back. ctrl+q leaves mcphost."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "go('servers')", "servers", id="go.servers", tooltip="To the servers"),
        Binding("t", "go('tools')", "tools", id="go.tools", tooltip="To the tools"),
        Binding("h", "go('calls')", "calls", id="go.calls", tooltip="To the calls of this run"),
        Binding("c", "go('card')", "card", id="go.card", tooltip="To the server's card", show=False),
        Binding("f3", "logs", "logs", id="go.logs", tooltip="Open the logs and go there, or close them"),
    ]

    DEFAULT_CSS = """
    MainScreen {
        layout: vertical;
        #body { height: 1fr; }
        ServersPane { width: 28; height: 100%; }
        &.-narrow ServersPane { width: 20; }
        TabbedContent { width: 1fr; height: 100%; }
        TabPane { padding: 0; }
        Tabs { height: 1; }
        Tab { height: 1; }
        Tab.-active { text-style: bold reverse; }
        Underline { display: none; }
        LogsPane { height: 32%; min-height: 6; }
        &.-no-logs LogsPane { display: none; }
    }
    """

    def __init__(self, logs: LogBook, log_panel: str, welcome: str) -> None:
        super().__init__()
        self._logs, self._log_panel, self._welcome = logs, log_panel, welcome

    def compose(self) -> ComposeResult:
        """Top line, servers beside the work, logs, footer."""
        yield TopLine()
        with Horizontal(id="body"):
            yield ServersPane()
            with TabbedContent(id="work-tabs"):
                with TabPane("Tools", id="tools"):
                    yield ToolsPane(self._welcome)
                with TabPane("Calls", id="calls"):
                    yield CallList()
                with TabPane("Server", id="card"):
                    yield ServerCard()
        yield LogsPane(self._logs)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Open or close the logs as there is room, and start in the tools."""
        is_open = self._log_panel == "open" or (self._log_panel == "auto" and self.size.height >= ROOM_FOR_LOGS)
        self.set_class(not is_open, "-no-logs")
        self.query_one(ToolsPane).focus_list()

    def on_resize(self, event: Resize) -> None:
        """Arrange by the room there is."""
        self.set_class(event.size.width < 100, "-narrow")
        self.query_one(ToolsPane).set_single(event.size.width < SIDE_BY_SIDE or event.size.height < 24)

    @property
    def logs_open(self) -> bool:
        """Is the log drawer open?"""
        return not self.has_class("-no-logs")

    def action_go(self, where: str) -> None:
        """Put the focus on a part."""
        if where == "servers":
            self.query_one(ServersPane).query_one("RowList").focus()
            return
        self.query_one(TabbedContent).active = where
        match where:
            case "tools":
                self.query_one(ToolsPane).focus_list()
            case "calls":
                self.query_one(CallList).query_one("RowList").focus()
            case _:
                self.query_one(ServerCard).focus()

    def action_logs(self) -> None:
        """Open the logs and go there; close them from there."""
        logs = self.query_one(LogsPane)
        if self.logs_open and logs.has_focus_within:
            self.set_class(True, "-no-logs")
            self.action_go("tools")
        else:
            self.set_class(False, "-no-logs")
            logs.focus_rows()

    @on(ServersPane.CardWanted)
    def _card_wanted(self, event: ServersPane.CardWanted) -> None:
        if event.server is None:
            event.stop()
            self.action_go("tools")
        else:
            self.action_go("card")
