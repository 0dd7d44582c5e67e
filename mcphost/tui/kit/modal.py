"""Dialogs: the base of all questions, their answers, and a dialog for yes or no."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Event, Key, ScreenResume
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from mcphost.host.consent.questions import Answer
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.facts_table import Fact, FactsTable
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_fixes import Modal, ScrolledColumn

Result = TypeVar("Result")

LATER: Final = "decide later (or esc; inbox, f2)"
"""What the key p does in every question."""

SCROLL_FIRST: Final = "▼ scroll to the end (space) to enable y"
"""Why the answers that agree are dimmed."""

TOO_EARLY: Final = "that key came too early: press it again"
"""What a dialog says when a key came in the moment after it appeared."""

SPACE_FIRST: Final = "space first: there is more to read"
"""A dialog's remark on an answer key that is still locked."""

SIGN_SECONDS: Final = 3.0

BETWEEN: Final = " · "
"""Between two answers in one line."""

FRAME: Final = 2
"""Rows of a frame."""

KEYS: Final = Binding(
    "question_mark,f1", "app.keys", "keys", id="modal.keys", tooltip="The keys that work here", show=False
)
"""The app's own bindings do not work while a modal screen is open."""


class Dialog(ErrorBoundary, Modal[Result]):
    """A modal at the bottom that leaves what is behind it readable, and ignores keys typed before it appeared."""

    HELP: ClassVar[str] = ""
    _shown_at = inf
    _subtitle: Content | None = None
    rows_above = 0
    """Rows above a conversation, its tab line the last, that a docked dialog leaves free."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,p", "park", "decide later", id="dialog.park", tooltip="Decide later; f2 lists it"),
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
        """A dialog covers so many rows of the conversation behind it."""

        rows: int

    def __init__(self, *, frame: Widget | None = None, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        # Kept, and not looked up: a worker may end after its closed screen lost its widgets.
        self.frame = Vertical() if frame is None else frame
        self.frame.add_class("dialog")

    def framed(self, title: Content, subtitle: Content | None = None) -> Widget:
        """Set the frame's title and subtitle; return it, for a ``with`` in compose."""
        self.frame.border_title, self.frame.border_subtitle = title, subtitle
        return self.frame

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
        """Was this event meant for what was there before? So are letters that follow such an event within ``guard``
        seconds.

        Text that was typed for a chat must not get into a server's form. Keys that move the cursor work soon all the
        same.
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
        shown = self.frame.border_subtitle
        if shown == sign:
            return
        if shown not in (TOO_EARLY, SPACE_FIRST):
            # The public attribute gives markup, in which a server's name would be parsed again.
            self._subtitle = self.frame._border_subtitle
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
    """What the user is told when the question is withdrawn."""

    @dataclass
    class Answered(Message):
        """The user answered the question of this number; None: the question is parked."""

        number: int
        answer: Answer | None

    def __init__(self, waiting: OpenQuestion | None, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.waiting = waiting
        """The question that is open here; None: none, or none yet."""

    def take_over(self, waiting: OpenQuestion) -> bool:
        """Take over this question, if it belongs to this screen; return whether it does."""
        return False

    def answer(self, answer: Answer | None) -> bool:
        """Answer without closing; return False if no question is open."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            self.app.post_message(self.Answered(waiting.number, answer))
        return waiting is not None

    def show_others(self, others: Sequence[OpenQuestion]) -> None:
        """These questions wait as well."""

    def withdrawn(self) -> None:
        """The question was withdrawn: close this dialog and whatever was opened from it."""
        while self.app.screen is not self and len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        self.dismiss(None)
        if self.waiting is not None:
            words = f"The question to {show_line(self.waiting.question.about, 64)} was withdrawn: {self.WITHDRAWN}."
            self.app.notify(words, severity="warning", markup=False)


class ReadToEnd(ScrolledColumn, can_focus=False):
    """A container that knows whether its end was on screen: `Measured` is posted when that is known, and once more when
    an end below comes on screen. `rewind` starts over.
    """

    DEFAULT_CSS = """
    ReadToEnd { height: auto; scrollbar-size-vertical: 1; }
    """

    class Measured(Message):
        """It is known now whether the end is on screen, or it is there for the first time."""

    needed: Widget | None = None
    """The child whose end counts; None: the last."""
    reached = False
    """Was the end on screen?"""
    cut_off = False
    """Is there more below that was not yet on screen? False until this is known."""

    def on_mount(self) -> None:
        self.watch(self, "scroll_y", self._check, init=False)
        self.watch(self, "virtual_size", self._check, init=False)
        self.rewind()

    def on_resize(self) -> None:
        self.call_after_refresh(self._check)

    def rewind(self) -> None:
        """The content changed: scroll to the top, and wait for the end again."""
        self.reached = self.cut_off = False
        self.scroll_home(animate=False)
        self.call_after_refresh(self._check)

    def more(self, direction: int) -> bool:
        """Can it scroll in this direction?"""
        return self.scroll_offset.y < self.max_scroll_y if direction > 0 else self.scroll_offset.y > 0

    def page(self, direction: int) -> None:
        """Scroll by a page."""
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def _check(self) -> None:
        child = self.needed or next(iter(self.children[-1:]), None)
        last = None if child is None else child.virtual_region
        if self.reached or not last or not last.height:
            return
        self.reached = last.bottom <= self.scroll_offset.y + self.size.height
        if self.reached or not self.cut_off:
            self.cut_off = not self.reached
            self.post_message(self.Measured())


