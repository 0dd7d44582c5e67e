"""Notices changes of the configuration on the disk. `mcphost.tui.servers.reload` applies them, after a key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from textual.app import App
from textual.notifications import Notification, Notify, SeverityLevel
from textual.worker import Worker

from mcphost.config import Changes, compare
from mcphost.errors import McphostError
from mcphost.host.file_watch import FileWatch
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.servers.reload import Read
from mcphost.tui.start_info import ReloadedConfig, StartInfo
from mcphost.tui.textual_private.corrections import remove_notification

NOTE_SECONDS: Final = 20.0
"""Seconds for which a note is shown, unless the user opens the change before."""

NAMED: Final = 6
"""Changes that the note names; the dialog shows all of them."""


class ConfigurationController:
    """Watches the files of ``start``; ``read`` is None for a run without a configuration file."""

    def __init__(self, app: App[None], host: Host, main: MainScreen, read: Read | None, start: StartInfo) -> None:
        self._app, self._host, self._main, self._read = app, host, main, read
        self._watch = FileWatch(start.watched, self._changed, since=start.read_at)
        self._due = self._held = False
        self._reported: tuple[Changes, tuple[str, ...]] | None = None
        self._reported_at_start = start.problems
        self._notes: list[Notification] = []
        """Notes that may still be on screen."""

    def watch(self) -> None:
        """Begin to watch the files, where the system reports changes."""
        if self._read is not None:
            self._watch.start()

    def close(self) -> None:
        self._watch.close()

    def in_front(self) -> None:
        """Report a change that came while another screen covered the main one."""
        if self._due and not self._held and self._app.screen is self._main:
            self._due = False
            _: Worker[None] = self._app.run_worker(self._compare(), group="configuration", exclusive=True)

    def hold(self, held: bool) -> None:
        """Report no change while the user adds servers: those changes are applied at the end."""
        self._held = held
        self._app.call_after_refresh(self.in_front)

    def withdraw_notes(self) -> None:
        """Remove the notes on a change that the user has opened, or that has changed again."""
        for note in self._notes:
            remove_notification(self._app, note)
        self._notes.clear()

    def applied(self) -> None:
        """Check again, since another configuration is in use."""
        self.withdraw_notes()
        self._due = self._reported is not None
        self._app.call_after_refresh(self.in_front)

    def _changed(self) -> None:
        self._due = True
        self.in_front()

    async def _compare(self) -> None:
        """Read the files, and report how they differ from the configuration in use."""
        assert self._read is not None
        try:
            fresh = await asyncio.to_thread(self._read)
        except McphostError as error:
            self._reported = None
            words = f"{show(str(error))}\nmcphost goes on with what it read before."
            self.withdraw_notes()
            self._note(words, "Configuration", "warning")
            return
        changes = compare(self._host.config, fresh.config)
        self._main.top_line.show_configuration_changed(bool(changes))
        self._report(changes, fresh)

    def _report(self, changes: Changes, fresh: ReloadedConfig) -> None:
        """Report a change once: a file may be saved again without a change."""
        before, self._reported = self._reported, (changes, tuple(fresh.problems))
        if before == self._reported:
            return
        self.withdraw_notes()
        known = self._reported_at_start if before is None else before[1]
        for problem in (problem for problem in fresh.problems if problem not in known):
            self._note(show(problem), "Configuration", "warning")
        if changes:
            words = f"{in_words(changes)}\nctrl+l shows all of it, and applies what you agree to."
            self._note(words, "The configuration changed")

    def _note(self, words: str, title: str, severity: SeverityLevel = "information") -> None:
        note = Notification(words, title, severity, NOTE_SECONDS, markup=False)
        self._notes.append(note)
        self._app.post_message(Notify(note))


def in_words(changes: Changes) -> str:
    """Name the changes in a line: ``+ github · ~ git (args) · - old · [policy]``. Safe to show."""
    words = list(_words(changes))
    more = f" · and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return " · ".join(show_line(each, 80) for each in words[:NAMED]) + more


def _words(changes: Changes) -> Iterator[str]:
    yield from (f"+ {name}" for name in changes.added)
    yield from (f"- {name}" for name in changes.removed)
    for name, fields in changes.changed.items():
        what = "runs something else" if {"command", "url"} & set(fields) else ", ".join(fields)
        yield f"~ {name} ({what})"
    yield from (f"[{section}]" for section in changes.sections)
