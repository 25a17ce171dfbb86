"""Grids of cases: a seeded sample of every product of axes in the suite, all of it under the thorough profile."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import cycle, islice, product
from random import Random
from typing import Any, Final

import numpy as np
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


def each(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Callable[[Any], str] | Sequence[str] | None = None
) -> Callable[[Any], Any]:
    """Return a decorator for a test that takes all cases in turn, and names those that fail.

    For cases of a millisecond or two, where a test of its own for each, by `pytest.mark.parametrize`, takes three more.
    The arguments are as there. Every case has a new `rng`; other fixtures serve all cases.
    """
    names = [names] if isinstance(names, str) else list(names)
    rows = [(case,) if len(names) == 1 else tuple(case) for case in cases]

    def label(row: tuple[Any, ...], number: int) -> str:
        if ids is None or callable(ids):
            return "-".join(str((ids or str)(value)) for value in row)
        return ids[number]

    def decorate(test: Any) -> Any:
        parameters = inspect.signature(test).parameters
        seeded = "rng" in parameters

        @wraps(test)
        def in_turn(**fixtures: Any) -> None:
            failures = []
            for number, row in enumerate(rows):
                fresh = {"rng": np.random.default_rng(2026)} if seeded else {}
                try:
                    test(**fixtures, **fresh, **dict(zip(names, row, strict=True)))
                except Exception as failure:
                    failures.append((label(row, number), failure))
            if failures:
                failed = ", ".join(name for name, _ in failures)
                failures[0][1].add_note(f"{len(failures)} of {len(rows)} cases fail, and this is the first: {failed}")
                raise failures[0][1]

        assert rows, "no cases"
        kept = [parameter for name, parameter in parameters.items() if name not in (*names, "rng")]
        in_turn.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        return in_turn

    return decorate
