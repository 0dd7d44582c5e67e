"""Compares works, both sides by turns in one run, and evaluates the samples.

A ratio is the median of the pairwise ratios, so that a slow minute of the machine, which hits both sides, cancels.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

Unit = Literal["s", "MB", ""]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: wall time of one unit of work in seconds, and this process's CPU time for it (0: not measured)."""

    wall: float
    cpu: float = 0.0


Take = Callable[[], Awaitable[Sample]]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. Without ``theirs`` there is nothing to compare with; ``note`` says what went wrong."""

    work: str
    ours: tuple[Sample, ...] = ()
    theirs: tuple[Sample, ...] = ()
    bound: float | None = None
    unit: Unit = "s"
    note: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ours to theirs, pair by pair."""
        return (
            [ours.wall / theirs.wall for ours, theirs in zip(self.ours, self.theirs, strict=True)]
            if self.theirs
            else []
        )

    @property
    def ratio(self) -> float | None:
        """The median of the pairwise ratios."""
        return median(self.ratios) if self.ratios else None

    @property
    def cpu_ratio(self) -> float | None:
        """The same of this process's CPU time, where both sides ran in it."""
        pairs = [(ours.cpu, theirs.cpu) for ours, theirs in zip(self.ours, self.theirs, strict=False)]
        return median(ours / theirs for ours, theirs in pairs) if pairs and all(map(all, pairs)) else None

    @property
    def within(self) -> bool | None:
        """True if the ratio is within its bound; None without a bound."""
        return None if self.bound is None else self.ratio is not None and self.ratio <= self.bound

    def as_object(self) -> dict[str, Any]:
        """All of it, for ``--json``."""
        derived = {"ratio": self.ratio, "ratios": self.ratios, "cpu_ratio": self.cpu_ratio, "within": self.within}
        return {**asdict(self), **derived}


def middle(samples: tuple[Sample, ...]) -> float | None:
    """The median wall time."""
    return median(sample.wall for sample in samples) if samples else None


async def clocked(work: Awaitable[object], units: int = 1) -> Sample:
    """The time ``work`` takes for each of its ``units``."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work
    return Sample((time.perf_counter() - wall) / units, (time.process_time() - cpu) / units)


async def compare(work: str, ours: Take, theirs: Take, runs: int, bound: float | None = None) -> Row:
    """A warm-up of both sides, then ``runs`` pairs; who goes first changes from pair to pair. One run needs none."""
    if runs > 1:
        await ours()
        await theirs()
    pairs: list[tuple[Sample, Sample]] = []
    for number in range(runs):
        if number % 2:
            second = await theirs()
            pairs.append((await ours(), second))
        else:
            pairs.append((await ours(), await theirs()))
    return Row(work, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), bound)


async def against(work: str, ours: Take, figure: float, runs: int, bound: float | None = None) -> Row:
    """Ours against a figure in seconds, after a warm-up if there are several runs."""
    if runs > 1:
        await ours()
    taken = tuple([await ours() for _ in range(runs)])
    return Row(work, taken, (Sample(figure),) * runs, bound)
