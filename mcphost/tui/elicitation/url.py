"""The dialog for an elicitation by URL: the whole address with its warnings, then the state of the visit.

It opens nothing without a key, and stays after its question until the visit has ended.

Specification: client/elicitation, URL mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, UrlQuestion
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.protocol.display import show, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.elicitation.server_question import LETTERS, ServerQuestionScreen
from mcphost.tui.kit.answers import SCROLL_FIRST, AnswerOption, naming
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact

STATE_MARKS: Final[Mapping[UrlElicitationState, tuple[str, str]]] = {
    UrlElicitationState.WAITING: ("◐", "$text-warning"),
    UrlElicitationState.COMPLETED: ("●", "$text-success"),
    UrlElicitationState.CONTINUED: ("●", "$text-success"),
    UrlElicitationState.GIVEN_UP: ("◌", "$foreground-muted"),
    UrlElicitationState.LEFT: ("▲", "$text-warning"),
}


class UrlElicitationScreen(ServerQuestionScreen):
    """Asks to open a page, then shows the ``elicitation``, which is None until the page was opened."""

    HELP = (
        "A server asks you to visit a page. It opens in your browser if you agree; mcphost does not read it. "
        "Check the host, in bold: it sees what you do there. The server learns only that you agreed."
    )
    WITHDRAWN = "no page was opened"
    LETTERS = LETTERS | {"agree", "copy", "reopen", "go_on", "message"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "open", id="page-question.open", tooltip="Open the page in the browser"),
        Binding("o", "reopen", "open again", id="page-question.reopen", tooltip="Open it in the browser once more"),
        Binding("c", "copy", "copy", id="page-question.copy", tooltip="Copy the address"),
        Binding("g", "go_on", "done", id="page-question.done", tooltip="Tell the server that you are done"),
        Binding("m", "message", "message", id="page-question.message", tooltip="Read all that the server says"),
    ]

    DEFAULT_CSS = """
    UrlElicitationScreen {
        & > .dialog > ReadToEnd { max-height: 100%; }
        .state { height: auto; }
    }
    """

    def __init__(
        self,
        waiting: OpenQuestion | None,
        question: UrlQuestion,
        origin: QuestionOrigin,
        elicitation: UrlElicitation | None = None,
    ) -> None:
        super().__init__(waiting, origin)
        self.question, self.message, self.elicitation = question, question.message, elicitation
        self._state = Static(classes="state", markup=False)
        self._careful = bool(question.warnings)

    def heading(self) -> Content:
        return naming("", self.origin.server, " asks you to visit a page")

    def limit(self) -> str:
        """The time limit of the call that waits for the visit."""
        if self.elicitation is not None and self.elicitation.state.ended:
            return ""
        return super().limit() if self.question.until is None else self.origin.limit

    def about(self) -> Iterator[Fact]:
        yield Fact("host", Content.assemble(*self._host_parts()))
        for warning in self.question.warnings:
            yield fact("▲ beware", warning, "bold $text-error")
        yield from self.origin_facts()
        yield Fact("whole address:", _address(self.question.url, self._plain_host()), wide=True, mark="  ")
        yield from self.message_facts()

    def compose(self) -> ComposeResult:
        """Leave all rows but those of the answers to the address."""
        with self.framed(self.title_line(), self.asked_by()):
            self.what.add_class("between")
            with self.what:
                yield FactsTable(self.about())
            with Vertical(classes="below"):
                yield self._hint
                yield self._state
                yield self._short
                yield self.answers

    def on_mount(self) -> None:
        self.set_class(self._careful, "-careful")
        self._show(at="n" if self.waiting is not None else None)
        self.answers.focus()

    def show_elicitation(self, elicitation: UrlElicitation) -> None:
        """The elicitation was opened, or its state changed."""
        self.elicitation = elicitation
        if self.is_attached:
            self._show()

    def is_about(self, elicitation: UrlElicitation) -> bool:
        """True if this elicitation is shown here."""
        if self.elicitation is not None:
            return self.elicitation is elicitation
        shown = (self.question.server, self.question.elicitation)
        return self.waiting is None and shown == (elicitation.server, elicitation.elicitation)

    def withdrawn(self) -> None:
        """Close, unless the page was already opened."""
        if self.waiting is not None:
            super().withdrawn()

    def options(self) -> Iterator[AnswerOption]:
        """The answers; after the page was opened, what can be done next."""
        host = self._host()
        if self.waiting is not None:
            yield AnswerOption("y", f"open {host} in the browser", "agree", "open", locked=self.what.cut_off)
            yield from self.refusals()
            yield AnswerOption("c", "copy the address (no answer yet)", "copy", "copy")
        elif self.elicitation is not None and not self.elicitation.state.ended:
            yield AnswerOption("g", naming("done: let ", self.origin.server, " continue"), "go_on", "done")
            yield AnswerOption("o", "open it again", "reopen", "open again")
            yield AnswerOption("c", "copy the address", "copy", "copy")
            yield AnswerOption("x", "stop waiting for it", "cancel", "give up")
            yield AnswerOption("p", "close; it stays in the inbox (f2)", "park", "leave")
        else:
            yield AnswerOption("c", "copy the address", "copy", "copy")
            yield AnswerOption("p", "close", "park", "close")

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        offered = {option.action for option in self.options()} | {"message", "page", "back"}
        return action not in self.LETTERS or action in offered

    def action_agree(self) -> None:
        """Open the page, once all of the address was on screen."""
        if not self.what.reached:
            self.refuse_locked()
            return
        self.answer(Answer(allow=True))
        self._show(at=None)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._opens())

    def action_reopen(self) -> None:
        if self.elicitation is not None:
            self.app.run_worker(self.elicitation.open(), group="open-page", exclusive=True)

    def action_go_on(self) -> None:
        """Tell the server that the user is done."""
        if self.elicitation is not None:
            self.elicitation.go_on()

    def action_cancel(self) -> None:
        """Cancel; after the page was opened, stop waiting for it."""
        if self.waiting is not None:
            super().action_cancel()
        elif self.elicitation is not None:
            self.elicitation.give_up()

    # What is shown.

    def _show(self, at: str | None = None) -> None:
        self.frame.border_title = self.title_line()
        mark, style, words = self._state_line()
        self._state.update(Content.assemble((f"{mark} {words}", style)))
        self._state.display = bool(words)
        self.offer(at)
        self._check_end()
        self.refresh_bindings()

    def on_read_to_end_measured(self) -> None:
        self._check_end()

    def _check_end(self) -> None:
        unseen = self.waiting is not None and self.what.cut_off
        self.hint(SCROLL_FIRST if unseen else "")
        self.offer()

    def _state_line(self) -> tuple[str, str, str]:
        if self.waiting is not None:
            return "", "", ""
        if self.elicitation is None:
            return "◐", "$text-warning", "opening it …"
        mark, style = STATE_MARKS[self.elicitation.state]
        words = self.elicitation.state.value
        if self.elicitation.not_opened and not self.elicitation.state.ended:
            return (
                "▲",
                "$text-warning",
                f"not opened: {show(self.elicitation.not_opened, limit=300)}. c copies the address.",
            )
        return mark, style, words

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
    """The whole address, its host in bold. Not a link: a terminal could open it before the user agreed."""
    shown = show(url)
    start = shown.lower().find(host.lower()) if host else -1
    text = Content(shown)
    return text if start < 0 else text.stylize("bold $text-accent", start, start + len(host))


def question_of(elicitation: UrlElicitation) -> UrlQuestion:
    address = elicitation.address
    return UrlQuestion(
        elicitation.server,
        elicitation.message,
        address.url,
        elicitation.elicitation,
        elicitation.call,
        address=address,
        until=elicitation.until,
    )
