"""The incomplete beta function against SciPy's, its derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer.scipy.special import betainc, betaincc


@pytest.mark.parametrize(("largest", "tolerance"), [(1e1, 1e-13), (1e3, 5e-11), (1e5, 5e-9)])
def test_values_are_scipys(largest: float, tolerance: float, rng: np.random.Generator) -> None:
    a, b = 10 ** rng.uniform(-2, np.log10(largest), (2, 2000))
    x = np.clip(rng.beta(a, b), 1e-300, 1 - 1e-16)
    expected = special.betainc(a, b, x)
    seen = expected > 1e-280
    np.testing.assert_allclose(np.asarray(betainc(a, b, x))[seen], expected[seen], rtol=tolerance)
    np.testing.assert_array_equal(tracer.jit(betainc)(a[:50], b[:50], x[:50]), betainc(a[:50], b[:50], x[:50]))


def test_the_rest_of_small_places_is_no_less_exact() -> None:
    """1 - x is 1 there, of which nothing is left over."""
    a, b, x = np.asarray([[0.01, 5.0, 1e-20], [1e-3, 5.0, 1e-300], [0.1, 3.0, 1e-17], [2.0, 3.0, 0.9]]).T
    expected = special.betaincc(a, b, x)
    np.testing.assert_allclose(betaincc(a, b, x), expected, rtol=1e-13)
    np.testing.assert_allclose(tracer.jit(betaincc)(a, b, x), expected, rtol=1e-13)
    narrow = betaincc(tnp.asarray(0.5, "float32"), tnp.asarray(0.5, "float32"), tnp.asarray(1e-9, "float32"))
    assert float(narrow) == pytest.approx(special.betaincc(0.5, 0.5, 1e-9), rel=1e-7)
    for place in range(3):
        slopes = tracer.vmap(tracer.grad(betaincc, argnums=place))(a, b, x)
        np.testing.assert_array_equal(slopes, -np.asarray(tracer.vmap(tracer.grad(betainc, argnums=place))(a, b, x)))
    ends = np.array([-0.1, 0.0, 0.5, 1.0, 1.1, np.nan])
    np.testing.assert_allclose(betaincc(2.0, 3.0, ends), [np.nan, 1.0, 0.3125, 0.0, np.nan, np.nan], rtol=1e-15)


def test_ends_and_what_is_outside() -> None:
    x = np.array([-0.1, 0.0, 0.5, 1.0, 1.1, np.nan])
    np.testing.assert_allclose(betainc(2.0, 3.0, x), [np.nan, 0.0, 0.6875, 1.0, np.nan, np.nan], rtol=1e-15)
    assert np.isnan(np.asarray(betainc(np.array([0.0, -1.0, 1.0]), np.array([0.0, 1.0, -1.0]), 0.5))).all()
    assert betainc(tnp.ones((2, 1)), tnp.ones(3), 0.5).shape == (2, 3)
    assert (
        betainc(tnp.asarray(2.0, "float32"), tnp.asarray(3.0, "float32"), tnp.asarray(0.5, "float32")).dtype
        == "float32"
    )
    assert betainc(2, 3, 0.5).dtype == np.float64


def test_parameters_without_mass_between_give_jumps() -> None:
    a, b, x = np.meshgrid([0.0, -0.0, 0.5, 2.0, np.inf], [0.0, 0.5, 3.0, np.inf], [-0.1, 0.0, 0.3, 1.0, np.nan])
    said = ~((a == np.inf) & (b == np.inf) & ((x == 0) | (x == 1)))  # NaN in SciPy, where the ends are sure
    for ours, theirs in ((betainc, special.betainc), (betaincc, special.betaincc)):
        expected = theirs(a, b, x)
        np.testing.assert_allclose(np.asarray(ours(a, b, x))[said], expected[said], rtol=1e-13)
    slopes = tracer.grad(lambda *v: betainc(*v).sum(), argnums=(0, 1, 2))(*(tnp.asarray(v[said]) for v in (a, b, x)))
    assert all(np.isfinite(np.asarray(slope)).all() for slope in slopes)


@pytest.mark.parametrize(
    ("place", "point"),
    covering(
        [0, 1, 2],
        [
            (2.5, 3.5, 0.3),
            (30.0, 2.0, 0.95),
            (0.1, 0.2, 0.7),
            (3.0, 40.0, 0.2),
            (0.9, 1.0, 0.3),
            (1.0, 4.0, 0.3),
            (7.0, 2.0, 0.8),
        ],
        least=9,
    ),
)
def test_derivatives_are_finite_differences(point: tuple[float, float, float], place: int) -> None:
    step = 1e-6 * point[place]
    up, down = (special.betainc(*(v + sign * step * (n == place) for n, v in enumerate(point))) for sign in (1, -1))
    slope = tracer.grad(betainc, argnums=place)
    assert float(slope(*point)) == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9)
    assert float(tracer.jit(slope)(*point)) == pytest.approx(float(slope(*point)), rel=1e-12)
    _, tangent = tracer.jvp(lambda v: betainc(*point[:place], v, *point[place + 1 :]), (point[place],), (1.0,))
    assert float(tangent) == pytest.approx(float(slope(*point)), rel=1e-12)


def test_the_ends_keep_nan_out_of_gradients() -> None:
    slopes = tracer.grad(lambda x: betainc(2.0, 3.0, x).sum())(np.array([0.0, 0.5, 1.0]))
    assert np.isfinite(np.asarray(slopes)).all()
