"""The base of dialogs that a server asks for: who asks and why, and the ways to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, wall_clock
from mcphost.protocol.display import show
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.kit.answers import LATER, AnswerOption, AnswerOptions, ReadToEnd, ShortAnswers, naming
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.messages import MuteToggled
from mcphost.tui.kit.modal_screen import HELP_BINDING, QuestionDialog
from mcphost.tui.kit.rows import RowList

TALL: Final = 34
"""Rows from which the answers are listed even while a field has the focus."""

LETTERS: Final = frozenset(("decline", "cancel", "mute", "park"))
"""Actions whose keys are letters; they do nothing while a field has the focus."""


ESCAPE_FIRST: Final = "esc, then a letter"
"""Above the answers while a field takes the letters."""


class ServerQuestionScreen(QuestionDialog, inherit_bindings=False):
    """The base of questions from a server. Subclasses define the facts, the widgets and the answer that agrees."""

    LETTERS: ClassVar[frozenset[str]] = LETTERS
    BEFORE: ClassVar[str] = "esc, then  "
    """Shown before the keys of the answers while a field has the focus."""
    message: str = ""
    """The server's message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "decline", "decline", id="question.decline", tooltip="Answer no"),
        Binding("x", "cancel", "cancel", id="question.cancel", tooltip="Close the request without an answer"),
        Binding("M", "mute", "mute", id="question.mute", tooltip="Decline everything it asks until mcphost exits"),
        Binding("p", "park", "later", id="question.park", tooltip="Decide later; f2 lists it"),
        Binding("space,pagedown", "page(1)", "scroll", id="question.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="question.up", show=False),
        Binding("escape", "back", "back", id="question.back", tooltip="To the answers, then decide later"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ServerQuestionScreen {
        & > .dialog > ReadToEnd { max-height: 25vh; }
        .hint { height: auto; color: $text-warning; }
        .warning { height: auto; max-height: 6; color: $text-warning; }
        .short { height: auto; max-height: 2; color: $foreground-muted; }
        .short { display: none; }
        &.-folded .short { display: block; }
        &.-folded AnswerOptions { display: none; }
        &.-tall .short { display: none; }
        &.-tall AnswerOptions { display: block; }
    }
    """

    def __init__(self, waiting: OpenQuestion | None, origin: QuestionOrigin) -> None:
        super().__init__(waiting)
        self.origin = origin
        self.answers = AnswerOptions()
        self.what = ReadToEnd()
        self._hint, self._short = Static(classes="hint", markup=False), ShortAnswers(classes="short")

    # For subclasses.

    def heading(self) -> Content:
        """The title, safe to show."""
        return naming("", self.origin.server, " asks you")

    def limit(self) -> str:
        """The time limit, for the title."""
        return self.origin.limit if self.waiting is not None else ""

    def about(self) -> Iterator[Fact]:
        """The facts to read before answering."""
        yield from ()

    def body(self) -> ComposeResult:
        """Yield the widgets between the facts and the answers."""
        yield from ()

    def options(self) -> Iterator[AnswerOption]:
        """The possible answers."""
        yield from self.refusals()

    def refusals(self) -> Iterator[AnswerOption]:
        """The answers that agree to nothing."""
        yield AnswerOption("n", "decline", "decline", "decline")
        yield AnswerOption("x", "cancel (no answer)", "cancel", "cancel")
        until = " until mcphost exits (declines everything it asks)"
        yield AnswerOption("M", naming("mute ", self.origin.server, until), "mute", "mute")
        yield AnswerOption("p", LATER, "park", "later")

    # Layout.

    def asked_by(self) -> Content:
        return naming("asked by the server ", self.origin.server, ", not by mcphost")

    def compose(self) -> ComposeResult:
        with self.framed(self.title_line(), self.asked_by()):
            with self.what:
                yield FactsTable(self.about())
            yield self._hint
            yield from self.body()
            yield self._short
            yield self.answers

    def title_line(self) -> Content:
        limit = self.limit()
        return Content.assemble(self.heading(), f" · {limit}" if limit else "")

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height >= TALL, "-tall")

    def origin_facts(self) -> Iterator[Fact]:
        when = "" if self.waiting is None else f" · at {wall_clock(self.waiting.asked_at)}"
        yield fact("asked", f"{self.origin.cause}{when}")
        if self.origin.identity:
            yield fact("goes to", f"{self.origin.server}  ({self.origin.identity})")

    def message_facts(self) -> Iterator[Fact]:
        if self.message.strip():
            yield Fact(f"{self.origin.server} says:", Content(show(self.message)), wide=True, mark="▏ ")

    def hint(self, words: str) -> None:
        """Show what is missing before the user can agree; ``""`` hides the hint."""
        self._hint.update(words)
        self._hint.display = bool(words)

    def offer(self, at: str | None = None) -> None:
        """List the answers again."""
        options = list(self.options())
        self.answers.offer(options, at)
        self._short.offer(options, before=self.BEFORE)

    # Keys.

    @property
    def typing(self) -> bool:
        """True while a text field has the focus."""
        return self.focused is not None and self.focused is not self.answers

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that are letters act only outside of fields, and while the question is open."""
        if action in self.LETTERS or action == "page":
            return not self.typing and (self.waiting is not None or action == "page")
        return True

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Fold the answers while a field has the focus; other keys work there."""
        self.set_class(self.focused is not self.answers, "-folded")
        self.answers.shows_cursor = not self.typing  # one cursor at a time: letters go into the field
        self.answers.border_title = ESCAPE_FIRST if self.typing else ""
        self.refresh_bindings()

    @on(RowList.Selected)
    async def _option_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        if event.row_list is self.answers:
            event.stop()
            await self.run_action(event.item.action)

    def action_page(self, direction: int) -> None:
        self.what.page(direction)

    def action_back(self) -> None:
        """Go from a field to the answers, and from there out; the question stays in the inbox."""
        if self.typing:
            self.answers.focus()
        else:
            self.action_park()

    def action_message(self) -> None:
        """Show the whole message of the server."""
        from mcphost.tui.kit.reader import ReaderScreen

        self.app.push_screen(ReaderScreen(f"{self.origin.server} says", self.message))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_cancel(self) -> None:
        self.dismiss(Answer(allow=False, cancelled=True))

    def action_mute(self) -> None:
        """Decline this and everything else the server asks."""
        if self.waiting is not None:
            self.post_message(MuteToggled(self.waiting.question.server, True))
            self.dismiss(Answer(allow=False))
