"""Cells side by side on one line: how wide each column is, and how a text is cut or padded to it.

Knows cells of a terminal, so a wide character is never halved. Refuses to know where a text came from: foreign text
has passed ``display.show_line`` before it gets here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content, Span


class Cell(NamedTuple):
    """One column of one row. Widths are in cells and do not depend on the text, so that rows line up."""

    text: str | Content
    style: str = ""
    """A Textual style such as ``$text-warning``; ours, never from outside."""
    min: int = 0
    max: int | None = None
    """None takes what the others leave, shared evenly with other such columns."""
    align: Literal["left", "right"] = "left"
    keep: Literal["start", "end"] = "start"
    """What is left of a text that is too long: paths and URIs differ at their end."""


def columns(width: int, cells: Sequence[Cell], gap: int = 1) -> Content:
    """One line of exactly ``width`` cells; what does not fit ends in ``…``, and columns on the right go first."""
    line, spans, used = "", list[Span](), 0
    for cell, size in zip(cells, widths(width, tuple((cell.min, cell.max) for cell in cells), gap), strict=False):
        if not size:
            continue
        if used:
            line, used = line + " " * gap, used + gap
        text, inner = _fit(cell, size)
        start = len(line)
        if cell.style:
            spans.append(Span(start, start + len(text), cell.style))
        spans.extend(Span(start + left, start + right, style) for left, right, style in inner)
        line, used = line + text, used + size
    return Content(line + " " * (width - used), spans, width)


@lru_cache(maxsize=256)
def widths(width: int, bounds: tuple[tuple[int, int | None], ...], gap: int = 1) -> tuple[int, ...]:
    """The width of each column for its (minimum, maximum), as far from the left as the minimums fit.

    Cells beyond the minimums go to the columns with a maximum first, from the left; then to the others, evenly.
    """
    lowest = [min(low, width) for low, _ in bounds]
    fitting = next((count for count in range(len(bounds), 1, -1) if _taken(lowest[:count], gap) <= width), 1)
    sizes = lowest[:fitting]
    for index, (_, high) in enumerate(bounds[:fitting]):
        if high is not None:
            _grow(sizes, index, min(width - _taken(sizes, gap), high - sizes[index]), gap)
    flexible = [index for index, (_, high) in enumerate(bounds[:fitting]) if high is None]
    for position, index in enumerate(flexible):
        _grow(sizes, index, (width - _taken(sizes, gap)) // (len(flexible) - position), gap)
    return tuple(sizes)


def _taken(sizes: Sequence[int], gap: int) -> int:
    shown = [size for size in sizes if size]
    return sum(shown) + gap * max(0, len(shown) - 1)


def _grow(sizes: list[int], index: int, amount: int, gap: int) -> None:
    """Widen one column by ``amount`` cells, less the gap that a column needs which was not there before."""
    opening = gap if not sizes[index] and any(sizes) else 0
    sizes[index] += max(0, amount - opening)


def _fit(cell: Cell, width: int) -> tuple[str, list[Span]]:
    """The text of a cell in exactly ``width`` cells, and its own styles."""
    plain, spans = (cell.text, []) if isinstance(cell.text, str) else (cell.text.plain, list(cell.text.spans))
    length = cell_len(plain)
    if length > width and cell.keep == "end":
        kept = set_cell_size(plain[::-1], width - 1).rstrip()[::-1]
        gone = len(plain) - len(kept) - 1
        plain = "…" + kept
        spans = [Span(max(0, start - gone), end - gone, style) for start, end, style in spans if end - gone > 1]
        length = cell_len(plain)
    elif length > width:
        plain = set_cell_size(plain, width - 1).rstrip() + "…"  # a wide character is not halved, but left out
        spans = [Span(start, min(end, len(plain)), style) for start, end, style in spans if start < len(plain)]
        length = cell_len(plain)
    padding = " " * (width - length)
    if cell.align == "left":
        return plain + padding, spans
    return padding + plain, [Span(start + len(padding), end + len(padding), style) for start, end, style in spans]
