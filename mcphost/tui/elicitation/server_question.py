"""What the questions of servers have in common: who asks and why, the ways out, and keys that wait while one types.

A subclass says what is asked, and how it is agreed to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, wall_clock
from mcphost.protocol.display import show
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.answers import AnswerOption, AnswerOptions
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.messages import MuteToggled
from mcphost.tui.kit.modal import KEYS, QuestionDialog, ReadToEnd
from mcphost.tui.kit.rows import RowList

TALL: Final = 34
"""Rows from which the ways to answer are listed while one types, too."""

LETTERS: Final = frozenset(("decline", "cancel", "mute", "park"))
"""Actions whose keys are letters: they act in the list of ways to answer, never while one types."""


class ServerQuestionScreen(QuestionDialog, inherit_bindings=False):
    """Asks for a server. `answers` are the ways to answer; `what` scrolls what is asked about."""

    LETTERS: ClassVar[frozenset[str]] = LETTERS
    BEFORE: ClassVar[str] = "esc, then  "
    """What is pressed before the keys of the answers, while one is elsewhere."""
    message: str = ""
    """What the server says, in its own words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "decline", "decline", id="question.decline", tooltip="Tell the server no"),
        Binding("x", "cancel", "cancel", id="question.cancel", tooltip="Tell the server neither yes nor no"),
        Binding("M", "mute", "mute", id="question.mute", tooltip="Decline everything it asks until mcphost exits"),
        Binding("p", "park", "later", id="question.park", tooltip="Leave it in the inbox; f2 lists it"),
        Binding("space,pagedown", "page(1)", "scroll", id="question.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="question.up", show=False),
        Binding("escape", "back", "back", id="question.back", tooltip="To the answers, then out: it waits in f2"),
        KEYS,
    ]

    DEFAULT_CSS = """
    ServerQuestionScreen {
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

    def __init__(self, waiting: OpenQuestion | None, reason: QuestionOrigin) -> None:
        super().__init__(waiting)
        self.reason = reason
        self.answers = AnswerOptions()
        self.what = ReadToEnd()
        self._hint, self._short = Static(classes="hint", markup=False), Static(classes="short", markup=False)

    # For a subclass to say.

    def heading(self) -> str:
        """What stands in the frame; safe to show."""
        return f"{self.reason.server} asks you"

    def limit(self) -> str:
        """Until when it can be answered; this stands in the frame as well."""
        return self.reason.limit if self.waiting is not None else ""

    def about(self) -> Iterator[Fact]:
        """What is asked, to be read before it is answered."""
        yield from ()

    def body(self) -> ComposeResult:
        """What stands between that and the ways to answer."""
        yield from ()

    def ways(self) -> Iterator[AnswerOption]:
        """The ways to answer."""
        yield from self.refusals()

    def refusals(self) -> Iterator[AnswerOption]:
        """The ways that agree to nothing."""
        yield AnswerOption("n", "decline: the server is told no", "decline", "decline")
        yield AnswerOption("x", "cancel: the server is told neither yes nor no", "cancel", "cancel")
        yield AnswerOption(
            "M", f"decline this and whatever else {self.reason.server} asks, until mcphost exits", "mute", "mute"
        )
        yield AnswerOption("p", "leave it in the inbox (f2)", "park", "later")

    # How it stands there.

    def asked_by(self) -> str:
        """Whose question it is."""
        return f"asked by the server {self.reason.server}, not by mcphost"

    def compose(self) -> ComposeResult:
        """What is asked, what is in between, the answers."""
        self.leave_room(self.app.size.height)  # before anything is laid out: what is cut off was not seen
        with Vertical(classes="dialog") as frame:
            frame.border_title = self.title_line()
            frame.border_subtitle = Content(self.asked_by())
            with self.what:
                yield FactsTable(self.about())
            yield self._hint
            yield from self.body()
            yield self._short
            yield self.answers

    def title_line(self) -> Content:
        """What stands in the frame."""
        return Content(" · ".join(filter(None, (self.heading(), self.limit()))))

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height >= TALL, "-tall")
        self.leave_room(event.size.height)

    def leave_room(self, height: int) -> None:
        """What is asked about pushes nothing off the screen."""
        self.what.styles.max_height = max(3, height // 4)

    def reasons(self) -> Iterator[Fact]:
        """Who asks, why, and since when."""
        when = "" if self.waiting is None else f" · at {wall_clock(self.waiting.asked_at)}"
        yield fact("asked", f"{self.reason.because}{when}")
        if self.reason.identity:
            yield fact("goes to", f"{self.reason.server}  ({self.reason.identity})")

    def says(self) -> Iterator[Fact]:
        """The server's own words."""
        if self.message.strip():
            yield Fact(f"{self.reason.server} says:", Content(show(self.message)), wide=True, mark="▏ ")

    def hint(self, words: str) -> None:
        """Say what is missing before it can be agreed to; nothing with ``""``."""
        self._hint.update(words)
        self._hint.display = bool(words)

    def offer(self, at: str | None = None) -> None:
        """List the ways to answer again."""
        ways = list(self.ways())
        self.answers.offer(ways, at)
        self._short.update(Content(self.BEFORE) + Content(" · ").join(map(_in_short, ways)))

    # Keys.

    @property
    def typing(self) -> bool:
        """Do letters belong to a field?"""
        return self.focused is not None and self.focused is not self.answers

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters answer only where none are typed, and only what is still asked."""
        if action in self.LETTERS or action == "page":
            return not self.typing and (self.waiting is not None or action == "page")
        return True

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Other keys work here; the answers fold away where one is not in them."""
        self.set_class(self.focused is not self.answers, "-folded")
        self.refresh_bindings()

    @on(RowList.Selected)
    async def _way_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        if event.row_list is self.answers:
            event.stop()
            await self.run_action(event.item.action)

    def action_page(self, direction: int) -> None:
        """Scroll what is asked about."""
        self.what.page(direction)

    def action_back(self) -> None:
        """From a field to the answers; from there out, and the question waits in the inbox."""
        if self.typing:
            self.answers.focus()
        else:
            self.action_park()

    def action_message(self) -> None:
        """Read all that the server says."""
        from mcphost.tui.kit.reader import ReaderScreen

        self.app.push_screen(ReaderScreen(f"{self.reason.server} says", self.message))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_cancel(self) -> None:
        """Neither yes nor no."""
        self.dismiss(Answer(allow=False, cancelled=True))

    def action_mute(self) -> None:
        """No, and so to all that comes from there."""
        if self.waiting is not None:
            self.post_message(MuteToggled(self.waiting.question.server, True))
            self.dismiss(Answer(allow=False))


def _in_short(way: AnswerOption) -> Content:
    return Content.assemble((way.key, "bold $text-accent"), f" {way.short}")
