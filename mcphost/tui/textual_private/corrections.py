"""Corrections of Textual, most of them for a busy machine or a slow link."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.text import Text
from textual import screen as textual_screen
from textual._compositor import Compositor, ReflowResult
from textual.app import App
from textual.cache import LRUCache
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.events import Callback, Key
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.notifications import Notification
from textual.screen import Screen
from textual.timer import Timer, TimerCallback
from textual.widget import MountError, Widget
from textual.widgets import TabbedContent, TabPane
from textual.worker import Worker, WorkerFailed

from mcphost.tui.textual_private.driver import Driver

if TYPE_CHECKING:
    _Pump = MessagePump
else:
    _Pump = object

WIDGET_KINDS: Final = 1024
"""More kinds of widgets than the app has."""

KEY_SECONDS: Final = 10.0
"""Seconds after which the next key is passed on regardless. A busy machine may take seconds to open a dialog, which
would miss a key that came earlier; the limit is only for what never ends."""

ROUNDS: Final = 4
"""Times that the way from the focus up to the app is followed: enter in a form posts a message, which causes another,
and only the last one moves the focus."""

DEPARTURES: Final = 4
"""Times that a key is followed again because the part of the screen where it was is gone."""


def timer_without_skips(timer: Timer) -> Timer:
    """Let a new one-shot timer fire even if its time has passed before Textual first checks it.

    Textual skips such a tick and waits for the next one, which a one-shot timer does not have.
    """
    timer._skip = False
    return timer


def parse_css_once(stylesheet: Stylesheet) -> None:
    """Parse the CSS of each kind of widget once.

    Textual goes through all kinds whenever a new one is mounted, and keeps the CSS of the last 64: with more, it parses
    all of them again.
    """
    stylesheet._parse_cache = LRUCache(WIDGET_KINDS)


def remove_notification(app: App[None], notification: Notification) -> None:
    """Remove this notification if it is still shown. Textual's public methods remove all of them."""
    if notification in app._notifications:
        app._unnotify(notification)


class _CompositorSizingNewWidgets(Compositor):
    """Sends each new widget its size.

    Textual sends Resize and Show to the widgets that are not in its map. Asking for a region between a mount and the
    next layout makes a new map, which holds the new widget, so that the widget gets neither and stays empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self._notified_map = self._full_map

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        self._full_map = self._notified_map
        result = super().reflow(parent, size)
        self._notified_map = self._full_map
        return result

    def clear(self) -> None:
        super().clear()
        self._notified_map.clear()


textual_screen.Compositor = _CompositorSizingNewWidgets  # type: ignore[attr-defined]  # each screen creates one


class TabsWithoutRace(TabbedContent):
    """Stays on the tab that the user opened last.

    Textual opens the tab of a widget when it handles the event of its focus, and on a busy machine the user may have
    gone to another tab by then.
    """

    def on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        if not event.tab_pane.has_focus_within:
            event.stop()
            event.prevent_default()


class ScrollbarsOnLayout(Widget):
    """Positions a scrollbar that appears again, as after a resize, and paints only one that changed.

    Textual leaves such a scrollbar at its old position, and paints those of a `ScrollView` at each layout of the
    screen. Name this base after the widget's: Textual inherits CSS from the first one only.
    """

    _scrollbars_of: object = None
    """The inputs and the result of the last update of the scrollbars."""

    def _scroll_update(self, virtual_size: Size) -> None:
        styles = self.styles
        bars = styles.scrollbar_size_vertical, styles.scrollbar_size_horizontal
        source = virtual_size, self.container_size, styles.overflow_x, styles.overflow_y, bars
        shown = self.show_vertical_scrollbar, self.show_horizontal_scrollbar
        if (source, shown) != self._scrollbars_of:
            super()._scroll_update(virtual_size)
            self._scrollbars_of = source, (self.show_vertical_scrollbar, self.show_horizontal_scrollbar)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_show_horizontal_scrollbar(self, shown: bool) -> None:
        if shown:
            self.horizontal_scrollbar.position = self.scroll_x


class ScrolledColumn(VerticalScroll, ScrollbarsOnLayout):
    """A column that scrolls."""


class ErrorBoundary(_Pump):
    """A screen that survives an exception in a message handler; Textual's message pumps end after one."""

    async def _dispatch_message(self, message: Message) -> None:
        with _failures_reported_to(self.app):
            await super()._dispatch_message(message)


@contextmanager
def _failures_reported_to(app: App[Any]) -> Iterator[None]:
    """Let ``app`` report an exception, and continue with the next message."""
    try:
        yield
    except Exception as error:
        app._handle_exception(error)


