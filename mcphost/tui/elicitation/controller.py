"""Shows URL elicitations, and mutes servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from textual.app import App, SystemCommand

from mcphost.host.events import ElicitationChanged, Event
from mcphost.host.host import Host
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.protocol.display import show_line
from mcphost.tui.consent.origin import url_elicitation_origin
from mcphost.tui.inbox.queue import QuestionQueue, UrlElicitationChosen
from mcphost.tui.kit.messages import MuteToggled


class ElicitationController:
    """Acts for the elicitation screens of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host, questions: QuestionQueue) -> None:
        self._app, self._host, self._questions = app, host, questions

    def changed(self, events: Iterable[Event]) -> None:
        """Show changes of URL elicitations on their screens, else as a notification."""
        for event in events:
            if isinstance(event, ElicitationChanged) and (
                elicitation := self._host.elicitation.all.get(event.elicitation)
            ):
                self._elicitation_changed(elicitation)

    def on_mute_toggled(self, event: MuteToggled) -> None:
        self.mute(event.server, event.muted)

    def mute(self, server: str, muted: bool) -> None:
        """Decline everything that this server asks, or ask the user again."""
        called = f"“{show_line(server, 60)}”"
        if muted:
            self._host.pending_requests.mute(server)
            words = (
                f"{called} is muted until mcphost exits: what it asks is declined. M on its card or in f2 undoes it."
            )
        else:
            self._host.pending_requests.unmute(server)
            words = f"{called} is no longer muted."
        self._app.notify(words, markup=False)
        self._questions.changed()

    def on_url_elicitation_chosen(self, event: UrlElicitationChosen) -> None:
        """Show the state of a URL elicitation."""
        from mcphost.tui.elicitation.url import UrlElicitationScreen, question_of

        elicitation = self._host.elicitation.all.get(event.number)
        if elicitation is not None and len(self._app.screen_stack) == 1:
            origin = url_elicitation_origin(self._host, elicitation)
            self._app.push_screen(UrlElicitationScreen(None, question_of(elicitation), origin, elicitation))

    def commands(self) -> Iterator[SystemCommand]:
        for name in dict.fromkeys((*self._host.servers, *self._host.pending_requests.muted_servers)):
            called, muted = f"“{show_line(name, 60)}”", self._host.pending_requests.muted(name)
            title = f"Unmute {called}" if muted else f"Mute {called}"
            about = "You are asked again" if muted else "Declines everything it asks until mcphost exits"
            yield SystemCommand(title, about, lambda name=name, muted=muted: self.mute(name, not muted))

    def _elicitation_changed(self, elicitation: UrlElicitation) -> None:
        from mcphost.tui.elicitation.url import UrlElicitationScreen

        stack = self._app.screen_stack
        screens = [each for each in stack if isinstance(each, UrlElicitationScreen) and each.is_about(elicitation)]
        for screen in screens:
            screen.show_elicitation(elicitation)
        if not screens and elicitation.state in (UrlElicitationState.COMPLETED, UrlElicitationState.LEFT):
            which = f"{show_line(elicitation.server, 60)}, the page at {show_line(elicitation.address.host, 100)}"
            self._app.notify(f"{which}: {elicitation.state.value}.", markup=False)
