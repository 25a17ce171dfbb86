"""Medians and their confidence."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

RESAMPLES = 2000


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """A bootstrap interval of the median, from a fixed seed.

    >>> interval([1.0, 1.0, 1.0])
    (1.0, 1.0)
    """
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = int((1 - confidence) / 2 * RESAMPLES)
    return medians[cut], medians[-1 - cut]


def geometric_mean(values: Sequence[float]) -> float:
    """The mean of ratios."""
    return statistics.geometric_mean(values)