class AskScreen(Dialog[bool], inherit_bindings=False):
    """Shows ``facts``, which are safe to show; dismissed with True for yes. ``yes`` and ``no`` say what the keys do."""

    HELP = "y does it. n and esc cancel: nothing is done."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "yes", id="ask.yes", tooltip="Do what the question says"),
        Binding("n,escape", "close(False)", "no", id="ask.no", tooltip="Do nothing"),
        KEYS,
    ]

    def __init__(self, title: str, facts: Sequence[Fact], yes: str, no: str = "cancel", *, labels: int = 14) -> None:
        super().__init__(frame=ScrolledColumn())
        self._title, self._keys, self._facts = title, f"y {yes} · n {no}", FactsTable(facts, labels=labels)

    def compose(self) -> ComposeResult:
        with self.framed(Content(self._title), Content(self._keys)):
            yield self._facts

    def action_close(self, yes: bool) -> None:
        self.dismiss(yes)


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """An answer: its key, its description, and the screen's action; foreign text in it is safe to show."""

    key: str
    words: str | Content
    action: str
    short: str = ""
    """One or two words, if all answers share one line."""
    locked: bool = False
    """Must something be read first? A locked answer is dimmed."""


def naming(before: str, name: str, after: str = "", *, quoted: bool = True) -> Content:
    """A sentence in which this name, safe to show, is set off, and quoted: a server may be called "everything"."""
    return Content.assemble(before, (f"“{name}”" if quoted else name, "bold"), after)


class ShortAnswers(Widget):
    """All answers in as few lines as they need. No line ends between a key and its words."""

    DEFAULT_CSS = """
    ShortAnswers { width: 1fr; height: auto; }
    """

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._answers: tuple[Content, ...] = ()

    def offer(self, options: Iterable[AnswerOption], default: str = "", *, before: str = "") -> None:
        """Show these answers, the one with the key ``default`` marked, after the words ``before``."""
        self._answers = _in_short(options, default, before)
        self.refresh(layout=True)

    def rows_of(self, options: Iterable[AnswerOption], default: str, width: int) -> int:
        """The rows that these answers would need."""
        return len(_packed(_in_short(options, default), width))

    def render(self) -> Content:
        return Content("\n").join(_packed(self._answers, self.size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(_packed(self._answers, width))


def _in_short(options: Iterable[AnswerOption], default: str, before: str = "") -> tuple[Content, ...]:
    marks = {default: "▸"}
    listed = [
        Content.assemble(
            (marks.get(option.key, "") + option.key, _key_style(option)), (f" {option.short}", _style(option))
        )
        for option in options
    ]
    return (Content(before) + listed[0], *listed[1:]) if before and listed else tuple(listed)


def _packed(answers: Sequence[Content], width: int) -> list[Content]:
    """The answers in lines of at most ``width`` cells, if each of them fits."""
    lines: list[Content] = []
    for answer in answers:
        if lines and lines[-1].cell_length + len(BETWEEN) + answer.cell_length <= width:
            lines[-1] = lines[-1] + BETWEEN + answer
        else:
            lines.append(answer)
    return lines


class AnswerOptions(RowList[AnswerOption]):
    """The possible answers, below a separator. Enter on an answer does what its key does."""

    DEFAULT_CSS = """
    AnswerOptions { border-top: solid $border-blurred; &:focus { border-top: solid $border; } }
    """

    def __init__(self) -> None:
        super().__init__(_row)
        self._hidden_with_focus = False

    def on_hide(self) -> None:
        self._hidden_with_focus = self.has_focus

    def on_show(self) -> None:
        """Regain the focus that was lost while all answers shared one line."""
        if self._hidden_with_focus and self.screen.focused is None and self.app.app_focus:
            self.focus()
        self._hidden_with_focus = False

    def offer(self, options: Iterable[AnswerOption], at: str | None = None) -> None:
        """List these answers; select the one with the key ``at``, else keep the selection."""
        listed = list(options)
        self.styles.height = len(listed) + 1
        self.set_items(listed, keep=lambda option: option.key)
        if at is not None:
            self.highlighted = next(index for index, option in enumerate(listed) if option.key == at)


def _row(option: AnswerOption, width: int) -> Content:
    return columns(width, [Cell(option.key, _key_style(option), 3, 3), Cell(option.words, _style(option))])


def _key_style(option: AnswerOption) -> str:
    return "$foreground-muted" if option.locked else "bold $text-accent"


def _style(option: AnswerOption) -> str:
    return "$foreground-muted" if option.locked else ""
