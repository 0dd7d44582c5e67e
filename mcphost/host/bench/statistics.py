"""The statistics of repeated measurements: percentiles, noise, and the ratio of two figures.

Rounds of two sides that were measured in turn form pairs. A slow minute of the machine hits both halves of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

LEAST_PAIRS: Final = 5
"""Fewer pairs agree by chance too often."""

FEW: Final = 10
"""Of fewer values the median deviation may be small by chance, so that half of their range counts as noise."""

DEVIATIONS: Final = 3.0
"""Of the number of pairs that point one way; two equal sides differ from half of the pairs by more in 0.3 % of runs."""

NOISE_FLOOR: Final = 0.02
"""Two processes of one program differ by so much, since their memory is laid out differently."""

NOISES: Final = 2.0
"""A difference counts from so many times the noise on."""

_TO_MEDIAN: Final = 1.2533
"""The standard deviation of values times this, by the root of their number, is that of their median."""

_TO_DEVIATION: Final = 1.4826
"""The median absolute deviation times this is the standard deviation, where values are distributed normally."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of all do not exceed (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * percent / 100) - 1)]


def noise_of(values: Sequence[float]) -> float:
    """The median absolute deviation as a share of the median, scaled to a standard deviation; at least the floor."""
    middle = median(values) if values else 0.0
    if not middle:
        return NOISE_FLOOR
    deviation = _TO_DEVIATION * median(abs(each - middle) for each in values)
    if len(values) < FEW:
        deviation = max(deviation, (max(values) - min(values)) / 2)
    return max(NOISE_FLOOR, deviation / abs(middle))


class Figure(NamedTuple):
    """A measured value with its noise as a share of it; ``rounds`` are the values of its rounds, where known."""

    value: float
    noise: float = NOISE_FLOOR
    rounds: tuple[float, ...] = ()

    @classmethod
    def measured(cls, value: float, rounds: Sequence[float]) -> Figure:
        return cls(value, noise_of(rounds), tuple(rounds))


class FigureRatio(NamedTuple):
    """The first figure divided by the second; ``rounds`` is the number of rounds that it is made of."""

    ratio: float
    noise: float
    rounds: int

    @property
    def enough(self) -> bool:
        """True if there were rounds enough to know the noise."""
        return self.rounds >= LEAST_PAIRS

    @property
    def certain(self) -> bool:
        """True if the difference is more than noise."""
        return self.enough and max(self.ratio, 1 / self.ratio) - 1 > NOISES * self.noise

    @property
    def words(self) -> str:
        """``1.31 times, noise 4 %``; the ratio is that of the larger figure."""
        return f"{max(self.ratio, 1 / self.ratio):.2f} times, noise {self.noise:.0%}".replace("%", " %")


def ratio_of(first: Figure, second: Figure) -> FigureRatio | None:
    """The ratio of two figures: the median of their pairs of rounds, where they have any. None where one is 0."""
    if first.value <= 0 or second.value <= 0:
        return None
    paired = len(first.rounds) == len(second.rounds) and all(first.rounds) and all(second.rounds)
    if not (first.rounds and paired):  # one of them is from another run
        ratio, noise = first.value / second.value, math.hypot(first.noise, second.noise)
        return FigureRatio(ratio, noise, max(len(first.rounds), len(second.rounds)))
    pairs = [one / other for one, other in zip(first.rounds, second.rounds, strict=True)]
    ratio = median(pairs)
    noise = _noise_of_pairs(pairs if ratio >= 1 else [1 / each for each in pairs])
    return FigureRatio(ratio, noise, len(pairs))


def _noise_of_pairs(pairs: Sequence[float]) -> float:
    """The noise of the median of ``pairs``, which is at least 1. The median exceeds it if nearly all of them do."""
    noise = noise_of(pairs)
    if len(pairs) >= FEW:  # that of the median, and not of one round
        noise *= _TO_MEDIAN / math.sqrt(len(pairs))
    outliers = int((len(pairs) - DEVIATIONS * math.sqrt(len(pairs))) / 2)
    least = sorted(pairs)[max(0, outliers)]
    return max(NOISE_FLOOR, noise, (median(pairs) - least) / NOISES)
