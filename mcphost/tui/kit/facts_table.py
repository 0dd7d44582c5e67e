"""A table of facts: labels on the left, values on the right, wrapped within their column.

Textual's DataTable cuts a long cell; a fact that the user decides by must be readable to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its value; foreign text in either is safe to show. A ``wide`` value is below its label."""

    label: str
    value: Content
    wide: bool = False
    mark: str = ""
    """Before each line of a wide value; foreign text gets a bar."""
    other: Content | None = None
    """A second value: beside the first where there is room, else below it."""


TWO_COLUMNS: Final = 96
"""Cells of a value from which two stand side by side: a screen of 120 columns has them."""

BETWEEN: Final = " │ "
"""Between two values side by side."""


def fact(label: str, value: str, style: str = "") -> Fact:
    return Fact(label, Content.styled(value, style) if style else Content(value))


def link_facts(links: Sequence[str], most: int, width: int) -> Iterator[Fact]:
    """The links of a text, ``most`` of them one by one, each in at most ``width`` characters."""
    for number, link in enumerate(links[:most]):
        yield fact("" if number else "links", show_line(link, width), "$text-warning")
    if len(links) > most:
        yield fact("", f"and {len(links) - most} more")


class FactsTable(Widget):
    """``labels`` is the width of the left column in cells."""

    DEFAULT_CSS = """
    FactsTable { height: auto; width: 1fr; }
    """

    def __init__(self, facts: Iterable[Fact] = (), *, labels: int = 14) -> None:
        super().__init__()
        self._facts = tuple(facts)
        self._labels = labels

    def show_facts(self, facts: Iterable[Fact]) -> None:
        changed = tuple(facts)
        if changed != self._facts:
            self._facts = changed
            self.refresh(layout=True)

    @property
    def text(self) -> str:
        """All facts without styles."""
        return "\n".join(
            ("" if each.wide and not each.label else f"{each.label:<{self._labels}}")
            + each.value.plain
            + (f"\n{each.other.plain}" if each.other else "")
            for each in self._facts
        )

    def render(self) -> Content:
        return Content("\n").join(list(self._lines(self.size.width)))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return sum(1 for _ in self._lines(width))

    def _lines(self, width: int) -> Iterator[Content]:
        for each in self._facts:
            yield from _wide(each, width) if each.wide else self._beside(each, width)

    def _beside(self, each: Fact, width: int) -> Iterator[Content]:
        label = show_line(each.label, self._labels - 1).ljust(self._labels)
        for line in _lines_of(each, width - self._labels):
            yield Content.assemble((label, "$foreground-muted"), line)
            label = " " * self._labels


def _wide(each: Fact, width: int) -> Iterator[Content]:
    if each.label:
        yield Content.styled(each.label, "$foreground-muted")
    for line in _wrapped(each.value, width - len(each.mark)):
        yield Content.assemble((each.mark, "$foreground-muted"), line)


def _lines_of(each: Fact, width: int) -> Iterator[Content]:
    if each.other is None:
        yield from _wrapped(each.value, width)
    elif width < TWO_COLUMNS:
        yield from _wrapped(each.value, width)
        yield from _wrapped(each.other, width)
    else:
        half = (width - len(BETWEEN)) // 2
        pairs = zip_longest(_wrapped(each.value, half), _wrapped(each.other, half), fillvalue=Content(""))
        for left, right in pairs:
            blank = " " * max(0, half - left.cell_length)
            yield Content.assemble(left, blank, (BETWEEN, "$foreground-muted"), right)


def _wrapped(value: Content, width: int) -> Iterator[Content]:
    for line in value.split("\n", allow_blank=True):
        yield from line.wrap(max(width, 8)) or [Content("")]
