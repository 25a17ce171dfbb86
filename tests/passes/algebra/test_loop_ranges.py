"""Ranges of loops' inputs: the checks that they decide in bodies, and the counters that tell nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.passes.programs import i32, traced
from tests.passes.structures import along
from tracer import errors, grad, jit, lax
from tracer.ir.visit import equations
from tracer.passes.simplify import simplify
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.comparison import lt, select
from tracer.trace.trace import as_literal

X = np.arange(5.0)


def names(f: Any, *xs: Any) -> set[str]:
    return {equation.primitive.name for equation in equations(jit(f).lower(*xs).optimized())}


def is_decided(first: Any, step: int, limit: int, length: int, dtype: type = np.int32) -> bool:
    """Whether `i < limit` is decided in a scan whose carry i counts from first by steps."""

    def body(i: Any, total: Any) -> tuple[Any, Any]:
        small = select(lt(i, as_literal(dtype(limit))), as_literal(dtype(1)), as_literal(dtype(0)))
        return add(i, as_literal(dtype(step))), add(total, small)

    program = traced(lambda total: along(body, [as_literal(dtype(first)), total], [], length=length), i32())
    return "lt" not in {equation.primitive.name for equation in equations(simplify(program))}


@each(
    ("first", "step", "limit", "length", "known"),
    [(0, 1, 5, 5, True), (0, 1, 4, 5, False), (3, -1, 4, 9, True), (3, -1, 3, 9, False), (-2, 2, -2, 3, True),
     (0, 1, 0, 0, True), (2**31 - 3, 1, 5, 9, False)],
)  # fmt: skip
def test_a_counter_has_the_values_between_its_first_and_last(
    first: int, step: int, limit: int, length: int, known: bool
) -> None:
    assert is_decided(first, step, limit, length) is known


def test_indices_within_bounds_of_a_fori_loop_are_not_checked() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, y: y.at[i].set(x[i] + lax.fori_loop(0, 3, lambda j, s: s + x[i], 0.0)), x)

    assert not names(f, X) & {"checked_indices", "select", "lt"}
    assert "CHECKED" not in str(jit(f).lower(X).optimized())
    np.testing.assert_array_equal(jit(f)(X), 4 * X)


def test_indices_beyond_the_bounds_of_a_fori_loop_are_faults() -> None:
    with pytest.raises(errors.OutOfBoundsError):
        jit(lambda x: lax.fori_loop(0, 6, lambda i, s: s + x[i], 0.0))(X).block_until_ready()


def test_slices_of_counted_values_and_values_from_outside_have_their_ranges() -> None:
    def f(x: Any, k: Any) -> Any:
        last = tnp.clip(k, 0, 4)
        return lax.scan(lambda s, i: (s + x[i] * x[last], None), 0.0, tnp.arange(5))[0]

    assert not names(f, X, 7) & {"lt", "select"}
    assert float(jit(f)(X, 7)) == X.sum() * X[4]


def test_gradients_of_loops_with_indices_are_those_of_the_loop() -> None:
    f = lambda x: lax.fori_loop(0, 5, lambda i, s: s * 0.5 + x[i] ** 2 * x[-1 - i], 0.0)  # noqa: E731
    weights = 0.5 ** np.arange(5)[::-1]
    expected = weights * 2 * X * X[::-1] + (weights * X**2)[::-1]
    np.testing.assert_allclose(jit(grad(f))(X), expected)
    np.testing.assert_allclose(grad(f)(X), expected)
