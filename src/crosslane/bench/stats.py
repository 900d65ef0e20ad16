# SPDX-License-Identifier: Apache-2.0
"""Statistics that a preempted sample cannot spoil: medians, their distribution-free intervals, least squares."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Estimate", "Line", "estimate", "fit_line", "ratio"]

_TAIL = 0.025


@dataclass(frozen=True)
class Estimate:
    """A median with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def noise(self) -> float:
        """Half the interval's width relative to the value (0.02 is 2 %); infinite where there is no interval."""
        if not (0 < self.low <= self.high < math.inf):
            return math.inf
        return math.sqrt(self.high / self.low) - 1.0

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of the quantity times a positive factor."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def inverse(self) -> Estimate:
        """Return the estimate of one over the quantity, which must be positive."""
        return Estimate(1.0 / self.value, 1.0 / self.high, 1.0 / self.low)


@dataclass(frozen=True)
class Line:
    """A least-squares line: ``slope`` per unit of x, and what remains at x = 0."""

    slope: float
    intercept: float


def _rank(num: int) -> int:
    """Return how many values lie outside the 95 % interval of the median on each side; 0 where it has no bound.

    The number of samples below the true median is binomial with p = 1/2 whatever their distribution (the sign test).
    """
    total, rank = 0.0, 0
    while rank < num:
        total += math.comb(num, rank) / 2.0**num
        if total > _TAIL:
            break
        rank += 1
    return rank


def estimate(values: Sequence[float]) -> Estimate:
    """Return the median of samples with its 95 % interval, from the order statistics; at least one sample."""
    ordered = sorted(values)
    rank = _rank(len(ordered))
    middle = statistics.median(ordered)
    if rank == 0:
        return Estimate(middle, 0.0, math.inf)
    return Estimate(middle, ordered[rank - 1], ordered[-rank])


def ratio(base: Sequence[float], other: Sequence[float]) -> Estimate:
    """Return how many times faster ``other`` is, from times taken in turns: the median of base / other over pairs."""
    return estimate([slow / fast for slow, fast in zip(base, other, strict=True)])


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Return the least-squares line through points with at least two different x."""
    slope, intercept = statistics.linear_regression(xs, ys)
    return Line(slope=slope, intercept=intercept)
