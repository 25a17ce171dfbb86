"""Activations and normalisation: values, extremes, derivatives, against SciPy and formulas."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import nn
from tracer.transforms.residual_report import saved_residuals

X = np.linspace(-4.0, 4.0, 17)
FAR = np.array([-1000.0, -40.0, 0.0, 40.0, 1000.0])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nn.relu, lambda x: np.maximum(x, 0)),
        (nn.relu6, lambda x: np.clip(x, 0, 6)),
        (nn.sigmoid, special.expit),
        (nn.softplus, lambda x: np.logaddexp(x, 0)),
        (nn.log_sigmoid, special.log_expit),
        (nn.silu, lambda x: x * special.expit(x)),
        (nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
        (lambda x: nn.gelu(x, approximate=False), lambda x: x * special.ndtr(x)),
        (nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
        (nn.hard_tanh, lambda x: np.clip(x, -1, 1)),
        (nn.softmax, special.softmax),
        (nn.log_softmax, special.log_softmax),
        (nn.logsumexp, special.logsumexp),
        (nn.soft_sign, lambda x: x / (1 + np.abs(x))),
        (nn.tanh, np.tanh),
        (nn.mish, lambda x: x * np.tanh(np.logaddexp(x, 0))),
        (nn.sparse_plus, lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4))),
    ],
)
def test_values_are_right_and_finite_far_away(ours: Any, theirs: Any) -> None:
    compiled = tracer.jit(ours)
    for x in (X, np.resize(FAR, X.shape)):
        with np.errstate(over="ignore"):
            expected = theirs(x)
        np.testing.assert_allclose(np.asarray(ours(x)), expected, rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-13, atol=1e-300)
    gradient = np.asarray(tracer.grad(lambda x: tnp.sum(ours(x)))(FAR))
    assert np.isfinite(gradient).all()


def test_relu_has_no_slope_at_zero() -> None:
    assert tracer.vmap(tracer.grad(nn.relu))(np.array([-1.0, 0.0, 1.0])).tolist() == [0.0, 0.0, 1.0]
    assert tracer.vmap(tracer.grad(nn.relu6))(np.array([-1.0, 1.0, 7.0])).tolist() == [0.0, 1.0, 0.0]


def test_relu_gives_no_slope_where_it_is_flat_whatever_comes_back() -> None:
    x = np.array([-1.0, 0.0, 1.0])
    (slope,) = tracer.vjp(nn.relu, x)[1](np.array([np.nan, np.inf, np.inf]))
    assert slope.tolist() == [0.0, 0.0, np.inf]


def test_logsumexp_takes_weights_and_gives_signs() -> None:
    weights = np.where(X > 0, 1.0, -2.0)
    value, sign = nn.logsumexp(X, b=weights, return_sign=True)
    expected, expected_sign = special.logsumexp(X, b=weights, return_sign=True)
    np.testing.assert_allclose([float(value), float(sign)], [expected, expected_sign], rtol=1e-13)
    assert float(nn.logsumexp(np.array([-np.inf, -np.inf]))) == -np.inf
    assert float(nn.logsumexp(np.array([np.inf, 0.0]))) == np.inf
    np.testing.assert_allclose(np.asarray(tracer.grad(nn.logsumexp)(X)), special.softmax(X), rtol=1e-12)


def test_logsumexp_of_complex_numbers_and_weights_is_the_principal_logarithm() -> None:
    z = np.array([1 + 3j, -2 + 2.5j, 0.5 - 1j])
    for a, b in ((z, None), (z, np.array([1.0, -2.0, 0.5])), (z.real, z), (1000 + z, z)):
        expected = special.logsumexp(a, b=b)
        np.testing.assert_allclose(complex(nn.logsumexp(a, b=b)), expected, rtol=1e-13)
        size, direction = nn.logsumexp(a, b=b, return_sign=True)
        np.testing.assert_allclose(complex(direction) * np.exp(float(size) - expected.real), np.exp(1j * expected.imag))
        gradient = tracer.jvp(lambda a, b=b: nn.logsumexp(a, b=b), (tnp.asarray(a),), (tnp.ones(3, a.dtype),))[1]
        np.testing.assert_allclose(complex(gradient), 1, rtol=1e-12)


def test_log1mexp_and_the_sparse_sigmoid() -> None:
    x = np.array([1e-300, 1e-20, 0.1, 0.69, 0.7, 3.0, 800.0])
    expected = [float(mpmath.log(-mpmath.expm1(-mpmath.mpf(float(v))))) for v in x]
    np.testing.assert_allclose(nn.log1mexp(x), expected, rtol=4e-16)
    assert np.isnan(nn.log1mexp(-1.0))
    assert nn.log1mexp(0.0) == -np.inf
    slopes = tracer.vmap(tracer.grad(nn.log1mexp))(x[1:-1])
    np.testing.assert_allclose(slopes, 1 / np.expm1(x[1:-1]), rtol=1e-14)
    np.testing.assert_allclose(nn.sparse_sigmoid(X), tracer.vmap(tracer.grad(nn.sparse_plus))(X))


def test_masked_softmax_leaves_elements_out() -> None:
    mask = X > 0
    masked = np.asarray(nn.softmax(X, where=mask))
    np.testing.assert_allclose(masked[mask], special.softmax(X[mask]), rtol=1e-13)
    assert not masked[~mask].any()


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_an_overflow_makes_a_whole_row_of_softmax_nan(function: Any, axis: Any) -> None:
    x = np.zeros((3, 3))
    x[0, 1], x[2, 2] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = np.isnan(special.softmax(x, axis))
    for way in (lambda f: f, tracer.jit):
        np.testing.assert_array_equal(np.isnan(way(lambda x: function(x, axis))(x)), expected)
        np.testing.assert_array_equal(
            np.isnan(way(tracer.grad(lambda x: (function(x, axis) * np.arange(9.0).reshape(3, 3)).sum()))(x)), expected
        )
    assert expected.any()


def test_softmax_keeps_infinities_that_do_not_overflow() -> None:
    rows = np.array([[-np.inf, 0.0, 1.0], [1.0, np.inf, 2.0]])
    mask = np.array([[True, True, True], [True, False, True]])
    assert np.isfinite(nn.softmax(rows, where=mask)).all()
    assert nn.logsumexp(np.array([np.inf, 0.0])) == np.inf


def test_one_hot_and_standardize() -> None:
    assert nn.one_hot(np.array([0, 2, 3, -1]), 3, dtype="int32").tolist() == [
        [1, 0, 0],
        [0, 0, 1],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert nn.one_hot(np.array([0, 2]), 3, axis=0).shape == (3, 2)
    standard = np.asarray(nn.standardize(X, epsilon=0.0))
    np.testing.assert_allclose([standard.mean(), standard.std()], [0.0, 1.0], atol=1e-14)


@each(
    ("name", "x"),
    [
        ("erf", X), ("erfc", X), ("erfinv", X / 5), ("gammaln", np.abs(X) + 0.1), ("gamma", X + 0.3),
        ("digamma", np.abs(X) + 0.5),
        ("expit", X), ("logit", (X + 5) / 10), ("entr", np.abs(X)), ("ndtr", X), ("ndtri", (X + 5) / 10),
        ("log_ndtr", np.linspace(-60.0, 10.0, 29)),
    ],
)  # fmt: skip
def test_special_functions_are_scipys(name: str, x: Any) -> None:
    ours = np.asarray(getattr(tracer.scipy.special, name)(x))
    np.testing.assert_allclose(ours, getattr(special, name)(x), rtol=2e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div", "betaln", "gammainc", "gammaincc"])
def test_special_functions_of_two_are_scipys(name: str) -> None:
    a, b = np.abs(X) + 0.25, np.abs(X[::-1]) + 0.5
    ours = np.asarray(getattr(tracer.scipy.special, name)(a, b))
    np.testing.assert_allclose(ours, getattr(special, name)(a, b), rtol=1e-12, atol=1e-14)


@each("name", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"])
def test_the_normal_distribution_is_scipys(name: str) -> None:
    ours = np.asarray(getattr(tracer.scipy.stats.norm, name)(X, 0.5, 2.0))
    np.testing.assert_allclose(ours, getattr(stats.norm, name)(X, 0.5, 2.0), rtol=1e-12)
    quantiles = tracer.scipy.stats.norm.ppf(stats.norm.cdf(X, 0.5, 2.0), 0.5, 2.0)
    np.testing.assert_allclose(np.asarray(quantiles), X, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_rows_that_a_mask_empties_have_values_and_slopes(way: Any, name: str) -> None:
    x = np.array([[1.0, 2.0, 1e4], [3.0, np.inf, np.nan]])
    mask = np.array([[True, True, False], [False, False, False]])
    kept = x[0, :2]
    function = getattr(nn, name)
    nothing = 0.0 if name == "softmax" else -np.inf
    values = np.asarray(way(lambda x: function(x, axis=-1, where=mask))(x))
    if name == "logsumexp":
        np.testing.assert_allclose(values, [special.logsumexp(kept), -np.inf])
    else:
        np.testing.assert_allclose(values[0], [*getattr(special, name)(kept), nothing])
        np.testing.assert_array_equal(values[1], nothing)

    def some(x: Any) -> Any:
        y = function(x, axis=-1, where=mask)
        return (y[..., 0] if y.ndim > 1 else y) @ np.array([1.0, 1.0]) if name == "softmax" else tnp.where(
            tnp.isfinite(y), y, 0.0
        )[0].sum()  # fmt: skip

    slope = np.asarray(way(tracer.grad(some))(x))
    p = special.softmax(kept)
    expected = {"softmax": p * (np.array([1.0, 0.0]) - p[0]), "log_softmax": 1 - 2 * p, "logsumexp": p}[name]
    np.testing.assert_allclose(slope, [[*expected, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


def test_the_mean_of_nothing_is_nan() -> None:
    assert np.isnan(nn.logmeanexp(np.ones((0, 2))))
    np.testing.assert_array_equal(nn.logmeanexp(np.ones((2, 0)), axis=1), [np.nan] * 2)
    assert nn.logmeanexp(np.ones((0, 2)), axis=1).shape == (0,)


@pytest.mark.parametrize("where", [None, np.array([True, False, True, True])])
def test_the_derivative_of_softmax_keeps_its_result_alone(where: Any) -> None:
    x = np.array([5.5, 1.3, -4.2, 0.9])
    kept = saved_residuals(lambda x: nn.softmax(x, where=where), x)
    assert [str(type) for type, _ in kept] == ["f64[4]"]
    tracer.test_util.check_grads(lambda x: nn.softmax(x, where=where), (x,), order=2)
