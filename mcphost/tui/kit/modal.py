"""The base of every question: it docks at the bottom, ignores keys that were still being typed, and can be parked."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Event, Key, ScreenResume
from textual.message import Message
from textual.screen import ModalScreen

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import Answer
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.facts_table import Fact, FactsTable

Result = TypeVar("Result")

KEYS: Final = Binding(
    "question_mark,f1", "app.keys", "keys", id="modal.keys", tooltip="The keys that work here", show=False
)
"""The help's key: the app's own keys do not reach it while a modal screen is open."""


class Dialog(ErrorBoundary, ModalScreen[Result]):
    """A modal that leaves what is behind it readable."""

    HELP: ClassVar[str] = ""
    _shown_at = inf

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,p", "park", "leave it in the inbox", id="dialog.park", tooltip="Answer later; f2 lists it"),
        KEYS,
    ]

    DEFAULT_CSS = """
    Dialog {
        align: center bottom;
        background: $background 40%;
        & > .dialog {
            width: 100%;
            max-width: 140;
            height: auto;
            max-height: 90%;
            border: round $border;
            background: $surface;
            padding: 0 1;
        }
        &.-careful > .dialog { border: round $warning; }
        &.-docked { background: transparent; }
        &.-docked > .dialog { max-width: 100%; }
        .row { height: auto; }
        .label { width: 14; color: $foreground-muted; padding-right: 1; }
        .value { width: 1fr; }
    }
    """

    @dataclass
    class Placed(Message):
        """A dialog below a conversation covers so many rows of it, which should be readable above."""

        rows: int

    @property
    def share(self) -> float:
        """Of the screen's height, which it may take."""
        return 0.66 if self.has_class("-docked") else 0.9

    def dock_below(self, wanted: bool) -> None:
        """Leave the conversation readable, where there is one in view."""
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else None
        self.set_class(wanted and bool(getattr(below, "conversing", False)), "-docked")

    def tell_place(self) -> None:
        """See `Placed`."""
        if self.has_class("-docked"):
            self.post_message(self.Placed(self.query_one(".dialog").outer_size.height))

    @on(ScreenResume)
    def start_guard(self) -> None:
        """Start the guard's clock when the dialog is drawn: anew, too, when one comes back to it."""
        self._shown_at = inf
        self.call_after_refresh(self._shown)

    def shown_for(self, until: Message | None = None) -> float:
        """Seconds from when the dialog was drawn until this message was made, or until now; less than none before."""
        return (until or Message()).time - self._shown_at

    def too_early(self, event: Event, guard: float) -> bool:
        """Was it meant for what was there before? So is what follows such a letter within ``guard`` seconds.

        Half of what was typed for a chat must not get into a server's form. Keys that move are heard soon all the same.
        """
        early = self.shown_for(event) < guard
        letter = isinstance(event, Key) and event.is_printable and event.character != " "
        if early and letter and self._shown_at < event.time:
            self._shown_at = event.time
        return early

    def _shown(self) -> None:
        self._shown_at = Message().time

    def action_park(self) -> None:
        """Close without an answer; the question stays in the inbox."""
        self.dismiss(None)


class QuestionDialog(Dialog[Answer | None]):
    """A dialog that asks what the approver holds open. Dismissed with the answer; with None it is left for later.

    One that stays after its question posts `Answered` instead.
    """

    NOTHING: ClassVar[str] = "nothing was sent"
    """What is said to have happened when the question is withdrawn."""

    @dataclass
    class Answered(Message):
        """An answer to the question of this number; None: it is left for later."""

        number: int
        answer: Answer | None

    def __init__(self, waiting: OpenQuestion | None, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.waiting = waiting
        """What it asks now; None: nothing, or not yet."""

    def takes(self, waiting: OpenQuestion) -> bool:
        """Is this question one that this screen, which is in front, asks as well? It then does."""
        return False

    def answer(self, answer: Answer | None) -> bool:
        """Answer, and stay; False where nothing is asked any more."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            self.app.post_message(self.Answered(waiting.number, answer))
        return waiting is not None

    def show_others(self, others: Sequence[OpenQuestion]) -> None:
        """These wait as well."""

    def withdrawn(self) -> None:
        """The question no longer matters: close, and what was opened from here."""
        while self.app.screen is not self and len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        self.dismiss(None)
        if self.waiting is not None:
            words = f"The question to {show_line(self.waiting.question.about, 64)} was withdrawn: {self.NOTHING}."
            self.app.notify(words, severity="warning", markup=False)


class ReadToEnd(VerticalScroll, can_focus=False):
    """Scrolls what is in it. `Reached` is posted once its end was in view; `rewind` asks for that anew."""

    DEFAULT_CSS = """
    ReadToEnd { height: auto; scrollbar-size-vertical: 1; }
    """

    class Reached(Message):
        """Its end is in view, for the first time."""

    reached = False

    def on_mount(self) -> None:
        """Notice when the end comes into view."""
        self.watch(self, "scroll_y", self._check, init=False)
        self.watch(self, "virtual_size", self._check, init=False)
        self.rewind()

    def on_resize(self) -> None:
        """More of it may be in view."""
        self.call_after_refresh(self._check)

    def rewind(self) -> None:
        """Something else is in it now."""
        self.reached = False
        self.scroll_home(animate=False)
        self.call_after_refresh(self._check)

    def more(self, direction: int) -> bool:
        """Is there something to scroll to on that side?"""
        return self.scroll_offset.y < self.max_scroll_y if direction > 0 else self.scroll_offset.y > 0

    def page(self, direction: int) -> None:
        """Scroll by a page."""
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def _check(self) -> None:
        last = self.children[-1].virtual_region if self.children else None
        if not self.reached and last and last.height and last.bottom <= self.scroll_offset.y + self.size.height:
            self.reached = True
            self.post_message(self.Reached())


class AskScreen(Dialog[bool], inherit_bindings=False):
    """Shows ``facts``, whose foreign text has been made safe; dismissed with True for yes. ``yes`` says what y does."""

    HELP = "y is yes. n and esc are no: nothing is done."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "yes", id="ask.yes", tooltip="Do what the question says"),
        Binding("n,escape", "close(False)", "no", id="ask.no", tooltip="Do nothing"),
        KEYS,
    ]

    def __init__(self, title: str, facts: Sequence[Fact], yes: str) -> None:
        super().__init__()
        self._title, self._facts, self._yes = title, facts, yes

    def compose(self) -> ComposeResult:
        """The facts in a frame."""
        with VerticalScroll(classes="dialog") as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = Content(f"y {self._yes} · n do not")
            yield FactsTable(self._facts)

    def action_close(self, yes: bool) -> None:
        self.dismiss(yes)
