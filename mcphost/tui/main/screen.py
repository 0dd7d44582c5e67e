"""The main screen: the servers, the panes beside them in tabs, and the logs below."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import messages, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Tab, TabbedContent, TabPane, Tabs

from mcphost.host.host import Host
from mcphost.host.layout import Layout, LogDrawer
from mcphost.host.tool_calls.call import ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.catalog.list import CatalogList
from mcphost.tui.kit.key_bar import KeyLine
from mcphost.tui.kit.messages import RoomChanged
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main.banner import EXAMPLE, StartBanner
from mcphost.tui.main.top_bar import TopBar
from mcphost.tui.servers.card import ServerCard
from mcphost.tui.servers.list import ServersPane
from mcphost.tui.start_info import StartInfo
from mcphost.tui.textual_private.corrections import ErrorBoundary, TabsWithoutRace, timer_without_skips
from mcphost.tui.tools.call_list import CallList, server_of
from mcphost.tui.tools.pane import ToolsPane

if TYPE_CHECKING:
    from mcphost.tui.agents.list import AgentRow, AgentsPane
    from mcphost.tui.catalog.pane import CatalogPane
    from mcphost.tui.chat.pane import ChatPane
    from mcphost.tui.prompts.pane import PromptsPane
    from mcphost.tui.resources.pane import ResourcesPane
    from mcphost.tui.skills.pane import SkillsPane
    from mcphost.tui.traffic.pane import TrafficPane

Pane = TypeVar("Pane", bound=Widget)

FOLDED = 100
"""Columns below which the servers fold to a strip of marks."""

SIDE_BY_SIDE = 110
"""Columns from which a list is beside what it opens."""

TWO_PARTS = 24
"""Rows from which a pane shows a list and what it opens one above the other."""

FOLDED_FOR_WORK = 140
"""Columns below which they fold while a form, or what it opened, has the user's attention."""

THREE_COLUMNS = 180
"""Columns from which list, form and result are side by side."""

SERVERS, FOLDED_SERVERS = 26, 6
"""Columns of the servers, and of their strip of marks."""

TAB_MARGINS = 2
"""Columns beside the label of a tab."""

TAB_NAMES = {
    "tools": ("Tools", "Tools", "t"),
    "resources": ("Resources", "Res.", "e"),
    "prompts": ("Prompts", "Pro.", "p"),
    "skills": ("Skills", "Skills", "I"),
    "chat": ("Chat", "Chat", "f5"),
    "calls": ("Calls", "Calls", "h"),
    "card": ("Server", "Srv.", "c"),
    "traffic": ("Traffic", "Traf.", "f4"),
}
"""The label of each tab, its short form for narrow screens, and the key that goes there. The tab of skills is made once
a server has some."""

FIRST_FRAME = 0.1
"""Seconds after which the hidden panes are made, so that they do not delay the first frame."""

ROWS_FOR_LOGS = 40
"""Rows from which the log drawer opens without being asked to."""

ROWS_FOR_WARNINGS = 36
"""Rows from which the log drawer opens when a server warns."""

LEAST_LOG_LINES = 4
"""Lines for which the log drawer has room, even if there are fewer."""

MOST_FOR_LOGS = 0.32
"""The part of the rows that the log drawer takes at most."""

ROWS_AROUND = 3
"""Rows above and below the panes: the servers' states, the tabs and the keys."""

FOR_ADDRESSES = 12
"""Columns by which lists of resources and prompts are wider than that of tools: they show addresses."""

LIST_BESIDE_WORK = 40
"""Columns of a list at most while a form, or what it opened, has the user's attention."""

LEAST_ROWS_FOR_LOGS = 20
"""Rows below which the log drawer stays closed even if the user opened it: the panes need them."""


