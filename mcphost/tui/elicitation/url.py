"""A page that a server asks to visit: its whole address and what is odd about it, then how the visit stands.

Opens nothing by itself: a key does, and the host. It stays after its question, until the page is done with.

Specification: client/elicitation, URL mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, UrlQuestion
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.protocol.display import show, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.answers import AnswerOption
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.elicitation.server_question import LETTERS, ServerQuestionScreen
from mcphost.tui.kit.facts_table import Fact, fact

LONG: Final = 300
"""Characters of an address from which it is worth a warning: what matters may be far from its start."""

PAGE_MARKS: Final[Mapping[UrlElicitationState, tuple[str, str]]] = {
    UrlElicitationState.WAITING: ("◐", "$text-warning"),
    UrlElicitationState.COMPLETED: ("●", "$text-success"),
    UrlElicitationState.CONTINUED: ("●", "$text-success"),
    UrlElicitationState.GIVEN_UP: ("◌", "$foreground-muted"),
    UrlElicitationState.LEFT: ("▲", "$text-warning"),
}
"""Shape and style of each state."""


class PageQuestionScreen(ServerQuestionScreen):
    """Asks to open a page, and shows how it stands; ``page`` is None until it was opened. See `show_page`."""

    HELP = (
        "A server asks you to visit a page. mcphost never looks at it: it opens in your browser, once you said so.\n"
        "Look at the host, in bold: that is who will see what you do there. The server learns only that you agreed.\n"
        "Then: o opens it again, c copies its address, g says that you are done, x gives up. esc leaves it in f2."
    )
    NOTHING = "no page was opened"
    LETTERS = LETTERS | {"agree", "copy", "reopen", "go_on", "message"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "open it", id="page-question.open", tooltip="Open the page in the browser"),
        Binding("o", "reopen", "open again", id="page-question.reopen", tooltip="Open it in the browser once more"),
        Binding("c", "copy", "copy", id="page-question.copy", tooltip="Copy the address"),
        Binding("g", "go_on", "done", id="page-question.done", tooltip="You are done there: go on"),
        Binding("m", "message", "message", id="page-question.message", tooltip="Read all that the server says"),
    ]

    DEFAULT_CSS = """
    PageQuestionScreen { .state { height: auto; } }
    """

    def __init__(
        self,
        waiting: OpenQuestion | None,
        question: UrlQuestion,
        reason: QuestionOrigin,
        page: UrlElicitation | None = None,
    ) -> None:
        super().__init__(waiting, reason)
        self.question, self.message, self.page = question, question.message, page
        self._state = Static(classes="state", markup=False)
        self._careful = bool(self._doubts()) or len(question.url) > LONG

    def heading(self) -> str:
        return f"{self.reason.server} asks you to visit a page"

    def limit(self) -> str:
        """Until when it can be visited, for a call that waits for it."""
        if self.page is not None and self.page.state.ended:
            return ""
        return super().limit() if self.question.until is None else self.reason.limit

    def about(self) -> Iterator[Fact]:
        """Where it would lead, who asks and why."""
        yield Fact("host", Content.assemble(*self._host_parts()))
        for doubt in self._doubts():
            yield fact("▲ beware", doubt, "bold $text-error")
        yield from self.reasons()
        yield Fact("whole address:", _address(self.question.url, self._plain_host()), wide=True, mark="  ")
        yield from self.says()

    def body(self) -> ComposeResult:
        yield self._state

    def on_mount(self) -> None:
        """The cursor stands where no harm is done."""
        self.set_class(self._careful, "-careful")
        self._show(at="n" if self.waiting is not None else None)
        self.answers.focus()

    def leave_room(self, height: int) -> None:
        """The address is what matters here."""
        self.what.styles.max_height = max(4, int(height * 0.9) - 10)

    def show_page(self, page: UrlElicitation) -> None:
        """It was opened, or stands otherwise now."""
        self.page = page
        if self.is_attached:
            self._show()

    def takes_page(self, page: UrlElicitation) -> bool:
        """Is it the one that is shown here?"""
        if self.page is not None:
            return self.page is page
        asked = (self.question.server, self.question.elicitation)
        return self.waiting is None and asked == (page.server, page.elicitation)

    def withdrawn(self) -> None:
        """A question that no longer matters closes it; a page that was opened stays."""
        if self.waiting is not None:
            super().withdrawn()

    def ways(self) -> Iterator[AnswerOption]:
        """The ways to answer, and then to go on."""
        host = self._host()
        if self.waiting is not None:
            yield AnswerOption("y", f"open it in the browser, at {host}", "agree", "open")
            yield from self.refusals()
            yield AnswerOption("c", "copy the address, without an answer", "copy", "copy")
        elif self.page is not None and not self.page.state.ended:
            yield AnswerOption("g", f"done there: let {self.reason.server} go on", "go_on", "done")
            yield AnswerOption("o", "open it again", "reopen", "open again")
            yield AnswerOption("c", "copy the address", "copy", "copy")
            yield AnswerOption("x", "give up: wait for it no longer", "cancel", "give up")
            yield AnswerOption("p", "leave; it waits in the inbox (f2)", "park", "leave")
        else:
            yield AnswerOption("c", "copy the address", "copy", "copy")
            yield AnswerOption("p", "close", "park", "close")

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can be done at this stage: what is on offer."""
        offered = {way.action for way in self.ways()} | {"message", "page", "back"}
        return action not in self.LETTERS or action in offered

    def action_agree(self) -> None:
        """Open it, once all of the address could be read."""
        if not self.what.reached:
            self.app.bell()
            return
        self.answer(Answer(allow=True))
        self._show(at=None)

    def action_copy(self) -> None:
        """Copy the address as a browser takes it."""
        self.app.copy_to_clipboard(self._opens())
        self.notify("The address is on the clipboard.")

    def action_reopen(self) -> None:
        """Open the page once more."""
        if self.page is not None:
            self.app.run_worker(self.page.open(), group="open-page", exclusive=True)

    def action_go_on(self) -> None:
        """The user is done there: let the server go on."""
        if self.page is not None:
            self.page.go_on()

    def action_cancel(self) -> None:
        """Neither yes nor no; once the page was opened: wait for it no longer."""
        if self.waiting is not None:
            super().action_cancel()
        elif self.page is not None:
            self.page.give_up()

    # What is shown.

    def _show(self, at: str | None = None) -> None:
        self.query_one(".dialog").border_title = self.title_line()
        mark, style, words = self._stands()
        self._state.update(Content.assemble((f"{mark} {words}", style)))
        self._state.display = bool(words)
        self.offer(at)
        self._check_end()
        self.refresh_bindings()

    def on_read_to_end_reached(self) -> None:
        """All of it was on screen."""
        self._check_end()

    def _check_end(self) -> None:
        unseen = self.waiting is not None and not self.what.reached
        self.hint("▼ more below: press space until the end, then it can be opened" if unseen else "")

    def _stands(self) -> tuple[str, str, str]:
        if self.waiting is not None:
            return "", "", ""
        if self.page is None:
            return "◐", "$text-warning", "opening it …"
        mark, style = PAGE_MARKS[self.page.state]
        words = self.page.state.value
        if self.page.not_opened and not self.page.state.ended:
            return "▲", "$text-warning", f"not opened: {show(self.page.not_opened, limit=300)}. c copies the address."
        return mark, style, words

    def _doubts(self) -> Iterator[str]:
        address = self.question.address
        if address is not None:
            here = address.opens.startswith("http://")  # of this machine alone, where a number is no riddle
            yield from ("It is a page of this machine, which some program here serves.",) if here else address.doubts
        if len(self.question.url) > LONG:
            yield f"It is very long: {len(self.question.url):,} characters."

    def _host_parts(self) -> Iterator[Any]:
        address = self.question.address
        yield (self._host(), "bold $text-accent")
        if address is not None and address.readable_host != address.host:
            yield " which reads "
            yield (show_line(address.readable_host, 300), "bold $text-error")

    def _host(self) -> str:
        return show_line(self._plain_host(), 300)

    def _plain_host(self) -> str:
        return "" if self.question.address is None else self.question.address.host

    def _opens(self) -> str:
        return self.question.url if self.question.address is None else self.question.address.opens


def _address(url: str, host: str) -> Content:
    """The whole of it, its host in bold. No link: a terminal would open it before it was agreed to."""
    shown = show(url)
    start = shown.lower().find(host.lower()) if host else -1
    text = Content(shown)
    return text if start < 0 else text.stylize("bold $text-accent", start, start + len(host))


def question_of(page: UrlElicitation) -> UrlQuestion:
    """The question that a page was asked by."""
    address = page.address
    return UrlQuestion(
        page.server, page.message, address.url, page.elicitation, page.call, address=address, until=page.until
    )
