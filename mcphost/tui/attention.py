"""Calls the user who is in another window, by the terminal's title and by a ring.

Both hold nothing but mcphost's own words and numbers: a title is shown outside of mcphost, where nothing marks text of
servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final, Protocol

from mcphost.host.tool_calls.call import CallState, ToolCall

LONG_SECONDS: Final = 10.0
"""Seconds of a call whose end is worth a ring: a user hardly looks away during a shorter one."""

RING_SECONDS: Final = 5.0
"""Seconds between two rings, whatever a server asks in the meantime."""


class TitledTerminal(Protocol):
    """The app, as far as the user's attention needs it."""

    def set_terminal_title(self, title: str) -> None:
        """Set the title; empty: bring back the one from before."""

    def write_to_terminal(self, sequences: str) -> None:
        """Write between two frames."""


class Attention:
    """``kind`` returns ``[ui] notify``.

    Nothing happens before the terminal reports that it lost the focus. Most terminals report it; one that does not
    would ring for a user who is looking.
    """

    def __init__(
        self,
        terminal: TitledTerminal,
        kind: Callable[[], str],
        *,
        in_tmux: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terminal, self._kind, self._in_tmux, self._clock = terminal, kind, in_tmux, clock
        self._away = False
        self._waiting = self._newest = 0
        self._ended: list[bool] = []
        """The calls that ended while the user was away: True for each that did what it should."""
        self._rang_at = float("-inf")

    def focused(self) -> None:
        self._away = False
        self._ended.clear()
        self.update()

    def blurred(self) -> None:
        self._away = True
        self.update()

    def questions_changed(self, numbers: Collection[int]) -> None:
        """Take the numbers of all questions that wait."""
        newest = max(numbers, default=0)
        arrived = newest > self._newest
        self._waiting, self._newest = len(numbers), max(newest, self._newest)
        self.update()
        if arrived:
            one = self._waiting == 1
            self._ring(f"{self._waiting} question{'' if one else 's'} wait{'s' if one else ''} for your answer")

    def call_ended(self, call: ToolCall) -> None:
        by_itself = call.state not in (CallState.CANCELLED, CallState.DECLINED) and call.request.repetition is None
        if self._away and by_itself and call.sent_at is not None and call.elapsed > LONG_SECONDS:
            self._ended.append(call.state is CallState.DONE)
            self.update()
            count = len(self._ended)
            self._ring("a call has ended" if count == 1 else f"{count} calls have ended")

    def update(self) -> None:
        """Set the title, or bring the old one back."""
        self._terminal.set_terminal_title(self._title if self._away and self._kind() != "none" else "")

    @property
    def _title(self) -> str:
        if self._waiting:
            return f"? {self._waiting} · mcphost"
        if self._ended:
            count = f"{len(self._ended)} · " if len(self._ended) > 1 else ""
            return f"{'✔' if all(self._ended) else '✖'} {count}mcphost"
        return ""

    def _ring(self, words: str) -> None:
        now = self._clock()
        if self._away and now - self._rang_at >= RING_SECONDS and (ring := ring_of(self._kind(), words, self._in_tmux)):
            self._rang_at = now
            self._terminal.write_to_terminal(ring)


def ring_of(kind: str, words: str, in_tmux: bool = False) -> str:
    """The sequence that rings: for ``bell`` the bell, for the others a notification with these words.

    tmux passes a notification on only as a passthrough, and only if its user allows it (``allow-passthrough``).
    """
    if kind == "bell":
        return "\a"
    before = {"osc9": "9;mcphost: ", "osc777": "777;notify;mcphost;"}.get(kind)
    if before is None:
        return ""
    sequence = f"\x1b]{before}{words}\x1b\\"
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{doubled}\x1b\\" if in_tmux else sequence
