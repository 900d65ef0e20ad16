# SPDX-License-Identifier: Apache-2.0
"""Statistics that a preempted sample cannot spoil: medians, their distribution-free intervals, least squares."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Estimate", "Line", "estimate", "fit_line", "ratio"]

_TAIL = 0.025
# Student's t for 95 % on both sides, by degrees of freedom from 1 on; beyond the table the normal distribution's 1.960
# differs by less than 7 %, which the last entry covers.
_STUDENT_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


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
    """A least-squares line: ``slope`` per unit of x, and what remains at x = 0.

    ``slope_error`` is half the 95 % interval of the slope that follows from how far the points lie from the line;
    infinite for two points, which lie on any line.
    """

    slope: float
    intercept: float
    slope_error: float = math.inf


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
    free = len(xs) - 2
    if free < 1:
        return Line(slope=slope, intercept=intercept)
    middle = statistics.fmean(xs)
    spread = math.fsum((x - middle) ** 2 for x in xs)
    left = math.fsum((y - slope * x - intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    student = _STUDENT_T[min(free, len(_STUDENT_T)) - 1]
    return Line(slope=slope, intercept=intercept, slope_error=student * math.sqrt(left / free / spread))
