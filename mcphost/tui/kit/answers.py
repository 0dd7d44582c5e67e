"""The answers of a dialog, and the text that must be read before them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from mcphost.lazy_dataclass import dataclass
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn

LATER: Final = "decide later (or esc; inbox, f2)"
"""The answer of the key p in every question."""

SCROLL_FIRST: Final = "▼ scroll to the end (space) to enable y"
"""Why the answers that agree are dimmed."""

BETWEEN: Final = " · "
"""Between two answers in one line."""


class ReadToEnd(ScrolledColumn, can_focus=False):
    """A scrolling container that knows when its end was on screen. `rewind` starts over."""

    DEFAULT_CSS = """
    ReadToEnd { height: auto; scrollbar-size-vertical: 1; }
    """

    class Measured(Message):
        """Posted when `reached` or `cut_off` becomes true."""

    needed: Widget | None = None
    """The child whose end counts; None: the last."""
    reached = False
    """True once the end was on screen."""
    cut_off = False
    """True if there is more below that was not yet on screen. False until this is known."""

    def on_mount(self) -> None:
        self.watch(self, "scroll_y", self._check, init=False)
        self.watch(self, "virtual_size", self._check, init=False)
        self.rewind()

    def on_resize(self) -> None:
        self.call_after_refresh(self._check)

    def rewind(self) -> None:
        """Scroll to the top, and wait for the end again, since the content changed."""
        self.reached = self.cut_off = False
        self.scroll_home(animate=False)
        self.call_after_refresh(self._check)

    def more(self, direction: int) -> bool:
        """True if it can scroll in this direction."""
        return self.scroll_offset.y < self.max_scroll_y if direction > 0 else self.scroll_offset.y > 0

    def page(self, direction: int) -> None:
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


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """An answer: its key, its description, and the screen's action; foreign text in it is safe to show."""

    key: str
    words: str | Content
    action: str
    short: str = ""
    """One or two words, if all answers share one line."""
    locked: bool = False
    """True if something must be read first. A locked answer is dimmed."""


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
    AnswerOptions { height: auto; border-top: solid $border-blurred; &:focus { border-top: solid $border; } }
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
        self.set_items(listed, keep=lambda option: option.key)
        if at is not None:
            self.highlighted = next(index for index, option in enumerate(listed) if option.key == at)


def _row(option: AnswerOption, width: int) -> Content:
    return columns(width, [Cell(option.key, _key_style(option), 3, 3), Cell(option.words, _style(option))])


def _key_style(option: AnswerOption) -> str:
    return "$foreground-muted" if option.locked else "bold $text-accent"


def _style(option: AnswerOption) -> str:
    return "$foreground-muted" if option.locked else ""
