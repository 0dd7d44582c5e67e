"""The app: the main screen, one controller per feature, and the host's questions to the user.

The host is already running when the app starts, and stops the servers after the app has exited.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, Provider
from textual.events import AppBlur, AppFocus, Key, MouseDown, Paste
from textual.events import Event as TextualEvent
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from mcphost.config import UI
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, McphostError
from mcphost.host.crash_files import CrashFiles
from mcphost.host.events import Alarmed, CallFinished
from mcphost.host.host import Host
from mcphost.host.layout import LayoutFile
from mcphost.host.pinned_tools import PinnedTools
from mcphost.protocol.display import show
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.agents.controller import AgentsController
from mcphost.tui.attention import Attention
from mcphost.tui.bridge import EventGatherer, HostChanged, QuestionsChanged, ScreenApprover
from mcphost.tui.catalog.controller import CatalogController
from mcphost.tui.chat.controller import ChatController
from mcphost.tui.comparison.controller import ComparisonController
from mcphost.tui.elicitation.controller import ElicitationController
from mcphost.tui.imports.controller import ImportsController, OpenImporter
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.clipboard import MOST_BYTES, NOT_PASSED_ON, load_into_tmux
from mcphost.tui.kit.modal_screen import Dialog
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.main.updater import MainScreenUpdater
from mcphost.tui.programs import ProgramsController
from mcphost.tui.recordings.controller import RecordingsController
from mcphost.tui.results.controller import ResultsController
from mcphost.tui.roots.controller import RootsController
from mcphost.tui.sampling.controller import SamplingController
from mcphost.tui.saved_calls.controller import SavedCallsController
from mcphost.tui.servers import reload
from mcphost.tui.servers.configuration import ConfigurationController
from mcphost.tui.servers.controller import ServersController
from mcphost.tui.servers.list import ServersPane
from mcphost.tui.sign_in.controller import SignInController
from mcphost.tui.sign_in.status import SignInStatusCache
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from mcphost.tui.tasks.controller import TasksController
from mcphost.tui.textual_private.corrections import KeyOrder, ResilientApp, parse_css_once
from mcphost.tui.textual_private.driver import Driver
from mcphost.tui.theme import SIXTEEN, THEMES, DimInSixteen, theme_for, with_contrast
from mcphost.tui.tools.controller import ToolsController
from mcphost.tui.tools.copy_controller import CopyController
from mcphost.tui.tools.repetition_controller import RepetitionController
from mcphost.tui.traffic.controller import TrafficController

if TYPE_CHECKING:
    from mcphost.tui.palette import Palette

GUARD: Final = 0.3
"""Seconds for which a new dialog ignores keys, and letters that follow each other without such a pause."""

QUIT: Final = "ctrl+q"

COPY: Final = "ctrl+c"
"""The key that copies a selection. Without one, it leaves as `QUIT` does if it is pressed twice."""

TWICE_SECONDS: Final = 2.0
"""Seconds within which `COPY` is pressed twice."""

COUNT_AFTER: Final = 0.3
"""Seconds after which other programs' servers are counted: the screen is drawn first."""

ALWAYS_ACTIVE: Final = frozenset({QUIT, COPY, "f1"})
"""Keys that answer nothing, and must work even while one dialog follows another."""

MOST_FAILURES: Final = 20
"""Exceptions of the screen after which the app gives up."""

PACKAGE: Final = os.path.dirname(os.path.dirname(__file__))

DEMO: Final = "This is the built-in demo server: everything here is safe to try."


def _palette_provider() -> type[Provider]:
    from mcphost.tui.palette import EntryProvider

    return EntryProvider