class Body(Horizontal):
    """The servers and the tabs. Its keys work where no pane uses them itself; the texts on screen name them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "close_banner", "close", id="start.close", show=False, system=True),
        Binding("y", "copy_example", "copy example", id="start.copy", system=True, tooltip="Copy a server's entry"),
        Binding("i", "import_servers", "import", id="start.import", system=True, tooltip="Servers of other programs"),
        Binding("a", "add_server", "add a server", id="start.add", system=True, tooltip="Add a server"),
    ]

    def __init__(self, host: Host, banner: StartBanner | None, *, fixed: bool = False) -> None:
        """``fixed``: this run takes no other servers."""
        super().__init__(id="body")
        self._host, self._banner, self._fixed = host, banner, fixed

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        shown = self._banner is not None and self._banner.is_attached
        if action == "close_banner":
            return shown
        offered = self._banner is not None and shown and self._banner.offers_servers
        return offered or (not self._host.servers and (action == "copy_example" or not self._fixed))

    def action_close_banner(self) -> None:
        if self._banner is not None:
            self._banner.remove()
            self.refresh_bindings()

    def action_copy_example(self) -> None:
        self.app.copy_to_clipboard(EXAMPLE)

    def action_import_servers(self) -> None:
        self.post_message(MainScreen.ImportRequested())

    def action_add_server(self) -> None:
        self.post_message(MainScreen.AdditionRequested())


class MainScreen(ErrorBoundary, Screen[None]):
    """Arranges the panes. Those that are not seen at first are imported and made when they are needed."""

    AUTO_FOCUS = ""  # or the servers would be styled with the focus before the tools take it

    HELP = "A tab's key is underlined in its name or shown beside it. tab goes to the next pane."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "go('chat')", "chat", id="go.chat", tooltip="Chat with a model"),
        Binding("s", "go('servers')", "servers", id="go.servers", tooltip="Servers"),
        Binding("G", "go('agents')", "agents", id="go.agents", tooltip="Agents that use servers through mcphost"),
        Binding("t", "go('tools')", "tools", id="go.tools", tooltip="Tools", show=False),
        Binding("e", "go('resources')", "resources", id="go.resources", tooltip="Resources", show=False),
        Binding("p", "go('prompts')", "prompts", id="go.prompts", tooltip="Prompts", show=False),
        Binding("I", "go('skills')", "skills", id="go.skills", tooltip="Skills: instructions for a model", show=False),
        Binding("h", "go('calls')", "calls", id="go.calls", tooltip="Calls of this run and of earlier ones"),
        Binding("c", "go('card')", "card", id="go.card", tooltip="The chosen server", show=False),
        Binding("f3", "logs", "logs", id="go.logs", tooltip="Logs; from a call, its lines; from the logs, close them"),
        Binding("T", "tasks", "tasks", id="go.tasks", tooltip="Tasks: calls that servers answer later"),
        Binding("f4", "traffic", "traffic", id="go.traffic", tooltip="Traffic; from a call, its messages"),
        Binding(
            "A,alt+s",
            "saved_calls",
            "saved",
            id="go.saved",
            show=False,
            tooltip="Saved calls; ctrl+s in a form saves one",
        ),
        Binding("z", "zoom", "zoom", id="layout.zoom", tooltip="Give the focused pane the whole screen, and back"),
        Binding(
            "less_than_sign",
            "divide(-1)",
            "narrower list",
            id="layout.narrower",
            show=False,
            tooltip="Make the list narrower",
        ),
        Binding(
            "greater_than_sign", "divide(1)", "wider list", id="layout.wider", show=False, tooltip="Make the list wider"
        ),
    ]

    DEFAULT_CSS = """
    MainScreen {
        layout: vertical;
        #body { height: 1fr; }
        #side { width: 26; height: 100%; }
        #side.-narrow { width: 6; }
        #side.-narrow:focus-within { width: 26; }
        #side.-narrow.-covered { display: none; }
        &.-zoom-work #side, &.-zoom-work LogsPane { display: none; }
        &.-zoom-logs #body { display: none; }
        &.-zoom-logs LogsPane { height: 1fr; max-height: 100%; }
        TabbedContent { width: 1fr; height: 100%; }
        TabPane { padding: 0; }
        Tabs { height: 1; }
        Tab { height: 1; }
        TabsWithoutRace.-tight Tab { padding: 0 1 0 0; }
        Tab { color: $foreground-muted; opacity: 100%; }
        Tab.-active { color: $text-accent; background: $block-cursor-background; text-style: bold; }
        Tab:ansi { text-style: none; }
        Tab.-active:ansi { text-style: bold; }
        Underline { display: none; }
        LogsPane { height: 32%; min-height: 6; }
        LogsPane.-closed { display: none; }
    }
    """

    @dataclass
    class TasksRequested(Message):
        """The user asked for the tasks of this server; None: of all servers."""

        server: str | None

    class SavedCallsRequested(Message):
        """The user asked for the list of saved calls."""

    class ImportRequested(Message):
        """The user asked for the servers of other programs."""

    class AdditionRequested(Message):
        """The user asked to add a server."""

    class PaneMade(Message):
        """A pane was made; it is still empty."""

    class Complete(Message):
        """All panes were made."""

    class InFront(Message):
        """No other screen is above this one now."""

    class ChatOpened(Message):
        """The chat's tab was opened."""

    @dataclass
    class LayoutChanged(Message):
        """The user divided the screen in another way."""

        layout: Layout

    def __init__(self, host: Host, welcome: str, start: StartInfo) -> None:
        super().__init__()
        self._host, self._fixed, self._state = host, start.fixed, start.state_folder
        self._banner = StartBanner(start.missing) if start.is_demo else None
        self.makes_panes_ahead = True
        """False: a hidden pane is made only when its tab is opened."""
        self._making = asyncio.Lock()
        self.resources: ResourcesPane | None = None
        self.prompts: PromptsPane | None = None
        self.skills: SkillsPane | None = None
        self.has_skills = False
        """True once a server had skills: their tab then stays until mcphost exits."""
        self.chat: ChatPane | None = None
        self.traffic: TrafficPane | None = None
        self.single = False
        """True if a pane shows one part at a time."""
        self._layout = Layout(logs=host.config.ui.log_panel)
        self._warned = False
        self._unseen_warnings = 0
        self._zoomed = False
        self.top_line = TopBar()
        self.servers = ServersPane()
        self.agents: AgentsPane | None = None
        """None while no agent has come."""
        self._side = Vertical(self.servers, id="side")
        self.tools = ToolsPane(host, welcome)
        self.calls = CallList(host.history)
        self.card = ServerCard(host)
        self.logs = LogsPane(host.logs, least=LogLevel.read(host.config.ui.logs) or LogLevel.INFO)
        self._keys = KeyLine()
        self._tabs = TabsWithoutRace(id="work-tabs")
        self._has_tasks = False
        self._counts: Mapping[str, int] = {}
        self._room_for_tabs = 0
        """Columns."""
        self._before_chat = "tools"
        self._before_logs: Widget | None = None
        """The widget that had the focus before the logs."""
        self._filling: str | None = None
        """The tab that was opened last, if on a narrow screen it takes the place of the servers: traffic or chat."""

    def compose(self) -> ComposeResult:
        # Only what the first frame shows; `_add_panes` adds the rest.
        self._arrange(self.app.size)
        yield self.top_line
        if self._banner is not None:
            yield self._banner
        with Body(self._host, self._banner, fixed=self._fixed):
            yield self._side
            with self._tabs:
                for name, (full, short, _) in TAB_NAMES.items():
                    if name == "skills":
                        continue
                    with TabPane(short if self._tabs.has_class("-tight") else full, id=name):
                        if name == "tools":
                            yield self.tools
        if self.logs_open:
            yield self.logs
        yield self._keys

    def on_mount(self) -> None:
        self._fit_logs()
        self.tools.focus_list()
        timer_without_skips(self.set_timer(FIRST_FRAME, self._add_panes))

    async def _add_panes(self) -> None:
        if self.makes_panes_ahead or not self.single:
            await self.tools.bench()
        if self.makes_panes_ahead:
            for tab in TAB_NAMES:
                await self._make_pane(tab)
        await self._mount_logs()
        self.post_message(self.Complete())

    async def _make_pane(self, tab: str) -> None:
        match tab:
            case "resources":
                await self.resources_pane()
            case "prompts":
                await self.prompts_pane()
            case "skills" if self.has_skills:
                await self.skills_pane()
            case "chat":
                await self.chat_pane()
            case "calls":
                await self._mount_in_tab("calls", self.calls)
            case "card":
                await self._mount_in_tab("card", self.card)
            case "traffic":
                await self.traffic_pane()

    async def _mount_logs(self) -> None:
        if not self.logs.is_attached:
            await self.mount(self.logs, before=self._keys)

    async def resources_pane(self) -> ResourcesPane:
        async with self._making:
            if self.resources is None:
                from mcphost.tui.resources.pane import ResourcesPane

                self.resources = await self._add_pane("resources", ResourcesPane(self._host, single=self.single))
        return self.resources

    async def prompts_pane(self) -> PromptsPane:
        async with self._making:
            if self.prompts is None:
                from mcphost.tui.prompts.pane import PromptsPane

                self.prompts = await self._add_pane("prompts", PromptsPane(self._host, single=self.single))
        return self.prompts

    async def skills_pane(self) -> SkillsPane:
        async with self._making:
            if self.skills is None:
                from mcphost.tui.skills.pane import SkillsPane

                self.skills = await self._add_pane("skills", SkillsPane(self._host, single=self.single))
        return self.skills

    async def chat_pane(self) -> ChatPane:
        async with self._making:
            if self.chat is None:
                from mcphost.tui.chat.pane import ChatPane

                self.chat = await self._add_pane("chat", ChatPane(self._host))
        return self.chat

    async def traffic_pane(self) -> TrafficPane:
        async with self._making:
            if self.traffic is None:
                from mcphost.tui.traffic.pane import TrafficPane

                self.traffic = await self._mount_in_tab("traffic", TrafficPane(self._host.traffic, self._state))
        return self.traffic

    async def _add_pane(self, tab: str, pane: Pane) -> Pane:
        await self._mount_in_tab(tab, pane)
        if pane.is_attached:
            self.post_message(self.PaneMade())
        return pane

    async def _mount_in_tab(self, tab: str, widget: Pane) -> Pane:
        for pane in self.query(f"#{tab}").results(TabPane):  # none while the app exits: tabs go before their screen
            if pane.is_attached and not widget.is_attached:
                await pane.mount(widget)
        return widget

    def post_message(self, message: Message) -> bool:
        """Lay out and draw nothing for what is in a hidden pane: showing the pane does that."""
        # Not in a handler: one Layout in the queue takes the place of another, whatever widget that was for.
        if isinstance(message, messages.Layout | messages.Update) and self._hides(message.widget):
            return False
        return super().post_message(message)

    def _hides(self, widget: Widget) -> bool:
        """True if a part of this screen that contains ``widget`` is hidden; ``widget`` itself does not count."""
        return not all(node.display for node in takewhile(lambda node: node is not self, widget.ancestors))

    def on_screen_resume(self) -> None:
        self.post_message(self.InFront())

    def on_resize(self, event: Resize) -> None:
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        # Not classes of this screen: each change would style every widget of it again.
        self._fold_servers(size)
        self.single = self._zoomed or size.width < SIDE_BY_SIDE or size.height < TWO_PARTS
        self.tools.set_wide(size.width >= THREE_COLUMNS)
        for pane in self._catalog_panes.values():
            pane.set_single(self.single)
        self._divide()
        self._arrange_logs(size)

    def _fold_servers(self, size: Size) -> None:
        folded = size.width < FOLDED or (size.width < FOLDED_FOR_WORK and self._working)
        self._side.set_class(folded, "-narrow", update=self._side.is_attached)
        self._fit_tabs()

    def _fit_servers(self) -> None:
        """Give the servers the rows that they need, with one for a filter, where agents are below them."""
        if self.agents is not None:
            self.servers.styles.height, self.servers.styles.max_height = len(self.servers.all) + 3, "50%"

    @property
    def _catalog_panes(self) -> Mapping[str, ToolsPane | CatalogPane[Any]]:
        """The panes with a list of what servers offer, by their tabs, as far as they were made."""
        panes = {"tools": self.tools, "resources": self.resources, "prompts": self.prompts, "skills": self.skills}
        return {tab: pane for tab, pane in panes.items() if pane is not None}

    @property
    def _working(self) -> bool:
        """True if the open tab shows a form, or what it opened, and no longer the list alone."""
        pane = self._catalog_panes.get(self._tabs.active)
        return pane is not None and pane.step != "list"

    @on(RoomChanged)
    def _give_room(self) -> None:
        """Let the servers, the list and the logs yield their room to a form, and take it back."""
        self._fold_servers(self.app.size)
        self._divide()
        self._arrange_logs(self.app.size)

    def _fit_tabs(self) -> None:
        """Shorten the names of the tabs where the unfolded servers take their room."""
        folded = self._side.has_class("-narrow") and not self._side.has_focus_within
        self._room_for_tabs = self.app.size.width - (FOLDED_SERVERS if folded else SERVERS)
        self._label_tabs()

    def on_descendant_focus(self) -> None:
        if self._side.has_class("-narrow"):
            self._fit_tabs()

    def take_layout(self, layout: Layout) -> None:
        """Divide the screen as it was in an earlier run; what the configuration says of the logs comes first."""
        logs = layout.logs if self._layout.logs == "auto" else self._layout.logs
        self._layout = replace(layout, logs=logs)
        self._take_into_panes()
        self._arrange_logs(self.app.size)

    @on(PaneMade)
    def _take_into_panes(self) -> None:
        for pane in self._catalog_panes.values():
            pane.list.fold_groups(self._layout.folded.get(pane.list.TITLE.lower(), frozenset()))
        self._divide()

    @on(CatalogList.ServerChosen)
    def _describe_server(self, event: CatalogList.ServerChosen) -> None:
        self.servers.describe(event.server)
        self.query_one(TabbedContent).active = "card"
        self.call_later(self._go_into, "card", self.card, self.card)

    @on(CatalogList.Folded)
    def _group_folded(self, event: CatalogList.Folded) -> None:
        self._keep(replace(self._layout, folded={**self._layout.folded, event.title: event.folded}))

    def _divide(self) -> None:
        for pane in self._catalog_panes.values():
            share = self._layout.list_share
            most = share if pane is self.tools else share + FOR_ADDRESSES
            if pane.step != "list":
                most = min(share, LIST_BESIDE_WORK)
            pane.list.styles.width = "100%" if self.single else f"{share}%"
            pane.list.styles.max_width = None if self.single else most

    def keep_theme(self, name: str) -> None:
        """Keep this theme for later runs; "" keeps none."""
        self._keep(replace(self._layout, theme=name))

    def _keep(self, layout: Layout) -> None:
        self._layout = layout
        self.post_message(self.LayoutChanged(layout))

    def action_divide(self, steps: int) -> None:
        """Make the list wider or narrower."""
        self._keep(self._layout.divided(steps))
        self._divide()

    def action_zoom(self) -> None:
        """Give the pane that has the focus all of the screen; give the room back."""
        self._zoomed = not self._zoomed
        logs = self.logs.has_focus_within
        self.update_classes({"-zoom-logs": self._zoomed and logs, "-zoom-work": self._zoomed and not logs})
        self._fit_logs()
        self._arrange(self.app.size)

    def _end_zoom(self) -> None:
        if self._zoomed:
            self.action_zoom()

    def _arrange_logs(self, size: Size) -> None:
        """Open the log drawer if there is room for it and no chat is shown."""
        if not self.logs.has_focus_within:
            unasked = ROWS_FOR_WARNINGS if self._warned else ROWS_FOR_LOGS
            least = {"open": LEAST_ROWS_FOR_LOGS, "auto": unasked}.get(self._layout.logs)
            has_room = least is not None and size.height >= least and self._filling != "chat"
            self._set_logs_open(has_room and self._form_fits(size))

    def _form_fits(self, size: Size) -> bool:
        """True if the log drawer leaves an open form the rows that it needs."""
        drawer = min(round(size.height * MOST_FOR_LOGS), self._log_rows)
        return self._tabs.active != "tools" or self.tools.rows_wanted <= size.height - ROWS_AROUND - drawer

    @property
    def _log_rows(self) -> int:
        """The rows that the lines of the log, their heads and its frame need, up to a bound."""
        return max(LEAST_LOG_LINES, self.logs.most_lines) + 3

    def set_log_panel(self, wanted: LogDrawer) -> None:
        """Open or close the log panel as ``[ui] log_panel`` says."""
        self._layout = replace(self._layout, logs=wanted)
        self._arrange_logs(self.size)

    @on(LogsPane.Grown)
    def _fit_logs(self) -> None:
        self.logs.styles.max_height = None if self.has_class("-zoom-logs") else self._log_rows

    @on(LogsPane.Warned)
    def _server_warned(self, event: LogsPane.Warned) -> None:
        self._warned = True
        self._arrange_logs(self.app.size)
        self._unseen_warnings += 0 if self.logs_open else event.count
        self.top_line.show_warnings(self._unseen_warnings)

    def _set_logs_open(self, opened: bool) -> None:
        self.logs.set_class(not opened, "-closed", update=self.logs.is_attached)
        if opened:
            self._unseen_warnings = 0
            self.top_line.show_warnings(0)

    @property
    def logs_open(self) -> bool:
        return not self.logs.has_class("-closed")

    def action_go(self, where: str) -> None:
        if where in ("servers", "agents") or self.has_class("-zoom-logs"):
            self._end_zoom()
        if where in ("servers", "agents"):
            self._fill(None)
            pane = self.servers if where == "servers" or self.agents is None else self.agents
            pane.rows.focus()
            return
        if where == "card":
            self.servers.describe_one()
        self.query_one(TabbedContent).active = where
        match where:
            case "tools":
                self.tools.focus_list()
            case "resources":
                self.call_later(self._go_to_list, self.resources_pane)
            case "prompts":
                self.call_later(self._go_to_list, self.prompts_pane)
            case "skills":
                self.call_later(self._go_to_list, self.skills_pane)
            case "chat":
                self.call_later(self._go_to_chat)
            case "calls":
                self.call_later(self._go_into, "calls", self.calls, self.calls.rows)
            case _:
                self.call_later(self._go_into, "card", self.card, self.card)

    async def _go_into(self, tab: str, pane: Widget, part: Widget) -> None:
        await self._mount_in_tab(tab, pane)  # the key may come before `_add_panes` has reached it
        part.focus()

    @on(TabbedContent.TabActivated)
    def _tab_changed(self, event: TabbedContent.TabActivated) -> None:
        if event.pane.id not in ("chat", None):
            self._before_chat = event.pane.id
        self._fill(event.pane.id if event.pane.id in ("traffic", "chat") else None)
        if event.pane.id in ("tools", "resources", "prompts", "skills"):
            self.app.run_worker(self._host.servers.refresh_lists(), group="refresh-lists")
        if event.pane.id == "chat":
            self.post_message(self.ChatOpened())
        self.call_later(self._make_pane, event.pane.id or "")  # a click may come before `_add_panes` has reached it

    def _fill(self, tab: str | None) -> None:
        """Arrange the servers and the logs for this tab. A class of the screen itself would style all widgets again."""
        self._filling = tab
        self._fold_servers(self.app.size)
        self._side.set_class(tab is not None, "-covered")
        self.query("ToastRack").set_class(tab == "chat", "-above")
        self._arrange_logs(self.app.size)

    async def on_chat_pane_left(self) -> None:
        """Return to the tab that was open before the chat."""
        if self._before_chat == "traffic":
            await self.go_to_traffic()
        else:
            self.action_go(self._before_chat)

    async def action_traffic(self) -> None:
        """Go to the traffic; from a call, to its messages."""
        call, pane = self._call_in_view, await self.go_to_traffic()
        if call is not None:
            pane.show_call(call)

    async def go_to_traffic(self) -> TrafficPane:
        pane = await self.traffic_pane()
        self.query_one(TabbedContent).active = "traffic"
        pane.focus_rows()
        return pane

    @property
    def _call_in_view(self) -> int | None:
        if self.calls.has_focus_within and self.calls.item is not None:
            return self.calls.item.number if isinstance(self.calls.item, ToolCall) else None
        if self.chat is not None and (number := self.chat.call_in_view) is not None:
            return number
        return self.tools.shown_call if self.tools.step == "result" and self.tools.has_focus_within else None

    @property
    def conversing(self) -> bool:
        """True if the chat's tab is open."""
        return self.chat is not None and self.query_one(TabbedContent).active == "chat"

    @property
    def rows_to_tabs(self) -> int:
        """The rows from the top to the tab line, which is the last of them."""
        return self._tabs.query_one(Tabs).region.bottom

    async def _go_to_chat(self) -> None:
        (await self.chat_pane()).focus_input()

    async def _go_to_list(self, made: Callable[[], Awaitable[CatalogPane[Any]]]) -> None:
        (await made()).focus_list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "divide":
            return not self.single
        if action == "go" and parameters == ("agents",):
            return self.agents is not None
        if action == "go" and parameters == ("skills",):
            return self.has_skills
        return self._has_tasks if action == "tasks" else True

    def action_saved_calls(self) -> None:
        self.post_message(self.SavedCallsRequested())

    def action_import_servers(self) -> None:
        self.post_message(self.ImportRequested())

    def action_add_server(self) -> None:
        self.post_message(self.AdditionRequested())

    def show_agents(self, agents: Sequence[AgentRow]) -> None:
        """List these agents below the servers."""
        if self.agents is None:
            from mcphost.tui.agents.list import AgentsPane

            self.agents = AgentsPane()
            self._side.mount(self.agents)
            self._fit_servers()
            self.refresh_bindings()
        self.agents.show_agents(agents)

    async def add_skills_tab(self) -> None:
        """Add the tab of skills, unless it is there."""
        if not self.has_skills:
            self.has_skills = True
            await self._tabs.add_pane(TabPane("Skills", id="skills"), after="prompts")
            self._fit_tabs()
            self.refresh_bindings()
            if self.makes_panes_ahead:
                await self.skills_pane()

    def show_elsewhere(self, words: str) -> None:
        """Say which other programs have servers, while there is nothing of the user's own here."""
        if self._banner is not None:
            self._banner.show_elsewhere(words)

    def leave_demo(self) -> None:
        """Servers of the user's own took the demo's place."""
        self.query_one(Body).action_close_banner()
        self.tools.leave_demo()

    def servers_changed(self) -> None:
        """Update the keys that work only with some servers, and the rows of the list."""
        self._fit_servers()
        if self.servers.keeping_tasks != self._has_tasks:
            self._has_tasks = not self._has_tasks
            self.refresh_bindings()

    def action_tasks(self) -> None:
        """List the tasks of the selected call's server, else of the chosen server."""
        call = self.calls.item if self.calls.has_focus_within else None
        server = self.servers.chosen if call is None else server_of(call)
        if server is None or server in self._host.servers:  # that of an earlier run may be gone
            self.post_message(self.TasksRequested(server))

    def show_counts(self, counts: Mapping[str, int]) -> None:
        """Show these counts in the labels of the tabs, if there is room."""
        self._counts = counts
        self._label_tabs()

    def _label_tabs(self) -> None:
        labels = self._tab_labels()
        self._tabs.set_class(labels is None, "-tight", update=self._tabs.is_attached)
        for tab in self.query(Tab):
            name = (tab.id or "").rpartition("-")[2]
            label = Content(TAB_NAMES[name][1]) if labels is None else labels[name]
            if tab.label != label:
                tab.label = label

    def _tab_labels(self) -> Mapping[str, Content] | None:
        """The full labels, with all keys where they fit; None if only the short names do."""
        names = [name for name in TAB_NAMES if name != "skills" or self.has_skills]
        for keys in (True, False) if self.app.size.width >= SIDE_BY_SIDE else (False,):
            labels = {name: self._tab_label(name, keys=keys) for name in names}
            if sum(label.cell_length + TAB_MARGINS for label in labels.values()) <= self._room_for_tabs:
                return labels
        return None

    def _tab_label(self, name: str, *, keys: bool) -> Content:
        """The name, its key underlined or, with ``keys``, beside it, and how many there are."""
        full, _, key = TAB_NAMES[name]
        label, place = Content(full), full.lower().find(key)
        if place >= 0:
            label = label.stylize("underline", place, place + 1)
        elif keys:
            label = Content.assemble(label, (f" {key}", "$foreground-muted"))
        count = self._counts.get(name, 0)
        return Content.assemble(label, f" {count:,}") if count else label

    async def action_logs(self) -> None:
        """Go to the logs, from a call to its lines; from the logs, close them and go back."""
        if self.logs_open and self.logs.has_focus_within:
            self._end_zoom()
            self._keep(replace(self._layout, logs="closed"))
            self._set_logs_open(False)
            before = self._before_logs
            if before is not None and before.is_attached and not self._hides(before):
                before.focus()
            else:
                self.action_go("tools")
            return
        call = self._call_in_view
        await self.go_to_logs()
        if call is not None:
            self.logs.show_filtered(f"call:{call}")

    async def go_to_logs(self) -> None:
        if self.has_class("-zoom-work"):
            self._end_zoom()
        if not self.logs.has_focus_within:
            self._before_logs = self.focused
        self._keep(replace(self._layout, logs="open"))
        self._set_logs_open(True)
        await self._mount_logs()  # it comes last, and the key may have been pressed before
        self.logs.rows.focus()

    @on(ServersPane.Selected)
    def _server_selected(self, event: ServersPane.Selected) -> None:
        if event.server is None:
            event.stop()
            self.action_go("tools")
        else:
            self.action_go("card")
