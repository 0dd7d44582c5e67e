"""The base of modal screens, dialogs that ask the user, and a dialog for yes or no."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import ClassVar, Final, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Vertical
from textual.content import Content
from textual.events import Event, Key, ScreenResume
from textual.message import Message
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.widget import Widget

from mcphost.host.consent.questions import Answer
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.kit.facts_table import Fact, FactsTable
from mcphost.tui.textual_private.corrections import ErrorBoundary, ScrolledColumn

Result = TypeVar("Result")

TOO_EARLY: Final = "that key came too early: press it again"
"""Shown when a key came in the moment after a dialog appeared."""

SPACE_FIRST: Final = "space first: there is more to read"
"""Shown when the key of a locked answer was pressed."""

SIGN_SECONDS: Final = 3.0

FRAME: Final = 2
"""Rows of a frame."""

HELP_BINDING: Final = Binding(
    "question_mark,f1", "app.keys", "keys", id="modal.keys", tooltip="The keys that work here", show=False
)
"""The app's own bindings do not work while a modal screen is open."""


class Modal(ErrorBoundary, ModalScreen[Result]):
    """A modal that looks nearer than the screen behind it, in a theme of the terminal's own colours too.

    Textual blends the screen behind with a colour, which the terminal's own colours cannot be. Other colours are
    blended once for each style.

    In a frame with ``height: auto`` and a ``max-height``, the child with the class ``between`` takes the rows that it
    needs, and scrolls where the frame has fewer; one child each with the class ``above`` or ``below`` keeps its rows.
    No child may have a height in rows: Textual would measure the frame without a limit for the scrolling one.
    """

    DEFAULT_CSS = """
    Modal {
        .above { dock: top; height: auto; }
        .below { dock: bottom; height: auto; }
        .between { height: auto; max-height: 100%; }
    }
    """

    @property
    def dims(self) -> bool:
        """True if the screen behind is dimmed."""
        return True

    def render(self) -> RenderableType:
        shown = super().render()
        if not isinstance(shown, BackgroundScreen):
            return shown
        tinted = _Tinted(shown.screen, shown.color)
        return _Dimmed(tinted) if self.dims and self.app.native_ansi_color else tinted


