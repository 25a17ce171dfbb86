"""Derivatives of cumulative extremes where elements tie, and of cumulative log-sum-exp at infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.primitives.structural import lax
from tracer import grad, jacfwd, jacrev, jit, vmap

INF = np.inf
TIED = np.array([1.0, 3.0, 3.0, 2.0, 3.0, 5.0, 5.0, 0.0])


def shared(x: Any, *, greatest: bool, reverse: bool) -> np.ndarray[Any, Any]:
    """The Jacobian in which the elements up to each place that attain the extreme have equal parts."""
    n = len(x)
    rows = np.zeros((n, n))
    for k in range(n):
        places = range(k, n) if reverse else range(k + 1)
        extreme = (max if greatest else min)(x[j] for j in places)
        attain = [j for j in places if x[j] == extreme]
        rows[k, attain] = 1 / len(attain)
    return rows


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_elements_that_attain_an_extreme_share_its_derivative(name: str, reverse: bool, way: Any) -> None:
    def f(x: Any) -> Any:
        return getattr(lax, name)(x, 0, reverse=reverse)

    for x in (TIED, -TIED, np.ones(5), np.array([-INF, INF, INF, 1.0]), TIED[:1], TIED[:0]):
        expected = shared(x, greatest=name == "cummax", reverse=reverse)
        for jacobian in (jacrev, jacfwd):
            np.testing.assert_allclose(way(jacobian(f))(x), expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_last_share_is_that_of_the_reduction(name: str) -> None:
    scan, reduction = getattr(lax, f"cum{name}"), getattr(lax, f"reduce_{name}")
    for x in (TIED, -TIED, np.ones(5)):
        last = grad(lambda x: scan(x, 0)[-1])(tnp.asarray(x))
        np.testing.assert_allclose(last, grad(lambda x: reduction(x, (0,)))(tnp.asarray(x)), rtol=1e-15)


def test_rows_of_any_axis_share_apart() -> None:
    x = np.stack([TIED, -TIED, np.ones(8)])
    expected = [shared(row, greatest=True, reverse=False).sum(0) for row in x]
    for f in (grad(lambda x: lax.cummax(x, 1).sum()), vmap(grad(lambda row: lax.cummax(row, 0).sum()))):
        np.testing.assert_allclose(f(tnp.asarray(x)), expected, rtol=1e-15)
    np.testing.assert_allclose(grad(lambda x: lax.cummax(x, 0).sum())(tnp.asarray(x.T)), np.transpose(expected))


def test_zeros_of_either_sign_tie() -> None:
    np.testing.assert_array_equal(grad(lambda x: lax.cummax(x, 0)[-1])(tnp.asarray([-0.0, 0.0])), [0.5, 0.5])


# logaddexp of all up to each place: infinite terms move what equals them, and nothing else does.
AT_INFINITY = {
    (INF, 1.0): [[1, 0], [1, 0]],
    (1.0, INF): [[1, 0], [0, 1]],
    (-INF, 1.0): [[1, 0], [0, 1]],
    (1.0, -INF): [[1, 0], [1, 0]],
    (-INF, INF): [[1, 0], [0, 1]],
    (INF, INF): [[1, 0], [1, 1]],
    (-INF, -INF): [[1, 0], [1, 1]],
    (INF, 1.0, 2.0): [[1, 0, 0], [1, 0, 0], [1, 0, 0]],
}  # fmt: skip


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_weights_of_infinite_terms_are_limits(way: Any) -> None:
    for x, expected in AT_INFINITY.items():
        for jacobian in (jacrev, jacfwd):
            np.testing.assert_array_equal(way(jacobian(lambda x: lax.cumlogsumexp(x, 0)))(np.array(x)), expected)
        backwards = way(jacrev(lambda x: lax.cumlogsumexp(x, 0, reverse=True)))(np.array(x[::-1]))
        np.testing.assert_array_equal(backwards, np.array(expected)[::-1, ::-1])


def test_the_weights_are_those_of_logaddexp() -> None:
    for a, b in [(INF, 1.0), (1.0, INF), (-INF, 1.0), (INF, INF), (-INF, -INF), (0.5, 2.0)]:
        pair = [grad(tnp.logaddexp, argnums=i)(a, b) for i in (0, 1)]
        np.testing.assert_allclose(grad(lambda x: lax.cumlogsumexp(x, 0)[1])(tnp.asarray([a, b])), pair, rtol=1e-15)
