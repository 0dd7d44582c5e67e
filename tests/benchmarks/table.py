"""The rows as text, aligned, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.benchmarks.measure import Row, Sample, Unit, middle

HEAD = ("work", "mcphost", "alternative", "ratio", "of all runs", "cpu ratio", "bound", "within")


def text_of(rows: Sequence[Row]) -> str:
    """One line a row; notes stand below the row they belong to."""
    cells = [HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(cells[0], widths), "  ".join("-" * width for width in widths)]
    for row, line in zip(rows, cells[1:], strict=True):
        lines.append(_line(line, widths))
        lines += [f"    {row.note}"] if row.note else []
    return "\n".join(lines)


def json_of(rows: Sequence[Row]) -> str:
    """Every sample of every row, in seconds or MB."""
    return json.dumps([row.as_object() for row in rows], indent=2)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.rjust(width) if place else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *rest)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    within = {None: "", True: "yes", False: "NO"}[row.within]
    ratio, spread = _ratio(row.ratio), f"{min(row.ratios):.2f}–{max(row.ratios):.2f}" if len(row.ratios) > 1 else ""
    sides = (_value(row.ours, row.unit), _value(row.theirs, row.unit))
    return (row.work, *sides, ratio, spread, _ratio(row.cpu_ratio), _ratio(row.bound), within)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _value(samples: tuple[Sample, ...], unit: Unit) -> str:
    value = middle(samples)
    if value is None:
        return "-"
    if unit == "MB":
        return f"{value:.1f} MB"
    if not unit:
        return f"{value:.0f}"
    for factor, name in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.2f} {name}"
    return f"{value * 1e6:.1f} µs"