class _Tinted(BackgroundScreen):
    """The screen behind. Textual blends the colours of each segment; here each style's are blended once."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        for segment in segments:
            yield segment if segment.control else Segment(segment.text, _tinted(segment.style, color))


@lru_cache(maxsize=2048)
def _tinted(style: Style | None, color: Color) -> Style | None:
    (segment,) = BackgroundScreen.process_segments([Segment("", style)], color)
    return segment.style


class _Dimmed:
    """A screen, dim, and without bold and reversed text."""

    STYLE = Style(dim=True, bold=False, reverse=False)

    def __init__(self, shown: BackgroundScreen) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return Segment.apply_style(console.render(self._shown, options), post_style=self.STYLE)


class Dialog(Modal[Result]):
    """A modal at the bottom that leaves the screen behind it readable, and ignores keys typed before it appeared."""

    HELP: ClassVar[str] = ""
    _shown_at = inf
    _subtitle: Content | None = None
    rows_above = 0
    """Rows above a conversation, its tab line the last, that a docked dialog leaves free."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,p", "park", "decide later", id="dialog.park", tooltip="Decide later; f2 lists it"),
        HELP_BINDING,
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
        """A dialog covers this many rows of the conversation behind it."""

        rows: int

    def __init__(self, *, frame: Widget | None = None, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        # Kept, and not looked up: a worker may end after its closed screen lost its widgets.
        self.frame = Vertical() if frame is None else frame
        self.frame.add_class("dialog")

    def framed(self, title: Content, subtitle: Content | None = None) -> Widget:
        """Set the frame's title and subtitle; return it, for a ``with`` in compose."""
        self.frame.border_title = title
        self.set_subtitle(subtitle)
        return self.frame

    def set_subtitle(self, subtitle: Content | None) -> None:
        # Kept, since the frame's own attribute gives markup, in which a server's name would be parsed again.
        self._subtitle = subtitle
        if self.frame.border_subtitle not in (TOO_EARLY, SPACE_FIRST):  # else that is seen for its whole time
            self.frame.border_subtitle = subtitle

    @property
    def share(self) -> float:
        """The share of the screen's height that the dialog may take."""
        return 0.66 if self.has_class("-docked") else 0.9

    @property
    def dims(self) -> bool:
        return not self.has_class("-docked")

    @property
    def most_rows(self) -> int:
        """The rows that the dialog may take."""
        return int(self.app.size.height * self.share)

    def rows_around(self, part: Widget) -> int:
        """The rows of the frame and of what is above and below this part of it."""
        return FRAME + sum(each.outer_size.height for each in part.siblings if each.display)

    def fit(self, part: Widget, needed: int) -> None:
        """Be so high that ``part``, whose height is 1fr, has the rows that it needs, as far as there is room."""
        if isinstance(part.parent, Widget):
            part.parent.styles.height = min(self.rows_around(part) + needed, self.most_rows)

    def dock_below(self, dock: bool) -> None:
        """Dock the dialog below the conversation, if one is in view."""
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else None
        self.set_class(dock and bool(getattr(below, "conversing", False)), "-docked")
        if self.has_class("-docked"):
            self.rows_above = getattr(below, "rows_to_tabs", 0)

    def post_placed(self) -> None:
        """Post `Placed`, if the dialog is docked."""
        if self.has_class("-docked"):
            self.post_message(self.Placed(self.frame.outer_size.height))

    @on(ScreenResume)
    def start_guard(self) -> None:
        """Restart the time in which keys are ignored, once the dialog is drawn."""
        self._shown_at = inf
        self.call_after_refresh(self._shown)

    def shown_for(self, until: Message | None = None) -> float:
        """Seconds from the first drawing to this message, or to now; negative before."""
        return (until or Message()).time - self._shown_at

    def too_early(self, event: Event, guard: float) -> bool:
        """True if this event was meant for the screen before, as are letters that follow such an event within ``guard``
        seconds.

        Text that was typed for a chat must not get into a server's form. Keys that move the cursor work earlier.
        """
        early = self.shown_for(event) < guard
        letter = isinstance(event, Key) and event.is_printable and event.character != " "
        if early and letter and self._shown_at < event.time:
            self._shown_at = event.time
        return early

    def show_too_early(self, key: Key) -> None:
        """Say for a moment that this key was ignored."""
        if key.is_printable:
            self._show_sign(TOO_EARLY)

    def refuse_locked(self) -> None:
        """Say for a moment why the key of a locked answer does nothing."""
        self.app.bell()
        self._show_sign(SPACE_FIRST)

    def _show_sign(self, sign: str) -> None:
        if self.frame.border_subtitle != sign:
            self.frame.border_subtitle = sign
            self.set_timer(SIGN_SECONDS, lambda: self._restore_subtitle(sign))

    def _restore_subtitle(self, sign: str) -> None:
        if self.frame.border_subtitle == sign:
            self.frame.border_subtitle = self._subtitle

    def _shown(self) -> None:
        self._shown_at = Message().time

    def action_park(self) -> None:
        """Close without an answer; the question stays in the inbox."""
        self.dismiss(None)


class QuestionDialog(Dialog[Answer | None]):
    """A dialog for a question of the approver. Dismissed with the answer, or with None if the question is parked.

    A dialog that stays open after its question posts `Answered` instead.
    """

    WITHDRAWN: ClassVar[str] = "nothing was sent"
    """The end of the notification that the question was withdrawn."""

    @dataclass
    class Answered(Message):
        """The user answered the question of this number; None: the question is parked."""

        number: int
        answer: Answer | None

    def __init__(self, waiting: OpenQuestion | None, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.waiting = waiting
        """The open question; None before and after it."""

    def adopt_question(self, waiting: OpenQuestion) -> bool:
        """Show this question if it belongs to this screen; return True if it does."""
        return False

    def answer(self, answer: Answer | None) -> bool:
        """Answer without closing; return False if no question is open."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            self.app.post_message(self.Answered(waiting.number, answer))
        return waiting is not None

    def show_others(self, others: Sequence[OpenQuestion]) -> None:
        """Show how many other questions wait."""

    def agent_changed(self) -> None:
        """Show what has changed of the agent whose call it is about."""

    def withdrawn(self) -> None:
        """Close this dialog and all that was opened from it, since its question was withdrawn."""
        while self.app.screen is not self and len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        self.dismiss(None)
        if self.waiting is not None:
            words = f"The question to {show_line(self.waiting.question.about, 64)} was withdrawn: {self.WITHDRAWN}."
            self.app.notify(words, severity="warning", markup=False)


class AskScreen(Dialog[bool], inherit_bindings=False):
    """Shows ``facts``, which are safe to show; dismissed with True for yes. ``yes`` and ``no`` label the keys."""

    HELP = "A question for yes or no."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "yes", id="ask.yes", tooltip="Do what the question says"),
        Binding("n,escape", "close(False)", "no", id="ask.no", tooltip="Do nothing"),
        HELP_BINDING,
    ]

    def __init__(self, title: str, facts: Sequence[Fact], yes: str, no: str = "cancel", *, labels: int = 14) -> None:
        super().__init__(frame=ScrolledColumn())
        self._title, self._keys, self._facts = title, f"y {yes} · n {no}", FactsTable(facts, labels=labels)

    def compose(self) -> ComposeResult:
        with self.framed(Content(self._title), Content(self._keys)):
            yield self._facts

    def action_close(self, yes: bool) -> None:
        self.dismiss(yes)
