"""Corrections of Textual: timers, sizes and tabs under load, CSS, scrollbars, notifications."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual import screen as textual_screen
from textual._compositor import Compositor, ReflowResult
from textual.app import App
from textual.cache import LRUCache
from textual.color import Color
from textual.containers import VerticalScroll
from textual.css.stylesheet import Stylesheet
from textual.geometry import Size
from textual.notifications import Notification
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TabbedContent, TabPane

Result = TypeVar("Result")

WIDGET_KINDS: Final = 1024
"""More than the app has."""


def unskipped(timer: Timer) -> Timer:
    """Let a new one-shot timer fire even if its time has passed before Textual first checks it.

    Textual skips such a tick and waits for the next one, which a one-shot timer does not have.
    """
    timer._skip = False
    return timer


def keep_parsed(stylesheet: Stylesheet) -> None:
    """Parse the CSS of each kind of widget once.

    Textual goes through all kinds whenever a new one is mounted, and keeps the CSS of the last 64: once there are more,
    it parses all of them again.
    """
    stylesheet._parse_cache = LRUCache(WIDGET_KINDS)


def withdraw(app: App[None], notification: Notification) -> None:
    """Remove this notification, if it is still shown: Textual's own methods remove all of them, or none."""
    if notification in app._notifications:
        app._unnotify(notification)


class _TellingCompositor(Compositor):
    """Tells every new widget its size.

    Textual sends Resize and Show to the widgets that are not in its map. A question for a place on screen between a
    mount and the next layout makes a new map, with which the new widget looks like an old one, and stays empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told = self._full_map

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        self._full_map = self._told
        result = super().reflow(parent, size)
        self._told = self._full_map
        return result

    def clear(self) -> None:
        super().clear()
        self._told.clear()


textual_screen.Compositor = _TellingCompositor  # type: ignore[attr-defined]  # a screen makes its own


class LatestTabs(TabbedContent):
    """Stays on the tab that the user went to last.

    Textual opens the tab in which a widget was focused when it hears of that, which on a busy machine may be after the
    user has gone to another tab.
    """

    def _on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        if not event.tab_pane.has_focus_within:
            event.stop()
            event.prevent_default()


class PlacedScrollbars(Widget):
    """Sets the position of a scrollbar that appears again, as after a resize, and paints only one that changed.

    Textual leaves it where it was when the scrollbar went, whatever was scrolled since, and paints those of a
    `ScrollView` at each layout of the screen. This base comes after the widget's: Textual inherits CSS from the first
    alone.
    """

    _scrollbars_of: object = None
    """The inputs of the last scrollbar computation."""

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


class ScrolledColumn(VerticalScroll, PlacedScrollbars):
    """A column that scrolls, with the scrollbar in its place."""


class Modal(ModalScreen[Result]):
    """A modal that looks nearer than what is behind it, in a theme of the terminal's own colours too.

    Textual blends what is behind with a colour, which those cannot be. Other colours are blended once for each style.
    """

    @property
    def dims(self) -> bool:
        """Does it dim what is behind it?"""
        return True

    def render(self) -> RenderableType:
        shown = super().render()
        if not isinstance(shown, BackgroundScreen):
            return shown
        tinted = _Tinted(shown.screen, shown.color)
        return _Dimmed(tinted) if self.dims and self.app.native_ansi_color else tinted


class _Tinted(BackgroundScreen):
    """What is behind a dialog. Textual blends the colours of each segment; here each style's are blended once."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        for segment in segments:
            yield segment if segment.control else Segment(segment.text, _tinted(segment.style, color))


@lru_cache(maxsize=2048)
def _tinted(style: Style | None, color: Color) -> Style | None:
    (segment,) = BackgroundScreen.process_segments([Segment("", style)], color)
    return segment.style


class _Dimmed:
    """What this shows, dim, and without bold and reversed text."""

    STYLE = Style(dim=True, bold=False, reverse=False)

    def __init__(self, shown: BackgroundScreen) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return Segment.apply_style(console.render(self._shown, options), post_style=self.STYLE)
