"""The app: the host's state on screen, the user's wishes to the host, and every question to the user.

It decides nothing about consent and starts nothing by itself. The host is already running when the app starts and
stops the servers after it has left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Event as TextualEvent
from textual.events import Key, MouseDown, Paste
from textual.screen import Screen

from mcphost.errors import McphostError
from mcphost.host.calls import Call
from mcphost.host.catalog import OfferedTool
from mcphost.host.connection import Connection, ServerState
from mcphost.host.events import Alarmed
from mcphost.host.host import Host
from mcphost.host.start import StartInfo
from mcphost.protocol.display import show
from mcphost.protocol.types import LogLevel
from mcphost.tui import gauging, pinging, reloading, tracing
from mcphost.tui.bridge import EventGatherer, HostChanged, QuestionsChanged, ScreenApprover
from mcphost.tui.chatting import ChatWishes
from mcphost.tui.driver import Driver
from mcphost.tui.faults import Faults, Sturdy, place, sentence
from mcphost.tui.inquiring import InquiryWishes
from mcphost.tui.keys import KeyOrder
from mcphost.tui.lending import LendingWishes
from mcphost.tui.offering import Offering, OfferWishes
from mcphost.tui.questions import Questions
from mcphost.tui.screens.dialog import Dialog
from mcphost.tui.screens.inbox import InboxScreen
from mcphost.tui.screens.main import MainScreen
from mcphost.tui.showing import Showing
from mcphost.tui.signing import SignInWishes
from mcphost.tui.tasking import TaskWishes
from mcphost.tui.viewing import MediaWishes
from mcphost.tui.widgets.call_list import CallList
from mcphost.tui.widgets.logs import LogsPane
from mcphost.tui.widgets.server_card import ServerCard
from mcphost.tui.widgets.servers import ServersPane
from mcphost.tui.widgets.tools import ToolsPane

if TYPE_CHECKING:
    from mcphost.tui.widgets.result import ResultView
    from mcphost.tui.widgets.traffic import TrafficPane

GUARD: Final = 0.3
"""Seconds after a dialog appears in which keys do nothing; nor do those that follow each other without that pause."""

DEMO: Final = "This is the built-in demo server: everything here can be tried without harm."


class McphostApp(
    Sturdy, OfferWishes, MediaWishes, TaskWishes, SignInWishes, InquiryWishes, ChatWishes, LendingWishes, App[None]
):
    """mcphost on a terminal."""

    TITLE = "mcphost"
    HELP = "ctrl+p finds every action. Nothing is sent to a server before you were shown it."
    ENABLE_COMMAND_PALETTE = True
    CSS = "ToastRack { dock: top; align: right top; margin: 1 0 0 0; }"
    """Notes stand where no dialog is: those are at the bottom, with their answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "keys", "keys", id="app.keys", tooltip="The keys that work here, and what this is"),
        Binding("f2", "inbox", "inbox", id="app.inbox", tooltip="What waits for your answer"),
        Binding("g", "grants", "allowed", id="app.grants", tooltip="What runs without asking", show=False),
        Binding("ctrl+l", "reload", "reload", id="app.reload", tooltip="Read the configuration again", show=False),
        Binding("ctrl+q", "quit", "quit", id="app.quit", tooltip="Leave mcphost; servers are stopped", priority=True),
    ]

    def __init__(
        self, host: Host, approver: ScreenApprover, start: StartInfo, reread: reloading.Read | None = None
    ) -> None:
        super().__init__(driver_class=Driver)
        self.host, self.approver, self.start = host, approver, start
        self.faults = Faults()
        self.outlives_faults: bool | None = None
        """None: only with a terminal, so that tests fail."""
        self.guard_seconds = GUARD
        self.keys = KeyOrder(self, self._give_key, lambda: self.focused or self.screen)
        self.questions, self.standings = Questions(self, host, approver), {}
        self._reread = reread
        welcome = f"{DEMO}\n\n{start.how_to}" if start.is_demo else ""
        self.main = MainScreen(host.logs, host.traffic, host.config.ui.log_panel, welcome)
        """Whatever is above it."""
        self.showing = Showing(host, self.main, self.questions, self.account)
        self.offering = Offering(self, host, self.main)
        self._gatherer: EventGatherer | None = None

    def get_default_screen(self) -> Screen[None]:
        """The main screen, from the start."""
        return self.main

    def on_mount(self) -> None:
        """Begin to listen, and show what is there already."""
        if self.host.config.ui.theme in self.available_themes:
            self.theme = self.host.config.ui.theme
        self.draw_pictures(self.host.config.ui.images != "off")
        self._gatherer = EventGatherer(self.host.bus, self)
        self.approver.attach(self)
        self.call_after_refresh(self.showing.everything)
        for problem in self.start.problems:
            self.notify(show(problem), title="Configuration", severity="warning", timeout=20, markup=False)

    def on_unmount(self) -> None:
        """Stop listening."""
        if self._gatherer is not None:
            self._gatherer.close()

    async def on_event(self, event: TextualEvent) -> None:
        """Give out keys one at a time, and drop what was typed before a dialog could be read."""
        if isinstance(event, Key) and not event.is_forwarded:
            await self.keys.take(event)
        elif isinstance(event, Paste | MouseDown) and self._too_early(event):
            event.stop()
        else:
            await super().on_event(event)

    async def _give_key(self, key: Key) -> None:
        self.questions.typed()
        if self._too_early(key):
            key.stop()
        else:
            await super().on_event(key)

    def _too_early(self, event: TextualEvent) -> bool:
        screen = self.screen_stack[-1] if self.screen_stack else None
        return isinstance(screen, Dialog) and screen.too_early(event, self.guard_seconds)

    # Facts from the host.

    def on_host_changed(self, message: HostChanged) -> None:
        """Show what changed."""
        events = message.take()
        for event in events:
            if isinstance(event, Alarmed):
                self.notify(show(event.text), severity="error", timeout=15, markup=False)
        self.showing.changed([event for event in events if not isinstance(event, Alarmed)])
        self.sign_ins_changed(events, self.main.servers.chosen)
        self.inquiries_changed(events)
        self.chats_changed(events)
        self.samplings_changed(events)

    @on(MainScreen.PaneMade)
    def _pane_made(self) -> None:
        self.showing.offers()
        self.show_chat()

    # What the user wants of the traffic. By name: importing the pane would delay the first picture.

    async def on_traffic_pane_call_wanted(self, event: TrafficPane.CallWanted) -> None:
        """Go to a frame's call."""
        await self._open_call(event.number)

    def on_traffic_pane_resend_wanted(self, event: TrafficPane.ResendWanted) -> None:
        """Send a request again."""
        tracing.resend(self, self.host, event.frame)

    def on_traffic_pane_pin_wanted(self, event: TrafficPane.PinWanted) -> None:
        """Pin a frame, or no longer."""
        tracing.pin(self, event.pane.book, event.frame)
        event.pane.frame_changed()

    # Questions.

    def on_questions_changed(self, _: QuestionsChanged) -> None:
        """Open what waits, close what was withdrawn."""
        self.questions.changed()
        self.showing.top_line()

    @on(MainScreen.InFront)
    def _in_front(self) -> None:
        self.room_again()
        self.questions.ask_next()
        self.showing.top_line()

    @on(InboxScreen.DeclineWanted)
    def _decline(self, event: InboxScreen.DeclineWanted) -> None:
        self.questions.decline(event.numbers, cancelled=event.cancelled)

    def action_inbox(self) -> None:
        """Show what waits."""
        self.questions.show_inbox()

    # What the user wants of tools and calls.

    @on(ToolsPane.RunWanted)
    async def _run(self, event: ToolsPane.RunWanted) -> None:
        call = self.host.call_tool(event.offered.server, event.offered.tool.name, event.arguments)
        await self.main.tools.show_call(call)

    @on(CallList.Chosen)
    async def _show_call(self, event: CallList.Chosen) -> None:
        await self._open_call(event.number)

    @on(LogsPane.CallWanted)
    async def _call_of_log(self, event: LogsPane.CallWanted) -> None:
        await self._open_call(event.number)

    async def _open_call(self, number: int) -> None:
        call = self.host.calls.get(number)
        if call is None:
            self.notify(f"Call {number} is no longer kept.", severity="warning")
            return
        self.main.action_go("tools")
        await self.main.tools.show_call(call)

    @on(CallList.AgainWanted)
    async def _again(self, event: CallList.AgainWanted) -> None:
        call = self.host.calls.get(event.number)
        offered = self._offered(call) if call is not None else None
        if call is None or offered is None:
            self.notify("No server offers this tool now.", severity="warning")
            return
        self.main.action_go("tools")
        await self.main.tools.open_tool(offered, call.arguments)

    def on_call_list_cancel_wanted(self, event: CallList.CancelWanted) -> None:
        """Stop a call from the list."""
        self._cancel(event.number)

    def on_result_view_cancel_wanted(self, event: ResultView.CancelWanted) -> None:
        """Stop the call that is shown."""
        self._cancel(event.number)

    def _cancel(self, number: int) -> None:
        call = self.host.calls.get(number)
        if call is not None:
            call.cancel()
            self.showing.top_line()

    def _offered(self, call: Call) -> OfferedTool | None:
        tools = self.host.catalog.tools(call.request.server)
        return next((each for each in tools if each.tool.name == call.request.tool), None)

    # What the user wants of servers and logs.

    @on(ServersPane.Highlighted)
    def _server_highlighted(self, event: ServersPane.Highlighted) -> None:
        event.stop()
        self.showing.chosen()
        self.learn_standing(event.server)

    @on(ServersPane.ToggleWanted)
    def _toggle(self, event: ServersPane.ToggleWanted) -> None:
        server = self.host.server(event.server)
        off = server.state in (ServerState.STOPPED, ServerState.DISABLED, ServerState.FAILED)
        server.start() if off else server.stop()

    @on(ServersPane.RestartWanted)
    def _restart(self, event: ServersPane.RestartWanted) -> None:
        self.host.server(event.server).restart()

    @on(ServersPane.LevelWanted)
    def _level(self, event: ServersPane.LevelWanted) -> None:
        self._choose_level(self.host.server(event.server))

    @on(ServerCard.PingWanted)
    def _ping(self, event: ServerCard.PingWanted) -> None:
        self.run_worker(pinging.ping(self, self.host.server(event.server)), exit_on_error=False)

    @on(ServerCard.UsageWanted)
    def _usage(self, event: ServerCard.UsageWanted) -> None:
        looking = gauging.look(self.host, self.showing, event.server)
        self.run_worker(looking, group="usage", exclusive=True, exit_on_error=False)

    @on(LogsPane.LevelWanted)
    def _level_from_logs(self, event: LogsPane.LevelWanted) -> None:
        server = event.server or self.main.servers.chosen
        if server is None:
            self.notify("Choose one server on the left first: each server has a level of its own.")
        else:
            self._choose_level(self.host.server(server))

    def _choose_level(self, server: Connection) -> None:
        from mcphost.tui.screens.level import LevelScreen

        def take(level: LogLevel | None) -> None:
            if level is not None:
                self.run_worker(self._set_level(server, level), exit_on_error=False)

        self.push_screen(LevelScreen(server.name, server.level), take)

    async def _set_level(self, server: Connection, level: LogLevel) -> None:
        try:
            await server.set_level(level)
        except McphostError as error:
            self.notify(show(f"The level stays: {error}"), severity="error", markup=False)
        else:
            self.notify(f"{server.name} now sends {level.wire} and above.", markup=False)

    # Help, grants, palette.

    def action_keys(self) -> None:
        """Show the keys that work here."""
        from mcphost.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_grants(self) -> None:
        """Show what is allowed without asking."""
        from mcphost.tui.screens.grants import GrantsScreen

        self.push_screen(GrantsScreen(self.host.consent.approvals.grants, self.host.consent.revoke))

    def action_reload(self) -> None:
        """Read the configuration file again."""
        if self._reread is None:
            self.notify("This run has no configuration file.")
        elif len(self.screen_stack) == 1:
            self.run_worker(reloading.reload(self, self.host, self._reread), exclusive=True, exit_on_error=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action, for the command palette; first those of what has the focus."""
        yield from self._commands_here(screen)
        yield from super().get_system_commands(screen)
        yield SystemCommand("Keys", "The keys that work here", self.action_keys)
        yield SystemCommand("Inbox", "What waits for your answer", self.action_inbox)
        yield SystemCommand("Allowed tools", "What runs without asking; take it back", self.action_grants)
        yield SystemCommand("Tasks", "Calls that servers answer later: list them, stop them", self.show_tasks)
        yield SystemCommand("Reload the configuration", "Read the file again, and see what changed", self.action_reload)
        for name, part in (
            ("Chat", "chat"),
            ("Tools", "tools"),
            ("Resources", "resources"),
            ("Prompts", "prompts"),
            ("Calls", "calls"),
            ("Servers", "servers"),
            ("Server card", "card"),
        ):
            yield SystemCommand(f"Go to: {name}", "", lambda part=part: self.main.action_go(part))
        yield SystemCommand("Go to: Traffic", "Every message to and from every server", self.main.action_traffic)
        yield SystemCommand("Logs", "Open or close the log drawer", self.main.action_logs)
        yield from self.sign_in_commands()
        yield from self.inquiry_commands()
        yield from self.chat_commands()
        yield from self.lending_commands()
        for server in self.host.servers.values():
            yield SystemCommand(f"Restart {server.name}", f"It is {server.state.value}", server.restart)

    def _commands_here(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for node, binding, enabled, tooltip in screen.active_bindings.values():
            if enabled and binding.id and binding.description and not binding.system and node not in (self, self.main):
                act = partial(self.call_later, self.run_action, binding.action, node)
                yield SystemCommand(f"Here: {binding.description}", tooltip, act)

    # When the screen itself fails.

    def _handle_exception(self, error: Exception) -> None:
        """Keep the app: what a server sent may break a part of it, and must not break the rest."""
        outlives = not self.is_headless if self.outlives_faults is None else self.outlives_faults
        if outlives and self.faults.bearable():
            words = sentence(error, int(time.time()) % 100_000)
            self.call_later(self.notify, words, severity="error", timeout=15, markup=False)
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Leave with the kind and place of the failure; Textual would print every local variable."""
        error = sys.exception()
        words = "it" if error is None else f"{type(error).__name__} at {place(error)}"
        if not self._exit_renderables:  # the first is the one to look for
            self._exit_renderables.append(Text(f"mcphost gives up: {words} went wrong on screen. Please report this."))
        self._close_messages_no_wait()
