"""Grids of cases: a seeded sample of every product of axes in the suite, all of it under the thorough profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle, islice, product
from random import Random
from typing import Any, Final

from hypothesis import example

THOROUGH: Final = os.environ.get("TRACER_HYPOTHESIS_PROFILE") == "thorough"


def covering(*axes: Iterable[Any], least: int = 0) -> list[tuple[Any, ...]]:
    """Return rows of the product of `axes` in which each value of every axis occurs; the whole product if thorough.

    least: how many rows at least, unless some of them are equal. Every process has the same rows.
    """
    values = [list(axis) for axis in axes]
    if THOROUGH:
        return list(product(*values))
    length = max(least, *map(len, values))
    random = Random(length)
    columns = [islice(cycle(range(len(axis))), length) for axis in values]
    rows = dict.fromkeys(zip(*(random.sample(list(column), length) for column in columns), strict=True))
    return [tuple(axis[i] for axis, i in zip(values, row, strict=True)) for row in sorted(rows)]


def examples(rows: Sequence[tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Return a decorator by which a property is tried on these rows too, not only on those that hypothesis draws."""

    def decorate(test: Any) -> Any:
        for row in reversed(rows):
            test = example(*row)(test)
        return test

    return decorate
