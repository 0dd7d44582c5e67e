"""Shows the pages of URL elicitations, and mutes servers that ask too much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from textual.app import App, SystemCommand

from mcphost.host.events import ElicitationChanged, Event
from mcphost.host.host import Host
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.protocol.display import show_line
from mcphost.tui.consent.origin import page_reason
from mcphost.tui.inbox.queue import QuestionQueue


class ElicitationController:
    """Acts for the elicitation screens of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host, questions: QuestionQueue) -> None:
        self._app, self._host, self._questions = app, host, questions

    def changed(self, events: Iterable[Event]) -> None:
        """Show what became of pages, on their screen or else in a note."""
        for event in events:
            if isinstance(event, ElicitationChanged) and (page := self._host.elicitation.all.get(event.elicitation)):
                self._page_changed(page)

    def mute(self, server: str, muted: bool) -> None:
        """Decline everything that this server asks, or take that back."""
        called = show_line(server, 60)
        if muted:
            self._host.pending_requests.mute(server)
            words = f"All that {called} asks is declined until mcphost exits. M on its card or in the inbox undoes it."
        else:
            self._host.pending_requests.unmute(server)
            words = f"What {called} asks comes to you again."
        self._app.notify(words, markup=False)
        self._questions.changed()

    def show_page(self, number: int) -> None:
        """Show the state of a page."""
        from mcphost.tui.elicitation.url import PageQuestionScreen, question_of

        page = self._host.elicitation.all.get(number)
        if page is not None and len(self._app.screen_stack) == 1:
            reason = page_reason(self._host, page)
            self._app.push_screen(PageQuestionScreen(None, question_of(page), reason, page))

    def commands(self) -> Iterator[SystemCommand]:
        """Yield what the palette offers."""
        for name in self._host.servers:
            called, muted = show_line(name, 60), self._host.pending_requests.muted(name)
            title = f"Listen to {called} again" if muted else f"Decline everything {called} asks"
            about = "It asks you again" if muted else "Until mcphost exits"
            yield SystemCommand(title, about, lambda name=name, muted=muted: self.mute(name, not muted))

    def _page_changed(self, page: UrlElicitation) -> None:
        from mcphost.tui.elicitation.url import PageQuestionScreen

        stack = self._app.screen_stack
        seen = [each for each in stack if isinstance(each, PageQuestionScreen) and each.takes_page(page)]
        for screen in seen:
            screen.show_page(page)
        if not seen and page.state in (UrlElicitationState.COMPLETED, UrlElicitationState.LEFT):
            which = f"{show_line(page.server, 60)}, the page at {show_line(page.address.host, 100)}"
            self._app.notify(f"{which}: {page.state.value}.", markup=False)
