"""Makes Textual's pilot wait until the app has settled: no widget has a message left, and what changed is drawn.

Textual's own pilot sends a message to every widget after every key and watches the processor's clock for signs of
idleness. That was most of what these tests took, and on a busy machine a test went on before its key had been handled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pytest
from textual import app as textual_app
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.dom import DOMNode
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui import shortcuts  # noqa: F401  (what this module waits for ends sooner)

LIMIT: Final = 30.0
"""Seconds after which an app that does not settle fails the test."""

TURNS: Final = 200
"""Turns after which an app is waiting for something else than its turn."""

LOOK_SECONDS: Final = 0.002
"""Seconds between two checks of what takes time."""


async def settle(app: App[Any], limit: float = LIMIT, *, draw: bool = True) -> bool:
    """Wait until no widget has anything left to do and what changed is drawn; False where the app has failed."""
    try:
        async with asyncio.timeout(limit):
            await _rested(app, draw)
            while draw and _frame_drawn(app):
                await _rested(app, draw)  # a widget may begin something once it is drawn, as a picture does
    except TimeoutError:
        pytest.fail(f"the app has not settled after {limit:g} s")
    return not app._exception_event.is_set()


async def _rested(app: App[Any], draw: bool) -> None:
    """Wait until no widget has anything left to do, without a frame in between."""
    with _frames.held():
        await _turns()
        while not await _finished(app) or (draw and await _laid_out(app)):
            await _turns()


def _frame_drawn(app: App[Any]) -> bool:
    """Draw what changed; was there anything?"""
    if _is_over(app) or not app.screen_stack or not app.screen._compositor._dirty_regions:
        return False
    try:
        app.screen._compositor_refresh()
    except Exception as error:
        app._handle_exception(error)
    return True


class _Frames:
    """Counts the tests that wait for an app to settle: until then changes are not drawn, and at the end once."""

    def __init__(self) -> None:
        self._holding = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1

    def render(
        self, compositor: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, **more: Any
    ) -> Any:
        """Replaces `Compositor.render_update`, which keeps what it has not drawn as dirty.

        Widgets still render; nothing composes the frame, which no terminal would show.
        """
        if full:
            return _render_update(compositor, full, screen_stack, **more)
        if not self._holding:
            visible_screen_stack.set(screen_stack or [])
            dirty = Region.from_union(compositor._dirty_regions) if compositor._dirty_regions else None
            compositor._dirty_regions.clear()
            if dirty:
                deque(compositor._get_renders(dirty.intersection(compositor.size.region)), maxlen=0)
        return None


_frames = _Frames()
_render_update = Compositor.render_update


async def _turns() -> None:
    """Let the event loop run until no other task is ready: then a key is with its widget, and a worker has begun."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if not loop._ready:
            break


async def _finished(app: App[Any]) -> bool:
    """Wait until no widget has a message left; was that so from the start?"""
    at_once = True
    busy: MessagePump | None = _first_busy(app)
    for look in count():
        if busy is None or _is_over(app):
            break
        at_once = False
        await (_turns() if look < TURNS else asyncio.sleep(LOOK_SECONDS))
        if _rests(busy):
            busy = _first_busy(app)
    return at_once


def _is_over(app: Any) -> bool:
    return bool(app._exception_event.is_set() or not app.is_running)


def _first_busy(app: App[Any]) -> MessagePump | None:
    if not _rests(app):
        return app
    nodes: list[DOMNode] = list(app.screen_stack)
    for node in nodes:
        queue: Any = node._message_queue
        waits = queue.ready_event._waiters and not (queue.values or node._next_callbacks)  # most, without a call each
        if not waits and not _rests(node):
            return node
        nodes += node._nodes._nodes
    return None


def _rests(pump: MessagePump) -> bool:
    """True if the pump waits for a message, with none queued."""
    queue: Any = pump._message_queue
    if not queue.values and queue.ready_event._waiters:
        return not pump._next_callbacks
    return pump._closing or (not pump._running and (pump._task is None or pump._task.done()))


async def _laid_out(app: App[Any]) -> bool:
    """Wait for the next layout, if it would change anything; was there one to wait for?"""
    if _is_over(app) or app._batch_count or not app.screen_stack:
        return False
    if app._animator._animations:
        await asyncio.sleep(LOOK_SECONDS)
        return True
    if app._resize_event is not None:
        app._check_resize()
        return True
    front: Any = app.screen
    due: Any = front._layout_required or front._scroll_required or front._repaint_required or front._recompose_required
    if not (due or front._dirty_widgets or front._callbacks):
        return False
    if front._update_timer._active.is_set():
        await asyncio.sleep(LOOK_SECONDS)
    else:
        front._on_timer_update()
    return True


async def _wait_for_screen(pilot: Pilot[Any], timeout: float = LIMIT) -> bool:
    return await settle(pilot.app, timeout)


async def _press(pilot: Pilot[Any], *keys: str) -> None:
    for number, key in enumerate(keys, 1):
        await pilot.app._press_keys((key,))
        await settle(
            pilot.app, draw=len(key) > 1 or number == len(keys)
        )  # no test reads the screen between two letters


async def _pause(pilot: Pilot[Any], delay: float | None = None) -> None:
    await asyncio.sleep(delay or 0.0)
    await settle(pilot.app)


async def _no_wait(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Replaces Textual's check of the processor's clock."""


def _patch() -> None:
    pilot: Any = Pilot
    pilot._wait_for_screen, pilot.press, pilot.pause = _wait_for_screen, _press, _pause
    textual_app.wait_for_idle = _no_wait  # type: ignore[attr-defined]
    compositor: Any = Compositor
    compositor.render_update = lambda self, *args, **more: _frames.render(self, *args, **more)


_patch()
