"""The main screen: servers, what one does with them, and the logs below.

It arranges the panes; it holds no state of the host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Tab, TabbedContent, TabPane

from mcphost.dataclass import dataclass
from mcphost.host.host import Host
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.key_bar import KeyLine
from mcphost.tui.kit.timers import unskipped
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main.lazy_panes import LatePanes
from mcphost.tui.main.top_bar import TopBar
from mcphost.tui.servers.card import ServerCard
from mcphost.tui.servers.list import ServersPane
from mcphost.tui.tools.call_list import CallList
from mcphost.tui.tools.pane import ToolsPane

if TYPE_CHECKING:
    from mcphost.tui.offers.pane import OfferPane

SIDE_BY_SIDE = 130
"""Columns from which list, form and result stand side by side."""

WHOLE_TABS = 78
"""Columns from which the names of all tabs fit beside the servers."""

TAB_NAMES = {
    "tools": ("Tools", "Tools"),
    "resources": ("Resources", "Res."),
    "prompts": ("Prompts", "Pro."),
    "chat": ("Chat", "Chat"),
    "calls": ("Calls", "Calls"),
    "card": ("Server", "Srv."),
    "traffic": ("Traffic", "Traf."),
}
"""What stands on each tab, and what where there is little room."""

FIRST_PICTURE = 0.1
"""Seconds in which what is seen first gets the processor to itself: everything else can wait that long."""

ROOM_FOR_LOGS = 34
"""Rows from which the log drawer is open by itself."""

ROOM_BESIDE_LOGS = 20
"""Rows below which it is closed even where it was wanted: what else there is needs them."""


class MainScreen(ErrorBoundary, LatePanes):
    """The one screen that is always there."""

    HELP = (
        "f5 chat, s servers, t tools, e resources, p prompts, h calls, c card, f3 logs, f4 traffic: go there.\n"
        "T the tasks that servers keep. "
        "tab goes on, esc back. ctrl+q leaves mcphost."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "go('chat')", "chat", id="go.chat", tooltip="To the conversation with a model"),
        Binding("s", "go('servers')", "servers", id="go.servers", tooltip="To the servers"),
        Binding("t", "go('tools')", "tools", id="go.tools", tooltip="To the tools"),
        Binding("e", "go('resources')", "resources", id="go.resources", tooltip="To what servers have to read"),
        Binding("p", "go('prompts')", "prompts", id="go.prompts", tooltip="To the texts servers have ready"),
        Binding("h", "go('calls')", "calls", id="go.calls", tooltip="To the calls of this run"),
        Binding("c", "go('card')", "card", id="go.card", tooltip="To the server's card", show=False),
        Binding("f3", "logs", "logs", id="go.logs", tooltip="Open the logs and go there, or close them"),
        Binding("T", "tasks", "tasks", id="go.tasks", tooltip="The tasks servers keep: calls they answer later"),
        Binding("f4", "traffic", "traffic", id="go.traffic", tooltip="To the traffic, from a call to what it sent"),
    ]

    DEFAULT_CSS = """
    MainScreen {
        layout: vertical;
        #body { height: 1fr; }
        ServersPane { width: 28; height: 100%; }
        &.-narrow ServersPane { width: 20; }
        &.-narrow.-traffic ServersPane, &.-narrow.-chat ServersPane { display: none; }
        TabbedContent { width: 1fr; height: 100%; }
        TabPane { padding: 0; }
        Tabs { height: 1; }
        Tab { height: 1; }
        &.-tight Tab { padding: 0 1 0 0; }
        Tab { color: $foreground-muted; opacity: 100%; }
        Tab.-active { color: $text-accent; text-style: bold underline; }
        Underline { display: none; }
        LogsPane { height: 32%; min-height: 6; }
        &.-no-logs LogsPane { display: none; }
    }
    """

    @dataclass
    class TasksRequested(Message):
        """The user asked for the tasks of this server; None: of all servers."""

        server: str | None

    class InFront(Message):
        """Nothing is above this screen any more."""

    class ChatOpened(Message):
        """The conversation is in front now."""

    def __init__(self, host: Host, welcome: str) -> None:
        super().__init__(host)
        self._log_panel: str = host.config.ui.log_panel
        self.top_line = TopBar()
        self.servers = ServersPane()
        self.tools = ToolsPane(host, welcome)
        self.calls = CallList()
        self.card = ServerCard(host)
        self.logs = LogsPane(host.logs, least=LogLevel.read(host.config.ui.logs) or LogLevel.INFO)
        self._keys = KeyLine()
        self._tasks_there = False
        self._counts: Mapping[str, int] = {}
        self._before_chat = "tools"

    def compose(self) -> ComposeResult:
        """Top line, servers beside the work, footer: what is seen first. `_furnish` adds the rest."""
        self._arrange(self.app.size)
        yield self.top_line
        with Horizontal(id="body"):
            yield self.servers
            with TabbedContent(id="work-tabs"):
                for name, (full, short) in TAB_NAMES.items():
                    with TabPane(short if self.has_class("-tight") else full, id=name):
                        if name == "tools":
                            yield self.tools
        if self.logs_open:
            yield self.logs
        yield self._keys

    def on_mount(self) -> None:
        """Start in the tools; what is not seen yet is made after the first picture."""
        self.tools.focus_list()
        unskipped(self.set_timer(FIRST_PICTURE, self._furnish))

    async def _furnish(self) -> None:
        await self.tools.bench()
        await self.resources_pane()
        await self.prompts_pane()
        await self.chat_pane()
        await self._put("calls", self.calls)
        await self._put("card", self.card)
        await self.traffic_pane()
        if not self.logs.is_attached:
            await self.mount(self.logs, before=self._keys)

    def on_screen_resume(self) -> None:
        self.post_message(self.InFront())

    def on_resize(self, event: Resize) -> None:
        """Arrange by the room there is."""
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        self.set_class(size.width < 100, "-narrow")
        self.set_class(size.width < WHOLE_TABS, "-tight")
        self._label_tabs()
        self.single = size.width < SIDE_BY_SIDE or size.height < 24
        for pane in (self.tools, self.resources, self.prompts):
            if pane is not None:
                pane.set_single(self.single)
        self._arrange_logs(size)

    def _arrange_logs(self, size: Size) -> None:
        """Open the log drawer where it is wanted and there is room; a conversation has the rows for itself."""
        if not self.logs.has_focus_within:
            least = {"open": ROOM_BESIDE_LOGS, "auto": ROOM_FOR_LOGS}.get(self._log_panel)
            has_room = least is not None and size.height >= least and not self.has_class("-chat")
            self.set_class(not has_room, "-no-logs")

    def set_log_panel(self, wanted: str) -> None:
        """Open or close the log panel as ``[ui] log_panel`` says."""
        self._log_panel = wanted
        self._arrange_logs(self.size)

    @property
    def logs_open(self) -> bool:
        """Is the log drawer open?"""
        return not self.has_class("-no-logs")

    def action_go(self, where: str) -> None:
        """Put the focus on a part."""
        if where == "servers":
            self.remove_class("-traffic", "-chat")
            self._arrange_logs(self.app.size)
            self.servers.rows.focus()
            return
        self.query_one(TabbedContent).active = where
        match where:
            case "tools":
                self.tools.focus_list()
            case "resources":
                self.call_later(self._go_to_list, self.resources_pane)
            case "prompts":
                self.call_later(self._go_to_list, self.prompts_pane)
            case "chat":
                self.call_later(self._go_to_chat)
            case "calls":
                self.call_later(self._go_into, "calls", self.calls, self.calls.rows)
            case _:
                self.call_later(self._go_into, "card", self.card, self.card)

    async def _go_into(self, tab: str, pane: Widget, part: Widget) -> None:
        """It may be wanted before its turn to be put there came."""
        await self._put(tab, pane)
        part.focus()

    @on(TabbedContent.TabActivated)
    def _tab_changed(self, event: TabbedContent.TabActivated) -> None:
        self.set_class(event.pane.id == "traffic", "-traffic")
        self.set_class(event.pane.id == "chat", "-chat")
        if event.pane.id not in ("chat", None):
            self._before_chat = event.pane.id
        self._arrange_logs(self.app.size)
        if event.pane.id == "chat":
            self.post_message(self.ChatOpened())

    async def on_chat_pane_left(self) -> None:
        """Back to where the user was before."""
        if self._before_chat == "traffic":
            self.query_one(TabbedContent).active = "traffic"
            (await self.traffic_pane()).focus_rows()
        else:
            self.action_go(self._before_chat)

    async def action_traffic(self) -> None:
        """Go to the traffic; from a call, to what was sent and came for it."""
        call, pane = self._call_in_view, await self.traffic_pane()
        self.query_one(TabbedContent).active = "traffic"
        if call is not None:
            pane.show_call(call)
        else:
            pane.focus_rows()

    @property
    def _call_in_view(self) -> int | None:
        if self.calls.has_focus_within and self.calls.item is not None:
            return self.calls.item.number
        if self.chat is not None and (number := self.chat.call_in_view) is not None:
            return number
        return self.tools.shown_call if self.tools.step == "result" and self.tools.has_focus_within else None

    @property
    def conversing(self) -> bool:
        """Is the conversation what one sees?"""
        return self.chat is not None and self.query_one(TabbedContent).active == "chat"

    async def _go_to_chat(self) -> None:
        (await self.chat_pane()).focus_input()

    async def _go_to_list(self, made: Callable[[], Awaitable[OfferPane[Any]]]) -> None:
        (await made()).focus_list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There are tasks only where a server has them."""
        return self._tasks_there if action == "tasks" else True

    def servers_changed(self) -> None:
        """Keys that need a server of some kind may do something now, or no longer."""
        if self.servers.keeping_tasks != self._tasks_there:
            self._tasks_there = not self._tasks_there
            self.refresh_bindings()

    def action_tasks(self) -> None:
        """List the tasks of the server of the call under the cursor, or of the servers chosen."""
        call = self.calls.item if self.calls.has_focus_within else None
        self.post_message(self.TasksRequested(self.servers.chosen if call is None else call.request.server))

    def show_counts(self, counts: Mapping[str, int]) -> None:
        """Say in the labels of these tabs how many there are, where there is room."""
        self._counts = counts
        self._label_tabs()

    def _label_tabs(self) -> None:
        for tab in self.query(Tab):  # none yet at the start, none any more at the end
            name = (tab.id or "").rpartition("-")[2]
            count = 0 if self.has_class("-narrow") else self._counts.get(name, 0)
            full, short = TAB_NAMES[name]
            label = Content(short if self.has_class("-tight") else f"{full} {count:,}" if count else full)
            if tab.label != label:
                tab.label = label

    def action_logs(self) -> None:
        """Open the logs and go there; close them from there."""
        if self.logs_open and self.logs.has_focus_within:
            self._log_panel = "closed"
            self.set_class(True, "-no-logs")
            self.action_go("tools")
        else:
            self._log_panel = "open"
            self.set_class(False, "-no-logs")
            self.logs.focus_rows()

    @on(ServersPane.Selected)
    def _server_selected(self, event: ServersPane.Selected) -> None:
        if event.server is None:
            event.stop()
            self.action_go("tools")
        else:
            self.action_go("card")