class McphostApp(ResilientApp):
    TITLE = "mcphost"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette_provider}
    HELP = "No tool call is sent before you have seen it, unless a rule of yours allows it."
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    ToastRack { dock: bottom; align: right bottom; margin: 0 0 1 0; scrollbar-size: 0 0; }
    ToastRack.-above, ModalScreen ToastRack { dock: top; align: right top; margin: 2 0 0 0; }
    ModalScreen ToastRack { margin: 1 0 0 0; }
    PaletteScreen ToastRack { dock: bottom; align: right bottom; margin: 0; }
    Toast { width: auto; max-width: 75%; margin: 0; padding: 0 1; }
    VerticalScroll { scrollbar-size-vertical: 1; }
    TextArea .text-area--placeholder { color: $text-disabled; }
    TextArea:ansi .text-area--placeholder { text-style: dim; }
    Input:ansi > .input--cursor { color: ansi_default; background: ansi_default; text-style: reverse; }
    """
    """Toasts are above the keys, where a short one covers nothing but a frame. They are at the top where the bottom is
    in use: in dialogs, which have their answers there, and, below the tabs, in the chat, where a message is written.
    They have no scrollbar: Textual counts their rows as without one, and the last toast was cut off.

    Textual's text area has a placeholder too faint to read, and in 16 colours one that looks like text; the cursor of
    its input is black on black there.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "keys", "keys", id="app.keys", tooltip="The keys that work here, and what this is"),
        Binding(
            "ctrl+p",
            "command_palette",
            "find",
            id="app.palette",
            priority=True,
            tooltip="Find any tool, resource, prompt, skill, server, call, conversation or action",
        ),
        Binding("f2", "inbox", "inbox", id="app.inbox", tooltip="What waits for your answer"),
        Binding("g", "grants", "allowed", id="app.grants", tooltip="What runs without asking", show=False),
        Binding("ctrl+l", "reload", "reload", id="app.reload", tooltip="Read the configuration again", show=False),
        Binding(
            QUIT,
            "quit",
            "quit",
            id="app.quit",
            tooltip="Leave mcphost, as ctrl+c twice does; servers are stopped",
            priority=True,
        ),
    ]

    def __init__(
        self,
        host: Host,
        approver: ScreenApprover,
        start: StartInfo,
        reread: reload.Read | None = None,
        open_importer: OpenImporter | None = None,
        started: Callable[[], object] = lambda: None,
    ) -> None:
        """``started`` is called once all panes of the main screen are there."""
        super().__init__(driver_class=Driver)
        parse_css_once(self.stylesheet)
        for theme in THEMES:
            self.register_theme(theme)
        self._kept_theme = start.theme if start.theme in self.available_themes else ""
        self.chosen_theme = self._wanted_theme(host.config.ui)
        """Its name, or ``auto``; the palette may show another for a moment."""
        self.theme = self._theme_named(self.chosen_theme, light=start.light_terminal)
        # Before the first frame, which a later change would draw twice.
        self.stylesheet.set_variables(self.get_css_variables())
        self._dim = DimInSixteen()
        self.animation_level = "none"  # over a slow link, each step of an animated scroll is one more frame to send
        self.host, self.approver, self.start = host, approver, start
        self.failure_count, self.failure_limit = 0, MOST_FAILURES
        self._crashes = CrashFiles(start.state_folder)
        self.survives_failures: bool | None = None
        """True if the app survives an exception; None: only on a real terminal, so that tests fail."""
        self.guard_seconds = GUARD
        self._copy_pressed = -math.inf
        """When `COPY` was pressed last, if nothing was copied since."""
        self.own_keys: Mapping[str, str] = {}
        """The user's keys by the id of a binding."""
        self.keys = KeyOrder(self, self._pass_on_key, lambda: self.focused or self.screen)
        self.questions = QuestionQueue(self, host, approver)
        self.attention = Attention(self, lambda: host.config.ui.notify, in_tmux=bool(os.environ.get("TMUX")))
        self._reread_whole, self._started = reread, started
        self.recordings = RecordingsController(self, host)
        self._reread = None if reread is None else lambda: self._read_in_profile(reread, host.config.profile)
        self._shows_demo = start.missing is not None
        """True if the demo runs only because no configuration exists yet."""
        welcome = f"{DEMO}\n\n{start.how_to}" if start.is_demo else ""
        self.main = MainScreen(host, welcome, start)
        """Always the lowest screen of the stack."""
        sign_in_status = SignInStatusCache(host)
        self.updater = MainScreenUpdater(host, self.main, self.questions, sign_in_status, start)
        self.agents = AgentsController(self, host, self.main)
        self.chat = ChatController(self, self.keys, host, self.main, self.questions, self.updater)
        self.comparison = ComparisonController(self, host)
        self.copies = CopyController(self, host, start, self.copy_to_clipboard)
        self.configuration = ConfigurationController(self, host, self.main, self._reread, start)
        self.elicitation = ElicitationController(self, host, self.questions)
        self.imports = ImportsController(
            self,
            self.keys,
            host,
            self.configuration,
            start.state_folder,
            self._take_over,
            self.recordings.mount,
            open_importer,
        )
        self.catalog = CatalogController(self, self.keys, self.main)
        self.programs = ProgramsController(self, self.questions)
        self.repetitions = RepetitionController(self, host, self.main)
        self.results = ResultsController(self)
        self.roots = RootsController(self, self.keys, host)
        self.sampling = SamplingController(self, host, approver, self.questions)
        self.saved_calls = SavedCallsController(self, self.keys, host, self.main, self.catalog)
        self.servers = ServersController(self, host, self.main)
        self.sign_in = SignInController(self, host, approver, self.questions, sign_in_status, self.updater)
        self.tasks = TasksController(self, host, self.main)
        pinned = PinnedTools(StateStore(start.state_folder, host.bus.alarm), host.bus.alarm)
        self.tools = ToolsController(self, host, self.main, self.updater, pinned)
        self.traffic = TrafficController(self, host)
        self._layout = LayoutFile(StateStore(start.state_folder, host.bus.alarm), host.bus.alarm)
        self._gatherer: EventGatherer | None = None
        self._handlers = handlers_of(
            self.updater,
            self.questions,
            self.agents,
            self.catalog,
            self.chat,
            self.comparison,
            self.copies,
            self.elicitation,
            self.imports,
            self.programs,
            self.repetitions,
            self.results,
            self.roots,
            self.sampling,
            self.saved_calls,
            self.servers,
            self.sign_in,
            self.tasks,
            self.tools,
            self.traffic,
        )

    def _wanted_theme(self, ui: UI) -> str:
        """The theme of the configuration; where it names none, the one that the user chose on screen."""
        return self._kept_theme or "auto" if ui.theme == "auto" else ui.theme

    @property
    def theme_is_configured(self) -> bool:
        """True if the configuration names a theme, which is then used at the next start."""
        return self.host.config.ui.theme != "auto"

    def choose_theme(self, name: str) -> None:
        """Use a theme, or ``auto``, and keep it for the next run unless the configuration names one."""
        self.chosen_theme = name
        self.preview_theme("")
        if not self.theme_is_configured:
            self._kept_theme = "" if name == "auto" else name
            self.main.keep_theme(self._kept_theme)

    def preview_theme(self, name: str) -> None:
        """Show a theme for now; "" shows the chosen one again."""
        self.theme = self._theme_named(name or self.chosen_theme, light=self.start.light_terminal)

    @on(CommandPalette.Closed)
    def _palette_closed(self, event: CommandPalette.Closed) -> None:
        if not event.option_selected:
            self.preview_theme("")

    def _theme_named(self, name: str, *, light: bool) -> str:
        sixteen = self.console.color_system == "standard" and not self.no_color
        return theme_for(light=light, sixteen=sixteen).name if name == "auto" else name

    def _apply_ui(self, old: UI, new: UI) -> None:
        """Go over to the ``[ui]`` of another configuration. What did not change there stays as the user set it."""
        if old.theme != new.theme:
            self.chosen_theme = self._wanted_theme(new)
            self.preview_theme("")
        if old.notify != new.notify:
            self.attention.update()
        if old.keys != new.keys:
            self._use_own_keys(new.keys)
        if old.images != new.images:
            self.results.draw_pictures(new.images != "off")
        if old.log_panel != new.log_panel:
            self.main.set_log_panel(new.log_panel)
        if old.logs != new.logs:
            self.main.logs.set_least(LogLevel.read(new.logs) or LogLevel.INFO)
        if self._shows_demo and self.host.config.path is not None:
            self._shows_demo = False
            self.main.leave_demo()
            self.updater.leave_demo()
        self.configuration.applied()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's variables, with enough contrast whatever theme it is."""
        self.theme_variables = with_contrast(self.current_theme, super().get_css_variables())
        return self.theme_variables

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, self._dim] if self.theme == SIXTEEN.name else filters

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def _use_own_keys(self, keys: Mapping[str, str]) -> None:
        """Give bindings the user's keys; those that cannot be used are named, and stay as they are."""
        from mcphost.tui.own_keys import bound_keys, checked, problems_of  # late: imports every screen

        self.own_keys, _ = checked(keys, bound_keys())
        self.set_keymap(self.own_keys)
        for problem in problems_of(keys, (self.host.config.path, *self.start.watched)):
            self.notify(show(str(problem)), title="Configuration", severity="warning", timeout=20, markup=False)

    def on_mount(self) -> None:
        if self.host.config.ui.keys:
            self._use_own_keys(self.host.config.ui.keys)
        self.results.draw_pictures(self.host.config.ui.images != "off")
        self._gatherer = EventGatherer(self.host.bus, self)
        self.call_after_refresh(self.configuration.watch)
        self.approver.attach(self)
        self.call_after_refresh(self.updater.everything)
        self.run_worker(self._take_layout())
        for problem in self.start.problems:
            self.notify(show(problem), title="Configuration", severity="warning", timeout=20, markup=False)

        if self.start.missing is not None or not self.host.servers:
            self.set_timer(COUNT_AFTER, lambda: self.run_worker(self._count_elsewhere(), group="elsewhere"))

    async def _count_elsewhere(self) -> None:
        self.updater.show_elsewhere(await self.imports.count_elsewhere())

    async def _take_layout(self) -> None:
        self.main.take_layout(await self._layout.load())

    @on(MainScreen.LayoutChanged)
    async def _layout_changed(self, event: MainScreen.LayoutChanged) -> None:
        await self._layout.save(event.layout)

    def on_unmount(self) -> None:
        if self._gatherer is not None:
            self._gatherer.close()
        self.configuration.close()
        self.results.close()

    async def on_event(self, event: TextualEvent) -> None:
        """Pass keys on one at a time, and drop keys, clicks and pastes that were meant for what a new dialog covers."""
        if isinstance(event, Key) and not event.is_forwarded:
            if self.focused is not None and not self.focused.is_attached:
                self.set_focus(None)  # an exception ended that widget: it would swallow all keys, even this one
            if event.key == QUIT:
                await self._pass_on_key(event)
            elif event.key == COPY and self._is_second(event) and not self._has_selection:
                await self.action_quit()
            else:
                await self.keys.take(event)
        elif isinstance(event, Paste | MouseDown) and self._too_early(event):
            event.stop()
        else:
            await super().on_event(event)

    async def _pass_on_key(self, key: Key) -> None:
        self.questions.typed()
        if key.key not in ALWAYS_ACTIVE and self._too_early(key):
            key.stop()
            if isinstance(self.screen, Dialog):
                self.screen.show_too_early(key)
        elif key.key == COPY and not self._has_selection:
            key.stop()
            self.notify("Press ctrl+c again to quit.", timeout=TWICE_SECONDS)
        else:
            await super().on_event(key)

    def _is_second(self, press: Key) -> bool:
        """Note that `COPY` was pressed, and return whether it was just before."""
        before, self._copy_pressed = self._copy_pressed, press.time
        return press.time - before <= TWICE_SECONDS

    @property
    def _has_selection(self) -> bool:
        """True if `COPY` has something to copy."""
        return bool(getattr(self.focused, "selected_text", "") or self.screen.get_selected_text())

    def _too_early(self, event: TextualEvent) -> bool:
        screen = self.screen_stack[-1] if self.screen_stack else None
        return isinstance(screen, Dialog) and screen.too_early(event, self.guard_seconds)

    # The clipboard.

    def copy_to_clipboard(self, text: str, name: str = "") -> None:
        """Send ``text`` to the terminal's clipboard, and say what is known of it. An empty text is not copied.

        ``name`` says which text it is.
        """
        data = text.encode("utf-8", "replace")
        if not data:
            return
        self._copy_pressed = -math.inf
        count, saves = f"{len(text):,} character{'' if len(text) == 1 else 's'}", self._saves_with_w
        count = f"{name} ({count})" if name else count
        if len(data) > MOST_BYTES:
            instead = " w saves it to a file." if saves else ""
            self.notify(f"Not copied: {count} are more than many terminals take.{instead}", severity="warning")
            return
        super().copy_to_clipboard(data.decode())
        if os.environ.get("TMUX"):
            self.run_worker(self._copy_in_tmux(data, count), group="copy", exclusive=True)
        else:
            instead = "; if nothing arrives, w saves it" if saves else ""
            self.notify(f"Sent {count} to the terminal's clipboard{instead}.")

    async def _copy_in_tmux(self, data: bytes, count: str) -> None:
        if await asyncio.to_thread(load_into_tmux, data):
            self.notify(f"Copied {count} to tmux's buffer; sent to the clipboard, too.")
        else:
            self.notify(NOT_PASSED_ON, severity="warning", markup=False)

    @property
    def _saves_with_w(self) -> bool:
        """True where the key w saves what is copied."""
        active = self.screen.active_bindings.get("w")
        return active is not None and active.enabled and active.binding.description == "save"

    # Events from the host.

    def on_host_changed(self, message: HostChanged) -> None:
        if not self.is_running:  # the app exits, and its screens come apart
            return
        events = message.take()
        for event in events:
            if isinstance(event, Alarmed):
                self.notify(show(event.text), severity="error", timeout=15, markup=False)
            elif isinstance(event, CallFinished) and event.call in self.host.tool_calls.calls:
                self.attention.call_ended(self.host.tool_calls.calls[event.call])
        self.updater.changed([event for event in events if not isinstance(event, Alarmed)])
        self.agents.changed(events)
        self.sign_in.changed(events, self.main.servers.described)
        self.elicitation.changed(events)
        self.roots.changed(events)
        self.chat.changed(events)
        self.sampling.changed(events)

    # Messages from panes and screens.

    @on(Message)
    async def _pass_to_controllers(self, message: Message) -> None:
        """Call the handlers of the controllers, which are named as Textual names those of widgets."""
        for handle in self._handlers.get(message.handler_name, ()):
            result = handle(message)
            if isawaitable(result):
                await result

    @on(AppFocus)
    def _app_focused(self, event: AppFocus) -> None:
        event.prevent_default()  # Textual draws the whole screen whenever its window gets or loses the focus
        self.attention.focused()
        self.roots.check()

    @on(AppBlur)
    def _app_blurred(self, event: AppBlur) -> None:
        event.prevent_default()
        self.attention.blurred()

    # Messages from the main screen.

    @on(MainScreen.Complete)
    def _main_complete(self) -> None:
        self._started()

    @on(MainScreen.PaneMade)
    def _pane_made(self) -> None:
        self.updater.offers()
        self.chat.show()

    @on(ServersPane.Highlighted)
    def _server_highlighted(self, event: ServersPane.Highlighted) -> None:
        event.stop()
        self.updater.chosen()
        self.sign_in.fetch_status(event.server)

    # Questions.

    def on_questions_changed(self, _: QuestionsChanged) -> None:
        self.questions.changed()
        self.attention.questions_changed(self.approver.open)
        self.updater.top_line()

    @on(MainScreen.InFront)
    def _in_front(self) -> None:
        self.chat.cover(0)
        self.questions.ask_next()
        self.configuration.in_front()
        self.updater.top_line()
        self.updater.skills()  # an approval may be revoked by now

    def action_inbox(self) -> None:
        self.questions.show_inbox()

    # Help, grants, palette.

    def action_keys(self) -> None:
        from mcphost.tui.main.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_grants(self) -> None:
        from mcphost.tui.consent.grants import GrantsScreen

        self.push_screen(GrantsScreen(self.host.consent.grants, self.host.consent.revoke_grant))

    def action_reload(self) -> None:
        if self._reread is None:
            self.notify("This run has no configuration file.")
        else:
            self._reload(self._reread)

    def choose_profile(self, name: str | None) -> None:
        """Show what another profile (None: every server) changes, and go over to it if the user agrees."""
        if (read := self._reread_whole) is not None:
            self._reload(lambda: self._read_in_profile(read, name))

    def _read_in_profile(self, read: reload.Read, name: str | None) -> ReloadedConfig:
        """Raises ConfigError."""
        return self.recordings.kept_in(read().in_profile(name))

    def _reload(self, read: reload.Read) -> None:
        if len(self.screen_stack) == 1:
            self.configuration.withdraw_notes()
            opening = self.run_worker(reload.reload(self, self.host, read, self._apply_ui), exclusive=True)
            self.keys.wait_for(opening)

    async def _take_over(self, names: Collection[str]) -> None:
        """Start servers that were just added. Raises ConfigError."""
        if self._reread is None:
            raise ConfigError("this run shows the demo alone; start mcphost without it")
        before = self.host.config.ui
        await reload.take_over_servers(self.host, self._reread, names, whole=self._shows_demo)
        self._apply_ui(before, self.host.config.ui)

    @cached_property
    def palette(self) -> Palette:
        """The entries of the command palette; imported when it is first opened."""
        from mcphost.tui.palette import Palette

        return Palette(self, self.host, self.main, self.tools, self.catalog, self.chat, self)

    def palette_sources(self) -> Iterator[tuple[str, Iterable[SystemCommand]]]:
        """The kinds of entries that controllers add to the palette, each with its commands."""
        yield "action", self.get_system_commands(self.screen)
        yield "saved call", self.saved_calls.commands()

    def action_command_palette(self) -> None:
        from mcphost.tui.palette import PaletteScreen

        if not isinstance(self.screen, PaletteScreen):
            self.push_screen(PaletteScreen(everything=self.screen is self.main))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the actions that no key has, for the command palette."""
        yield from self.imports.commands()
        yield from self.recordings.commands()
        yield from self.agents.commands()
        yield from self.sign_in.commands()
        yield from self.roots.commands()
        yield from self.elicitation.commands()
        yield from self.chat.commands()
        yield from self.sampling.commands()
        yield from self.comparison.commands()
        yield from self.repetitions.commands()
        config = self.host.config
        for name in config.profiles:
            if name != config.profile:
                choose = partial(self.choose_profile, name)
                yield SystemCommand(f"Change to the profile “{name}”", "Shows what changes, and asks", choose)
        if config.profile is not None:
            leave = partial(self.choose_profile, None)
            yield SystemCommand(f"Leave the profile “{config.profile}”", "All servers, and no values of it", leave)
        for server in self.host.servers.values():
            yield SystemCommand(f"Restart “{server.name}”", f"It is {server.state.value}", server.restart)
            if server.ready:
                relist = partial(self.servers.relist, server.name)
                yield SystemCommand(f"List again what “{server.name}” offers", "From the server, not the cache", relist)
        yield SystemCommand("Save a screenshot", "As an SVG file", self.deliver_screenshot)

    # Errors of the screen itself.

    def survive(self, error: Exception) -> bool:
        """Keep running: what one server sent must not break the rest of the screen."""
        survives = not self.is_headless if self.survives_failures is None else self.survives_failures
        self.failure_count += 1
        if not survives or self.failure_count > self.failure_limit:
            return False
        saved = self._crashes.save_in_thread(error)
        words = f"mcphost could not show something ({described(error)}). The traceback, without values, is in {saved}"
        self.call_later(self.notify, words, severity="error", timeout=15, markup=False)
        self.call_later(self.keys.follow_again)
        return True

    def worker_failed(self, error: BaseException) -> None:
        """Show an error of mcphost as a sentence; treat any other like an exception of the screen."""
        if isinstance(error, McphostError):
            self.notify(show(str(error), limit=600), severity="warning", markup=False, timeout=10)
        else:
            super().worker_failed(error)

    def last_words(self, error: BaseException | None) -> str:
        if error is None:
            return "mcphost gives up: it went wrong on screen. Please report this."
        saved = self._crashes.save(error)
        where = f" The traceback, without values, is in {saved}" if saved else ""
        return f"mcphost gives up: {described(error)} went wrong on screen. Please report this.{where}"


def described(error: BaseException) -> str:
    """The type of an exception, and the innermost line of mcphost in its traceback."""
    place, step = "an unknown place", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(PACKAGE):
            place = f"mcphost{file.removeprefix(PACKAGE)}:{step.tb_lineno}"
        step = step.tb_next
    return f"{type(error).__name__} at {place}"


def handlers_of(*controllers: object) -> dict[str, list[Callable[[Any], object]]]:
    """The methods ``on_…`` of these controllers by the name of the message that they handle."""
    found: dict[str, list[Callable[[Any], object]]] = {}
    for controller in controllers:
        for name in vars(type(controller)):
            if name.startswith("on_"):
                found.setdefault(name, []).append(getattr(controller, name))
    return found
