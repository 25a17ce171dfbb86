"""Partial derivatives of every order of functions that loop: by forward mode through the loop, never through reverse.

A loop whose number of steps depends on its operands has a forward derivative alone. Here the derivative by each operand
is computed by the loop and its tangents, and is itself such a function. So reverse mode and higher orders exist, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tracer.numpy import ones_like
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.jacobian_products import jvp

Formula = Callable[..., Array]
Rule = Callable[..., Array]


def with_partials(formula: Formula, rules: Sequence[Rule | None]) -> Formula:
    """Return a function with a derivative by each operand, for reverse mode and of every order.

    formula: of float arrays [*s], elementwise, whose forward derivative exists. rules: by operand, a function of the
    operands that is the derivative, or None to differentiate the formula itself.
    """
    made: Any = custom_jvp(formula)
    slopes = [rule or partial(formula, i, len(rules)) for i, rule in enumerate(rules)]
    made.defjvps(*(lambda t, _, *operands, slope=slope: t * slope(*operands) for slope in slopes))
    found: Formula = made
    return found


def partial(formula: Formula, place: int, count: int) -> Formula:
    """Return the derivative by one operand, which is made when it is first called."""

    @cache
    def made() -> Formula:
        return with_partials(along, [None] * count)

    def along(*operands: Array) -> Array:
        def of_one(x: Array) -> Array:
            return formula(*operands[:place], x, *operands[place + 1 :])

        slope: Array = jvp(of_one, (operands[place],), (ones_like(operands[place]),))[1]
        return slope

    def later(*operands: Array) -> Array:
        return made()(*operands)

    return later
