"""lax.reduce and lax.reduce_window: known functions, functions of the user's, several operands, pooling gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import ArgumentError, CarryTypeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.3


@pytest.mark.parametrize(
    ("function", "start", "expected", "primitive"),
    [
        (lax.add, 0.0, np.sum, "reduce_sum"),
        (lambda a, b: a * b, 1.0, np.prod, "reduce_prod"),
        (tnp.maximum, -np.inf, np.max, "reduce_max"),
        (lax.min, np.inf, np.min, "reduce_min"),
    ],
)
def test_a_known_function_is_its_primitive(function: Any, start: float, expected: Any, primitive: str) -> None:
    def total(x: Any) -> Any:
        return lax.reduce(x, start, function, (0, -1))

    np.testing.assert_allclose(np.asarray(total(tnp.asarray(X))), expected(X, axis=(0, 2)), rtol=1e-14)
    assert f"= {primitive}(" in str(tracer.jit(total).lower(X).program())


def test_the_initial_value_counts() -> None:
    np.testing.assert_allclose(np.asarray(lax.reduce(X, 5.0, lax.add, (1,))), X.sum(1) + 5)
    assert float(lax.reduce(X, 100.0, lax.max, (0, 1, 2))) == 100.0


def test_over_no_dimensions_nothing_is_joined() -> None:
    for function in (lax.add, lax.mul, lambda a, b: a * b + 1):
        np.testing.assert_array_equal(lax.reduce(X, 2.0, function, ()), X)
    assert float(lax.reduce(3.0, 2.0, lax.add, ())) == 3.0


def test_bits_are_joined() -> None:
    x = np.array([[True, False], [True, True]])
    assert lax.reduce(x, True, lax.bitwise_and, (1,)).tolist() == [False, True]
    assert lax.reduce(x, False, lax.bitwise_xor, (1,)).tolist() == [True, False]


def affine(a: Any, b: Any) -> Any:
    """Composition of x -> s x + t, associative but not commutative."""
    return a[0] * b[0], b[0] * a[1] + b[1]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 16])
def test_several_operands_are_joined_in_order(count: int) -> None:
    rng = np.random.default_rng(0)
    s, t = rng.standard_normal((2, count, 3))
    scale, shift = np.ones(3), np.zeros(3)
    for k in range(count):
        scale, shift = scale * s[k], s[k] * shift + t[k]
    for run in (lambda: reduced(s, t), lambda: tracer.jit(reduced)(s, t)):
        found = run()
        np.testing.assert_allclose(np.asarray(found[0]), scale, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(found[1]), shift, rtol=1e-12)


def reduced(s: Any, t: Any) -> Any:
    return lax.reduce((s, t), (1.0, 0.0), affine, (0,))


def test_a_function_may_branch_and_close_over_arrays() -> None:
    limit = tnp.asarray(0.5)

    def capped(a: Any, b: Any) -> Any:
        return lax.cond(a + b > limit, lambda: limit, lambda: a + b)

    assert float(lax.reduce(np.array([0.1, 0.2, 0.1]), 0.0, capped, (0,))) == pytest.approx(0.4)
    assert float(lax.reduce(np.array([0.1, 0.9, 0.1]), 0.0, capped, (0,))) == 0.5


def test_a_general_reduction_is_differentiated_and_batched() -> None:
    def norm(x: Any) -> Any:
        return lax.reduce(x, 0.0, lambda a, b: (a * a + b * b) ** 0.5, (0,))

    x = np.array([3.0, 4.0, 12.0])
    np.testing.assert_allclose(np.asarray(tracer.grad(norm)(x)), x / 13, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(tracer.vmap(norm)(np.stack([x, 2 * x]))), [13.0, 26.0])


def test_a_function_must_return_what_it_takes() -> None:
    with pytest.raises(CarryTypeError, match="the function must return what it takes"):
        lax.reduce(np.arange(3.0), 0.0, lambda a, b: a > b, (0,))
    with pytest.raises(ShapeError, match="a scalar to start from for each"):
        lax.reduce((X, X), 0.0, lax.add, (0,))


# windows


def pooled(x: Any, start: float, function: Any, reduction: Any) -> Any:
    """By NumPy: windows 2 x 3, strides 2 x 1, one more row and column in front."""
    padded = np.full((x.shape[0] + 1, x.shape[1] + 1), start)
    padded[1:, 1:] = x
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3))[::2]
    return reduction(windows, axis=(2, 3))


@pytest.mark.parametrize(
    ("function", "start", "reduction"),
    [
        (lax.add, 0.0, np.sum),
        (lax.max, -np.inf, np.max),
        (lax.min, np.inf, np.min),
        (lax.mul, 1.0, np.prod),
        (lax.max, 0.25, lambda w, axis: np.maximum(np.max(w, axis=axis), 0.25)),
        (lambda a, b: a + b + a * b, 0.0, lambda w, axis: np.prod(1 + w, axis=axis) - 1),
    ],
)
def test_windows_are_reduced(function: Any, start: float, reduction: Any) -> None:
    x = np.random.default_rng(3).standard_normal((5, 6))

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, start, function, (2, 3), (2, 1), ((1, 0), (1, 0)))

    expected = pooled(x, start, function, reduction)
    np.testing.assert_allclose(np.asarray(pool(x)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(tracer.jit(pool)(x)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(tracer.vmap(pool)(np.stack([x, -x])))[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("base", "window", "stride", "spread"), [(2, 3, 2, 1), (3, 4, 1, 1), (2, 2, 3, 2), (1, 3, 2, 2)]
)
def test_named_padding_is_that_of_the_shape_before_dilation(
    padding: str, base: int, window: int, stride: int, spread: int
) -> None:
    x = np.arange(1.0, 6.0)
    extent = (window - 1) * spread + 1
    total = max((-(-5 // stride) - 1) * stride + extent - 5, 0)
    pads = (total // 2, total - total // 2)[:: 1 if padding == "SAME" else -1]
    settings = {"window_strides": (stride,), "base_dilation": (base,), "window_dilation": (spread,)}
    for computation, start in ((lax.add, 0.0), (lambda a, b: a * b + a + b, 0.0)):
        named = lax.reduce_window(x, start, computation, (window,), padding=padding, **settings)
        given = lax.reduce_window(x, start, computation, (window,), padding=(pads,), **settings)
        assert named.tolist() == given.tolist()


def test_of_equal_extremes_the_first_has_the_gradient() -> None:
    x = np.array([[1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 2.0]])

    def total(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID").sum()

    expected = [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    assert tracer.grad(total)(x).tolist() == expected
    assert tracer.jit(tracer.grad(total))(x).tolist() == expected


def test_average_pooling_spreads_its_cotangents() -> None:
    x = np.zeros((4, 4))
    gradient = tracer.grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME").sum())(x)
    row = np.array([2.0, 3.0, 3.0, 2.0])
    np.testing.assert_array_equal(np.asarray(gradient), np.outer(row, row))


def test_settings_of_the_wrong_length_are_told() -> None:
    pads = ((0, 0),) * 3
    for call in (
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2), (1, 1), pads[:2]),
        lambda: lax.reduce_window(X, 0.0, lax.mul, (1, 2, 0), (1, 1, 1), pads),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2), (1, 1, 1), "SAME"),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2, 1), (1, 1), "VALID"),
        lambda: lax.reduce_window(X, 0.0, lambda a, b: a * b + 1, (1, 2, 1), (1, 1, 1), pads[:2]),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2, 1), base_dilation=(1, 0, 1)),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2, 1), window_dilation=(2, 1)),
    ):
        with pytest.raises(
            ArgumentError, match=r"reduce_window at .*: expected window sizes, strides and dilations >= 1"
        ):
            call()
    with pytest.raises(
        ArgumentError, match=r"select_and_scatter at .*: expected window sizes, strides and dilations >= 1"
    ):
        lax.select_and_scatter(X, lax.ge, (2, 2), (1, 1, 1), "VALID", X, 0.0, lax.add)
