"""Values moved between lanes: against NumPy on the whole batch, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tracer import grad, jacfwd, jacrev, jit, vmap
from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError
from tracer.lax import all_to_all, pbroadcast, ppermute, pshuffle, psum_scatter, pswapaxes

X = np.arange(32.0).reshape(4, 4, 2) + 1.0


def permuted(x: Any) -> Any:
    result = np.zeros_like(x)
    result[[2, 0, 1]] = x[[0, 1, 3]]
    return result


def tiled_exchange(x: Any) -> Any:
    """Lane i gets row i of every lane, end to end along axis 1."""
    return np.stack([np.concatenate([x[sender, i : i + 1] for sender in range(4)], axis=1) for i in range(4)])


CASES = {
    "ppermute": (lambda v: ppermute(v, "i", [(0, 2), (1, 0), (3, 1)]), permuted),
    "pshuffle": (lambda v: pshuffle(v, "i", [3, 0, 1, 2]), lambda x: x[[3, 0, 1, 2]]),
    "all_to_all": (lambda v: all_to_all(v, "i", 0, 1), lambda x: x.transpose(1, 2, 0)),
    "all_to_all tiled": (lambda v: all_to_all(v, "i", 0, 1, tiled=True), tiled_exchange),
    "pswapaxes": (lambda v: pswapaxes(v, "i", 0), lambda x: x.swapaxes(0, 1)),
    "pbroadcast": (lambda v: pbroadcast(v, "i", 2), lambda x: np.stack([x[2]] * 4)),
    "psum_scatter": (lambda v: psum_scatter(v, "i"), lambda x: x.sum(0)),
    "psum_scatter tiled": (
        lambda v: psum_scatter(v, "i", tiled=True), lambda x: x.sum(0).reshape(4, 1, 2)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), CASES.values(), ids=CASES)
def test_values_move_between_lanes(function: Any, expected: Any) -> None:
    f = vmap(function, axis_name="i")
    np.testing.assert_array_equal(f(X), expected(X))
    np.testing.assert_array_equal(jit(f)(X), expected(X))
    outer = np.stack([X, 2 * X])
    np.testing.assert_array_equal(vmap(f)(outer), np.stack([expected(X), expected(2 * X)]))
    np.testing.assert_array_equal(vmap(f, 2, -1)(np.moveaxis(outer, 0, 2))[..., 1], expected(2 * X))


@each("function", [f for f, _ in CASES.values()], ids=CASES)
def test_their_derivatives_agree_inside_and_outside_the_batch(function: Any) -> None:
    f = vmap(function, axis_name="i")
    np.testing.assert_array_equal(jacfwd(f)(X), jacrev(f)(X))
    inside = vmap(grad(lambda v: (function(v) ** 2).sum()), axis_name="i")(X)
    np.testing.assert_allclose(inside, grad(lambda x: (f(x) ** 2).sum())(tnp.asarray(X)))


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ArgumentError, match=r"each of the 4 lanes receives once at most\n  got \[\(0, 1\), \(2, 1\)\]"):
        vmap(lambda v: ppermute(v, "i", [(0, 1), (2, 1)]), axis_name="i")(X)
    with pytest.raises(ShapeError, match=r"axis 1 must have the batch axis' size\n  got f64\[4,2\], and 4 lanes"):
        vmap(lambda v: all_to_all(v, "i", 1, 0), axis_name="i")(X)
