"""The arguments of a tool or prompt as a table that fits any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.listed_arguments import MOST_ARGUMENTS, ListedArgument, ListedArguments, meaning_of
from mcphost.tui.kit.rows import Cell, columns

if TYPE_CHECKING:
    from mcphost.tui.catalog.argument_form import TextArgument

NAME, TYPE, DEFAULT = 28, 26, 16
"""Cells of a column at most."""

MEANING: Final = 28
"""Cells that the meaning needs beside the other columns; with less it is below them."""

MEANING_LINES: Final = 3
GAP: Final = 2

MUTED: Final = "$foreground-muted"


def text_arguments(arguments: Iterable[TextArgument]) -> ListedArguments:
    """The arguments of a prompt or template, which are all texts."""
    listed = [
        ListedArgument(show_line(each.name, 60), each.required, meaning=meaning_of(each.description or each.title))
        for each in arguments
    ]
    more = len(listed) - MOST_ARGUMENTS
    return ListedArguments(listed[:MOST_ARGUMENTS], f"… {more:,} more" if more > 0 else "")


def argument_table(arguments: ListedArguments, width: int) -> Iterator[Content]:
    """Yield the lines of the table, at most ``width`` cells each."""
    rows = arguments.rows
    name = _widest(("argument", *(f"{row.name}*" for row in rows)), min(NAME, max(10, width // 3)))
    defaults = ("default", *map(_default, rows))
    default = _widest(defaults, DEFAULT if width >= 100 else 10) if any(defaults[1:]) else 0
    left = width - name - (GAP + default if default else 0) - GAP
    kind = _widest((row.type for row in rows), min(TYPE, max(20, left - GAP - MEANING)))
    meaning = left - (kind + GAP if kind else 0)
    beside = meaning >= MEANING and any(row.meaning for row in rows)
    if not beside:
        kind = _widest((row.type for row in rows), left)
        default = _widest(defaults, default + left - kind) if default else 0
    heads = ("argument", "type" if kind else "", "default" if default else "", "meaning" if beside else "")
    widths = (name, kind, default, meaning if beside else 0)
    yield _line(width, [Cell(head, MUTED, size, size) for head, size in zip(heads, widths, strict=True)])
    for row in rows:
        yield from _table_row(row, width, widths)
    if arguments.raw_only or arguments.left_out:
        words = f"{arguments.raw_only}: enter edits JSON" if arguments.raw_only else arguments.left_out
        yield Content.styled(show_line(words, width), MUTED)


class ArgumentTable(Widget):
    """The arguments, laid out for the width of the widget."""

    DEFAULT_CSS = """
    ArgumentTable { height: auto; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._arguments = ListedArguments(())
        self._lines: tuple[int, list[Content]] | None = None

    def show_arguments(self, arguments: ListedArguments) -> None:
        self._arguments = arguments
        self.lay_out_again()

    def lay_out_again(self) -> None:
        self._lines = None
        self.refresh(layout=True)

    def render(self) -> Content:
        return Content("\n").join(self._laid_out(self.size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._laid_out(width))

    def draw(self, width: int) -> Iterator[Content]:
        """Yield the lines, at most ``width`` cells each."""
        if any(self._arguments):
            yield from argument_table(self._arguments, width)

    def _laid_out(self, width: int) -> list[Content]:
        if self._lines is None or self._lines[0] != width:
            self._lines = width, list(self.draw(width))
        return self._lines[1]


def _table_row(row: ListedArgument, width: int, widths: Sequence[int]) -> Iterator[Content]:
    name, kind, default, beside = widths
    lines = list(_meaning(row.meaning, beside or width - GAP))
    star = Content.styled("*", "bold $text-warning") if row.needed else Content("")
    shown = Content.styled(row.name, "bold").truncate(name - row.needed, ellipsis=True) + star
    style = "$text-warning" if row.needed and not row.default else MUTED
    cells = [
        Cell(shown, "", name, name),
        Cell(row.type, "$text-primary", kind, kind),
        Cell(_default(row), style, default, default),
    ]
    first = lines.pop(0) if beside and lines else ""
    yield _line(width, [*cells, Cell(first, MUTED, beside, beside)])
    left = width - beside if beside else GAP
    for line in lines:
        yield Content(" " * left) + Content.styled(line, MUTED)


def _line(width: int, cells: Sequence[Cell]) -> Content:
    return columns(width, [cell for cell in cells if cell.min], GAP)


def _default(row: ListedArgument) -> str:
    return row.default or ("required" if row.needed else "")


def _meaning(text: str, width: int) -> Iterator[str]:
    """The first lines of the meaning."""
    lines = [line.plain.rstrip() for line in Content(text).wrap(width)] if text else []
    yield from lines[: MEANING_LINES - 1]
    if rest := lines[MEANING_LINES - 1 :]:
        yield rest[0] if len(rest) == 1 else f"{Content(rest[0]).truncate(width - 1).plain}…"


def _widest(texts: Iterable[str], most: int) -> int:
    return min(most, max(map(cell_len, texts), default=0))
