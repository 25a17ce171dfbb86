"""Functions of scipy.special's names beside SciPy's: values eager and compiled, slopes by central differences."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import tracer.numpy as tnp
from tracer import grad, jit, jvp, vmap
from tracer.errors import ArgumentError
from tracer.scipy import special

INNER = np.asarray([-2.7, -0.6, -0.3, 0.1, 0.3, 0.45, 0.7, 1.9, 4.2])
POSITIVE = np.asarray([0.3, 0.5, 0.9, 1.0, 1.7, 4.0, 20.0])
ENDS = np.asarray([0.0, np.inf, -np.inf, np.nan])

ONE = {
    "exp10": INNER, "exprel": INNER, "cosm1": INNER, "cbrt": INNER, "exp2": INNER, "expm1": INNER, "log_expit": INNER,
    "gamma": INNER, "rgamma": INNER, "gammaln": INNER, "factorial": POSITIVE, "log1p": POSITIVE,
}  # fmt: skip
TWO = [
    "rel_entr", "kl_div", "xlogy", "xlog1py", "beta", "betaln", "binom", "boxcox", "boxcox1p", "inv_boxcox",
    "inv_boxcox1p", "huber", "pseudo_huber", "poch", "gammainc", "gammaincc", "chdtr", "chdtrc", "stdtr",
]  # fmt: skip


def slopes(f: Any, *operands: Any) -> Any:
    """The derivative along all ones, and its central difference."""
    operands = tuple(map(tnp.asarray, operands))
    step = 1e-6
    up, down = (np.asarray(f(*(x + s for x in operands))) for s in (step, -step))
    return jvp(f, operands, tuple(tnp.ones_like(x) for x in operands))[1], (up - down) / (2 * step)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(name: str) -> None:
    f, expected = getattr(special, name), getattr(scipy.special, name)
    x = np.concatenate([ONE[name], ENDS]) if name != "gammaln" else ONE[name]
    for way in (f, jit(f)):
        np.testing.assert_allclose(way(tnp.asarray(x)), expected(x), rtol=2e-14)
    assert f(tnp.asarray([0.5, 2.0], "float32")).dtype == "float32"
    ours, differences = slopes(f, ONE[name])
    np.testing.assert_allclose(ours, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name: str) -> None:
    f, expected = getattr(special, name), getattr(scipy.special, name)
    a, b = (x.ravel() for x in np.meshgrid(POSITIVE + 0.01, POSITIVE / 3))
    if name == "binom":
        a = a + 7.0
    for way in (f, jit(f)):
        np.testing.assert_allclose(way(tnp.asarray(a), tnp.asarray(b)), expected(a, b), rtol=1e-12)
    assert f(tnp.asarray(a, "float32"), tnp.asarray(b, "float32")).dtype == "float32"
    ours, differences = slopes(f, a, b)
    np.testing.assert_allclose(ours, differences, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["betainc", "betaincc", "fdtr", "fdtrc"])
def test_functions_of_three(name: str) -> None:
    f, expected = getattr(special, name), getattr(scipy.special, name)
    a, b, c = (x.ravel() for x in np.meshgrid(POSITIVE, POSITIVE, np.asarray([1e-5, 0.3, 0.9])))
    for way in (f, jit(f)):
        np.testing.assert_allclose(way(a, b, c), expected(a, b, c), rtol=2e-12)
    ours, differences = slopes(f, a[::5], b[::5], c[::5] + 0.01)
    np.testing.assert_allclose(ours, differences, rtol=2e-6, atol=1e-8)


def test_gamma_of_zeros_has_their_sign() -> None:
    zeros = tnp.asarray([0.0, -0.0])
    assert np.asarray(special.gamma(zeros)).tolist() == [math.inf, -math.inf]
    assert np.asarray(special.gammasgn(zeros)).tolist() == [1.0, -1.0]
    assert np.signbit(special.rgamma(zeros)).tolist() == [False, True]
    assert np.isnan(special.gamma(tnp.asarray([-1.0, -2.0, -np.inf]))).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("axes", [(), (None,), (0,), (1,), ((0, 1),)])
def test_exponentials_are_normalised_over_all_axes_unless_some_are_named(name: str, axes: Any) -> None:
    x = np.arange(6.0).reshape(2, 3) ** 1.5
    expected = getattr(scipy.special, name)(x, *axes)
    np.testing.assert_allclose(getattr(special, name)(x, *axes), expected, rtol=1e-14)
    np.testing.assert_allclose(jit(lambda x: getattr(special, name)(x, *axes))(x), expected, rtol=1e-14)


def test_ways_to_choose_are_scipy_s() -> None:
    n, k = (x.ravel() for x in np.meshgrid([0.0, 1.0, 2.5, 7.0, -1.0], [0.0, 1.0, 1.5, 3.0, 8.0, -1.0]))
    for way in (lambda f: f, jit):
        np.testing.assert_allclose(way(special.comb)(n, k), scipy.special.comb(n, k), rtol=1e-12)
    n, k = n[(n >= 0) & (k >= 0)], k[(n >= 0) & (k >= 0)]  # elsewhere SciPy gives NaN at some places
    found = jit(lambda n, k: special.comb(n, k, repetition=True))(n, k)
    np.testing.assert_allclose(found, scipy.special.comb(n, k, repetition=True), rtol=1e-12)
    assert np.asarray(special.comb(3, [-1.0, -0.5], repetition=True)).tolist() == [0.0, 0.0]
    assert special.comb(5, 2).dtype == "float64"
    with pytest.raises(ArgumentError, match=r"^comb at .*exact=True"):
        special.comb(5, 2, exact=True)


def test_relative_entropy_of_numbers_far_apart() -> None:
    p, q = np.asarray([1e300, 1e-300, 1.0, np.inf]), np.asarray([1e-300, 1e300, 1e-320, 1.0])
    np.testing.assert_allclose(special.rel_entr(p, q), p * (np.log(p) - np.log(q)), rtol=1e-12)
    close = special.rel_entr(1.0, 1.0 + 2.0**-50)
    np.testing.assert_allclose(close, -(2.0**-50), rtol=1e-14)
    assert np.isnan(special.rel_entr(tnp.asarray([0.0, np.nan, 1.0]), tnp.asarray([np.nan, 1.0, np.nan]))).all()
    assert np.asarray(special.rel_entr(tnp.asarray([0.0, 1.0, -1.0]), tnp.asarray([0.0, 0.0, 1.0]))).tolist() == [
        0, np.inf, np.inf,
    ]  # fmt: skip
    by_p, by_q = grad(special.rel_entr, (0, 1))(1e300, 1e-5)
    np.testing.assert_allclose([by_p, by_q], [math.log(1e305) + 1, -1e305], rtol=1e-12)


def test_divergences_of_large_and_nearly_equal_numbers_keep_their_digits() -> None:
    p, q = np.asarray([1e6, 1e9, 3e5]), np.asarray([999e3, 1.0001e9, 3e5 + 1])
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(p, q, strict=True)]
        exact = [float(a * mpmath.log(a / b) - a + b) for a, b in pairs]
    np.testing.assert_allclose(special.kl_div(p, q), exact, rtol=1e-11)


def test_products_with_logarithms_of_nan_are_nan() -> None:
    for f in (special.xlogy, special.xlog1py):
        assert np.isnan(f(0.0, tnp.asarray(np.nan)))
        assert f(0.0, tnp.asarray(0.0)) == 0


def test_products_with_logarithms_of_narrow_integers_are_in_f32_as_all_functions_of_them() -> None:
    narrow = np.ones(2, np.int8)
    for f in (special.xlogy, special.xlog1py):
        assert f(narrow, narrow).dtype == special.gammainc(narrow, narrow).dtype == np.float32


def test_student_of_many_degrees_is_normal_and_smooth_at_its_median() -> None:
    t = np.asarray([-30.0, -2.0, -0.5, 0.0, 1.0, 3.0, np.inf, -np.inf])
    for freedom in (0.1, 3.0, 1000.0, 1e8, 1e300, np.inf):
        expected = scipy.special.stdtr(freedom, t)
        np.testing.assert_allclose(special.stdtr(freedom, tnp.asarray(t)), expected, rtol=1e-8)
    assert abs(float(grad(special.stdtr, 1)(3.0, 0.0)) - 0.36755259694786136) < 1e-15


def test_exact_factorials_are_refused() -> None:
    with pytest.raises(ArgumentError, match="exact=True is for integers of any size"):
        special.factorial(3, exact=True)


def test_hurwitz_zeta() -> None:
    s, q = (
        grid.ravel() for grid in np.meshgrid([1.0001, 1.5, 2.0, 3.7, 12.0, 33.0, 150.0], [0.1, 1.0, 5.0, 50.0, 1e4])
    )
    edges = np.array([[1.0, 2.0, 2.0, 0.5, np.nan, 2.0, np.inf, 2.0], [2.0, 0.0, -1.0, 2.0, 1.0, np.nan, 1.0, np.inf]])
    for way in (special.zeta, jit(special.zeta)):
        np.testing.assert_allclose(way(s, q), scipy.special.zeta(s, q), rtol=2e-14)
        np.testing.assert_allclose(way(*edges), scipy.special.zeta(*edges))
    by_q = grad(lambda s, q: special.zeta(s, q).sum(), 1)(s[s < 40], q[s < 40])
    np.testing.assert_allclose(by_q, -s[s < 40] * scipy.special.zeta(s[s < 40] + 1, q[s < 40]), rtol=1e-12)
    with mpmath.workdps(30):
        expected = [float(mpmath.diff(lambda t, a=a: mpmath.zeta(t, a), b)) for b, a in ((1.5, 0.1), (3.7, 5.0))]
    np.testing.assert_allclose(grad(lambda s: special.zeta(s, np.array([0.1])).sum())(1.5), expected[0], rtol=1e-12)
    np.testing.assert_allclose(grad(lambda s: special.zeta(s, 5.0))(3.7), expected[1], rtol=1e-12)
    assert special.zeta(np.float32(2.0), np.float32(1.0)).dtype == "float32"


def test_hurwitz_zeta_of_negative_q() -> None:
    s, q = np.array([2.0, 3.0, 7.0, 2.0, 3.0, 2.5, 1.0]), np.array([-0.5, -1e-9, -3.75, -1e3 - 0.5, -2.0, -0.5, -0.5])
    expected = scipy.special.zeta(s, q)  # NaN at 2.5, whose terms are complex
    assert np.isnan(expected[5])
    for way in (special.zeta, jit(special.zeta)):
        np.testing.assert_allclose(way(s, q), expected, rtol=1e-13)
        single = s.astype("f4")[:3], q.astype("f4")[:3]
        np.testing.assert_allclose(way(*single), scipy.special.zeta(*single), rtol=1e-5)
    by_q = vmap(grad(special.zeta, 1))(s[:4], q[:4])
    np.testing.assert_allclose(by_q, -s[:4] * scipy.special.zeta(s[:4] + 1, q[:4]), rtol=1e-12, atol=1e-13)


def test_riemann_zeta() -> None:
    s = np.array([-50.3, -20.5, -7.0, -3.5, -2.0, -1.0, -0.1, 0.0, 0.3, 0.5, 0.99, 1.0, 2.0, 9.5, 60.0, np.inf, np.nan])
    expected = [float(mpmath.zeta(v)) if v == v and v != 1 else np.inf if v == 1 else np.nan for v in s]
    for way in (special.zeta, jit(special.zeta)):
        np.testing.assert_allclose(way(s), expected, rtol=1e-13, atol=1e-300)
    for v in (-3.5, -2.0, 0.5, 3.0):
        np.testing.assert_allclose(grad(special.zeta)(v), float(mpmath.zeta(v, derivative=1)), rtol=1e-12)


def test_polygamma_of_several_orders_takes_negative_arguments() -> None:
    orders, x = np.array([[0], [1], [2], [3]]), np.array([-5.5, -0.5, 0.5, 7.0])
    wanted = scipy.special.polygamma(orders, x)
    np.testing.assert_allclose(special.polygamma(orders, x), wanted, rtol=1e-11)
    np.testing.assert_allclose(jit(lambda x: special.polygamma(orders, x))(x), wanted, rtol=1e-11)
    slopes = grad(lambda x: special.polygamma(orders[:3], x).sum())(x)
    np.testing.assert_allclose(slopes, wanted[1:].sum(0), rtol=1e-11)


EDGES = [
    ("binom", (200.0, 1e10, 60.0, -2.5, 5.0, 5.0), (3.0, 3.0, 30.0, 3.0, 6.0, -1.0)),
    ("comb", (1000.0, 1000.0, 1e5, 52.0), (2.0, 500.0, 5.0, 5.0)),
    ("beta", (1e7, 1e300, 200.0), (0.5, 1e-3, 200.0)),
    ("betaln", (1e10, 1e-300, 0.0), (0.5, 1e-300, 1.0)),
    ("poch", (1e5, 1e20, 0.0, -3.0, -3.0, -1.0, 1.0, -0.5), (2.0, 0.5, -1.0, 2.0, 5.0, 0.5, -2.0, 0.5)),
    ("stdtr", (1e-20, 0.0, -1.0, 0.3), (0.5, 0.5, 0.5, 0.7)),
    ("pseudo_huber", (1e300, 1e-20), (0.0, 1e20)),
    ("inv_boxcox", (1e300, 0.5, 0.5), (0.0, 1e-20, 1e-3)),
    ("boxcox", (0.0, 0.0, np.inf, 2.0, 2.0), (0.0, 1e-3, 0.0, 1e-9, 0.02)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "first", "second"), EDGES)
def test_edges_of_two_operands_are_scipy_s(name: str, first: Any, second: Any) -> None:
    a, b = np.asarray(first), np.asarray(second)
    found = getattr(special, name)(tnp.asarray(a), tnp.asarray(b))
    np.testing.assert_allclose(found, getattr(scipy.special, name)(a, b), rtol=1e-12)


SLOPES = [
    ("rgamma", (-2.0,), 0, 2.0, -3.691137340393867),  # n! and 2 n! psi(n + 1), by the sign of (-1)^n
    ("poch", (-3.0, 5.0), 0, -6.0, 10.0),  # z (z + 1) ... (z + 4)
    ("poch", (-3.0, 2.0), 0, -5.0, 2.0),
    ("poch", (2.0, 0.0), 1, 0.42278433509846713, 0.8236806608528794),  # psi(2), and psi(2)^2 + psi'(2)
    ("boxcox", (2.0, 0.0), 1, math.log(2) ** 2 / 2, math.log(2) ** 3 / 3),
    ("inv_boxcox", (0.5, 1e-20), 1, -0.125 * math.exp(0.5), (1 / 12 + 1 / 64) * math.exp(0.5)),
    ("pseudo_huber", (1.0, 0.0), 1, 0.0, 1.0),
    ("hyp2f1", (0.0, 0.5, 1.0, 1.0), 3, 0.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "place", "slope", "bend"), SLOPES)
def test_derivatives_at_edges_are_limits(name: str, operands: Any, place: int, slope: float, bend: float) -> None:
    first = grad(getattr(special, name), place)
    np.testing.assert_allclose(first(*operands), slope, rtol=1e-12)
    np.testing.assert_allclose(grad(first, place)(*operands), bend, rtol=1e-11)


def test_single_precision_keeps_small_shares() -> None:
    v, t = np.float32(1e5), np.float32(-1)
    np.testing.assert_allclose(special.stdtr(v, t), scipy.special.stdtr(1e5, -1.0), rtol=1e-6)
    np.testing.assert_allclose(
        special.fdtrc(np.float32(2), v, np.float32(3)), scipy.special.fdtrc(2, 1e5, 3), rtol=1e-6
    )
    assert float(special.voigt_profile(1.0, 0.0, 1e-300)) == pytest.approx(1e-300 / math.pi, rel=1e-13)