class ResilientApp(App[None]):
    """An app whose exceptions its own methods handle, and that draws without waiting for a slow terminal."""

    _gave_up = False

    def set_timer(self, delay: float, callback: TimerCallback | None = None, **options: Any) -> Timer:
        """Correct Textual's own timers too: a resize waits for one of 8 ms."""
        return timer_without_skips(super().set_timer(delay, callback, **options))

    def survive(self, error: Exception) -> bool:
        """Report an exception of the screen; return False if the app must exit."""
        return False

    def worker_failed(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self._handle_exception(error)

    def last_words(self, error: BaseException | None) -> str:
        """The text with which the app exits after an exception. Textual would print every local variable."""
        return type(error).__name__

    def write_to_terminal(self, sequences: str) -> None:
        """Write escape sequences; Textual has no interface for pictures."""
        if self._driver is not None:
            self._driver.write(sequences)

    def set_terminal_title(self, title: str) -> None:
        """Set the terminal's title; empty: bring back the title from before mcphost."""
        if isinstance(self._driver, Driver):
            self._driver.set_title(title)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # Textual would wait for a terminal that is behind, and with it all servers would.
        if renderable is None or not isinstance(self._driver, Driver) or self._driver.takes_frame():
            super()._display(screen, renderable)

    async def _dispatch_message(self, message: Message) -> None:
        with _failures_reported_to(self):  # Textual ends a message pump after its first exception
            await super()._dispatch_message(message)

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, WorkerFailed):
            self.worker_failed(error.error)
        elif self._exit and isinstance(error, NoMatches | MountError):
            return  # the app exits, and its screens come apart
        elif not self.survive(error):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        if not self._gave_up:  # only the first one, which caused the others
            self._gave_up = True
            self.panic(Text(self.last_words(sys.exception())))


class KeyOrder:
    """Passes a key on only after the previous one has taken full effect.

    Textual sends each key to the widget that has the focus at that moment, and only later handles what an earlier key
    caused, such as a new focus. Quick typing, or a slow link, would lose letters: ``/storm`` must reach the filter
    complete.

    ``pass_on`` passes a key on, ``target`` returns the widget that gets it first, and ``app`` is where it ends.
    """

    def __init__(self, app: DOMNode, pass_on: Callable[[Key], Awaitable[None]], target: Callable[[], DOMNode]) -> None:
        self.app, self._pass_on, self.target = app, pass_on, target
        self.waiting: deque[Key] = deque()
        self._current = 0
        self._last = 0
        self._timer: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Future[Any]] = set()

    @property
    def busy(self) -> bool:
        """True while a key has not taken full effect."""
        return bool(self._current)

    async def take(self, key: Key) -> None:
        """Pass this key on, now or when its turn comes."""
        if self._current:
            self.waiting.append(key)
        else:
            await self._begin(key)

    def wait_for(self, worker: Worker[Any]) -> None:
        """Hold keys back until this worker of the current key has ended: it opens what they are meant for."""
        if self._current:
            opening = asyncio.ensure_future(worker.wait())
            self._opening.add(opening)
            opening.add_done_callback(self._opened)

    async def _begin(self, key: Key) -> None:
        target = self.target()
        turn = self._start()
        await self._pass_on(key)
        # A paste without brackets is thousands of letters: in a box for text, none of them moves the focus.
        while self.waiting and writes(key, target) and writes(self.waiting[0], target):
            await self._pass_on(self.waiting.popleft())
        _Climb(self, turn, target).step()

    def _start(self) -> int:
        """Begin to wait for the effects of a key, or for the rest of them."""
        if self._timer is not None:
            self._timer.cancel()
        self._last += 1
        self._current = self._last
        self._timer = asyncio.get_running_loop().call_later(KEY_SECONDS, self._give_up, self._last)
        return self._last

    def _give_up(self, turn: int) -> None:
        self._opening.clear()
        self.end_later(turn)

    def _opened(self, opening: asyncio.Future[Any]) -> None:
        if not opening.cancelled():
            opening.exception()  # the app reports it
        if opening in self._opening:
            self._opening.remove(opening)
            self.follow_again()

    def follow_again(self) -> None:
        """Follow the current key from the focus: it went on, or its handler failed."""
        if self._current and self.app.is_running:
            _Climb(self, self._start(), self.target()).step()

    def waits_for(self, turn: int) -> bool:
        return turn == self._current

    def end_later(self, turn: int) -> None:
        """End the wait for this key behind what its last effects left in the app's queue."""
        self.app.call_later(self._end, turn)

    async def _end(self, turn: int) -> None:
        if turn != self._current or self._opening:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._current = 0
        if self.waiting:
            await self._begin(self.waiting.popleft())


class _Climb:
    """Climbs as the key does, from queue to queue, always behind the key and behind what it caused on the way.

    Each step is a bound method without arguments, since Textual inspects the signature of any other callback each time:
    for some forty steps that took a sixth of a key's processor time.
    """

    def __init__(self, order: KeyOrder, turn: int, start: DOMNode) -> None:
        self._order, self._turn = order, turn
        self._departures = DEPARTURES
        self._begin(start)

    def _begin(self, start: DOMNode) -> None:
        self._start = self._node = start
        self._rounds = ROUNDS

    def step(self) -> None:
        if not self._order.waits_for(self._turn):
            return
        node, parent = self._node, self._node.parent
        is_app = node is self._order.app
        if is_app:
            self._node, self._rounds = self._start, self._rounds - 1
        elif parent is not None:
            self._node = parent
        is_gone = not node.is_running or (parent is None and not is_app)
        if is_gone or not node.post_message(Callback(callback=self.step if self._rounds else self._end)):
            self._depart()

    def _depart(self) -> None:
        """Continue from the focus: the key closed the part of the screen it was in."""
        if self._departures and self._order.app.is_running:
            self._departures -= 1
            self._begin(self._order.target())
            self.step()
        else:
            self._end()

    def _end(self) -> None:
        self._order.end_later(self._turn)


def writes(key: Key, target: DOMNode) -> bool:
    """True if the key only writes a letter into the text of ``target``."""
    return key.is_printable and isinstance(target, Widget) and target.check_consume_key(key.key, key.character)
